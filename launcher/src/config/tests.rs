use super::*;
use crate::cli;

fn resolve_words(words: &[&str]) -> Result<LauncherConfig, StartError> {
    resolve_with(words, |_| {})
}

fn resolve_with(words: &[&str], change: impl Fn(&mut Surroundings)) -> Result<LauncherConfig, StartError> {
    let cache = std::env::temp_dir().join("text-generation-launcher-tests");
    let mut surroundings = Surroundings { xdg_cache_home: Some(cache), ..Surroundings::default() };
    change(&mut surroundings);
    let argv: Vec<_> = ["launcher"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    let (arguments, _) = cli::parse(&argv).unwrap();
    resolve(arguments, &surroundings, &Gpus::default())
}

fn cause(words: &[&str]) -> String {
    resolve_words(words).unwrap_err().cause
}

#[test]
fn without_flags_the_demo_model_is_served_with_tgis_defaults() {
    let config = resolve_words(&["--hostname", "0.0.0.0", "--port", "3000"]).unwrap();
    assert_eq!(config.model.model_id, None);
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.server.grace, Duration::from_secs(90));
    assert_eq!(config.server.compute_type, "1-cpu");
    assert_eq!((config.shards.count, config.shards.device.as_str()), (1, "auto"));
    assert_eq!(config.log, LogConfig { level: "info".to_owned(), json: false });
    assert!(config.model.cache_folder.ends_with(CACHE_NAME));
}

#[test]
fn a_hostname_that_is_no_address_listens_everywhere_and_says_so() {
    let config = resolve_words(&["--hostname", "3f2a91c0ffee"]).unwrap();
    assert_eq!(config.server.hostname, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    assert!(config.warnings[0].contains("3f2a91c0ffee"));
    assert!(resolve_words(&["--host", "::1"]).unwrap().warnings.is_empty());
}

#[test]
fn limits_must_fit_into_each_other() {
    let both = cause(&["--max-input-tokens", "4", "--max-input-length", "4"]);
    assert!(both.contains("--max-input-length"), "{both}");
    let order = cause(&["--max-input-tokens", "10", "--max-total-tokens", "10"]);
    assert!(order.contains("11") && order.contains("10"), "{order}");
    assert!(resolve_words(&["--max-input-length", "9", "--max-total-tokens", "10"]).is_ok());
    assert!(cause(&["--max-total-tokens", "10", "--max-batch-total-tokens", "9"]).contains("--max-batch-total-tokens"));
    assert!(cause(&["--max-batch-prefill-tokens", "10", "--max-batch-total-tokens", "9"]).contains("prefill"));
    for flag in ["--validation-workers", "--max-batch-size", "--max-concurrent-requests", "--payload-limit"] {
        assert_eq!(cause(&[flag, "0"]), format!("`{flag}` is 0"));
    }
}

#[test]
fn attention_back_ends_of_tgi_are_refused_by_name() {
    for name in ["flashinfer", "paged", "flashdecoding"] {
        assert!(cause(&["--attention", name]).contains(name));
    }
    let plain = resolve_words(&["--disable-custom-kernels"]).unwrap();
    assert_eq!(plain.shards.attention.as_deref(), Some("sdpa"));
    assert!(resolve_words(&["--disable-custom-kernels", "--attention", "triton"]).is_err());
    assert!(resolve_words(&["--device", "cpu", "--attention", "triton"]).is_err());
}

#[test]
fn rope_scaling_and_its_factor_complete_each_other() {
    let rope = |words: &[&str]| resolve_words(words).unwrap().shards.rope;
    assert_eq!(rope(&[]), None);
    assert_eq!(rope(&["--rope-factor", "2"]), Some(("linear".to_owned(), 2.0)));
    assert_eq!(rope(&["--rope-scaling", "dynamic"]), Some(("dynamic".to_owned(), 1.0)));
    assert!(resolve_words(&["--rope-factor", "0.5"]).is_err());
}

#[test]
fn values_out_of_range_are_refused() {
    assert!(cause(&["--cuda-memory-fraction", "1.5"]).contains("1.5"));
    assert!(cause(&["--cuda-memory-fraction", "0"]).contains("`--cuda-memory-fraction` is 0"));
    assert!(cause(&["--model-id", "/no/such/folder"]).contains("/no/such/folder"));
    assert!(cause(&["--model-id", "missing.gguf"]).contains("missing.gguf"));
    assert!(cause(&["--tokenizer-config-path", "/no/file"]).contains("/no/file"));
    assert!(cause(&["--cache-folder", "/dev/null/x"]).contains("/dev/null/x"));
    assert!(cause(&["--shard-uds-path", "/no/folder/s"]).contains("/no/folder/s"));
    let level = resolve_with(&[], |around| around.log_level = Some("a=b=c".to_owned()));
    assert!(level.unwrap_err().cause.contains("LOG_LEVEL"));
    let threads = resolve_with(&[], |around| around.omp_num_threads = Some("many".to_owned()));
    assert!(threads.unwrap_err().cause.contains("OMP_NUM_THREADS"));
}

#[test]
fn a_hub_model_needs_no_writable_cache_of_converted_models() {
    assert!(resolve_words(&["--model-id", "owner/name", "--cache-folder", "/dev/null/x"]).is_ok());
}

#[test]
fn variables_that_are_no_flags_count() {
    let config = resolve_with(&["--master-addr", "10.0.0.1"], |around| {
        around.omp_num_threads = Some("3".to_owned());
        around.omp_wait_policy = Some("active".to_owned());
        around.compute_type = Some("mine".to_owned());
        around.hf_api_token = Some("old".to_owned());
    })
    .unwrap();
    assert_eq!(config.shards.threads, 3);
    assert!(!config.shards.passive_waiting);
    assert_eq!(config.shards.rendezvous.as_deref(), Some("tcp://10.0.0.1:29500"));
    assert_eq!(config.server.compute_type, "mine");
    assert_eq!(config.model.token_from_old_name.as_deref(), Some("old"));
}

#[test]
fn the_port_and_paths_of_vertex_reach_the_router() {
    let words = ["--port", "80", "--aip-http-port", "8081", "--aip-predict-route", "/p", "--aip-health-route", "/h"];
    let server = resolve_words(&words).unwrap().server;
    assert_eq!(server.port, 8081);
    assert_eq!((server.aip_predict_route.as_deref(), server.aip_health_route.as_deref()), (Some("/p"), Some("/h")));
}

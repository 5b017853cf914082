//! The router's command line: what becomes of its flags, and which are refused.

use super::*;

fn task(flags: &[&str]) -> Result<Task, CliError> {
    let line = std::iter::once("text-generation-router").chain(flags.iter().copied());
    Cli::try_parse_from(line).unwrap().into_task()
}

fn served(flags: &[&str]) -> RouterConfig {
    match task(flags).unwrap() {
        Task::Serve(config) => *config,
        Task::PrintSchema | Task::PrintParameters => panic!("nothing is served"),
    }
}

#[test]
fn flags_become_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().to_str().unwrap();
    let config = served(&["--tokenizer-name", model, "-p", "81", "--max-input-length", "7", "--json-output"]);
    assert_eq!((config.port, config.limits.max_input_tokens, config.log.json), (81, Some(7), true));
    assert_eq!(config.model_id, model);
    assert_eq!(config.shard_sockets, [PathBuf::from(DEFAULT_SOCKET)]);
    assert_eq!(config.limits, Limits { max_input_tokens: Some(7), ..Limits::default() });
    assert!(!config.control_channel);
}

#[test]
fn a_refusal_names_the_flag_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().to_str().unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["--prometheus-port", "9001"], "`--prometheus-port` is not available yet: `/metrics` is on the main port"),
        (&["--otlp-service-name", "mine"], "`--otlp-service-name` is not available yet"),
        (&["--waiting-served-ratio", "0.5"], "`--waiting-served-ratio` is not available yet"),
        (&["--trust-remote-code"], "`--trust-remote-code` is not available yet"),
        (&["--ngrok"], "`--ngrok` is not available yet"),
        (&["--max-best-of", "0"], "`--max-best-of 0` would serve no request"),
        (&["--hostname", "here"], "`--hostname here` is not an IP address"),
        (&["--tokenizer-name", "/nowhere"], "`/nowhere` is not a local folder"),
        (&["--config", "/nowhere.json"], "cannot read `/nowhere.json`"),
    ];
    for (flags, cause) in cases {
        let named = flags.iter().any(|flag| ["--tokenizer-name", "--config"].contains(flag));
        let flags = if named { flags.to_vec() } else { [&["--tokenizer-name", model], flags].concat() };
        let refusal = task(&flags).unwrap_err();
        assert!(refusal.cause.starts_with(cause), "{refusal}");
        assert!(!refusal.hint.is_empty());
    }
    assert_eq!(task(&[]).unwrap_err().cause, "no model was named");
}

#[test]
fn values_that_ask_for_nothing_pass() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().to_str().unwrap();
    let neutral = ["--prometheus-port", "9000", "--usage-stats", "off", "--disable-grammar-support"];
    served(&[&["--tokenizer-name", model], neutral.as_slice()].concat());
}

#[test]
fn a_configuration_replaces_every_flag() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = served(&["--tokenizer-name", folder.path().to_str().unwrap()]);
    config.port = 4321;
    let file = folder.path().join("router.json");
    std::fs::write(&file, serde_json::to_string(&config).unwrap()).unwrap();
    assert_eq!(served(&["--config", file.to_str().unwrap(), "--port", "1"]), config);
    std::fs::write(&file, r#"{"port": 1, "surprise": 2}"#).unwrap();
    let refusal = task(&["--config", file.to_str().unwrap()]).unwrap_err();
    assert!(refusal.cause.contains("surprise"), "{refusal}");
}

#[test]
fn the_schema_needs_no_model() {
    assert!(matches!(task(&["print-schema"]).unwrap(), Task::PrintSchema));
    assert!(matches!(task(&["print-parameters"]).unwrap(), Task::PrintParameters));
}

#[test]
fn the_port_and_paths_of_vertex_are_flags() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().to_str().unwrap();
    let flags = ["--port", "80", "--aip-http-port", "8081", "--aip-predict-route", "/p", "--aip-health-route", "/h"];
    let config = served(&[&["--tokenizer-name", model], flags.as_slice()].concat());
    assert_eq!(config.port, 8081);
    assert_eq!((config.aip_predict_route.as_deref(), config.aip_health_route.as_deref()), (Some("/p"), Some("/h")));
}

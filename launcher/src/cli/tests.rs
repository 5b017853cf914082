use super::*;

/// Long flag, variable and default of every launcher flag of TGI 3.3.6. Where TGI has no default, neither do we.
const TGI: &[(&str, &str, &str)] = &[
    ("model-id", "MODEL_ID", ""),
    ("revision", "REVISION", ""),
    ("validation-workers", "VALIDATION_WORKERS", "2"),
    ("sharded", "SHARDED", ""),
    ("num-shard", "NUM_SHARD", ""),
    ("quantize", "QUANTIZE", ""),
    ("speculate", "SPECULATE", ""),
    ("dtype", "DTYPE", ""),
    ("kv-cache-dtype", "KV_CACHE_DTYPE", ""),
    ("trust-remote-code", "TRUST_REMOTE_CODE", ""),
    ("max-concurrent-requests", "MAX_CONCURRENT_REQUESTS", "128"),
    ("max-best-of", "MAX_BEST_OF", "2"),
    ("max-stop-sequences", "MAX_STOP_SEQUENCES", "4"),
    ("max-top-n-tokens", "MAX_TOP_N_TOKENS", "5"),
    ("max-input-tokens", "MAX_INPUT_TOKENS", ""),
    ("max-input-length", "MAX_INPUT_LENGTH", ""),
    ("max-total-tokens", "MAX_TOTAL_TOKENS", ""),
    ("waiting-served-ratio", "WAITING_SERVED_RATIO", ""),
    ("max-batch-prefill-tokens", "MAX_BATCH_PREFILL_TOKENS", ""),
    ("max-batch-total-tokens", "MAX_BATCH_TOTAL_TOKENS", ""),
    ("max-waiting-tokens", "MAX_WAITING_TOKENS", ""),
    ("max-batch-size", "MAX_BATCH_SIZE", ""),
    ("cuda-graphs", "CUDA_GRAPHS", ""),
    ("hostname", "HOSTNAME", "0.0.0.0"),
    ("port", "PORT", "3000"),
    ("prometheus-port", "PROMETHEUS_PORT", ""),
    ("shard-uds-path", "SHARD_UDS_PATH", ""),
    ("master-addr", "MASTER_ADDR", ""),
    ("master-port", "MASTER_PORT", ""),
    ("huggingface-hub-cache", "HUGGINGFACE_HUB_CACHE", ""),
    ("weights-cache-override", "WEIGHTS_CACHE_OVERRIDE", ""),
    ("disable-custom-kernels", "DISABLE_CUSTOM_KERNELS", "false"),
    ("cuda-memory-fraction", "CUDA_MEMORY_FRACTION", "1"),
    ("rope-scaling", "ROPE_SCALING", ""),
    ("rope-factor", "ROPE_FACTOR", ""),
    ("json-output", "JSON_OUTPUT", "false"),
    ("otlp-endpoint", "OTLP_ENDPOINT", ""),
    ("otlp-service-name", "OTLP_SERVICE_NAME", ""),
    ("cors-allow-origin", "CORS_ALLOW_ORIGIN", ""),
    ("api-key", "API_KEY", ""),
    ("watermark-gamma", "WATERMARK_GAMMA", "0.5"),
    ("watermark-delta", "WATERMARK_DELTA", "2"),
    ("ngrok", "NGROK", ""),
    ("ngrok-authtoken", "NGROK_AUTHTOKEN", ""),
    ("ngrok-edge", "NGROK_EDGE", ""),
    ("tokenizer-config-path", "TOKENIZER_CONFIG_PATH", ""),
    ("disable-grammar-support", "DISABLE_GRAMMAR_SUPPORT", "false"),
    ("max-client-batch-size", "MAX_CLIENT_BATCH_SIZE", "4"),
    ("lora-adapters", "LORA_ADAPTERS", ""),
    ("usage-stats", "USAGE_STATS", "on"),
    ("payload-limit", "PAYLOAD_LIMIT", "2000000"),
    ("enable-prefill-logprobs", "ENABLE_PREFILL_LOGPROBS", "false"),
    ("graceful-termination-timeout", "GRACEFUL_TERMINATION_TIMEOUT", "90"),
];

fn parse_words(words: &[&str]) -> Result<(Arguments, ArgMatches), clap::Error> {
    let argv: Vec<_> = [PROGRAM].iter().chain(words).map(|word| (*word).to_owned()).collect();
    parse(&argv)
}

fn arguments(words: &[&str]) -> Arguments {
    parse_words(words).unwrap().0
}

#[test]
fn the_command_is_consistent() {
    command().debug_assert();
}

#[test]
fn every_flag_of_tgi_has_its_variable_and_default() {
    let command = command();
    for (long, variable, default) in TGI {
        let argument = command.get_arguments().find(|argument| argument.get_long() == Some(long));
        let argument = argument.unwrap_or_else(|| panic!("--{long} is missing"));
        assert_eq!(argument.get_env().unwrap().to_str(), Some(*variable), "--{long}");
        let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        assert_eq!(defaults.join(","), *default, "--{long}");
    }
}

#[test]
fn spellings_of_public_guides_work() {
    let given = arguments(&[
        "--model",
        "a/b",
        "--max-model-len",
        "20",
        "--tp",
        "2",
        "--max-num-seqs",
        "3",
        "--max-num-batched-tokens",
        "9",
        "--gpu-memory-utilization",
        "0.5",
        "--host",
        "127.0.0.1",
        "--served-model-name",
        "c",
        "-p",
        "81",
        "-g",
        "7",
    ]);
    assert_eq!(given.model.model_id.as_deref(), Some("a/b"));
    assert_eq!(given.model.served_model_name.as_deref(), Some("c"));
    assert_eq!(given.limits.max_total_tokens, Some(20));
    assert_eq!(given.shards.num_shard, Some(2));
    assert_eq!(given.limits.max_batch_size, Some(3));
    assert_eq!(given.limits.max_batch_prefill_tokens, Some(9));
    assert_eq!(given.shards.cuda_memory_fraction, 0.5);
    assert_eq!((given.server.hostname.as_str(), given.server.port), ("127.0.0.1", 81));
    assert_eq!(given.server.graceful_termination_timeout, 7);
    assert_eq!(arguments(&["--tensor-parallel-size", "4"]).shards.num_shard, Some(4));
}

#[test]
fn switches_take_a_value_only_with_an_equals_sign() {
    assert!(arguments(&["--json-output"]).server.json_output);
    assert!(!arguments(&["--json-output=0"]).server.json_output);
    assert_eq!(arguments(&["--json-output", "env"]).action, Some(Action::Env));
    assert!(arguments(&["-e"]).server.print_env);
    assert_eq!(arguments(&["--sharded", "1"]).shards.sharded, Some(true));
}

#[test]
fn an_unknown_flag_is_a_usage_error() {
    assert_eq!(parse_words(&["--no-such-flag"]).unwrap_err().exit_code(), 2);
    assert_eq!(parse_words(&["--version"]).unwrap_err().exit_code(), 0);
}

#[test]
fn every_absent_flag_is_refused_by_name() {
    for flag in absent::ABSENT {
        let words = [format!("--{}=7", flag.long)];
        let (_, matches) = parse_words(&[&words[0]]).unwrap();
        let error = refuse_absent(&matches).unwrap_err();
        assert!(error.cause.contains(flag.long) && error.cause.contains(flag.feature), "{error}");
        assert!(!error.way_out.is_empty());
    }
    for words in [["--quantize", "gptq"], ["--quantization", "awq"], ["--cuda-graphs", "1,2"]] {
        assert!(refuse_absent(&parse_words(&words).unwrap().1).is_err(), "{words:?}");
    }
    assert!(refuse_absent(&parse_words(&["--ngrok"]).unwrap().1).is_err());
}

#[test]
fn neutral_values_pass() {
    for flag in absent::ABSENT {
        for neutral in flag.neutral {
            let word = format!("--{}={neutral}", flag.long);
            if neutral.is_empty() {
                continue;
            }
            assert_eq!(refuse_absent(&parse_words(&[&word]).unwrap().1), Ok(()), "{word}");
        }
    }
    let others = ["--disable-grammar-support", "--usage-stats=off", "--sharded=false"];
    assert_eq!(refuse_absent(&parse_words(&others).unwrap().1), Ok(()));
}

#[test]
fn help_is_stable() {
    insta::assert_snapshot!(command().term_width(110).render_long_help().to_string());
}

#[test]
fn the_committed_page_of_flags_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/flags.md");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    let hint = "write it anew: text-generation-launcher print-flags --markdown > docs/flags.md";
    assert!(committed == flags_page::markdown(&command()), "{hint}");
}

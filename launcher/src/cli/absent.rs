//! Flags of TGI whose feature does not exist here yet. They are data: one row a flag. A row becomes a flag of the command
//! line, a line of `--help`, and a refusal when a value is given that would need the feature.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};

use crate::error::StartError;

/// One flag that is known by name only.
#[derive(Debug, Clone, Copy)]
pub struct AbsentFlag {
    /// Long name.
    pub long: &'static str,
    /// The variable that sets it.
    pub variable: &'static str,
    /// Other spelling, when public guides use one.
    pub alias: Option<&'static str>,
    /// Whether it takes no value on the command line.
    pub switch: bool,
    /// Values that ask for nothing and pass.
    pub neutral: &'static [&'static str],
    /// What is missing.
    pub feature: &'static str,
    /// What to do instead.
    pub way_out: &'static str,
}

const OFF: &[&str] = &["false", "0", "no", "off", "f", "n"];

const fn valued(
    long: &'static str,
    variable: &'static str,
    neutral: &'static [&'static str],
    feature: &'static str,
    way_out: &'static str,
) -> AbsentFlag {
    AbsentFlag { long, variable, alias: None, switch: false, neutral, feature, way_out }
}

const fn switch(
    long: &'static str,
    variable: &'static str,
    feature: &'static str,
    way_out: &'static str,
) -> AbsentFlag {
    AbsentFlag { long, variable, alias: None, switch: true, neutral: OFF, feature, way_out }
}

/// Every such flag, in the order of `--help`.
pub const ABSENT: &[AbsentFlag] = &[
    AbsentFlag {
        alias: Some("quantization"),
        ..valued(
            "quantize",
            "QUANTIZE",
            &["none"],
            "quantised weights",
            "leave it out: the model is served in the precision of `--dtype`",
        )
    },
    valued("speculate", "SPECULATE", &["0"], "speculative decoding", "leave it out or give 0"),
    valued(
        "kv-cache-dtype",
        "KV_CACHE_DTYPE",
        &["auto"],
        "a KV cache in another format than the model",
        "leave it out: the cache has the format of `--dtype`",
    ),
    switch(
        "trust-remote-code",
        "TRUST_REMOTE_CODE",
        "running code from a model folder",
        "leave it out, and serve a model of a known family",
    ),
    valued(
        "lora-adapters",
        "LORA_ADAPTERS",
        &[""],
        "LoRA adapters",
        "merge the adapter into the model, and serve the merged folder",
    ),
    valued("cuda-graphs", "CUDA_GRAPHS", &["0", ""], "CUDA graphs of chosen batch sizes", "leave it out or give 0"),
    valued(
        "waiting-served-ratio",
        "WAITING_SERVED_RATIO",
        &["0.3"],
        "a ratio of waiting to running requests (new requests join at every step)",
        "leave it out",
    ),
    valued(
        "max-waiting-tokens",
        "MAX_WAITING_TOKENS",
        &["20"],
        "a wait before new requests join (they join at every step)",
        "leave it out",
    ),
    valued(
        "prometheus-port",
        "PROMETHEUS_PORT",
        &["9000"],
        "a second port for metrics",
        "leave it out: `/metrics` answers on the main port",
    ),
    valued("otlp-endpoint", "OTLP_ENDPOINT", &[], "traces over OTLP", "leave it out"),
    valued(
        "otlp-service-name",
        "OTLP_SERVICE_NAME",
        &["text-generation-inference.router"],
        "traces over OTLP",
        "leave it out",
    ),
    switch("ngrok", "NGROK", "a tunnel through ngrok", "run the ngrok client beside the server"),
    valued(
        "ngrok-authtoken",
        "NGROK_AUTHTOKEN",
        &[],
        "a tunnel through ngrok",
        "run the ngrok client beside the server",
    ),
    valued("ngrok-edge", "NGROK_EDGE", &[], "a tunnel through ngrok", "run the ngrok client beside the server"),
];

// === impl AbsentFlag ===

impl AbsentFlag {
    /// The flag as `clap` knows it. Its value stays a string: only `check` looks at it.
    pub fn argument(&self) -> Arg {
        let mut argument = Arg::new(self.long)
            .long(self.long)
            .env(self.variable)
            .hide_env_values(true)
            .help_heading("Known, but not available yet")
            .help(self.help());
        if let Some(alias) = self.alias {
            argument = argument.visible_alias(alias);
        }
        if self.switch {
            argument = argument.num_args(0..=1).require_equals(true).default_missing_value("true");
        }
        argument
    }

    /// Refuse the flag when its value needs the missing feature.
    ///
    /// # Errors
    /// Names the flag, the value, the feature and the way out.
    pub fn check(&self, matches: &ArgMatches) -> Result<(), StartError> {
        let source = match matches.value_source(self.long) {
            Some(ValueSource::CommandLine) => format!("`--{}`", self.long),
            Some(ValueSource::EnvVariable) => format!("variable `{}`", self.variable),
            _ => return Ok(()),
        };
        let value = matches.get_one::<String>(self.long).map(String::as_str).unwrap_or_default();
        if self.neutral.iter().any(|neutral| neutral.eq_ignore_ascii_case(value.trim())) {
            return Ok(());
        }
        Err(StartError::new(format!("{source} (`{value}`) is not available yet: {}", self.feature), self.way_out))
    }

    fn help(&self) -> String {
        match self.neutral.iter().find(|neutral| !neutral.is_empty()) {
            Some(neutral) => format!("Not available yet, only `{neutral}` passes: {}", self.feature),
            None => format!("Not available yet, refused: {}", self.feature),
        }
    }
}

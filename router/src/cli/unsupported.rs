//! Flags of TGI's router whose features do not exist here: known by name, so that they are refused with the reason and
//! not taken for a mistype.

use super::CliError;

/// TGI's defaults of flags that have no effect here.
const DEFAULT_WAITING_SERVED_RATIO: f32 = 1.2;
const DEFAULT_MAX_WAITING_TOKENS: usize = 20;
const DEFAULT_MAX_IMAGE_FETCH_SIZE: usize = 1 << 30;
const DEFAULT_PROMETHEUS_PORT: u16 = 9000;
const DEFAULT_OTLP_SERVICE_NAME: &str = "text-generation-inference.router";

/// Known flags whose features do not exist. Any value but the default is refused.
#[derive(Debug, clap::Args)]
pub(super) struct UnsupportedFlags {
    #[arg(long, env, hide = true, default_value_t = DEFAULT_WAITING_SERVED_RATIO)]
    waiting_served_ratio: f32,
    #[arg(long, env, hide = true, default_value_t = DEFAULT_MAX_WAITING_TOKENS)]
    max_waiting_tokens: usize,
    #[arg(long, env, hide = true, default_value_t = DEFAULT_MAX_IMAGE_FETCH_SIZE)]
    max_image_fetch_size: usize,
    #[arg(long, env, hide = true)]
    trust_remote_code: bool,
    #[arg(long, env, hide = true, default_value_t = DEFAULT_PROMETHEUS_PORT)]
    prometheus_port: u16,
    #[arg(long, env, hide = true)]
    otlp_endpoint: Option<String>,
    #[arg(long, env, hide = true, default_value = DEFAULT_OTLP_SERVICE_NAME)]
    otlp_service_name: String,
    #[arg(long, env, hide = true)]
    ngrok: bool,
    #[arg(long, env, hide = true, hide_env_values = true)]
    ngrok_authtoken: Option<String>,
    #[arg(long, env, hide = true)]
    ngrok_edge: Option<String>,
}

// === impl UnsupportedFlags ===

impl UnsupportedFlags {
    pub(super) fn check(&self) -> Result<(), CliError> {
        let batching = "requests join at every step";
        let ngrok = "there is no tunnel through ngrok; run the ngrok client beside the server";
        let otlp = "traces are not sent anywhere";
        let given = [
            ("--waiting-served-ratio", self.waiting_served_ratio != DEFAULT_WAITING_SERVED_RATIO, batching),
            ("--max-waiting-tokens", self.max_waiting_tokens != DEFAULT_MAX_WAITING_TOKENS, batching),
            (
                "--max-image-fetch-size",
                self.max_image_fetch_size != DEFAULT_MAX_IMAGE_FETCH_SIZE,
                "no image is fetched",
            ),
            ("--trust-remote-code", self.trust_remote_code, "no code of a model folder is run"),
            ("--prometheus-port", self.prometheus_port != DEFAULT_PROMETHEUS_PORT, "`/metrics` is on the main port"),
            ("--otlp-endpoint", self.otlp_endpoint.is_some(), otlp),
            ("--otlp-service-name", self.otlp_service_name != DEFAULT_OTLP_SERVICE_NAME, otlp),
            ("--ngrok", self.ngrok, ngrok),
            ("--ngrok-authtoken", self.ngrok_authtoken.is_some(), ngrok),
            ("--ngrok-edge", self.ngrok_edge.is_some(), ngrok),
        ];
        match given.iter().find(|(_, given, _)| *given) {
            Some((flag, _, reason)) => Err(CliError::new(
                format!("`{flag}` is not available yet: {reason}"),
                format!("Start without `{flag}` and without its environment variable."),
            )),
            None => Ok(()),
        }
    }
}

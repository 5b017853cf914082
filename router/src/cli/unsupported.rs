//! Flags of TGI's router whose features do not exist here: known by name, so that they are refused and not mistyped.

use super::CliError;

/// TGI's defaults of flags that have no effect here.
const DEFAULT_WAITING_SERVED_RATIO: f32 = 1.2;
const DEFAULT_MAX_WAITING_TOKENS: usize = 20;
const DEFAULT_MAX_IMAGE_FETCH_SIZE: usize = 1 << 30;

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
    #[arg(long, env, hide = true)]
    otlp_endpoint: Option<String>,
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
        let given = [
            ("--waiting-served-ratio", self.waiting_served_ratio != DEFAULT_WAITING_SERVED_RATIO),
            ("--max-waiting-tokens", self.max_waiting_tokens != DEFAULT_MAX_WAITING_TOKENS),
            ("--max-image-fetch-size", self.max_image_fetch_size != DEFAULT_MAX_IMAGE_FETCH_SIZE),
            ("--trust-remote-code", self.trust_remote_code),
            ("--otlp-endpoint", self.otlp_endpoint.is_some()),
            ("--ngrok", self.ngrok),
            ("--ngrok-authtoken", self.ngrok_authtoken.is_some()),
            ("--ngrok-edge", self.ngrok_edge.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(CliError::new(
                format!("`{flag}` is not supported by this server"),
                format!("Start without `{flag}` and without its environment variable."),
            )),
            None => Ok(()),
        }
    }
}

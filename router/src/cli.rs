//! The router's command line and environment, resolved into one `RouterConfig`. The only place that reads either.
//! Flags, variables and defaults are TGI's. A flag whose feature does not exist is known by name and refused.

mod limits;
mod unsupported;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use text_generation_protocol::config::{Limits, LogConfig, RouterConfig, Watermark};
use text_generation_protocol::control::PreparedModel;

use self::limits::LimitFlags;
use self::unsupported::UnsupportedFlags;

/// Where the launcher's shards listen, rank 0 first.
const DEFAULT_SOCKET: &str = "/tmp/text-generation-server-0";
/// Seconds that running requests may go on after SIGTERM.
const DEFAULT_GRACEFUL_TERMINATION_TIMEOUT: u64 = 90;

/// Why the command line cannot be used: what is wrong, and the way out.
#[derive(Debug, thiserror::Error)]
#[error("{cause}\n{hint}")]
pub struct CliError {
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub hint: String,
}

/// HTTP front end and scheduler of the text generation server. Usually started by `text-generation-launcher`.
#[derive(Debug, Parser)]
#[command(name = "text-generation-router", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// A RouterConfig in JSON that replaces every other flag
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    unsupported: UnsupportedFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the OpenAPI document of the HTTP API
    PrintSchema,
    /// Print the reference page of every field of a request, in Markdown
    PrintParameters,
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Task {
    /// Print the OpenAPI document.
    PrintSchema,
    /// Print the page of parameters.
    PrintParameters,
    /// Serve.
    Serve(Box<RouterConfig>),
}

#[derive(Debug, clap::Args)]
struct ServerFlags {
    /// IP address to listen on
    #[arg(long, env, default_value = "0.0.0.0")]
    hostname: String,
    /// Port to listen on
    #[arg(long, short, env, default_value_t = 3000)]
    port: u16,
    /// Unix socket of rank 0; the sockets of other ranks end in their number
    #[arg(long, env, default_value = DEFAULT_SOCKET)]
    master_shard_uds_path: PathBuf,
    /// Local folder of the model
    #[arg(long, env)]
    tokenizer_name: Option<PathBuf>,
    /// A `tokenizer_config.json` whose chat template replaces the model's own
    #[arg(long, env)]
    tokenizer_config_path: Option<PathBuf>,
    /// Chat template that replaces the model's own: a file, or the text of a template itself
    #[arg(long, env)]
    chat_template: Option<String>,
    /// Name of the model's revision, shown by `/info`
    #[arg(long, env)]
    revision: Option<String>,
    /// Bearer key that generating and tokenising routes need
    #[arg(long, env, hide_env_values = true)]
    api_key: Option<String>,
    /// Log JSON lines instead of text
    #[arg(long, env)]
    json_output: bool,
    /// How much to log: `error`, `warn`, `info`, `debug`, `trace` or a filter directive
    #[arg(long, env, default_value = "info")]
    log_level: String,
    /// Origin that browsers may call from (repeatable); any if left out
    #[arg(long, env)]
    cors_allow_origin: Vec<String>,
    /// Seconds that running requests may go on after SIGTERM
    #[arg(long, short, env, default_value_t = DEFAULT_GRACEFUL_TERMINATION_TIMEOUT)]
    graceful_termination_timeout: u64,
    /// Value of the `x-compute-type` header
    #[arg(long, env, default_value = "gpu+optimized")]
    compute_type: String,
    /// Share of the vocabulary that a watermark favours, above 0 and below 1
    #[arg(long, env, default_value_t = Watermark::default().gamma)]
    watermark_gamma: f32,
    /// How much a watermark raises the logits of favoured tokens
    #[arg(long, env, default_value_t = Watermark::default().delta)]
    watermark_delta: f32,
    /// Another path of `/vertex`, for Vertex AI
    #[arg(long, env)]
    aip_predict_route: Option<String>,
    /// Another path of `/health`, for Vertex AI
    #[arg(long, env)]
    aip_health_route: Option<String>,
    /// Port to listen on, for Vertex AI; wins over `--port`
    #[arg(long, env)]
    aip_http_port: Option<u16>,
    /// Has no effect: nothing is reported to anybody
    #[arg(long, env, default_value = "on", value_parser = ["on", "off", "no-stack"])]
    usage_stats: String,
    /// Has no effect: there are no grammars yet, so nothing is to be disabled
    #[arg(long, env)]
    disable_grammar_support: bool,
}

// === impl CliError ===

impl CliError {
    fn new(cause: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { cause: cause.into(), hint: hint.into() }
    }
}

// === impl Cli ===

impl Cli {
    /// What to do, from the command line and the environment.
    ///
    /// # Errors
    /// When a flag is refused, or when the configuration file cannot be used.
    pub fn into_task(self) -> Result<Task, CliError> {
        match self.command {
            Some(Command::PrintSchema) => return Ok(Task::PrintSchema),
            Some(Command::PrintParameters) => return Ok(Task::PrintParameters),
            None => {}
        }
        if let Some(path) = &self.config {
            return read_config(path).map(|config| Task::Serve(Box::new(config)));
        }
        self.unsupported.check()?;
        let model = self.server.model()?;
        let limits = self.limits.resolve()?;
        let config = self.server.resolve(model, limits)?;
        Ok(Task::Serve(Box::new(config)))
    }
}

fn read_config(path: &Path) -> Result<RouterConfig, CliError> {
    let hint = "Give the file that the launcher wrote, or leave `--config` out and use flags.";
    let unusable = |reason: String| CliError::new(format!("cannot read `{}`: {reason}", path.display()), hint);
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))
}

// === impl ServerFlags ===

impl ServerFlags {
    /// The model folder: alone, the router fetches nothing.
    fn model(&self) -> Result<PreparedModel, CliError> {
        let hint = "Give a folder with `--tokenizer-name FOLDER`, or start `text-generation-launcher`, which prepares \
                    models.";
        let Some(folder) = self.tokenizer_name.clone() else {
            return Err(CliError::new("no model was named", hint));
        };
        if !folder.is_dir() {
            return Err(CliError::new(format!("`{}` is not a local folder", folder.display()), hint));
        }
        let model_id = folder.display().to_string();
        Ok(PreparedModel { folder, model_id, revision_sha: self.revision.clone(), pipeline_tag: None })
    }

    fn resolve(self, model: PreparedModel, limits: Limits) -> Result<RouterConfig, CliError> {
        let hostname: IpAddr = self.hostname.parse().map_err(|_| {
            let cause = format!("`--hostname {}` is not an IP address", self.hostname);
            CliError::new(cause, "Use `0.0.0.0` for every interface or `127.0.0.1` for this machine alone.")
        })?;
        let watermark = Watermark { gamma: self.watermark_gamma, delta: self.watermark_delta };
        if let Some((flag, value, usable)) = watermark.fault() {
            return Err(CliError::new(format!("`{flag}` is {value}"), format!("Give {usable}.")));
        }
        Ok(RouterConfig {
            hostname,
            port: self.aip_http_port.unwrap_or(self.port),
            model_id: model.model_id.clone(),
            model: Some(model),
            shard_sockets: vec![self.master_shard_uds_path],
            tokenizer_config_path: self.tokenizer_config_path,
            chat_template: self.chat_template,
            limits,
            api_key: self.api_key,
            cors_allow_origin: self.cors_allow_origin,
            graceful_termination_timeout: self.graceful_termination_timeout,
            compute_type: self.compute_type,
            aip_predict_route: self.aip_predict_route,
            aip_health_route: self.aip_health_route,
            control_channel: false,
            watermark,
            log: LogConfig { level: self.log_level, json: self.json_output },
        })
    }
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;

//! One validated, frozen configuration from the command line, the environment and the devices. Everything that can be
//! refused before a process starts is refused here. Knows nothing of processes and files of children.

mod checks;

pub use checks::SOCKET_PATH_LIMIT;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use text_generation_protocol::config::{Limits, LogConfig, Watermark, is_template_text};

use crate::cli::groups::{
    Device, LimitArguments, ModelArguments, RopeScaling, ServerArguments, ShardArguments, spelling,
};
use crate::cli::{Arguments, Surroundings};
use crate::devices::{Gpus, ShardWish};
use crate::error::StartError;

/// Folder of converted models below the user's cache folder.
const CACHE_NAME: &str = "text-generation";

/// Everything the launcher was told, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct LauncherConfig {
    /// Which model, and where its files are.
    pub model: ModelSettings,
    /// How the shards run it.
    pub shards: ShardSettings,
    /// What clients may ask for.
    pub limits: Limits,
    /// How strong the watermark of requests that ask for one is.
    pub watermark: Watermark,
    /// Where and how to serve.
    pub server: ServerSettings,
    /// How to log.
    pub log: LogConfig,
    /// Log versions and devices first.
    pub print_env: bool,
    /// Things to tell the user that are no errors.
    pub warnings: Vec<String>,
}

/// Which model, and where its files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// A Hub id, a local folder or a `.gguf` file; `None` = the demo model.
    pub model_id: Option<String>,
    /// Name under which it is served; `None` = its own.
    pub served_name: Option<String>,
    /// Hub branch, tag or commit.
    pub revision: Option<String>,
    /// `auto` or `dummy`.
    pub load_format: String,
    /// Download cache.
    pub huggingface_hub_cache: Option<PathBuf>,
    /// Folder of weight files.
    pub weights_cache_override: Option<PathBuf>,
    /// Where converted models are kept.
    pub cache_folder: PathBuf,
    /// Replaces the model's `tokenizer_config.json`.
    pub tokenizer_config_path: Option<PathBuf>,
    /// Replaces the model's chat template: a text, or the path of a file.
    pub chat_template: Option<String>,
    /// Hub token given under its old name only.
    pub token_from_old_name: Option<String>,
}

/// How the shards run the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardSettings {
    /// Number of shard processes.
    pub count: usize,
    /// `auto`, `cpu` or `cuda`.
    pub device: String,
    /// Number format of the weights.
    pub dtype: Option<String>,
    /// Attention back end.
    pub attention: Option<String>,
    /// Share of the device's memory, 0 < x <= 1.
    pub memory_fraction: f64,
    /// Rope scaling and its factor.
    pub rope: Option<(String, f64)>,
    /// Compute threads of each process.
    pub threads: usize,
    /// Idle compute threads sleep instead of spinning.
    pub passive_waiting: bool,
    /// Prefix of the sockets, when not in the run folder.
    pub socket_prefix: Option<PathBuf>,
    /// `tcp://host:port`, when the ranks do not meet in the run folder.
    pub rendezvous: Option<String>,
}

/// Where and how to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Address to listen on.
    pub hostname: IpAddr,
    /// Port to listen on.
    pub port: u16,
    /// Another path of `/vertex`.
    pub aip_predict_route: Option<String>,
    /// Another path of `/health`.
    pub aip_health_route: Option<String>,
    /// Bearer key.
    pub api_key: Option<String>,
    /// Origins that browsers may call from.
    pub cors_allow_origin: Vec<String>,
    /// How long running requests may go on after SIGTERM.
    pub grace: Duration,
    /// Value of the `x-compute-type` header.
    pub compute_type: String,
}

/// Resolve everything.
///
/// # Errors
/// The first value that is wrong in itself or beside another.
pub fn resolve(arguments: Arguments, surroundings: &Surroundings, gpus: &Gpus) -> Result<LauncherConfig, StartError> {
    let mut warnings = Vec::new();
    let log = LogConfig { level: checks::log_level(surroundings)?, json: arguments.server.json_output };
    let print_env = arguments.server.print_env;
    let wish = ShardWish {
        sharded: arguments.shards.sharded,
        count: arguments.shards.num_shard,
        device: arguments.shards.device,
    };
    let count = gpus.shard_count(wish)?;
    let card = gpus.card(wish.device);
    let limits = limits(&arguments.limits)?;
    let watermark = watermark(&arguments.limits)?;
    let shards = shards(arguments.shards, count, surroundings)?;
    let model = model(arguments.model, surroundings)?;
    let mut server = server(arguments.server, &mut warnings)?;
    server.compute_type = surroundings.compute_type.clone().unwrap_or_else(|| format!("{count}-{card}"));
    Ok(LauncherConfig { model, shards, limits, watermark, server, log, print_env, warnings })
}

fn limits(given: &LimitArguments) -> Result<Limits, StartError> {
    if given.max_input_tokens.is_some() && given.max_input_length.is_some() {
        return Err(StartError::new(
            "`--max-input-tokens` and `--max-input-length` were both given, and they mean the same",
            "give `--max-input-tokens` only",
        ));
    }
    let limits = Limits {
        max_concurrent_requests: given.max_concurrent_requests,
        max_best_of: given.max_best_of,
        max_stop_sequences: given.max_stop_sequences,
        max_top_n_tokens: given.max_top_n_tokens,
        max_input_tokens: given.max_input_tokens.or(given.max_input_length),
        max_total_tokens: given.max_total_tokens,
        max_batch_prefill_tokens: given.max_batch_prefill_tokens,
        max_batch_total_tokens: given.max_batch_total_tokens,
        max_batch_size: given.max_batch_size,
        max_client_batch_size: given.max_client_batch_size,
        payload_limit: given.payload_limit,
        validation_workers: given.validation_workers,
        enable_prefill_logprobs: given.enable_prefill_logprobs,
    };
    checks::limits(&limits)?;
    Ok(limits)
}

fn watermark(given: &LimitArguments) -> Result<Watermark, StartError> {
    let watermark = Watermark { gamma: given.watermark_gamma, delta: given.watermark_delta };
    match watermark.fault() {
        Some((flag, value, usable)) => Err(StartError::new(format!("`{flag}` is {value}"), format!("give {usable}"))),
        None => Ok(watermark),
    }
}

fn shards(given: ShardArguments, count: usize, surroundings: &Surroundings) -> Result<ShardSettings, StartError> {
    let attention = checks::attention(given.attention.as_deref(), given.disable_custom_kernels, given.device)?;
    checks::memory_fraction(given.cuda_memory_fraction)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rendezvous = match (given.master_addr, given.master_port) {
        (None, None) => None,
        (host, port) => {
            Some(format!("tcp://{}:{}", host.as_deref().unwrap_or("localhost"), port.unwrap_or(checks::MASTER_PORT)))
        }
    };
    Ok(ShardSettings {
        count,
        device: spelling::<Device>(given.device),
        dtype: given.dtype.map(spelling),
        attention,
        memory_fraction: given.cuda_memory_fraction,
        rope: rope(given.rope_scaling, given.rope_factor)?,
        threads: checks::threads(surroundings, cores, count)?,
        passive_waiting: cores <= checks::FEW_CORES && surroundings.omp_wait_policy.is_none(),
        socket_prefix: given.shard_uds_path.map(checks::socket_prefix).transpose()?,
        rendezvous,
    })
}

fn rope(scaling: Option<RopeScaling>, factor: Option<f64>) -> Result<Option<(String, f64)>, StartError> {
    if let Some(factor) = factor.filter(|factor| !factor.is_finite() || *factor < 1.0) {
        return Err(StartError::new(format!("`--rope-factor` is {factor}"), "give a number of 1 or more"));
    }
    Ok(match (scaling, factor) {
        (None, None) => None,
        (scaling, factor) => Some((spelling(scaling.unwrap_or(RopeScaling::Linear)), factor.unwrap_or(1.0))),
    })
}

fn model(given: ModelArguments, surroundings: &Surroundings) -> Result<ModelSettings, StartError> {
    checks::model_path(given.model_id.as_deref())?;
    checks::existing(
        "--tokenizer-config-path",
        given.tokenizer_config_path.as_deref(),
        "file",
        std::path::Path::is_file,
    )?;
    checks::existing(
        "--chat-template",
        given.chat_template.as_deref().filter(|given| !is_template_text(given)).map(std::path::Path::new),
        "file",
        std::path::Path::is_file,
    )?;
    checks::existing(
        "--weights-cache-override",
        given.weights_cache_override.as_deref(),
        "folder",
        std::path::Path::is_dir,
    )?;
    let cache_folder = given
        .cache_folder
        .or_else(|| default_cache(surroundings))
        .ok_or_else(|| StartError::new("there is no HOME to keep converted models in", "give `--cache-folder`"))?;
    if checks::converts(given.model_id.as_deref()) {
        checks::writable(&cache_folder)?;
    }
    let token_from_old_name = surroundings.hf_api_token.clone().filter(|_| surroundings.hf_token.is_none());
    Ok(ModelSettings {
        model_id: given.model_id,
        served_name: given.served_model_name,
        revision: given.revision,
        load_format: spelling(given.load_format),
        huggingface_hub_cache: given.huggingface_hub_cache,
        weights_cache_override: given.weights_cache_override,
        cache_folder,
        tokenizer_config_path: given.tokenizer_config_path,
        chat_template: given.chat_template,
        token_from_old_name,
    })
}

fn default_cache(surroundings: &Surroundings) -> Option<PathBuf> {
    let caches = surroundings.xdg_cache_home.clone();
    let caches = caches.or_else(|| surroundings.home.as_ref().map(|home| home.join(".cache")));
    caches.map(|folder| folder.join(CACHE_NAME))
}

fn server(given: ServerArguments, warnings: &mut Vec<String>) -> Result<ServerSettings, StartError> {
    let hostname = given.hostname.parse().unwrap_or_else(|_| {
        // Containers set HOSTNAME to their own name, which is no address to listen on.
        warnings.push(format!("hostname `{}` is not an IP address: listening on 0.0.0.0", given.hostname));
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    });
    Ok(ServerSettings {
        hostname,
        port: given.aip_http_port.unwrap_or(given.port),
        aip_predict_route: given.aip_predict_route,
        aip_health_route: given.aip_health_route,
        api_key: given.api_key,
        cors_allow_origin: given.cors_allow_origin,
        grace: Duration::from_secs(given.graceful_termination_timeout),
        compute_type: String::new(),
    })
}

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;

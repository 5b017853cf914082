//! The configurations that the launcher hands to its children, one JSON file a child in its run folder. The launcher
//! resolves flags, variables and defaults once; a child reads no environment. Unknown fields are refused.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::control::PreparedModel;

/// Everything the router needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterConfig {
    /// Address to listen on.
    pub hostname: std::net::IpAddr,
    /// Port to listen on.
    pub port: u16,
    /// The model, when it is prepared already; otherwise the control channel on standard input names it.
    pub model: Option<PreparedModel>,
    /// The name to serve under until the model is known.
    pub model_id: String,
    /// Unix sockets of the shards, rank by rank.
    pub shard_sockets: Vec<PathBuf>,
    /// A `tokenizer_config.json` (chat template) that replaces the model's own.
    pub tokenizer_config_path: Option<PathBuf>,
    /// The text of a chat template, or the path of a file with one, that replaces the model's own.
    pub chat_template: Option<String>,
    /// Every limit on what clients may ask for.
    pub limits: Limits,
    /// Bearer key that protects the generating routes.
    pub api_key: Option<String>,
    /// Origins that browsers may call from; empty = any.
    pub cors_allow_origin: Vec<String>,
    /// How long running requests may go on after SIGTERM, in seconds.
    pub graceful_termination_timeout: u64,
    /// Value of the `x-compute-type` header.
    pub compute_type: String,
    /// Another path of `/vertex`, as Vertex AI wants it.
    pub aip_predict_route: Option<String>,
    /// Another path of `/health`, as Vertex AI wants it.
    pub aip_health_route: Option<String>,
    /// Read `ControlMessage` lines from standard input, and end with it.
    pub control_channel: bool,
    /// How strong the watermark of requests that ask for one is.
    pub watermark: Watermark,
    /// How to log.
    pub log: LogConfig,
}

/// Whether a value of `--chat-template` is a template itself, and not the path of a file: no sensible path has these.
#[must_use]
pub fn is_template_text(given: &str) -> bool {
    given.contains("{{") || given.contains("{%")
}

/// How strong a watermark is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watermark {
    /// Share of the vocabulary that is favoured at each token, 0 < gamma < 1.
    pub gamma: f32,
    /// How much the logits of favoured tokens are raised, above 0.
    pub delta: f32,
}

/// Every limit on what clients may ask for. `None` = found from the shard's capacity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Requests in the server at once; one more is answered 429.
    pub max_concurrent_requests: usize,
    /// Largest `best_of`.
    pub max_best_of: usize,
    /// Most stop strings of a request.
    pub max_stop_sequences: usize,
    /// Largest `top_n_tokens` and `top_logprobs`.
    pub max_top_n_tokens: u32,
    /// Longest prompt, in tokens.
    pub max_input_tokens: Option<usize>,
    /// Longest prompt and completion together, in tokens.
    pub max_total_tokens: Option<usize>,
    /// Most prompt tokens computed in one step.
    pub max_batch_prefill_tokens: Option<usize>,
    /// KV cache size, in tokens.
    pub max_batch_total_tokens: Option<usize>,
    /// Most sequences that run at once.
    pub max_batch_size: Option<usize>,
    /// Most prompts of one `/v1/completions` call.
    pub max_client_batch_size: usize,
    /// Largest request body, in bytes.
    pub payload_limit: usize,
    /// Threads that tokenise prompts.
    pub validation_workers: usize,
    /// Whether prompt logprobs may be asked for.
    pub enable_prefill_logprobs: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_concurrent_requests: 128,
            max_best_of: 2,
            max_stop_sequences: 4,
            max_top_n_tokens: 5,
            max_input_tokens: None,
            max_total_tokens: None,
            max_batch_prefill_tokens: None,
            max_batch_total_tokens: None,
            max_batch_size: None,
            max_client_batch_size: 4,
            payload_limit: 2_000_000,
            validation_workers: 2,
            enable_prefill_logprobs: false,
        }
    }
}

impl Default for Watermark {
    fn default() -> Self {
        Self { gamma: 0.5, delta: 2.0 }
    }
}

// === impl Watermark ===

impl Watermark {
    /// Raising logits by more would leave nothing of the model's own choice.
    pub const LARGEST_DELTA: f32 = 100.0;

    /// The flag whose value cannot be used, with the values that can.
    pub fn fault(&self) -> Option<(&'static str, f32, String)> {
        if !(self.gamma > 0.0 && self.gamma < 1.0) {
            return Some(("--watermark-gamma", self.gamma, "a share above 0 and below 1".to_owned()));
        }
        let most = Self::LARGEST_DELTA;
        let wrong = !(self.delta > 0.0 && self.delta <= most);
        wrong.then(|| ("--watermark-delta", self.delta, format!("a number above 0 and up to {most}")))
    }
}

/// How a child logs. Children write JSON lines to standard error; the launcher relays them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// A `tracing` filter directive, or one of `error`, `warn`, `info`, `debug`, `trace`.
    pub level: String,
    /// JSON lines instead of text.
    pub json: bool,
}

/// Everything one shard process needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardConfig {
    /// Rank of this shard, 0 .. world_size-1.
    pub rank: usize,
    /// Number of shards.
    pub world_size: usize,
    /// Unix socket to serve the shard protocol on.
    pub socket: PathBuf,
    /// The prepared model folder.
    pub model_folder: PathBuf,
    /// Where the ranks meet: `file:///path` or `tcp://host:port`. Unused by a single rank.
    pub rendezvous: String,
    /// `auto`, `cpu` or `cuda`.
    pub device: String,
    /// `float32`, `bfloat16`, `float16`; `None` = bfloat16 on a GPU, float32 on a CPU.
    pub dtype: Option<String>,
    /// `auto` (the model's safetensors) or `dummy` (random weights from the configuration alone).
    pub load_format: String,
    /// Attention back end: `sdpa` or `triton`; `None` = the best one for the device.
    pub attention: Option<String>,
    /// Share of the device's memory that may be used, 0 < x <= 1.
    pub memory_fraction: f64,
    /// Compute threads of this process on a CPU; `None` = all cores divided by the ranks.
    pub threads: Option<usize>,
    /// Replaces the model's rope scaling: `linear` or `dynamic`.
    pub rope_scaling: Option<String>,
    /// Factor of `rope_scaling`.
    pub rope_factor: Option<f64>,
    /// How to log.
    pub log: LogConfig,
}

/// What `text-generation-server prepare` needs to know. Its result, a `PreparedModel`, is written to `output`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareConfig {
    /// A Hub id, a local folder or a `.gguf` file; `None` = the demo model.
    pub model_id: Option<String>,
    /// Hub branch, tag or commit.
    pub revision: Option<String>,
    /// How many shards will share the model; refused when it cannot be divided so.
    pub num_shard: usize,
    /// `auto`, or `dummy` (then no weights are fetched).
    pub load_format: String,
    /// Cache of `huggingface_hub`; `None` = its default.
    pub huggingface_hub_cache: Option<PathBuf>,
    /// A folder that holds the weight files instead of the Hub.
    pub weights_cache_override: Option<PathBuf>,
    /// Where converted models are kept.
    pub cache_folder: PathBuf,
    /// File to write the `PreparedModel` to.
    pub output: PathBuf,
    /// How to log.
    pub log: LogConfig,
}

//! The flags that work, in the groups that `--help` shows. Owns names, types, variables and defaults, nothing else.

use std::path::PathBuf;

use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{Args, ValueEnum};
use text_generation_protocol::config::Watermark;

/// Which model, and where its files are.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArguments {
    /// A Hub id, a local folder or a `.gguf` file; without it, a small demo model is served
    #[arg(long, env, visible_alias = "model", value_parser = NonEmptyStringValueParser::new())]
    pub model_id: Option<String>,
    /// Name under which the model is served; the model id when not given
    #[arg(long, env, value_parser = NonEmptyStringValueParser::new())]
    pub served_model_name: Option<String>,
    /// Branch, tag or commit on the Hub
    #[arg(long, env, value_parser = NonEmptyStringValueParser::new())]
    pub revision: Option<String>,
    /// `auto` reads the model's weights; `dummy` fills in random ones, for measuring
    #[arg(long, env, value_enum, default_value_t = LoadFormat::Auto)]
    pub load_format: LoadFormat,
    /// Download cache of `huggingface_hub`; its own default when not given
    #[arg(long, env)]
    pub huggingface_hub_cache: Option<PathBuf>,
    /// Folder that holds the weight files, instead of the Hub
    #[arg(long, env)]
    pub weights_cache_override: Option<PathBuf>,
    /// Where converted models are kept; the user's cache folder when not given
    #[arg(long, env)]
    pub cache_folder: Option<PathBuf>,
    /// A `tokenizer_config.json` whose chat template replaces the model's own
    #[arg(long, env)]
    pub tokenizer_config_path: Option<PathBuf>,
    /// Chat template that replaces the model's own: a file, or the text of a template itself
    #[arg(long, env)]
    pub chat_template: Option<String>,
}

/// How the shards run the model.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Shards")]
pub struct ShardArguments {
    /// Split the model over all GPUs (`true`), or not (`false`)
    #[arg(long, env, value_parser = BoolishValueParser::new())]
    pub sharded: Option<bool>,
    /// Number of shard processes
    #[arg(long, env, visible_aliases = ["tensor-parallel-size", "tp"])]
    pub num_shard: Option<usize>,
    /// Where to compute; `auto` takes GPUs when there are any
    #[arg(long, env, value_enum, default_value_t = Device::Auto)]
    pub device: Device,
    /// Number format of the weights; `bfloat16` on a GPU and `float32` on a CPU when not given
    #[arg(long, env, value_enum)]
    pub dtype: Option<Dtype>,
    /// Attention back end, `sdpa` or `triton`; the best one for the device when not given
    #[arg(long, env)]
    pub attention: Option<String>,
    /// Use only plain PyTorch operations; the same as `--attention sdpa`
    #[arg(long, env, value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub disable_custom_kernels: bool,
    /// Share of each GPU's memory that may be used
    #[arg(long, env, visible_alias = "gpu-memory-utilization", default_value_t = 1.0)]
    pub cuda_memory_fraction: f64,
    /// Replaces the model's rope scaling
    #[arg(long, env, value_enum)]
    pub rope_scaling: Option<RopeScaling>,
    /// Factor of the rope scaling; alone it means `linear`
    #[arg(long, env)]
    pub rope_factor: Option<f64>,
    /// Prefix of the shards' sockets, `-RANK` is appended; a private folder when not given
    #[arg(long, env)]
    pub shard_uds_path: Option<PathBuf>,
    /// Host where the ranks meet; a private file when neither this nor the port is given
    #[arg(long, env, value_parser = NonEmptyStringValueParser::new())]
    pub master_addr: Option<String>,
    /// Port where the ranks meet
    #[arg(long, env)]
    pub master_port: Option<u16>,
}

/// What clients may ask for, and how much runs at once.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArguments {
    /// Requests in the server at once; one more is answered with 429
    #[arg(long, env, default_value_t = 128)]
    pub max_concurrent_requests: usize,
    /// Largest `best_of`
    #[arg(long, env, default_value_t = 2)]
    pub max_best_of: usize,
    /// Most stop strings of a request
    #[arg(long, env, default_value_t = 4)]
    pub max_stop_sequences: usize,
    /// Largest `top_n_tokens` and `top_logprobs`
    #[arg(long, env, default_value_t = 5)]
    pub max_top_n_tokens: u32,
    /// Longest prompt, in tokens; found from the memory when not given
    #[arg(long, env)]
    pub max_input_tokens: Option<usize>,
    /// Old name of `--max-input-tokens`
    #[arg(long, env)]
    pub max_input_length: Option<usize>,
    /// Longest prompt and completion together, in tokens; found from the memory when not given
    #[arg(long, env, visible_alias = "max-model-len")]
    pub max_total_tokens: Option<usize>,
    /// Most prompt tokens computed in one step; found from the memory when not given
    #[arg(long, env, visible_alias = "max-num-batched-tokens")]
    pub max_batch_prefill_tokens: Option<usize>,
    /// Size of the KV cache, in tokens; found from the memory when not given
    #[arg(long, env)]
    pub max_batch_total_tokens: Option<usize>,
    /// Most sequences that run at once
    #[arg(long, env, visible_alias = "max-num-seqs")]
    pub max_batch_size: Option<usize>,
    /// Most prompts of one `/v1/completions` call
    #[arg(long, env, default_value_t = 4)]
    pub max_client_batch_size: usize,
    /// Largest request body, in bytes
    #[arg(long, env, default_value_t = 2_000_000)]
    pub payload_limit: usize,
    /// Threads that tokenise prompts
    #[arg(long, env, default_value_t = 2)]
    pub validation_workers: usize,
    /// Let clients ask for the log probabilities of their prompt
    #[arg(long, env, value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_prefill_logprobs: bool,
    /// Share of the vocabulary that a watermark favours, above 0 and below 1
    #[arg(long, env, default_value_t = Watermark::default().gamma)]
    pub watermark_gamma: f32,
    /// How much a watermark raises the logits of favoured tokens
    #[arg(long, env, default_value_t = Watermark::default().delta)]
    pub watermark_delta: f32,
    /// Accepted for compatibility: there are no grammars to switch off yet
    #[arg(long, env, value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub disable_grammar_support: bool,
}

/// The HTTP server, logs and the end.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArguments {
    /// IP address to listen on
    #[arg(long, env, visible_alias = "host", default_value = "0.0.0.0")]
    pub hostname: String,
    /// Port to listen on
    #[arg(long, short, env, default_value_t = 3000)]
    pub port: u16,
    /// Port to listen on, as Vertex AI sets it; wins over `--port`
    #[arg(long, env)]
    pub aip_http_port: Option<u16>,
    /// Another path of `/vertex`, as Vertex AI sets it
    #[arg(long, env, value_parser = NonEmptyStringValueParser::new())]
    pub aip_predict_route: Option<String>,
    /// Another path of `/health`, as Vertex AI sets it
    #[arg(long, env, value_parser = NonEmptyStringValueParser::new())]
    pub aip_health_route: Option<String>,
    /// Bearer key that clients must send
    #[arg(long, env, value_parser = NonEmptyStringValueParser::new())]
    pub api_key: Option<String>,
    /// Origin that browsers may call from; may be repeated; any when not given
    #[arg(long, env)]
    pub cors_allow_origin: Vec<String>,
    /// How long running requests may go on after SIGTERM, in seconds
    #[arg(long, short = 'g', env, default_value_t = 90)]
    pub graceful_termination_timeout: u64,
    /// Log JSON lines instead of text
    #[arg(long, env, value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub json_output: bool,
    /// Log versions and devices first, then serve
    #[arg(long = "env", short = 'e')]
    pub print_env: bool,
    /// Accepted for compatibility: this server never sends anything about its use to anyone
    #[arg(long, env, value_enum, default_value_t = UsageStats::On)]
    pub usage_stats: UsageStats,
}

/// Where weights come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadFormat {
    /// The model's own files.
    Auto,
    /// Random weights from the configuration alone.
    Dummy,
}

/// Where to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Device {
    /// GPUs when there are any, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// NVIDIA GPUs.
    Cuda,
}

/// Number format of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dtype {
    /// IEEE half precision.
    Float16,
    /// Half size, full range.
    Bfloat16,
    /// IEEE single precision.
    Float32,
}

/// Ways to stretch the rotary embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RopeScaling {
    /// Positions divided by the factor.
    Linear,
    /// The base grows with the length.
    Dynamic,
}

/// TGI's choices of usage reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UsageStats {
    /// TGI's default.
    On,
    /// None.
    Off,
    /// Without stack traces.
    NoStack,
}

/// The spelling of a value on the command line, which is also its spelling in the children's configurations.
pub fn spelling<T: ValueEnum>(value: T) -> String {
    value.to_possible_value().map(|named| named.get_name().to_owned()).unwrap_or_default()
}

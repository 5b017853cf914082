//! The flags that bound what clients may ask for.

use text_generation_protocol::config::Limits;

use super::CliError;

/// Every limit, under TGI's names.
#[derive(Debug, clap::Args)]
pub(super) struct LimitFlags {
    /// Sequences in the server at once; one more is answered 429
    #[arg(long, env, default_value_t = 128)]
    max_concurrent_requests: usize,
    /// Largest `best_of` of a request
    #[arg(long, env, default_value_t = 2)]
    max_best_of: usize,
    /// Most stop strings of a request
    #[arg(long, env, default_value_t = 4)]
    max_stop_sequences: usize,
    /// Largest `top_n_tokens` and `top_logprobs` of a request
    #[arg(long, env, default_value_t = 5)]
    max_top_n_tokens: u32,
    /// Longest prompt, in tokens; found from the shards if left out
    #[arg(long, env, alias = "max-input-length")]
    max_input_tokens: Option<usize>,
    /// Longest prompt and completion together, in tokens; found from the shards if left out
    #[arg(long, env)]
    max_total_tokens: Option<usize>,
    /// Most prompt tokens computed in one step; found from the shards if left out
    #[arg(long, env)]
    max_batch_prefill_tokens: Option<usize>,
    /// KV cache size, in tokens; found from the memory if left out
    #[arg(long, env)]
    max_batch_total_tokens: Option<usize>,
    /// Most sequences that run at once; found from the shards if left out
    #[arg(long, env)]
    max_batch_size: Option<usize>,
    /// Most sequences of one OpenAI call: prompts times `n`
    #[arg(long, env, default_value_t = 4)]
    max_client_batch_size: usize,
    /// Largest request body, in bytes
    #[arg(long, env, default_value_t = 2_000_000)]
    payload_limit: usize,
    /// Threads that tokenise prompts
    #[arg(long, env, default_value_t = 2)]
    validation_workers: usize,
    /// Let requests ask for the logprobs of their prompts
    #[arg(long, env)]
    enable_prefill_logprobs: bool,
}

// === impl LimitFlags ===

impl LimitFlags {
    pub(super) fn resolve(self) -> Result<Limits, CliError> {
        let positive = [
            ("--max-concurrent-requests", self.max_concurrent_requests),
            ("--max-best-of", self.max_best_of),
            ("--max-client-batch-size", self.max_client_batch_size),
            ("--payload-limit", self.payload_limit),
            ("--validation-workers", self.validation_workers),
            ("--max-batch-size", self.max_batch_size.unwrap_or(1)),
        ];
        if let Some((flag, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(CliError::new(format!("`{flag} 0` would serve no request"), "Give at least 1."));
        }
        Ok(Limits {
            max_concurrent_requests: self.max_concurrent_requests,
            max_best_of: self.max_best_of,
            max_stop_sequences: self.max_stop_sequences,
            max_top_n_tokens: self.max_top_n_tokens,
            max_input_tokens: self.max_input_tokens,
            max_total_tokens: self.max_total_tokens,
            max_batch_prefill_tokens: self.max_batch_prefill_tokens,
            max_batch_total_tokens: self.max_batch_total_tokens,
            max_batch_size: self.max_batch_size,
            max_client_batch_size: self.max_client_batch_size,
            payload_limit: self.payload_limit,
            validation_workers: self.validation_workers,
            enable_prefill_logprobs: self.enable_prefill_logprobs,
        })
    }
}

//! A validated, tokenised request that waits for the engine.

use std::sync::Arc;
use std::time::Instant;

use crate::event::EventSender;
use crate::request::SamplingParameters;

/// A sequence that waits for its first step. Everything in it is within the limits.
#[derive(Debug)]
pub struct Entry {
    /// Names the request in logs.
    pub request_id: Arc<str>,
    /// Token ids of the prompt; at least one.
    pub prompt: Vec<u32>,
    /// Most tokens to generate; at least one, and `prompt.len() + max_new_tokens <= max_total_tokens`.
    pub max_new_tokens: u32,
    /// Strings that end the generation.
    pub stop: Vec<String>,
    /// Tokens that end the generation, beside the model's own end tokens.
    pub stop_token_ids: Vec<u32>,
    /// Whether a stop string stays in the text that it ends.
    pub include_stop: bool,
    /// Whether end tokens are generated through.
    pub ignore_eos: bool,
    /// No end token and no stop string ends the generation before so many tokens.
    pub min_tokens: u32,
    /// Whether special tokens are left out of the text.
    pub skip_special_tokens: bool,
    /// How tokens are chosen; the seed is set when it samples.
    pub sampling: SamplingParameters,
    /// Report so many best candidates beside each token.
    pub top_n_tokens: u32,
    /// Report the prompt's tokens with their logprobs, and so many best candidates beside each.
    pub prompt_logprobs: Option<u32>,
    /// Where events go. Closed = the client is gone.
    pub events: EventSender,
    /// When the request arrived.
    pub received: Instant,
    /// When the entry was queued.
    pub queued: Instant,
}

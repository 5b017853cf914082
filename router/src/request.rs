//! What a client asked for, free of any wire format, and the checks that hold for every API. The wire types of the
//! APIs convert into `Request`; `queue::admission` turns it into token ids and an `Entry` for the engine.

use std::sync::Arc;

use serde_json::{Map, Value};

pub mod validate;

/// One generation (one sequence). `n`, `best_of` and lists of prompts become several requests.
#[derive(Debug, Clone)]
pub struct Request {
    /// Names the request in logs, traces and response ids.
    pub id: Arc<str>,
    /// What to continue.
    pub input: Input,
    /// Keep only the last so many prompt tokens.
    pub truncate: Option<usize>,
    /// Whether the tokenizer adds its special tokens; `None` = to a text, but not to a conversation.
    pub add_special_tokens: Option<bool>,
    /// Most tokens to generate; `None` = as many as the limits allow.
    pub max_new_tokens: Option<u32>,
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
    /// How tokens are chosen.
    pub sampling: SamplingParameters,
    /// Report so many best candidates beside each token.
    pub top_n_tokens: u32,
    /// Report the prompt's tokens with their logprobs, and so many best candidates beside each.
    pub prompt_logprobs: Option<u32>,
    /// How the client's API spells the fields that errors name.
    pub spelling: &'static Spelling,
}

/// How an API spells the fields that have another name elsewhere. Errors name fields as the client wrote them.
#[derive(Debug, PartialEq, Eq)]
pub struct Spelling {
    /// The prompt.
    pub input: &'static str,
    /// The token budget.
    pub max_new_tokens: &'static str,
    /// The number of candidates to report.
    pub top_n_tokens: &'static str,
    /// The prompt's logprobs.
    pub prompt_logprobs: &'static str,
    /// How many tokens of the prompt are kept.
    pub truncate: &'static str,
}

/// What to continue.
#[derive(Debug, Clone)]
pub enum Input {
    /// Text as it is; the tokenizer adds its special tokens.
    Text(String),
    /// Token ids as they are.
    Tokens(Vec<u32>),
    /// A conversation, rendered by the model's chat template.
    Chat(ChatInput),
}

/// A conversation for the chat template. Messages are JSON objects as templates expect them: `content` is a string
/// (or a list of parts where the template wants one), absent fields are absent.
#[derive(Debug, Clone, Default)]
pub struct ChatInput {
    /// The messages, normalised.
    pub messages: Vec<Value>,
    /// Tool definitions shown to the template.
    pub tools: Option<Value>,
    /// Open an assistant turn at the end.
    pub add_generation_prompt: bool,
    /// Leave the last message open, to be continued.
    pub continue_final_message: bool,
    /// Further variables of the template (`chat_template_kwargs`).
    pub variables: Map<String, Value>,
}

/// How tokens are chosen. The definitions are those of `shard.proto`'s `Sampling`.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParameters {
    /// 0 = greedy.
    pub temperature: f32,
    /// 0 = off.
    pub top_k: u32,
    /// 1 = off.
    pub top_p: f32,
    /// 1 = off.
    pub typical_p: f32,
    /// 1 = off.
    pub repetition_penalty: f32,
    /// 0 = off.
    pub frequency_penalty: f32,
    /// 0 = off.
    pub presence_penalty: f32,
    /// 0 = off.
    pub min_p: f32,
    /// Added to the logits of these tokens; each token once.
    pub logit_bias: Vec<(u32, f32)>,
    /// Whether the text is watermarked.
    pub watermark: bool,
    /// Report logprobs of the model's own distribution instead of the one that is sampled from.
    pub raw_logprobs: bool,
    /// `None` = drawn at admission.
    pub seed: Option<u64>,
}

impl Default for SamplingParameters {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            typical_p: 1.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            min_p: 0.0,
            logit_bias: Vec::new(),
            watermark: false,
            raw_logprobs: false,
            seed: None,
        }
    }
}

// === impl Input ===

impl Input {
    /// Whether there is no text and no token. A conversation is never empty: its template adds to it.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Tokens(tokens) => tokens.is_empty(),
            Self::Chat(_) => false,
        }
    }
}

// === impl SamplingParameters ===

impl SamplingParameters {
    /// Whether tokens are drawn at random.
    pub fn samples(&self) -> bool {
        self.temperature > 0.0
    }
}

//! Wire types that OpenAI's routes share: usage, errors, models, the head of an answer.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use utoipa::ToSchema;

use crate::event::{Done, FinishReason};
use crate::http::problem::Problem;

/// Tells which build answered.
const FINGERPRINT: &str = concat!(env!("CARGO_PKG_VERSION"), "-native");
/// A `model` that means whatever is served.
const ANY_MODEL: &str = "tgi";

/// What is the same in every chunk of an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Head {
    /// The kind of the answer.
    pub object: &'static str,
    /// Constant over the chunks of a stream.
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// As asked for.
    pub model: String,
    /// Tells which build answered.
    pub system_fingerprint: &'static str,
}

/// What a call cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Usage {
    /// Of the prompts; each counts once, whatever `n`.
    pub prompt_tokens: usize,
    /// Of all choices, end tokens included.
    pub completion_tokens: usize,
    /// Both.
    pub total_tokens: usize,
    /// More about the prompts.
    pub prompt_tokens_details: PromptTokensDetails,
}

/// More about the prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct PromptTokensDetails {
    /// Prompt tokens found in the prefix cache.
    pub cached_tokens: usize,
}

/// OpenAI's error body.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody<'a> {
    /// What went wrong.
    pub error: ErrorDetails<'a>,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorDetails<'a> {
    /// For people.
    pub message: &'a str,
    /// OpenAI's kind of error.
    pub r#type: &'static str,
    /// The field at fault.
    pub param: Option<&'a str>,
    /// TGI's kind of error.
    pub code: &'a str,
}

/// The answer of `/v1/models`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// `list`.
    pub object: &'static str,
    /// The served model.
    pub data: Vec<Model>,
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub struct Model {
    /// Its name.
    pub id: String,
    /// `model`.
    pub object: &'static str,
    /// 0: unknown.
    pub created: u64,
    /// Its name again.
    pub owned_by: String,
}

// === impl Head ===

impl Head {
    /// The head of a new answer, with an id that begins with `prefix`.
    pub fn new(object: &'static str, prefix: &str, asked_model: Option<String>, served_model: &str) -> Self {
        let model = asked_model.filter(|asked| asked != ANY_MODEL).unwrap_or_else(|| served_model.to_owned());
        let id = format!("{prefix}-{}", uuid::Uuid::new_v4().simple());
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { object, id, created, model, system_fingerprint: FINGERPRINT }
    }
}

// === impl Model ===

impl Model {
    /// The card of a model of this name.
    pub fn named(name: &str) -> Self {
        Self { id: name.to_owned(), object: "model", created: 0, owned_by: name.to_owned() }
    }
}

// === impl Usage ===

impl Usage {
    /// Adds a finished sequence that shows so many tokens. Each prompt counts once, with its first sequence.
    pub fn add(&mut self, first: bool, done: &Done, tokens: usize) {
        if first {
            self.prompt_tokens += done.prompt_tokens;
            self.prompt_tokens_details.cached_tokens += done.cached_tokens;
        }
        self.completion_tokens += tokens;
        self.total_tokens = self.prompt_tokens + self.completion_tokens;
    }

    /// What one choice has cost so far.
    pub fn so_far(prompt_tokens: usize, completion_tokens: usize) -> Self {
        let total_tokens = prompt_tokens + completion_tokens;
        Self { prompt_tokens, completion_tokens, total_tokens, ..Self::default() }
    }
}

// === impl ErrorBody ===

impl<'a> ErrorBody<'a> {
    /// A problem in OpenAI's frame.
    pub fn of(problem: &'a Problem) -> Self {
        let kind = match problem.status.as_u16() {
            401 => "authentication_error",
            429 => "rate_limit_error",
            503 => "service_unavailable_error",
            status if status < 500 && status != 424 => "invalid_request_error",
            _ => "server_error",
        };
        let error = ErrorDetails {
            message: &problem.message,
            r#type: kind,
            param: problem.field.as_deref(),
            code: problem.error_type,
        };
        Self { error }
    }
}

/// OpenAI's name of a finish reason.
pub fn finish_reason(reason: &FinishReason) -> &'static str {
    match reason {
        FinishReason::Length => "length",
        FinishReason::EndOfSequence | FinishReason::StopToken(_) | FinishReason::Stop(_) => "stop",
    }
}

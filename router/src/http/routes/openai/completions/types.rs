//! The wire types of `/v1/completions`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::fields::{Call, RouteFields};
use super::super::types::{Head, Usage};

/// The body of `/v1/completions`.
pub type CompletionRequest = Call<CompletionFields>;

/// What completions add to the common fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionFields {
    /// What to continue.
    pub prompt: Prompt,
    /// Report the logprob of each token, and of so many best candidates.
    pub logprobs: Option<u32>,
}

/// One prompt or several, as texts or as token ids.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a string, a list of strings, a list of token ids or a list of lists of token ids"
)]
pub enum Prompt {
    /// A text.
    Text(String),
    /// Token ids.
    Tokens(Vec<u32>),
    /// Several texts.
    Texts(Vec<String>),
    /// Several lists of token ids.
    TokenLists(Vec<Vec<u32>>),
}

/// A whole answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct Completion<'a> {
    /// What answered.
    #[serde(flatten)]
    pub head: &'a Head,
    /// `n` for each prompt, in the order of the prompts.
    pub choices: Vec<CompletionChoice<'a>>,
    /// What it cost.
    pub usage: Usage,
}

/// A continuation, or in a stream what is new of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct CompletionChoice<'a> {
    /// Counts the choices of all prompts.
    pub index: usize,
    /// The text.
    pub text: &'a str,
    /// When asked for.
    pub logprobs: Option<CompletionLogprobs<'a>>,
    /// `stop` or `length`; null before the last chunk of a stream.
    pub finish_reason: Option<&'static str>,
}

/// The logprobs of a continuation: lists of equal length.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct CompletionLogprobs<'a> {
    /// The tokens' texts.
    pub tokens: Vec<&'a str>,
    /// Their logprobs.
    pub token_logprobs: Vec<f32>,
    /// The best candidates and the token itself, by text.
    #[schema(value_type = Vec<Object>)]
    pub top_logprobs: Vec<Map<String, Value>>,
    /// Where the tokens begin in the text, in characters.
    pub text_offset: Vec<usize>,
}

// === impl CompletionFields ===

impl RouteFields for CompletionFields {
    const SCHEMA: &'static str = "CompletionRequest";
}

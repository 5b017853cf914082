//! The wire types of `/v1/completions`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::fields::{Call, RouteFields};
use super::super::types::{Head, Usage};
use super::super::view::StopReason;
use crate::http::screen::Unsupported;

/// The body of `/v1/completions`.
pub type CompletionRequest = Call<CompletionFields>;

/// What completions add to the common fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletionFields {
    /// What to continue: at most `--max-client-batch-size` prompts, none of them empty.
    pub prompt: Prompt,
    /// Report the logprob of each token, and of so many best candidates; up to `--max-top-n-tokens`.
    pub logprobs: Option<u32>,
    /// Put the prompt before the text. With `logprobs` its tokens are reported too, which needs
    /// `--enable-prefill-logprobs`; with `max_tokens` 0 the prompt alone is answered.
    #[serde(default)]
    pub echo: bool,
    /// Generate so many choices for a prompt and answer with the `n` of the highest summed logprob; at least `n`, at
    /// most `--max-best-of` if above `n`, which needs sampling and no `stream`.
    pub best_of: Option<usize>,
}

/// One prompt or several, as texts or as token ids.
#[derive(Debug, Clone, Deserialize, ToSchema)]
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
    #[schema(value_type = String)]
    pub text: Cow<'a, str>,
    /// When asked for.
    pub logprobs: Option<CompletionLogprobs<'a>>,
    /// `stop` or `length`; null before the last chunk of a stream.
    pub finish_reason: Option<&'static str>,
    /// The stop string or stop token that ended it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason<'a>>,
    /// The prompt's tokens, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<Object>>>)]
    pub prompt_logprobs: Option<Vec<Option<Map<String, Value>>>>,
}

/// The logprobs of a continuation: lists of equal length.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct CompletionLogprobs<'a> {
    /// The tokens' texts.
    #[schema(value_type = Vec<String>)]
    pub tokens: Vec<Cow<'a, str>>,
    /// Their logprobs; null for the first token of a prompt.
    pub token_logprobs: Vec<Option<f32>>,
    /// The best candidates and the token itself, by text; null for the first token of a prompt.
    #[schema(value_type = Vec<Option<Object>>)]
    pub top_logprobs: Vec<Option<Map<String, Value>>>,
    /// Where the tokens begin in the text, in characters.
    pub text_offset: Vec<usize>,
}

// === impl CompletionFields ===

impl RouteFields for CompletionFields {
    const SCHEMA: &'static str = "CompletionRequest";
    const UNSUPPORTED: &'static [Unsupported] = &[];
}

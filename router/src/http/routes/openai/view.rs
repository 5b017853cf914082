//! How tokens and ends are shown to clients of OpenAI's API, whole or streamed: texts or ids, bounded logprobs, the reason
//! of an end.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::types::finish_reason;
use crate::event::{Done, FinishReason, PromptToken, Token};

/// Logprobs below this are shown as this: JSON knows no infinity, and clients know this number as "very unlikely".
const LOWEST_LOGPROB: f32 = -9999.0;

/// What of the tokens the client wants to see.
#[derive(Debug, Clone, Default)]
pub struct TokenView {
    /// Report logprobs.
    pub logprobs: bool,
    /// Tokens are named by their ids.
    pub as_ids: bool,
    /// Special tokens are part of the text.
    pub special: bool,
    /// Candidates to show for each token of the prompt, when these are to be shown.
    pub prompt_logprobs: Option<u32>,
}

/// Why a choice ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// `stop` or `length`.
    pub reason: &'static str,
    /// What stopped it, if the client had named it.
    pub stop: Option<StopReason<'a>>,
}

/// What the client had named to stop the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum StopReason<'a> {
    /// A stop string.
    Text(&'a str),
    /// A stop token.
    Token(u32),
}

/// A candidate in the place of a prompt token, as vLLM shows it.
#[derive(Debug, Serialize, ToSchema)]
pub struct PromptCandidate<'a> {
    /// Natural log of its probability.
    pub logprob: f32,
    /// 1 = the likeliest; null for a token that is not among the reported ones.
    pub rank: Option<usize>,
    /// Its text.
    pub decoded_token: &'a str,
}

// === impl Ending ===

impl<'a> Ending<'a> {
    /// Of a call that asked for no token.
    pub const PROMPT_ALONE: Self = Self { reason: "length", stop: None };

    /// Of a sequence.
    pub fn of(done: &'a Done) -> Self {
        let stop = match &done.reason {
            FinishReason::Stop(text) => Some(StopReason::Text(text)),
            FinishReason::StopToken(id) => Some(StopReason::Token(*id)),
            FinishReason::EndOfSequence | FinishReason::Length => None,
        };
        Self { reason: finish_reason(&done.reason), stop }
    }
}

// === impl TokenView ===

impl TokenView {
    /// The name of a token.
    pub fn name<'a>(&self, id: u32, text: &'a str) -> Cow<'a, str> {
        if self.as_ids { format!("token_id:{id}").into() } else { text.into() }
    }

    /// The prompt's tokens, in vLLM's shape: null for the first, then a map from token ids.
    pub fn prompt(&self, tokens: &[PromptToken]) -> Option<Vec<Option<Map<String, Value>>>> {
        let candidates = self.prompt_logprobs?;
        Some(tokens.iter().map(|token| prompt_position(token, candidates as usize)).collect())
    }
}

/// A logprob that JSON can hold.
pub fn shown_logprob(logprob: f32) -> f32 {
    logprob.max(LOWEST_LOGPROB)
}

fn prompt_position(token: &PromptToken, candidates: usize) -> Option<Map<String, Value>> {
    let logprob = token.logprob?;
    let rank = token.top_tokens.iter().position(|candidate| candidate.id == token.id).map(|index| index + 1);
    let own = (token.id, PromptCandidate { logprob: shown_logprob(logprob), rank, decoded_token: &token.text });
    let others = token.top_tokens.iter().take(candidates).enumerate().map(candidate);
    let mut position = Map::new();
    for (id, candidate) in std::iter::once(own).chain(others) {
        position.entry(id.to_string()).or_insert_with(|| serde_json::json!(candidate));
    }
    Some(position)
}

fn candidate((index, token): (usize, &Token)) -> (u32, PromptCandidate<'_>) {
    let logprob = shown_logprob(token.logprob);
    (token.id, PromptCandidate { logprob, rank: Some(index + 1), decoded_token: &token.text })
}

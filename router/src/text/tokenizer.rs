//! The model's tokenizer: a Hugging Face `tokenizer.json` and what the server needs to know about its vocabulary.

use std::path::Path;
use std::sync::Arc;

/// Why a tokenizer could not be loaded or used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The file is missing or broken.
    #[error("cannot read the tokenizer `{path}`: {reason}")]
    Load {
        /// The file.
        path: String,
        /// What the library said.
        reason: String,
    },
    /// The text could not be encoded.
    #[error("cannot tokenise the prompt: {0}")]
    Encode(String),
}

/// A loaded tokenizer. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
}

// === impl Tokenizer ===

impl Tokenizer {
    /// Loads `tokenizer.json` of a model folder.
    ///
    /// # Errors
    /// `TokenizerError::Load` when the file is missing or not a tokenizer.
    pub fn load(folder: &Path) -> Result<Arc<Self>, TokenizerError> {
        let path = folder.join("tokenizer.json");
        let inner = tokenizers::Tokenizer::from_file(&path)
            .map_err(|error| TokenizerError::Load { path: path.display().to_string(), reason: error.to_string() })?;
        Ok(Arc::new(Self { inner }))
    }

    /// Token ids of a text.
    ///
    /// # Errors
    /// `TokenizerError::Encode` when the library refuses the text.
    pub fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self
            .inner
            .encode_fast(text, add_special_tokens)
            .map_err(|error| TokenizerError::Encode(error.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Whether a token is special: it shapes the conversation and is not part of the text.
    pub fn is_special(&self, id: u32) -> bool {
        self.inner.get_added_vocabulary().is_special_token(&self.inner.id_to_token(id).unwrap_or_default())
    }

    /// The library's tokenizer.
    pub fn inner(&self) -> &tokenizers::Tokenizer {
        &self.inner
    }
}

//! The model's tokenizer: a Hugging Face `tokenizer.json` and what the server needs to know about its vocabulary. All
//! facts about single tokens are worked out at load, so that asking for them costs a look-up.

use std::path::Path;
use std::sync::Arc;

use super::coverage::Coverage;
use super::pieces::{Piece, PieceTable};

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

/// One token of a text and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSpan {
    /// Vocabulary id.
    pub id: u32,
    /// The bytes `start..stop` of the text; empty for tokens that were added (such as a beginning-of-text token). The
    /// tokens of a split character each carry the whole character.
    pub text: String,
    /// First byte of the text that the token covers.
    pub start: usize,
    /// The byte behind the last one.
    pub stop: usize,
}

/// A loaded tokenizer. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    special: Vec<bool>,
    pieces: Option<Arc<PieceTable>>,
    coverage: Coverage,
}

// === impl Tokenizer ===

impl Tokenizer {
    /// Loads `tokenizer.json` of a model folder. Truncation and padding that the file asks for are switched off: the
    /// router bounds prompts itself.
    ///
    /// # Errors
    /// `TokenizerError::Load` when the file is missing or not a tokenizer.
    pub fn load(folder: &Path) -> Result<Arc<Self>, TokenizerError> {
        let path = folder.join("tokenizer.json");
        let refuse = |reason: String| TokenizerError::Load { path: path.display().to_string(), reason };
        let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refuse(
                "the file does not exist; convert the model's tokenizer with `AutoTokenizer.from_pretrained(...)\
                 .save_pretrained(...)`, which writes it"
                    .into(),
            ),
            _ => refuse(error.to_string()),
        })?;
        Self::from_bytes(&bytes).map_err(refuse)
    }

    /// A tokenizer from the contents of a `tokenizer.json`; the error says what is wrong with them.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Arc<Self>, String> {
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
        inner.with_truncation(None).map_err(|error| error.to_string())?;
        inner.with_padding(None);
        let vocabulary_size = inner.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        let pieces = PieceTable::build(&inner, vocabulary_size).map(Arc::new);
        if pieces.is_none() {
            tracing::warn!("the tokenizer's decoder looks at several tokens at once: text is decoded the slow way");
        }
        let coverage = Coverage::of(&inner, pieces.as_deref());
        Ok(Arc::new(Self { special: special_tokens(&inner, vocabulary_size), pieces, coverage, inner }))
    }

    /// Token ids of a text.
    ///
    /// # Errors
    /// `TokenizerError::Encode` when the library refuses the text.
    pub fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.inner.encode_fast(text, add_special_tokens).map_err(refused)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The tokens of a text with the bytes that each covers. Slower than `encode`.
    ///
    /// # Errors
    /// As `encode`.
    pub fn encode_spans(&self, text: &str, add_special_tokens: bool) -> Result<Vec<TokenSpan>, TokenizerError> {
        let encoding = self.inner.encode(text, add_special_tokens).map_err(refused)?;
        let span = |(&id, &(start, stop)): (&u32, &(usize, usize))| {
            let bytes = text.as_bytes().get(start..stop).unwrap_or_default();
            TokenSpan { id, text: String::from_utf8_lossy(bytes).into_owned(), start, stop }
        };
        Ok(encoding.get_ids().iter().zip(encoding.get_offsets()).map(span).collect())
    }

    /// The fewest tokens that a text can have, without tokenising it; 0 when nothing can be said. Lets a prompt that is
    /// far too long be refused at once.
    pub fn min_tokens(&self, text: &str) -> usize {
        self.coverage.min_tokens(text)
    }

    /// Whether a token is special: it shapes the conversation and is not part of the text.
    pub fn is_special(&self, id: u32) -> bool {
        self.special.get(id as usize).copied().unwrap_or(false)
    }

    /// One more than the highest token id. The model's own vocabulary may be padded beyond it.
    pub fn vocabulary_size(&self) -> usize {
        self.special.len()
    }

    /// The text of one token as it stands in the middle of a text (with its leading space); bytes that are no UTF-8
    /// alone become U+FFFD. Special tokens show their name; ids beyond the vocabulary are empty.
    pub fn token_text(&self, id: u32) -> String {
        match self.pieces.as_ref().map(|table| table.piece(id)) {
            Some(Piece::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Some(Piece::Byte(byte)) => String::from_utf8_lossy(&[byte]).into_owned(),
            Some(Piece::Missing) => String::new(),
            None => self.decode(&[id]),
        }
    }

    /// The text of a whole sequence of tokens; special tokens show their name.
    pub fn decode(&self, ids: &[u32]) -> String {
        // Some decoders of the library cannot stand an empty sequence, which unknown ids leave.
        if ids.iter().all(|&id| id as usize >= self.vocabulary_size()) {
            return String::new();
        }
        self.inner.decode(ids, false).unwrap_or_else(|error| {
            // No decoder of the library fails on tokens of its own vocabulary but for a broken regular expression.
            tracing::error!(%error, "the tokenizer cannot decode");
            String::new()
        })
    }

    /// The library's tokenizer.
    #[cfg(test)]
    pub(super) fn inner(&self) -> &tokenizers::Tokenizer {
        &self.inner
    }

    pub(super) fn pieces(&self) -> Option<Arc<PieceTable>> {
        self.pieces.clone()
    }
}

fn refused(error: tokenizers::Error) -> TokenizerError {
    TokenizerError::Encode(error.to_string())
}

fn special_tokens(inner: &tokenizers::Tokenizer, vocabulary_size: usize) -> Vec<bool> {
    let mut special = vec![false; vocabulary_size];
    for (id, token) in inner.get_added_tokens_decoder() {
        if let Some(flag) = special.get_mut(id as usize) {
            *flag = token.special;
        }
    }
    special
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
mod tests;

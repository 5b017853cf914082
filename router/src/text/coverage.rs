//! How much text one token can cover at most: from it follows, without tokenising, the fewest tokens that a text can
//! have. Says nothing where the tokenizer may drop or fold text.

use serde_json::Value;

use super::pieces::{Piece, PieceTable};

/// Canonical composition shortens a text to no less than a third (Hangul: three letters of three bytes to one).
/// One more for safety.
const COMPOSITION_FACTOR: usize = 4;

/// The bound of one tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Most bytes of text behind one token; `None` when text may vanish.
    longest: Option<usize>,
    /// Some added tokens swallow the white space around them, so white space does not count.
    swallows_space: bool,
}

// === impl Coverage ===

impl Coverage {
    /// The bound of a tokenizer and its piece table.
    pub fn of(tokenizer: &tokenizers::Tokenizer, pieces: Option<&PieceTable>) -> Self {
        let swallows_space = tokenizer.get_added_tokens_decoder().values().any(|token| token.lstrip || token.rstrip);
        Self { longest: longest(tokenizer, pieces), swallows_space }
    }

    /// The fewest tokens that a text can have; 0 = nothing is known.
    pub fn min_tokens(self, text: &str) -> usize {
        let Some(longest) = self.longest else { return 0 };
        let space: usize = match self.swallows_space {
            true => text.chars().filter(|c| c.is_whitespace()).map(char::len_utf8).sum(),
            false => 0,
        };
        (text.len() - space).div_ceil(longest)
    }
}

fn longest(tokenizer: &tokenizers::Tokenizer, pieces: Option<&PieceTable>) -> Option<usize> {
    let pieces = pieces?;
    let normalizer = serde_json::to_value(tokenizer.get_normalizer()).ok()?;
    let pre_tokenizer = serde_json::to_value(tokenizer.get_pre_tokenizer()).ok()?;
    let factor = steps(&normalizer, "normalizers")
        .into_iter()
        .try_fold(1, |factor, step| Some(factor * normalisation_factor(step)?))?;
    let splits = steps(&pre_tokenizer, "pretokenizers");
    if !splits.iter().all(keeps_text) || !knows_all_bytes(tokenizer, &splits) {
        return None;
    }
    let vocabulary = tokenizer.get_vocab(true);
    let longest = vocabulary.into_iter().map(|(token, id)| match pieces.piece(id) {
        Piece::Text(bytes) if tokenizer.get_added_vocabulary().simple_id_to_token(id).is_none() => bytes.len(),
        _ => token.len(),
    });
    Some(longest.max()?.max(1) * factor)
}

/// The steps of a normaliser or pre-tokenizer, sequences unfolded.
fn steps<'a>(value: &'a Value, key: &str) -> Vec<&'a Value> {
    match value.get(key).and_then(Value::as_array) {
        Some(nested) => nested.iter().flat_map(|step| steps(step, key)).collect(),
        None if value.is_null() => Vec::new(),
        None => vec![value],
    }
}

/// By how much a normaliser may shorten a text; `None` = without bound.
fn normalisation_factor(step: &Value) -> Option<usize> {
    match step["type"].as_str()? {
        "Prepend" => Some(1),
        "NFC" | "NFD" => Some(COMPOSITION_FACTOR),
        "Replace" => {
            let pattern = step["pattern"]["String"].as_str()?;
            (pattern == " " && !step["content"].as_str()?.is_empty()).then_some(1)
        }
        _ => None,
    }
}

/// Whether a pre-tokenizer passes on all of the text.
fn keeps_text(step: &&Value) -> bool {
    match step["type"].as_str() {
        Some("ByteLevel" | "Metaspace" | "Digits" | "UnicodeScripts") => true,
        Some("Split" | "Punctuation") => step["behavior"].as_str().is_some_and(|behavior| behavior != "Removed"),
        _ => false,
    }
}

/// Whether every text has tokens of its own, down to single bytes, so that no unknown token folds it.
fn knows_all_bytes(tokenizer: &tokenizers::Tokenizer, splits: &[&Value]) -> bool {
    let known = |token: String| tokenizer.token_to_id(&token).is_some();
    if splits.iter().any(|step| step["type"] == "ByteLevel") {
        return tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet().into_iter().all(|c| known(c.to_string()));
    }
    let falls_back = match tokenizer.get_model() {
        tokenizers::ModelWrapper::BPE(model) => model.byte_fallback,
        tokenizers::ModelWrapper::Unigram(model) => model.byte_fallback(),
        _ => false,
    };
    falls_back && (0..=u8::MAX).all(|byte| known(format!("<0x{byte:02X}>")))
}

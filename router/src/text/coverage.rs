//! How much text one token can cover at most: from it follows, without tokenising, the fewest tokens that a text can
//! have. Says nothing where the tokenizer may drop or fold text.

use serde_json::Value;

use super::pieces::{Piece, PieceTable, byte_level_alphabet};

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
    /// Which bytes have tokens. Published vocabularies lack some that real text never has, and drop them.
    known: [bool; 256],
}

// === impl Coverage ===

impl Coverage {
    /// The bound of a tokenizer and its piece table.
    pub fn of(tokenizer: &tokenizers::Tokenizer, pieces: Option<&PieceTable>) -> Self {
        let swallows_space = tokenizer.get_added_tokens_decoder().values().any(|token| token.lstrip || token.rstrip);
        let known = known_bytes(tokenizer);
        Self { longest: longest(tokenizer, pieces, &known), swallows_space, known }
    }

    /// The fewest tokens that a text can have; 0 = nothing is known.
    pub fn min_tokens(self, text: &str) -> usize {
        let Some(longest) = self.longest else { return 0 };
        let space: usize = match self.swallows_space {
            true => text.chars().filter(|c| c.is_whitespace()).map(char::len_utf8).sum(),
            false => 0,
        };
        let dropped = text.bytes().filter(|byte| !self.known[usize::from(*byte)]).count();
        text.len().saturating_sub(space + dropped).div_ceil(longest)
    }
}

fn longest(tokenizer: &tokenizers::Tokenizer, pieces: Option<&PieceTable>, known: &[bool; 256]) -> Option<usize> {
    let pieces = pieces?;
    let normalizer = serde_json::to_value(tokenizer.get_normalizer()).ok()?;
    let pre_tokenizer = serde_json::to_value(tokenizer.get_pre_tokenizer()).ok()?;
    let factor = steps(&normalizer, "normalizers")
        .into_iter()
        .try_fold(1, |factor, step| Some(factor * normalisation_factor(step)?))?;
    let splits = steps(&pre_tokenizer, "pretokenizers");
    // A normaliser that rewrites characters may lead from known bytes to unknown ones.
    let few_dropped = byte_level(&splits) && factor == 1 || known.iter().all(|known| *known);
    if !splits.iter().all(keeps_text) || !few_dropped || !splits_unknown(tokenizer, &splits) {
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

/// Whether a text is made of bytes, or falls back to them, so that no unknown token folds much of it into one.
fn splits_unknown(tokenizer: &tokenizers::Tokenizer, splits: &[&Value]) -> bool {
    match tokenizer.get_model() {
        tokenizers::ModelWrapper::BPE(model) => byte_level(splits) || model.byte_fallback,
        tokenizers::ModelWrapper::Unigram(model) => byte_level(splits) || model.byte_fallback(),
        // Others look up whole words, and a word that is not there becomes one token.
        _ => false,
    }
}

fn byte_level(splits: &[&Value]) -> bool {
    splits.iter().any(|step| step["type"] == "ByteLevel")
}

/// The bytes that have a token, as a letter of the byte-level alphabet or under a name of their own.
fn known_bytes(tokenizer: &tokenizers::Tokenizer) -> [bool; 256] {
    let mut known = [false; 256];
    let pre_tokenizer = serde_json::to_value(tokenizer.get_pre_tokenizer()).unwrap_or_default();
    if byte_level(&steps(&pre_tokenizer, "pretokenizers")) {
        for (letter, byte) in (0_u32..).zip(byte_level_alphabet()) {
            if let (Some(letter), Some(byte)) = (char::from_u32(letter), byte) {
                known[usize::from(byte)] = tokenizer.token_to_id(&letter.to_string()).is_some();
            }
        }
    } else {
        for byte in 0..=u8::MAX {
            known[usize::from(byte)] = tokenizer.token_to_id(&format!("<0x{byte:02X}>")).is_some();
        }
    }
    known
}

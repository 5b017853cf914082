//! What each token of a vocabulary contributes to a text, worked out once at load, so that detokenisation is a table
//! look-up. Owns the knowledge of decoder pipelines that allow this; knows no state of any sequence.

use tokenizers::decoders::DecoderWrapper;
use tokenizers::{Decoder, Model};

/// What one token contributes to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// The vocabulary has no such id; a decode leaves it out.
    Missing,
    /// These bytes. They are whole characters unless `Rules::byte_level`.
    Text(&'a [u8]),
    /// One byte of a character that is spelled out in bytes.
    Byte(u8),
}

/// How pieces are put together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Pieces are raw bytes of one long UTF-8 text; what is no UTF-8 becomes U+FFFD, as `String::from_utf8_lossy` does.
    pub byte_level: bool,
    /// The first token of a text looks different from the same token later (a leading space is dropped).
    pub first_differs: bool,
    /// This character is dropped once at the very start of a text.
    pub strip: Option<char>,
}

/// The pieces of a vocabulary, indexed by token id.
#[derive(Debug)]
pub(super) struct PieceTable {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    rules: Rules,
}

/// Where a piece lies in `PieceTable::bytes`.
#[derive(Debug, Clone, Copy)]
enum Span {
    Missing,
    Text { start: u32, end: u32 },
    Byte(u8),
}

/// A decoder pipeline, taken apart.
#[derive(Debug, Default)]
struct Pipeline<'a> {
    per_token: Vec<&'a DecoderWrapper>,
    byte_fallback: bool,
    fused: bool,
    space_between: bool,
    rules: Rules,
}

// === impl PieceTable ===

impl PieceTable {
    /// The table of a tokenizer, or `None` when its decoder looks at more than one token at a time.
    pub fn build(tokenizer: &tokenizers::Tokenizer, vocabulary_size: usize) -> Option<Self> {
        let pipeline = Pipeline::of(tokenizer.get_decoder())?;
        let bytes_of_chars = byte_level_alphabet();
        let mut table = Self { bytes: Vec::new(), spans: Vec::with_capacity(vocabulary_size), rules: pipeline.rules };
        for id in 0..u32::try_from(vocabulary_size).ok()? {
            let token = tokenizer
                .get_added_vocabulary()
                .simple_id_to_token(id)
                .or_else(|| tokenizer.get_model().id_to_token(id));
            let span = match token {
                None => Span::Missing,
                Some(token) => table.add(&pipeline, token, &bytes_of_chars)?,
            };
            table.spans.push(span);
        }
        Some(table)
    }

    /// What a token contributes anywhere but at the very start of a text.
    pub fn piece(&self, id: u32) -> Piece<'_> {
        match self.spans.get(id as usize) {
            None | Some(Span::Missing) => Piece::Missing,
            Some(Span::Byte(byte)) => Piece::Byte(*byte),
            Some(Span::Text { start, end }) => Piece::Text(&self.bytes[*start as usize..*end as usize]),
        }
    }

    /// How pieces are put together.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    fn add(&mut self, pipeline: &Pipeline, token: String, alphabet: &[Option<u8>]) -> Option<Span> {
        let text = pipeline.apply(token)?;
        if pipeline.byte_fallback
            && let Some(byte) = fallback_byte(&text)
        {
            return Some(Span::Byte(byte));
        }
        let start = u32::try_from(self.bytes.len()).ok()?;
        if pipeline.rules.byte_level {
            self.bytes.extend(raw_bytes(&text, alphabet));
        } else {
            self.bytes.extend(text.as_bytes());
        }
        Some(Span::Text { start, end: u32::try_from(self.bytes.len()).ok()? })
    }
}

// === impl Pipeline ===

impl<'a> Pipeline<'a> {
    fn of(decoder: Option<&'a DecoderWrapper>) -> Option<Self> {
        let mut pipeline = Self::default();
        match decoder {
            None => {
                pipeline.space_between = true;
                pipeline.rules.first_differs = true;
            }
            Some(decoder) => {
                let mut steps = Vec::new();
                flatten(decoder, &mut steps);
                for (index, step) in steps.into_iter().enumerate() {
                    pipeline.take(index, step)?;
                }
            }
        }
        Some(pipeline)
    }

    /// Adds one step of the pipeline; `None` when it cannot be done token by token.
    fn take(&mut self, index: usize, step: &'a DecoderWrapper) -> Option<()> {
        let before_bytes = !self.byte_fallback && !self.fused;
        match step {
            DecoderWrapper::Fuse(_) => self.fused = true,
            DecoderWrapper::ByteLevel(_) if before_bytes && !self.rules.first_differs => {
                self.rules.byte_level = true;
                self.fused = true;
            }
            DecoderWrapper::ByteFallback(_) if before_bytes && !self.rules.first_differs => self.byte_fallback = true,
            DecoderWrapper::Metaspace(_) if index == 0 => {
                self.rules.first_differs = true;
                self.per_token.push(step);
            }
            DecoderWrapper::Replace(_) if before_bytes => self.per_token.push(step),
            DecoderWrapper::Strip(strip) if before_bytes && strip.stop == 0 => self.per_token.push(step),
            DecoderWrapper::Strip(strip) if self.fused && strip.stop == 0 && strip.start == 1 => {
                if self.rules.strip.is_some() || self.rules.first_differs {
                    return None;
                }
                self.rules.strip = Some(strip.content);
            }
            _ => return None,
        }
        Some(())
    }

    /// The token's text as it stands after another token.
    fn apply(&self, token: String) -> Option<String> {
        let mut text = token;
        for step in &self.per_token {
            text = step.decode_chain(vec![String::new(), text]).ok()?.pop()?;
        }
        if self.space_between {
            text.insert(0, ' ');
        }
        Some(text)
    }
}

fn flatten<'a>(decoder: &'a DecoderWrapper, steps: &mut Vec<&'a DecoderWrapper>) {
    match decoder {
        DecoderWrapper::Sequence(sequence) => {
            for step in sequence.get_decoders() {
                flatten(step, steps);
            }
        }
        other => steps.push(other),
    }
}

/// The byte that a token such as `<0x0A>` stands for.
fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// The bytes behind a token of a byte-level vocabulary; a token with other characters stands for itself.
fn raw_bytes(token: &str, alphabet: &[Option<u8>]) -> Vec<u8> {
    let mapped: Option<Vec<u8>> = token.chars().map(|c| alphabet.get(c as usize).copied().flatten()).collect();
    mapped.unwrap_or_else(|| token.as_bytes().to_vec())
}

/// The bytes that the characters of byte-level vocabularies stand for, indexed by code point: printable Latin-1 stands
/// for itself, the other bytes follow from U+0100 on.
pub(super) fn byte_level_alphabet() -> Vec<Option<u8>> {
    let mut alphabet = vec![None; 0x200];
    let mut next = 0x100;
    for byte in 0..=u8::MAX {
        if matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF) {
            alphabet[usize::from(byte)] = Some(byte);
        } else {
            alphabet[next] = Some(byte);
            next += 1;
        }
    }
    alphabet
}

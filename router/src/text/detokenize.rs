//! Incremental detokenisation: token ids in, text out, character by character. Owns the state between tokens of one
//! sequence, which can be rebuilt by replaying ids; what a token contributes is `pieces`' business.
//!
//! The text of all pushes and of `finish` is the decode of prompt and generated tokens together, less the decode of
//! the prompt. Two exceptions, both about characters that tokens split into bytes:
//! - A character that the prompt left incomplete appears whole in the generated text.
//! - Where a vocabulary spells characters in byte tokens (`<0xE2>`), a whole decode replaces *every* byte of a run by
//!   U+FFFD if any part of the run is no UTF-8. Characters of the run that were complete before the bad byte have
//!   been shown by then, and stay.

use std::sync::Arc;

use super::Tokenizer;
use super::pieces::{Piece, PieceTable};
use super::window::Window;

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// A character has at most so many bytes that can be missing its last.
const LONGEST_INCOMPLETE: usize = 3;

/// Turns the tokens of one sequence into text.
#[derive(Debug, Clone)]
pub struct Detokenizer {
    tokenizer: Arc<Tokenizer>,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Pieces { table: Arc<PieceTable>, pending: Pending },
    Window(Window),
}

/// What is left over between two tokens when text comes from the piece table.
#[derive(Debug, Clone, Default)]
struct Pending {
    /// The beginning of a character, at most three bytes.
    bytes: Vec<u8>,
    /// The current run of byte tokens is no UTF-8.
    broken: bool,
    /// Nothing was decoded yet.
    first: bool,
    /// A character to drop if it opens the text.
    strip: Option<char>,
}

// === impl Detokenizer ===

impl Detokenizer {
    /// Starts after a prompt, whose end decides about leading spaces and incomplete characters.
    pub fn new(tokenizer: Arc<Tokenizer>, prompt: &[u32]) -> Self {
        let state = match tokenizer.pieces() {
            Some(table) => State::Pieces { pending: Pending::after(&table, prompt), table },
            None => State::Window(Window::after(prompt)),
        };
        Self { tokenizer, state }
    }

    /// The text that one more token adds; empty while a character is incomplete. Special tokens show their name; to
    /// keep them out of a text, do not push them.
    pub fn push(&mut self, id: u32) -> String {
        match &mut self.state {
            State::Pieces { table, pending } if pending.first && table.rules().first_differs => {
                pending.first = table.piece(id) == Piece::Missing;
                self.tokenizer.decode(&[id])
            }
            State::Pieces { table, pending } => pending.push(table, id),
            State::Window(window) => window.push(&self.tokenizer, id),
        }
    }

    /// What is left at the end: an incomplete character, as replacement characters.
    pub fn finish(&mut self) -> String {
        match &mut self.state {
            State::Pieces { table, pending } => pending.flush(table.rules().byte_level),
            State::Window(window) => window.finish(&self.tokenizer),
        }
    }
}

// === impl Pending ===

impl Pending {
    /// The state after a prompt. Only its last tokens matter, back to one that settles the state whatever came before.
    fn after(table: &PieceTable, prompt: &[u32]) -> Self {
        let rules = table.rules();
        let mut settling = if rules.byte_level { LONGEST_INCOMPLETE } else { 1 };
        let mut start = prompt.len();
        while start > 0 && settling > 0 {
            start -= 1;
            if let Piece::Text(bytes) = table.piece(prompt[start]) {
                settling = settling.saturating_sub(bytes.len());
            }
        }
        let mut pending = Self { first: true, strip: rules.strip, ..Self::default() };
        for &id in &prompt[start..] {
            pending.push(table, id);
        }
        pending
    }

    fn push(&mut self, table: &PieceTable, id: u32) -> String {
        let mut text = String::new();
        match table.piece(id) {
            Piece::Missing => return text,
            Piece::Byte(byte) => self.push_byte(byte, &mut text),
            Piece::Text(bytes) if table.rules().byte_level => {
                self.bytes.extend_from_slice(bytes);
                drain_characters(&mut self.bytes, &mut text);
            }
            Piece::Text(bytes) => {
                text = self.flush(false);
                text.push_str(&String::from_utf8_lossy(bytes));
            }
        }
        self.first = false;
        self.strip_start(text)
    }

    /// One byte of a run of byte tokens: a character is shown once it is complete; after a bad byte the run is lost.
    fn push_byte(&mut self, byte: u8, text: &mut String) {
        self.bytes.push(byte);
        match std::str::from_utf8(&self.bytes) {
            Ok(character) if !self.broken => text.push_str(character),
            Err(error) if !self.broken && error.error_len().is_none() => return,
            _ => {
                self.broken = true;
                text.extend(std::iter::repeat_n(REPLACEMENT, self.bytes.len()));
            }
        }
        self.bytes.clear();
    }

    /// Ends a run of bytes. Byte-level vocabularies replace an incomplete character once, others once for each byte.
    fn flush(&mut self, byte_level: bool) -> String {
        let replacements = if byte_level { self.bytes.len().min(1) } else { self.bytes.len() };
        self.bytes.clear();
        self.broken = false;
        std::iter::repeat_n(REPLACEMENT, replacements).collect()
    }

    fn strip_start(&mut self, mut text: String) -> String {
        if self.strip.is_some() && !text.is_empty() && text.starts_with(self.strip.take().unwrap_or_default()) {
            text.remove(0);
        }
        text
    }
}

/// Moves the complete characters of `bytes` to `text`; what can never become one moves as U+FFFD.
fn drain_characters(bytes: &mut Vec<u8>, text: &mut String) {
    let mut done = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        done += chunk.valid().len();
        let invalid = chunk.invalid();
        let at_end = done + invalid.len() == bytes.len();
        if invalid.is_empty() || at_end && is_incomplete(invalid) {
            break;
        }
        text.push(REPLACEMENT);
        done += invalid.len();
    }
    bytes.drain(..done);
}

fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
#[path = "detokenize_tests.rs"]
mod tests;

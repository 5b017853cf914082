//! Incremental detokenisation: token ids in, text out, character by character. State can be rebuilt by replaying ids.

use std::sync::Arc;

use super::Tokenizer;

/// Turns the tokens of one sequence into text.
#[derive(Debug)]
pub struct Detokenizer {
    tokenizer: Arc<Tokenizer>,
    ids: Vec<u32>,
    prefix: usize,
    read: usize,
}

// === impl Detokenizer ===

impl Detokenizer {
    /// Starts after the prompt's last tokens, whose context decides about leading spaces.
    pub fn new(tokenizer: Arc<Tokenizer>, prompt: &[u32]) -> Self {
        let ids = prompt[prompt.len().saturating_sub(5)..].to_vec();
        let read = ids.len();
        Self { tokenizer, ids, prefix: 0, read }
    }

    /// The text that one more token adds; empty while a character is incomplete. Special tokens show their name.
    pub fn push(&mut self, id: u32) -> String {
        self.ids.push(id);
        let before = self.decode(self.prefix, self.read);
        let after = self.decode(self.prefix, self.ids.len());
        if after.len() <= before.len() || after.ends_with('\u{FFFD}') {
            return String::new();
        }
        self.prefix = self.read;
        self.read = self.ids.len();
        after[before.len()..].to_owned()
    }

    /// What is left at the end: an incomplete character, as the replacement character.
    pub fn finish(&mut self) -> String {
        let before = self.decode(self.prefix, self.read);
        let after = self.decode(self.prefix, self.ids.len());
        self.read = self.ids.len();
        after.get(before.len()..).unwrap_or_default().to_owned()
    }

    fn decode(&self, start: usize, end: usize) -> String {
        self.tokenizer.inner().decode(&self.ids[start..end], false).unwrap_or_default()
    }
}

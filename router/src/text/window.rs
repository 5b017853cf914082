//! Detokenisation by decoding a window of tokens twice a step, as `transformers`-based servers do it. The slow path for
//! decoders that look at several tokens at once; all others use the piece table.

use super::Tokenizer;

/// Tokens of the prompt that give context to the first generated ones.
const CONTEXT_TOKENS: usize = 5;

/// The tokens that still matter: `ids[..read]` is shown and gives context, the rest waits for a complete character.
#[derive(Debug, Clone)]
pub(super) struct Window {
    ids: Vec<u32>,
    read: usize,
}

// === impl Window ===

impl Window {
    /// Starts after the prompt's last tokens.
    pub fn after(prompt: &[u32]) -> Self {
        let ids = prompt[prompt.len().saturating_sub(CONTEXT_TOKENS)..].to_vec();
        let read = ids.len();
        Self { ids, read }
    }

    /// The text that one more token adds.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> String {
        self.ids.push(id);
        let before = tokenizer.decode(&self.ids[..self.read]);
        let after = tokenizer.decode(&self.ids);
        if after.len() <= before.len() || after.ends_with(char::REPLACEMENT_CHARACTER) {
            return String::new();
        }
        self.ids.drain(..self.read);
        self.read = self.ids.len();
        added(&before, &after)
    }

    /// What is left at the end.
    pub fn finish(&mut self, tokenizer: &Tokenizer) -> String {
        let text = added(&tokenizer.decode(&self.ids[..self.read]), &tokenizer.decode(&self.ids));
        self.read = self.ids.len();
        text
    }
}

/// The part of `after` behind what it shares with `before`.
fn added(before: &str, after: &str) -> String {
    let shared = before.chars().zip(after.chars()).take_while(|(left, right)| left == right);
    after[shared.map(|(left, _)| left.len_utf8()).sum()..].to_owned()
}

//! Which tokens belong to the text that a client sees. A stop string is cut from the text, so the tokens that spell it
//! are cut from the logprobs, in a stream as in a whole answer. Special tokens are no part of the text unless asked for.

use std::collections::VecDeque;

use crate::event::TokenEvent;

/// Holds the tokens of one choice back until their text is shown.
#[derive(Debug, Default)]
pub struct ShownTokens {
    /// Special tokens are part of the text.
    special: bool,
    /// Each with the place where its text begins, in bytes.
    withheld: VecDeque<(usize, TokenEvent)>,
    /// Bytes of text that tokens have brought.
    brought: usize,
    /// Bytes of text that are shown.
    shown: usize,
}

// === impl ShownTokens ===

impl ShownTokens {
    /// Of a choice whose text holds special tokens or not.
    pub fn new(special: bool) -> Self {
        Self { special, ..Self::default() }
    }

    /// Takes a token and the text that is shown because of it; returns the tokens that begin in what is shown.
    pub fn push(&mut self, token: TokenEvent, text: &str) -> Vec<TokenEvent> {
        if self.special || !token.token.special {
            let start = self.brought;
            self.brought += token.token.text.len();
            self.withheld.push_back((start, token));
        }
        self.show(text)
    }

    /// More text is shown; returns the tokens that begin in it.
    pub fn show(&mut self, text: &str) -> Vec<TokenEvent> {
        self.shown += text.len();
        let ready = self.withheld.iter().take_while(|(start, _)| *start < self.shown).count();
        self.withheld.drain(..ready).map(|(_, token)| token).collect()
    }
}

/// The tokens that begin in a whole text, which holds special tokens or not.
pub fn shown<'a>(tokens: &'a [TokenEvent], text: &str, special: bool) -> impl Iterator<Item = &'a TokenEvent> {
    let length = text.len();
    let plain = tokens.iter().filter(move |token| special || !token.token.special);
    let placed = plain.scan(0, |brought, token| {
        let start = *brought;
        *brought += token.token.text.len();
        Some((start, token))
    });
    placed.take_while(move |(start, _)| *start < length).map(|(_, token)| token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Token;

    fn token(text: &str, special: bool, delta: &str) -> TokenEvent {
        let token = Token { id: 1, text: text.into(), logprob: -1.0, special };
        TokenEvent { token, top_tokens: Vec::new(), delta: delta.into(), last: false }
    }

    fn texts<'a>(tokens: impl IntoIterator<Item = &'a TokenEvent>) -> Vec<&'a str> {
        tokens.into_iter().map(|token| &*token.token.text).collect()
    }

    #[test]
    fn tokens_of_a_stop_string_are_cut() {
        // The stop string is `XYZ`.
        let tokens = [token("a", false, "a"), token("bX", false, "b"), token("Y", false, ""), token("Zc", false, "")];
        assert_eq!(texts(shown(&tokens, "ab", false)), ["a", "bX"]);
        let mut gate = ShownTokens::default();
        let pushed: Vec<_> = tokens.iter().map(|token| gate.push(token.clone(), &token.delta)).collect();
        assert_eq!(pushed.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 0, 0]);
    }

    #[test]
    fn what_was_withheld_for_nothing_is_shown_in_order() {
        let tokens =
            [token("X", false, ""), token("\u{e9}", false, ""), token("", false, ""), token("Q", false, "X\u{e9}Q")];
        assert_eq!(texts(shown(&tokens, "X\u{e9}Q", false)), ["X", "\u{e9}", "", "Q"]);
        let mut gate = ShownTokens::default();
        let pushed: Vec<_> = tokens.iter().flat_map(|token| gate.push(token.clone(), &token.delta)).collect();
        assert_eq!(texts(&pushed), ["X", "\u{e9}", "", "Q"]);
    }

    #[test]
    fn the_end_shows_what_is_left_but_no_special_tokens() {
        let mut gate = ShownTokens::default();
        assert!(gate.push(token("X", false, ""), "").is_empty());
        assert!(gate.push(token("<|end|>", true, ""), "").is_empty());
        assert_eq!(texts(&gate.show("X")), ["X"]);
        assert_eq!(texts(shown(&[token("<|end|>", true, ""), token("X", false, "X")], "X", false)), ["X"]);
    }
}

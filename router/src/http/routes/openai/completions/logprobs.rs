//! The logprobs of `/v1/completions`: parallel lists over the tokens of the prompt, if it is echoed, and of the text.

use super::super::view::{TokenView, shown_logprob};
use super::types::CompletionLogprobs;
use crate::event::{PromptToken, Token, TokenEvent};

// === impl CompletionLogprobs ===

impl<'a> CompletionLogprobs<'a> {
    /// Adds the tokens of a prompt that opens the text, with so many candidates each. Their offsets are exact where no
    /// character is split over tokens.
    pub fn extend_prompt(&mut self, tokens: &'a [PromptToken], candidates: usize, view: &TokenView) {
        let mut offset = 0;
        for token in tokens {
            self.tokens.push(view.name(token.id, &token.text));
            self.token_logprobs.push(token.logprob.map(shown_logprob));
            self.top_logprobs.push(token.logprob.map(|logprob| {
                let best = token.top_tokens.iter().take(candidates).map(|token| named(token, view));
                let own = (view.name(token.id, &token.text).into_owned(), shown_logprob(logprob));
                best.chain(std::iter::once(own)).map(|(name, logprob)| (name, logprob.into())).collect()
            }));
            self.text_offset.push(offset);
            offset += token.text.chars().count();
        }
    }

    /// Adds generated tokens of which the first begins at `offset`, and returns where the next one will.
    pub fn extend(&mut self, tokens: impl Iterator<Item = &'a TokenEvent>, offset: usize, view: &TokenView) -> usize {
        tokens.fold(offset, |offset, token| self.push(token, offset, view))
    }

    fn push(&mut self, token: &'a TokenEvent, offset: usize, view: &TokenView) -> usize {
        let chosen = &token.token;
        self.tokens.push(view.name(chosen.id, &chosen.text));
        self.token_logprobs.push(Some(shown_logprob(chosen.logprob)));
        let candidates = token.top_tokens.iter().chain(std::iter::once(chosen)).map(|token| named(token, view));
        self.top_logprobs.push(Some(candidates.map(|(name, logprob)| (name, logprob.into())).collect()));
        self.text_offset.push(offset);
        offset + chosen.text.chars().count()
    }
}

fn named(token: &Token, view: &TokenView) -> (String, f32) {
    (view.name(token.id, &token.text).into_owned(), shown_logprob(token.logprob))
}

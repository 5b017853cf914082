//! Whole answers: the events of a sequence gathered until its end.

use futures::future::try_join_all;

use crate::error::Error;
use crate::event::{Done, Event, PromptToken, TokenEvent};
use crate::queue::Generation;

/// Everything a finished sequence produced.
#[derive(Debug)]
pub struct Collected {
    /// The prompt's tokens, when they were asked for.
    pub prompt: Vec<PromptToken>,
    /// The generated tokens.
    pub tokens: Vec<TokenEvent>,
    /// The completion text, stop strings cut.
    pub text: String,
    /// How it ended.
    pub done: Done,
    /// Unicode characters of the prompt.
    pub prompt_characters: usize,
}

/// Waits for the end of every sequence of a call.
///
/// # Errors
/// That of the first sequence that fails; the others are cancelled.
pub async fn all(generations: Vec<Generation>) -> Result<Vec<Collected>, Error> {
    try_join_all(generations.into_iter().map(one)).await
}

async fn one(mut generation: Generation) -> Result<Collected, Error> {
    let (mut prompt, mut tokens, mut text) = (Vec::new(), Vec::new(), String::new());
    loop {
        match generation.next().await {
            Event::Start { .. } => {}
            Event::Prompt(tokens) => prompt = tokens,
            Event::Token(token) => {
                text.push_str(&token.delta);
                tokens.push(token);
            }
            Event::Done(done) => {
                text.push_str(&done.tail);
                let prompt_characters = generation.prompt_characters;
                return Ok(Collected { prompt, tokens, text, done: *done, prompt_characters });
            }
            Event::Error(error) => return Err(error),
        }
    }
}

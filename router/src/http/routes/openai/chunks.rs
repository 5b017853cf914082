//! The order of OpenAI's streams, for chat and completions alike: an opening, text, a finish chunk for each choice, the
//! usage if it was asked for, one `[DONE]`.

use bytes::BytesMut;
use serde::Serialize;

use super::fields::answer::UsageReports;
use super::shown::ShownTokens;
use super::types::{ErrorBody, Head, Usage};
use super::view::{Ending, TokenView};
use crate::error::Error;
use crate::event::{Done, Event, PromptToken, TokenEvent};
use crate::http::problem::Problem;
use crate::http::sse::{DONE, Frames, write_frame};

/// What a route puts into the choices of its chunks.
pub trait Chunk: Send + Unpin + 'static {
    /// A choice of a chunk.
    type Choice<'a>: Serialize;

    /// What opens a choice, if anything does. The prompt's tokens are there if they were asked for.
    fn opening<'a>(&'a mut self, index: usize, prompt: &'a [PromptToken]) -> Option<Self::Choice<'a>>;

    /// More text, and the tokens that begin in it if they are shown.
    fn text<'a>(&mut self, index: usize, text: &'a str, tokens: &'a [TokenEvent]) -> Self::Choice<'a>;

    /// The end of a choice.
    fn finish<'a>(&mut self, index: usize, ending: Ending<'a>) -> Self::Choice<'a>;
}

/// What an OpenAI stream shows.
#[derive(Debug)]
pub struct ChunkPlan {
    /// What is the same in every chunk.
    pub head: Head,
    /// What of the tokens is shown.
    pub view: TokenView,
    /// When the usage is told.
    pub usage: UsageReports,
    /// Tokens of the prompt of each choice.
    pub prompt_tokens: Vec<usize>,
    /// Choices a prompt.
    pub n: usize,
    /// Only the prompt is scored: what is generated is not shown.
    pub prompt_alone: bool,
}

/// The frames of an OpenAI stream.
#[derive(Debug)]
pub struct ChunkFrames<C> {
    chunk: C,
    plan: ChunkPlan,
    usage: Usage,
    choices: Vec<ChoiceState>,
}

/// How far a choice has come.
#[derive(Debug)]
struct ChoiceState {
    opened: bool,
    /// The prompt's tokens, until the choice is opened.
    prompt: Vec<PromptToken>,
    /// The tokens whose text is withheld.
    shown: ShownTokens,
    tokens: usize,
}

/// A chunk on the wire.
#[derive(Serialize)]
struct WireChunk<'a, C> {
    #[serde(flatten)]
    head: &'a Head,
    choices: &'a [C],
    /// Absent unless usage was asked for; then null but in the last chunk, or in every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<Usage>>,
}

// === impl ChunkPlan ===

impl ChunkPlan {
    /// Writes a chunk of one choice that has generated so many tokens.
    fn write<T: Serialize>(&self, index: usize, tokens: usize, choice: T, out: &mut BytesMut) {
        let usage = match self.usage {
            UsageReports::Never => None,
            UsageReports::End => Some(None),
            UsageReports::Always => Some(Some(Usage::so_far(self.prompt_tokens[index], tokens))),
        };
        write_frame(out, &WireChunk { head: &self.head, choices: &[choice], usage });
    }
}

// === impl ChunkFrames ===

impl<C: Chunk> ChunkFrames<C> {
    /// Frames by this plan; it has an entry of `prompt_tokens` for each choice.
    pub fn new(chunk: C, plan: ChunkPlan) -> Self {
        let state =
            || ChoiceState { opened: false, prompt: Vec::new(), shown: ShownTokens::new(plan.view.special), tokens: 0 };
        let choices = std::iter::repeat_with(state).take(plan.prompt_tokens.len()).collect();
        Self { chunk, plan, usage: Usage::default(), choices }
    }

    fn open(&mut self, index: usize, out: &mut BytesMut) {
        let choice = &mut self.choices[index];
        if !std::mem::replace(&mut choice.opened, true) {
            let prompt = std::mem::take(&mut choice.prompt);
            if let Some(opening) = self.chunk.opening(index, &prompt) {
                self.plan.write(index, 0, opening, out);
            }
        }
    }

    fn text(&mut self, index: usize, text: &str, tokens: &[TokenEvent], out: &mut BytesMut) {
        if !(text.is_empty() && tokens.is_empty()) {
            let choice = self.chunk.text(index, text, tokens);
            self.plan.write(index, self.choices[index].tokens, choice, out);
        }
    }

    fn token(&mut self, index: usize, token: TokenEvent, out: &mut BytesMut) {
        self.open(index, out);
        if self.plan.prompt_alone {
            return;
        }
        let choice = &mut self.choices[index];
        choice.tokens += 1;
        if self.plan.view.logprobs {
            let text = token.delta.clone();
            let tokens = choice.shown.push(token, &text);
            self.text(index, &text, &tokens, out);
        } else {
            self.text(index, &token.delta, &[], out);
        }
    }

    fn done(&mut self, index: usize, done: &Done, out: &mut BytesMut) {
        self.open(index, out);
        let (mut tokens, mut ending) = (0, Ending::PROMPT_ALONE);
        if !self.plan.prompt_alone {
            (tokens, ending) = (done.generated_tokens, Ending::of(done));
            let shown = self.choices[index].shown.show(&done.tail);
            self.text(index, &done.tail, &shown, out);
        }
        self.usage.add(index.is_multiple_of(self.plan.n), done, tokens);
        let choice = self.chunk.finish(index, ending);
        self.plan.write(index, tokens, choice, out);
    }
}

impl<C: Chunk> Frames for ChunkFrames<C> {
    fn event(&mut self, index: usize, event: Event, out: &mut BytesMut) {
        match event {
            Event::Start { .. } => {}
            Event::Prompt(tokens) => self.choices[index].prompt = tokens,
            Event::Token(token) => self.token(index, token, out),
            Event::Done(done) => self.done(index, &done, out),
            Event::Error(error) => self.error(error, out),
        }
    }

    fn end(&mut self, out: &mut BytesMut) {
        if self.plan.usage != UsageReports::Never {
            let choices: &[()] = &[];
            write_frame(out, &WireChunk { head: &self.plan.head, choices, usage: Some(Some(self.usage)) });
        }
        out.extend_from_slice(DONE);
    }

    fn error(&mut self, error: Error, out: &mut BytesMut) {
        write_frame(out, &ErrorBody::of(&Problem::from(error)));
        out.extend_from_slice(DONE);
    }
}

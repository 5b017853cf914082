//! From a completion call to requests, and from finished sequences to its answer.

use super::super::fields::Extras;
use super::super::shown::shown;
use super::super::types::{Head, Usage};
use super::super::view::{Ending, TokenView};
use super::types::{Completion, CompletionChoice, CompletionFields, CompletionLogprobs, CompletionRequest, Prompt};
use crate::error::Error;
use crate::http::collect::Collected;
use crate::queue::Admission;
use crate::request::{Input, Spelling};

/// Completions' field names.
static SPELLING: Spelling = Spelling {
    input: "prompt",
    max_new_tokens: "max_tokens",
    top_n_tokens: "logprobs",
    prompt_logprobs: "prompt_logprobs",
    truncate: "truncate_prompt_tokens",
};
/// Those of a call whose echoed prompt is scored.
static ECHO_SPELLING: Spelling = Spelling { prompt_logprobs: "echo", ..SPELLING };

/// What an answer shows.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Choices a prompt.
    pub n: usize,
    /// Sequences a prompt, of which the best `n` are shown.
    pub width: usize,
    /// How tokens are shown.
    pub view: TokenView,
    /// The text of each prompt, if it opens the choices.
    pub echo: Option<Vec<String>>,
    /// Candidates for the tokens of an echoed prompt; none if these are not shown.
    pub echo_candidates: Option<usize>,
    /// Nothing is to be generated.
    pub prompt_alone: bool,
}

// === impl CompletionRequest ===

impl CompletionRequest {
    /// What the answer will show, but for the echoed prompts.
    ///
    /// # Errors
    /// `Invalid` or `Unsupported` for options that contradict each other or the limits.
    pub fn shape(&self, max_best_of: usize) -> Result<Shape, Error> {
        let answer = &self.common.answer;
        if self.own.echo && self.common.prompt.truncate_prompt_tokens.is_some() {
            let message = "`truncate_prompt_tokens` cannot be given with `echo`: the echo would show what is cut";
            return Err(Error::invalid("truncate_prompt_tokens", message));
        }
        let view = TokenView {
            logprobs: self.own.logprobs.is_some(),
            as_ids: answer.return_tokens_as_token_ids,
            special: !answer.skips_special_tokens(),
            prompt_logprobs: answer.prompt_logprobs,
        };
        Ok(Shape {
            n: self.common.choices(),
            width: self.width(max_best_of)?,
            view,
            echo: None,
            echo_candidates: self.own.logprobs.filter(|_| self.own.echo).map(|candidates| candidates as usize),
            prompt_alone: self.own.echo && self.common.length.max_new_tokens()? == Some(0),
        })
    }

    /// Sequences a prompt.
    fn width(&self, max_best_of: usize) -> Result<usize, Error> {
        let n = self.common.choices();
        let Some(best_of) = self.own.best_of else { return Ok(n) };
        let refused = |message: String| Err(Error::invalid("best_of", message));
        match best_of {
            _ if best_of < n => refused(format!("`best_of` must be >= `n`. Given: {best_of} and {n}")),
            _ if best_of == n => Ok(n),
            _ if best_of > max_best_of => {
                refused(format!("`best_of` must be <= {max_best_of} (`--max-best-of`) or `n`. Given: {best_of}"))
            }
            _ if self.common.answer.stream => {
                refused("`best_of` above `n` cannot be streamed: the best are known at the end".into())
            }
            _ => Ok(best_of),
        }
    }

    /// What completions ask of each sequence.
    pub fn extras(&self, shape: &Shape) -> Extras {
        let scored = self.own.logprobs.filter(|_| self.own.echo);
        Extras {
            top_n_tokens: self.own.logprobs.unwrap_or(0),
            reads_logprobs: self.own.logprobs.is_some() || shape.width > shape.n,
            width: shape.width,
            // A step is what scores the prompt, and a step samples a token.
            max_new_tokens: shape.prompt_alone.then_some(1),
            prompt_logprobs: scored,
            spelling: if scored.is_some() { &ECHO_SPELLING } else { &SPELLING },
        }
    }
}

// === impl CompletionFields ===

impl CompletionFields {
    /// The text of each prompt, if it opens the choices.
    ///
    /// # Errors
    /// `Invalid` for token ids that do not exist.
    pub async fn echoed(&self, admission: &Admission) -> Result<Option<Vec<String>>, Error> {
        if !self.echo {
            return Ok(None);
        }
        let mut texts = Vec::new();
        for input in self.prompt.clone().into_inputs() {
            texts.push(match input {
                Input::Tokens(tokens) => admission.decode(tokens, SPELLING.input).await?,
                Input::Text(text) => text,
                Input::Chat(_) => String::new(),
            });
        }
        Ok(Some(texts))
    }
}

// === impl Prompt ===

impl Prompt {
    /// How many prompts there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            // An empty list is one empty prompt, and refused as that.
            Self::Tokens(_) => 1,
            Self::Texts(texts) => texts.len(),
            Self::TokenLists(lists) => lists.len(),
        }
    }

    /// The prompts, one by one.
    pub fn into_inputs(self) -> Vec<Input> {
        match self {
            Self::Text(text) => vec![Input::Text(text)],
            Self::Tokens(tokens) => vec![Input::Tokens(tokens)],
            Self::Texts(texts) => texts.into_iter().map(Input::Text).collect(),
            Self::TokenLists(lists) => lists.into_iter().map(Input::Tokens).collect(),
        }
    }
}

// === impl Shape ===

impl Shape {
    /// The prompt that opens a choice, if one does.
    pub fn echo_of(&self, choice: usize) -> Option<&str> {
        self.echo.as_ref().and_then(|texts| texts.get(choice / self.n)).map(String::as_str)
    }

    /// The whole answer to sequences that are `width` for each prompt.
    pub fn completion<'a>(&'a self, head: &'a Head, sequences: &'a [Collected]) -> Completion<'a> {
        let mut usage = Usage::default();
        for (index, sequence) in sequences.iter().enumerate() {
            let tokens = if self.prompt_alone { 0 } else { sequence.done.generated_tokens };
            usage.add(index.is_multiple_of(self.width), &sequence.done, tokens);
        }
        let shown = sequences.chunks(self.width).flat_map(|candidates| best(candidates, self.n));
        let choices = shown.enumerate().map(|(index, sequence)| self.choice(index, sequence)).collect();
        Completion { head, choices, usage }
    }

    fn choice<'a>(&'a self, index: usize, sequence: &'a Collected) -> CompletionChoice<'a> {
        let ending = if self.prompt_alone { Ending::PROMPT_ALONE } else { Ending::of(&sequence.done) };
        let continuation = if self.prompt_alone { "" } else { sequence.text.as_str() };
        let text = match self.echo_of(index) {
            Some(prompt) => format!("{prompt}{continuation}").into(),
            None => continuation.into(),
        };
        CompletionChoice {
            index,
            text,
            logprobs: self.view.logprobs.then(|| self.logprobs(index, sequence, continuation)),
            finish_reason: Some(ending.reason),
            stop_reason: ending.stop,
            prompt_logprobs: self.view.prompt(&sequence.prompt),
        }
    }

    fn logprobs<'a>(&self, index: usize, sequence: &'a Collected, text: &str) -> CompletionLogprobs<'a> {
        let mut logprobs = CompletionLogprobs::default();
        if let Some(candidates) = self.echo_candidates {
            logprobs.extend_prompt(&sequence.prompt, candidates, &self.view);
        }
        let offset = self.echo_of(index).map_or(0, |prompt| prompt.chars().count());
        logprobs.extend(shown(&sequence.tokens, text, self.view.special), offset, &self.view);
        logprobs
    }
}

/// The `n` likeliest of a prompt's sequences, best first; all of them stay in their order.
fn best(sequences: &[Collected], n: usize) -> Vec<&Collected> {
    let mut best: Vec<&Collected> = sequences.iter().collect();
    if n < best.len() {
        let sum = |sequence: &Collected| sequence.tokens.iter().map(|token| token.token.logprob).sum::<f32>();
        best.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
        best.truncate(n);
    }
    best
}

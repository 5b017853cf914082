//! The wire-neutral stream of events that one sequence produces. Every API is a projection of it: TGI's frames show
//! each token with its own text; OpenAI's show `delta`, the text that is safe to show (stop strings withheld).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::error::Error;

/// The sending end of a sequence's event stream. `is_closed` tells that the client is gone.
pub type EventSender = mpsc::UnboundedSender<Event>;
/// The receiving end of a sequence's event stream. Dropping it cancels the sequence at the next step.
pub type EventReceiver = mpsc::UnboundedReceiver<Event>;

/// What happens to one sequence, in order: `Start`, `Prompt` if asked for, `Token`s, then `Done` or `Error`.
#[derive(Debug, Clone)]
pub enum Event {
    /// The sequence was put into its first step.
    Start {
        /// When.
        at: Instant,
    },
    /// The tokens of the prompt with their logprobs; sent once before the first `Token`, when asked for.
    Prompt(Vec<PromptToken>),
    /// One generated token.
    Token(TokenEvent),
    /// The sequence ended. Boxed: most events are tokens, and each is moved several times.
    Done(Box<Done>),
    /// The sequence failed; nothing follows.
    Error(Error),
}

/// One token of the prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptToken {
    /// Vocabulary id.
    pub id: u32,
    /// The token alone, decoded.
    pub text: String,
    /// Natural log; `None` for the first token.
    pub logprob: Option<f32>,
    /// The best candidates in its place, best first; empty unless asked for, and for the first token.
    pub top_tokens: Vec<Token>,
}

/// A candidate or chosen token.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Vocabulary id.
    pub id: u32,
    /// What the token adds to the text; empty while a character is incomplete. Special tokens show their name.
    pub text: Arc<str>,
    /// Natural log of its probability after penalties and warpers.
    pub logprob: f32,
    /// Whether it is a special token (not part of the generated text).
    pub special: bool,
}

/// One generated token and the text that may be shown because of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenEvent {
    /// The chosen token.
    pub token: Token,
    /// The best candidates, best first; empty unless asked for.
    pub top_tokens: Vec<Token>,
    /// Text released by this token: special tokens and stop strings left out, possible stop strings withheld.
    /// The concatenation over a sequence is its completion text.
    pub delta: Arc<str>,
    /// Whether `Done` follows at once: TGI's last frame shows the token and the end together.
    pub last: bool,
}

/// Why a sequence ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The token budget is used up.
    Length,
    /// The model produced an end token.
    EndOfSequence,
    /// The model produced a token that the request named as an end; which one.
    StopToken(u32),
    /// A stop string appeared; which one.
    Stop(Arc<str>),
}

/// The end of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Why it ended.
    pub reason: FinishReason,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens whose keys and values were found in the prefix cache.
    pub cached_tokens: usize,
    /// Tokens generated, the end token included.
    pub generated_tokens: usize,
    /// Text that was withheld until now and belongs to the completion (follows the last `delta`).
    pub tail: String,
    /// TGI's `generated_text`: as the deltas, but with a matched stop string kept.
    pub generated_text: String,
    /// The seed, when the sequence was sampled.
    pub seed: Option<u64>,
    /// Where the time went.
    pub timings: Timings,
}

/// Where a sequence's time went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Arrival to queued: validation, template, tokenisation.
    pub validation: Duration,
    /// Queued to the first step.
    pub queue: Duration,
    /// First step to now.
    pub inference: Duration,
}

// === impl Timings ===

impl Timings {
    /// Arrival to now.
    pub fn total(&self) -> Duration {
        self.validation + self.queue + self.inference
    }

    /// Inference time divided by the tokens generated.
    pub fn per_token(&self, generated_tokens: usize) -> Duration {
        self.inference / u32::try_from(generated_tokens.max(1)).unwrap_or(u32::MAX)
    }
}

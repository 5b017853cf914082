//! From a chat call to requests, and from finished sequences to its answer.

use super::super::fields::Extras;
use super::super::shown::shown;
use super::super::types::{Head, Usage, finish_reason};
use super::messages;
use super::types::{
    AnswerMessage, ChatChoice, ChatCompletion, ChatFields, ChatLogprobs, ChatRequest, TokenLogprob, TokenLogprobs,
};
use crate::error::Error;
use crate::event::{Token, TokenEvent};
use crate::http::collect::Collected;
use crate::request::{ChatInput, Spelling};

/// Chat's field names.
static SPELLING: Spelling = Spelling {
    input: "messages",
    max_new_tokens: "max_tokens",
    top_n_tokens: "top_logprobs",
    prompt_logprobs: "prompt_logprobs",
};

/// Who answers.
pub const ASSISTANT: &str = "assistant";

// === impl ChatRequest ===

impl ChatRequest {
    /// The conversation for the template.
    ///
    /// # Errors
    /// `Invalid` or `Unsupported`, naming the message or the field.
    pub fn into_chat(self) -> Result<ChatInput, Error> {
        self.own.into_chat()
    }
}

// === impl ChatFields ===

impl ChatFields {
    /// The conversation for the template. An assistant's message at the end is continued, as TGI does.
    ///
    /// # Errors
    /// `Invalid` or `Unsupported`, naming the message or the field.
    pub fn into_chat(self) -> Result<ChatInput, Error> {
        let messages = messages::normalise(self.messages)?;
        let ends_open = messages.last().is_some_and(|message| message["role"] == ASSISTANT);
        let continued = self.continue_final_message.unwrap_or(ends_open && self.add_generation_prompt != Some(true));
        let prompted = self.add_generation_prompt.unwrap_or(!continued);
        if continued && prompted {
            let message = "`continue_final_message` and `add_generation_prompt` exclude each other";
            return Err(Error::invalid("continue_final_message", message));
        }
        Ok(ChatInput {
            messages,
            tools: None,
            add_generation_prompt: prompted,
            continue_final_message: continued,
            variables: self.chat_template_kwargs,
        })
    }

    /// What chat asks of each sequence.
    ///
    /// # Errors
    /// `Invalid` for candidates without logprobs.
    pub fn extras(&self) -> Result<Extras, Error> {
        if self.top_logprobs.is_some() && !self.logprobs {
            return Err(Error::invalid("top_logprobs", "`top_logprobs` needs `logprobs` to be true"));
        }
        Ok(Extras { top_n_tokens: self.top_logprobs.unwrap_or(0), spelling: &SPELLING })
    }
}

/// The whole answer.
pub fn completion<'a>(head: &'a Head, sequences: &'a [Collected], logprobs: bool) -> ChatCompletion<'a> {
    let mut usage = Usage::default();
    for (index, sequence) in sequences.iter().enumerate() {
        usage.add(index, sequences.len(), &sequence.done);
    }
    let choice = |(index, sequence): (usize, &'a Collected)| ChatChoice {
        index,
        message: AnswerMessage { role: ASSISTANT, content: &sequence.text },
        logprobs: logprobs.then(|| chat_logprobs(shown(&sequence.tokens, &sequence.text))),
        finish_reason: finish_reason(&sequence.done.reason),
    };
    ChatCompletion { head, choices: sequences.iter().enumerate().map(choice).collect(), usage }
}

/// The logprobs of tokens.
pub fn chat_logprobs<'a>(tokens: impl Iterator<Item = &'a TokenEvent>) -> ChatLogprobs<'a> {
    let content = tokens.map(|token| TokenLogprobs {
        token: TokenLogprob::from(&token.token),
        top_logprobs: token.top_tokens.iter().map(TokenLogprob::from).collect(),
    });
    ChatLogprobs { content: content.collect() }
}

impl<'a> From<&'a Token> for TokenLogprob<'a> {
    fn from(token: &'a Token) -> Self {
        Self { token: &token.text, logprob: token.logprob, bytes: token.text.as_bytes() }
    }
}

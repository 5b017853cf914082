//! From a chat call to requests, and from finished sequences to its answer.

use super::super::fields::Extras;
use super::super::shown::shown;
use super::super::types::{Head, Usage};
use super::super::view::{Ending, TokenView, shown_logprob};
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
    truncate: "truncate_prompt_tokens",
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

    /// What of the tokens the client wants to see.
    pub fn view(&self) -> TokenView {
        let answer = &self.common.answer;
        TokenView {
            logprobs: self.own.logprobs,
            as_ids: answer.return_tokens_as_token_ids,
            special: !answer.skips_special_tokens(),
            prompt_logprobs: answer.prompt_logprobs,
        }
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

    /// What chat asks of each of `n` sequences.
    ///
    /// # Errors
    /// `Invalid` for candidates without logprobs.
    pub fn extras(&self, n: usize) -> Result<Extras, Error> {
        if self.top_logprobs.is_some_and(|candidates| candidates > 0) && !self.logprobs {
            return Err(Error::invalid("top_logprobs", "`top_logprobs` needs `logprobs` to be true"));
        }
        Ok(Extras {
            top_n_tokens: self.top_logprobs.unwrap_or(0),
            reads_logprobs: self.logprobs,
            width: n,
            max_new_tokens: None,
            prompt_logprobs: None,
            spelling: &SPELLING,
        })
    }
}

/// The whole answer.
pub fn completion<'a>(head: &'a Head, sequences: &'a [Collected], view: &TokenView) -> ChatCompletion<'a> {
    let mut usage = Usage::default();
    for (index, sequence) in sequences.iter().enumerate() {
        usage.add(index == 0, &sequence.done, sequence.done.generated_tokens);
    }
    let choice = |(index, sequence): (usize, &'a Collected)| {
        let tokens = || shown(&sequence.tokens, &sequence.text, view.special);
        let ending = Ending::of(&sequence.done);
        ChatChoice {
            index,
            message: AnswerMessage { role: ASSISTANT, content: &sequence.text },
            logprobs: view.logprobs.then(|| chat_logprobs(tokens(), view)),
            finish_reason: ending.reason,
            stop_reason: ending.stop,
        }
    };
    ChatCompletion {
        head,
        choices: sequences.iter().enumerate().map(choice).collect(),
        usage,
        prompt_logprobs: sequences.first().and_then(|sequence| view.prompt(&sequence.prompt)),
    }
}

/// The logprobs of tokens.
pub fn chat_logprobs<'a>(tokens: impl Iterator<Item = &'a TokenEvent>, view: &TokenView) -> ChatLogprobs<'a> {
    let content = tokens.map(|token| TokenLogprobs {
        token: token_logprob(&token.token, view),
        top_logprobs: token.top_tokens.iter().map(|candidate| token_logprob(candidate, view)).collect(),
    });
    ChatLogprobs { content: content.collect() }
}

fn token_logprob<'a>(token: &'a Token, view: &TokenView) -> TokenLogprob<'a> {
    let logprob = shown_logprob(token.logprob);
    TokenLogprob { token: view.name(token.id, &token.text), logprob, bytes: token.text.as_bytes() }
}

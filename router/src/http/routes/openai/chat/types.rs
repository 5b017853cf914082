//! The wire types of `/v1/chat/completions`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::fields::{Call, RouteFields};
use super::super::types::{Head, Usage};
use super::super::unsupported;
use super::super::view::StopReason;
use super::messages::Message;
use crate::error::Error;
use crate::http::extract::{self, Object};
use crate::http::screen::Unsupported;

/// The body of `/v1/chat/completions` and `/chat_tokenize`.
pub type ChatRequest = Call<ChatFields>;

/// What chat adds to the common fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatFields {
    /// The conversation.
    #[schema(value_type = Vec<Message>)]
    pub messages: Vec<Object<Message>>,
    /// Report the logprob of each token.
    #[serde(default)]
    pub logprobs: bool,
    /// Report so many best candidates beside each token; up to `--max-top-n-tokens`, needs `logprobs`.
    pub top_logprobs: Option<u32>,
    /// Open an assistant turn at the end (an extension; on unless the final message is continued).
    pub add_generation_prompt: Option<bool>,
    /// Continue the last message (an extension; on when it is the assistant's).
    pub continue_final_message: Option<bool>,
    /// Further variables of the template (an extension).
    #[serde(default)]
    #[schema(value_type = Object)]
    pub chat_template_kwargs: Map<String, Value>,
}

/// A whole answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatCompletion<'a> {
    /// What answered.
    #[serde(flatten)]
    pub head: &'a Head,
    /// One for each of `n`.
    pub choices: Vec<ChatChoice<'a>>,
    /// What it cost.
    pub usage: Usage,
    /// The prompt's tokens, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<Object>>>)]
    pub prompt_logprobs: Option<Vec<Option<Map<String, Value>>>>,
}

/// One answer of several.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatChoice<'a> {
    /// 0 to n-1.
    pub index: usize,
    /// The answer.
    pub message: AnswerMessage<'a>,
    /// When asked for.
    pub logprobs: Option<ChatLogprobs<'a>>,
    /// `stop` or `length`.
    pub finish_reason: &'static str,
    /// The stop string or stop token that ended it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason<'a>>,
}

/// The assistant's message.
#[derive(Debug, Serialize, ToSchema)]
pub struct AnswerMessage<'a> {
    /// `assistant`.
    pub role: &'static str,
    /// Its text.
    pub content: &'a str,
}

/// The logprobs of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatLogprobs<'a> {
    /// One for each token of the text.
    pub content: Vec<TokenLogprobs<'a>>,
}

/// A token with its candidates.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenLogprobs<'a> {
    /// The token.
    #[serde(flatten)]
    pub token: TokenLogprob<'a>,
    /// The best candidates, best first.
    pub top_logprobs: Vec<TokenLogprob<'a>>,
}

/// A token with its logprob.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenLogprob<'a> {
    /// What it adds to the text.
    #[schema(value_type = String)]
    pub token: Cow<'a, str>,
    /// Natural log of its probability.
    pub logprob: f32,
    /// The text in UTF-8.
    pub bytes: &'a [u8],
}

/// What a chunk adds to a choice.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChunkChoice<'a> {
    /// 0 to n-1.
    pub index: usize,
    /// What is new.
    pub delta: Delta<'a>,
    /// When asked for.
    pub logprobs: Option<ChatLogprobs<'a>>,
    /// In the last chunk of the choice.
    pub finish_reason: Option<&'static str>,
    /// The stop string or stop token that ended it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason<'a>>,
}

/// What is new in a message.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Delta<'a> {
    /// In the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// More text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
}

// === impl ChatFields ===

impl RouteFields for ChatFields {
    const SCHEMA: &'static str = "ChatRequest";
    const UNSUPPORTED: &'static [Unsupported] = &unsupported::CHAT;

    fn screen(fields: &mut Map<String, Value>) -> Result<(), Error> {
        let messages = fields.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
        for message in messages.filter_map(Value::as_object_mut) {
            extract::screen(message, &unsupported::MESSAGE)?;
        }
        Ok(())
    }
}

//! The wire types of the tokenising routes, TGI's and vLLM's. Field order is theirs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{OneOfBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::super::generate::types::GenerateRequest;
use super::super::openai::chat::types::ChatRequest;
use super::super::openai::unsupported;
use crate::http::extract::{self, RequestBody};
use crate::http::problem::Problem;
use crate::text::TokenSpan;

/// The body of `/tokenize`: TGI's, or one of vLLM's two.
#[derive(Debug)]
pub enum TokenizeRequest {
    /// TGI's: `inputs`.
    Inputs(Box<GenerateRequest>),
    /// vLLM's: `prompt`.
    Prompt(TokenizePrompt),
    /// vLLM's: `messages`, with whatever else a chat call holds.
    Chat(Box<ChatRequest>),
}

/// vLLM's question for the tokens of a text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenizePrompt {
    /// Any name.
    #[expect(dead_code, reason = "there is one model, so any name is taken")]
    pub model: Option<String>,
    /// The text.
    pub prompt: String,
    /// Let the tokenizer add its special tokens; left out = true.
    pub add_special_tokens: Option<bool>,
}

/// The body of `/detokenize`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DetokenizeRequest {
    /// Any name.
    #[expect(dead_code, reason = "there is one model, so any name is taken")]
    pub model: Option<String>,
    /// Token ids, each in the vocabulary.
    pub tokens: Vec<u32>,
}

/// The answer of `/detokenize`.
#[derive(Debug, Serialize, ToSchema)]
pub struct DetokenizeResponse {
    /// The text; special tokens show their name.
    pub prompt: String,
}

/// The answer of `/tokenize` to a body of vLLM's.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenCount {
    /// How many tokens there are.
    pub count: usize,
    /// Longest prompt and completion together, in tokens.
    pub max_model_len: usize,
    /// Their ids.
    pub tokens: Vec<u32>,
}

/// The answer of `/tokenize`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TokenizeResponse {
    /// To a body of TGI's.
    Tokens(Vec<TokenizedToken>),
    /// To a body of vLLM's.
    Count(TokenCount),
}

/// A token of a text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SimpleToken)]
pub struct TokenizedToken {
    /// Vocabulary id.
    pub id: u32,
    /// The part of the text that it stands for; empty for added special tokens.
    pub text: String,
    /// Where that part starts, in bytes.
    pub start: usize,
    /// Where it ends.
    pub stop: usize,
}

/// The answer of `/chat_tokenize`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatTokenizeResponse {
    /// The tokens of the prompt.
    pub tokenize_response: Vec<TokenizedToken>,
    /// The prompt as the template wrote it.
    pub templated_text: String,
}

// === impl TokenizeRequest ===

impl RequestBody for TokenizeRequest {
    fn read(mut fields: Map<String, Value>) -> Result<Self, Problem> {
        if fields.contains_key("messages") {
            return ChatRequest::read(fields).map(|chat| Self::Chat(Box::new(chat)));
        }
        if fields.contains_key("prompt") {
            extract::screen(&mut fields, &unsupported::REQUEST)?;
            return extract::typed(fields).map(Self::Prompt);
        }
        GenerateRequest::read(fields).map(|inputs| Self::Inputs(Box::new(inputs)))
    }
}

impl PartialSchema for TokenizeRequest {
    fn schema() -> RefOr<Schema> {
        let bodies = [GenerateRequest::name(), TokenizePrompt::name(), ChatRequest::name()];
        let one_of = bodies
            .into_iter()
            .fold(OneOfBuilder::new(), |one_of, name| one_of.item(utoipa::openapi::Ref::from_schema_name(name)));
        Schema::OneOf(one_of.build()).into()
    }
}

impl ToSchema for TokenizeRequest {
    fn name() -> Cow<'static, str> {
        "TokenizeRequest".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        for (name, schema) in [
            (GenerateRequest::name(), GenerateRequest::schema()),
            (TokenizePrompt::name(), TokenizePrompt::schema()),
            (ChatRequest::name(), ChatRequest::schema()),
        ] {
            schemas.push((name.into_owned(), schema));
        }
        GenerateRequest::schemas(schemas);
        ChatRequest::schemas(schemas);
    }
}

// === impl DetokenizeRequest ===

impl RequestBody for DetokenizeRequest {
    fn read(mut fields: Map<String, Value>) -> Result<Self, Problem> {
        extract::screen(&mut fields, &[])?;
        extract::typed(fields)
    }
}

// === impl TokenizedToken ===

impl From<TokenSpan> for TokenizedToken {
    fn from(span: TokenSpan) -> Self {
        let TokenSpan { id, text, start, stop } = span;
        Self { id, text, start, stop }
    }
}

//! `/tokenize`, `/chat_tokenize` and `/detokenize`: the tokens of a text, or of a conversation as the template writes it,
//! and the text of tokens.

pub mod types;

use axum::Json;

pub use self::types::{ChatTokenizeResponse, TokenizedToken};
use self::types::{DetokenizeRequest, DetokenizeResponse, TokenCount, TokenizeRequest, TokenizeResponse};
use super::openai::chat::types::ChatRequest;
use crate::error::Error;
use crate::http::extract::StrictJson;
use crate::http::openapi::{GenerationFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::Served;
use crate::queue::Admission;
use crate::text::TokenSpan;

/// `POST /tokenize`: the tokens of `inputs` with special tokens added, or how many `prompt` or `messages` have.
#[utoipa::path(
    post,
    path = "/tokenize",
    tag = TAG,
    request_body = TokenizeRequest,
    responses((status = 200, description = "The tokens", body = TokenizeResponse), GenerationFailures)
)]
pub async fn tokenize(
    Served(serving): Served,
    StrictJson(body): StrictJson<TokenizeRequest>,
) -> Result<Json<TokenizeResponse>, Problem> {
    let admission = &serving.admission;
    let _place = admission.enter(1)?;
    let spans = match body {
        TokenizeRequest::Inputs(body) => {
            let spans = admission.tokens(body.inputs, true).await?;
            return Ok(Json(TokenizeResponse::Tokens(wire(spans))));
        }
        TokenizeRequest::Prompt(body) => admission.tokens(body.prompt, body.add_special_tokens.unwrap_or(true)).await?,
        TokenizeRequest::Chat(body) => chat_tokens(admission, *body).await?.1,
    };
    let tokens: Vec<u32> = spans.into_iter().map(|span| span.id).collect();
    let max_model_len = admission.engine_limits().max_total_tokens;
    Ok(Json(TokenizeResponse::Count(TokenCount { count: tokens.len(), max_model_len, tokens })))
}

/// `POST /chat_tokenize`: the prompt of a conversation and its tokens.
#[utoipa::path(
    post,
    path = "/chat_tokenize",
    tag = TAG,
    request_body = ChatRequest,
    responses((status = 200, description = "The prompt and its tokens", body = ChatTokenizeResponse), GenerationFailures)
)]
pub async fn chat_tokenize(
    Served(serving): Served,
    StrictJson(body): StrictJson<ChatRequest>,
) -> Result<Json<ChatTokenizeResponse>, Problem> {
    let _place = serving.admission.enter(1)?;
    let (templated_text, spans) = chat_tokens(&serving.admission, body).await?;
    Ok(Json(ChatTokenizeResponse { tokenize_response: wire(spans), templated_text }))
}

/// `POST /detokenize`: the text of token ids.
#[utoipa::path(
    post,
    path = "/detokenize",
    tag = TAG,
    request_body = DetokenizeRequest,
    responses((status = 200, description = "The text", body = DetokenizeResponse), GenerationFailures)
)]
pub async fn detokenize(
    Served(serving): Served,
    StrictJson(body): StrictJson<DetokenizeRequest>,
) -> Result<Json<DetokenizeResponse>, Problem> {
    let _place = serving.admission.enter(1)?;
    let prompt = serving.admission.decode(body.tokens, "tokens").await?;
    Ok(Json(DetokenizeResponse { prompt }))
}

async fn chat_tokens(admission: &Admission, body: ChatRequest) -> Result<(String, Vec<TokenSpan>), Error> {
    let add_special_tokens = body.common.prompt.add_special_tokens.unwrap_or(false);
    let text = admission.render(body.into_chat()?).await?;
    let spans = admission.tokens(text.clone(), add_special_tokens).await?;
    Ok((text, spans))
}

fn wire(spans: Vec<TokenSpan>) -> Vec<TokenizedToken> {
    spans.into_iter().map(TokenizedToken::from).collect()
}

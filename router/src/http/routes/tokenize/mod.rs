//! `/tokenize` and `/chat_tokenize`: the tokens of a text, or of a conversation as the template writes it.

mod types;

use axum::Json;

pub use self::types::{ChatTokenizeResponse, TokenizedToken};
use super::generate::types::GenerateRequest;
use super::openai::chat::types::ChatRequest;
use crate::error::Error;
use crate::http::extract::StrictJson;
use crate::http::openapi::{GenerationFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::Served;
use crate::queue::Admission;

/// `POST /tokenize`: the tokens of `inputs`, special tokens added.
#[utoipa::path(
    post,
    path = "/tokenize",
    tag = TAG,
    request_body = GenerateRequest,
    responses((status = 200, description = "The tokens", body = Vec<TokenizedToken>), GenerationFailures)
)]
pub async fn tokenize(
    Served(serving): Served,
    StrictJson(body): StrictJson<GenerateRequest>,
) -> Result<Json<Vec<TokenizedToken>>, Problem> {
    let _place = serving.admission.enter(1)?;
    Ok(Json(tokens(&serving.admission, body.inputs, true).await?))
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
    let templated_text = serving.admission.render(body.into_chat()?).await?;
    let tokenize_response = tokens(&serving.admission, templated_text.clone(), false).await?;
    Ok(Json(ChatTokenizeResponse { tokenize_response, templated_text }))
}

async fn tokens(admission: &Admission, text: String, add_special_tokens: bool) -> Result<Vec<TokenizedToken>, Error> {
    let spans = admission.tokens(text, add_special_tokens).await?;
    Ok(spans.into_iter().map(TokenizedToken::from).collect())
}

//! `/tokenize` and `/chat_tokenize`: the tokens of a text, or of a conversation as the template writes it.

mod types;

use std::sync::Arc;

use axum::Json;
use tokio::task::spawn_blocking;

pub use self::types::{ChatTokenizeResponse, TokenizedToken};
use super::generate::types::GenerateRequest;
use super::openai::chat::types::ChatRequest;
use crate::error::Error;
use crate::http::extract::StrictJson;
use crate::http::openapi::{GenerationFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::Served;
use crate::text::Tokenizer;

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
    Ok(Json(tokens(serving.tokenizer.clone(), body.inputs, true).await?))
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
    let tokenize_response = tokens(serving.tokenizer.clone(), templated_text.clone(), false).await?;
    Ok(Json(ChatTokenizeResponse { tokenize_response, templated_text }))
}

async fn tokens(
    tokenizer: Arc<Tokenizer>,
    text: String,
    add_special_tokens: bool,
) -> Result<Vec<TokenizedToken>, Error> {
    let tokens = spawn_blocking(move || {
        let encoding = tokenizer.inner().encode(text.as_str(), add_special_tokens)?;
        let pieces = encoding.get_ids().iter().zip(encoding.get_offsets());
        let pieces = pieces.map(|(&id, &(start, stop))| TokenizedToken::new(id, &text, start, stop));
        Ok::<_, tokenizers::Error>(pieces.collect())
    });
    let tokens = tokens.await.map_err(|error| Error::Internal(error.to_string().into()))?;
    tokens.map_err(|error| Error::invalid("inputs", format!("`inputs` cannot be tokenised: {error}")))
}

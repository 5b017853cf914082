//! `/v1/chat/completions`.

mod convert;
mod messages;
mod stream;
pub mod types;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

pub use self::messages::Message;
use self::stream::ChatChunks;
use self::types::{ChatCompletion, ChatRequest};
use super::chunks::{ChunkFrames, ChunkPlan};
use super::types::Head;
use crate::error::Error;
use crate::http::extract::StrictJson;
use crate::http::middleware::id::RequestId;
use crate::http::openapi::{OpenAiFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::{Served, Server, Serving};
use crate::http::{collect, headers, sse};
use crate::request::{Input, Request};

const ID_PREFIX: &str = "chatcmpl";

/// `POST /v1/chat/completions`: a whole answer or a stream.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    tag = TAG,
    request_body = ChatRequest,
    responses((status = 200, description = "The whole answer, or a stream of chunks", content((ChatCompletion = "application/json"), (String = "text/event-stream"))), OpenAiFailures)
)]
pub async fn chat_completions(
    State(server): State<Server>,
    Served(serving): Served,
    id: RequestId,
    StrictJson(body): StrictJson<ChatRequest>,
) -> Result<Response, Problem> {
    let admission = &serving.admission;
    let n = body.common.choices();
    let places = admission.enter(body.common.sequences(1, n, admission.limits())?)?;
    let view = body.view();
    let (stream, usage) = (body.common.answer.stream, body.common.answer.usage_reports());
    let asked_model = body.common.answer.model.clone();
    let requests = admission.counted(requests(body, &id, &serving))?;
    let generations = admission.submit_all(places, requests).await?;
    let served_model = &serving.model.id;
    if stream {
        let characters = generations.first().map_or(0, |generation| generation.prompt_characters);
        let head = Head::new("chat.completion.chunk", ID_PREFIX, asked_model, served_model);
        let prompt_tokens = generations.iter().map(|generation| generation.prompt_tokens).collect();
        let plan = ChunkPlan { head, view: view.clone(), usage, prompt_tokens, n, prompt_alone: false };
        let response = sse::respond(generations, ChunkFrames::new(ChatChunks { view }, plan)).await?;
        return Ok((headers::streamed(&server.config, characters), response).into_response());
    }
    let collected = collect::all(generations).await?;
    let head = Head::new("chat.completion", ID_PREFIX, asked_model, served_model);
    let headers = headers::whole(&server.config, &collected.iter().collect::<Vec<_>>());
    Ok((headers, Json(convert::completion(&head, &collected, &view))).into_response())
}

/// The requests of a chat, one for each of `n`.
///
/// # Errors
/// `Invalid` or `Unsupported`, naming the field.
pub fn requests(body: ChatRequest, id: &RequestId, serving: &Serving) -> Result<Vec<Request>, Error> {
    let extras = body.own.extras(body.common.choices())?;
    let input = Input::Chat(body.own.into_chat()?);
    body.common.requests(id, vec![input], &extras, serving)
}

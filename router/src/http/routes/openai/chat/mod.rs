//! `/v1/chat/completions`.

mod convert;
mod messages;
mod stream;
pub mod types;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use self::stream::ChatChunks;
use self::types::{ChatCompletion, ChatRequest};
use super::chunks::ChunkFrames;
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
    let sequences = body.common.sequences(1, &serving)?;
    let places = admission.enter(sequences)?;
    let (stream, include_usage, logprobs) = (body.common.stream, body.common.include_usage(), body.own.logprobs);
    let asked_model = body.common.model.clone();
    let requests = admission.counted(requests(body, &id, &serving))?;
    let generations = admission.submit_all(places, requests).await?;
    let served_model = &serving.model.id;
    if stream {
        let characters = generations.first().map_or(0, |generation| generation.prompt_characters);
        let head = Head::new("chat.completion.chunk", ID_PREFIX, asked_model, served_model);
        let frames = ChunkFrames::new(ChatChunks { logprobs }, head, 1, sequences, include_usage);
        let response = sse::respond(generations, frames).await?;
        return Ok((headers::streamed(&server.config, characters), response).into_response());
    }
    let collected = collect::all(generations).await?;
    let head = Head::new("chat.completion", ID_PREFIX, asked_model, served_model);
    let headers = headers::whole(&server.config, &collected.iter().collect::<Vec<_>>());
    Ok((headers, Json(convert::completion(&head, &collected, logprobs))).into_response())
}

/// The requests of a chat, one for each of `n`.
///
/// # Errors
/// `Invalid` or `Unsupported`, naming the field.
pub fn requests(body: ChatRequest, id: &RequestId, serving: &Serving) -> Result<Vec<Request>, Error> {
    let extras = body.own.extras()?;
    let input = Input::Chat(body.own.into_chat()?);
    body.common.requests(id, vec![input], &extras, &serving.defaults)
}

//! `/v1/completions`.

mod convert;
mod stream;
pub mod types;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use self::stream::TextChunks;
use self::types::{Completion, CompletionRequest};
use super::chunks::ChunkFrames;
use super::types::Head;
use crate::http::extract::StrictJson;
use crate::http::middleware::id::RequestId;
use crate::http::openapi::{OpenAiFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::{Served, Server};
use crate::http::{collect, headers, sse};

const ID_PREFIX: &str = "cmpl";
const OBJECT: &str = "text_completion";

/// `POST /v1/completions`: whole answers or a stream, for one prompt or several.
#[utoipa::path(
    post,
    path = "/v1/completions",
    tag = TAG,
    request_body = CompletionRequest,
    responses((status = 200, description = "The whole answer, or a stream of chunks", content((Completion = "application/json"), (String = "text/event-stream"))), OpenAiFailures)
)]
pub async fn completions(
    State(server): State<Server>,
    Served(serving): Served,
    id: RequestId,
    StrictJson(body): StrictJson<CompletionRequest>,
) -> Result<Response, Problem> {
    let admission = &serving.admission;
    let CompletionRequest { common, own } = body;
    let (n, prompts, logprobs) = (common.choices(), own.prompt.count(), own.logprobs.is_some());
    let sequences = common.sequences(prompts, &serving)?;
    let places = admission.enter(sequences)?;
    let head = Head::new(OBJECT, ID_PREFIX, common.model.clone(), &serving.model.id);
    let (stream, include_usage, extras) = (common.stream, common.include_usage(), own.extras());
    let requests = common.requests(&id, own.prompt.into_inputs(), &extras, &serving.defaults);
    let generations = admission.submit_all(places, admission.counted(requests)?).await?;
    if stream {
        let characters = generations.iter().step_by(n).map(|generation| generation.prompt_characters).sum();
        let chunks = TextChunks { logprobs, offsets: vec![0; sequences] };
        let response = sse::respond(generations, ChunkFrames::new(chunks, head, prompts, n, include_usage)).await?;
        return Ok((headers::streamed(&server.config, characters), response).into_response());
    }
    let collected = collect::all(generations).await?;
    let headers = headers::whole(&server.config, &collected.iter().collect::<Vec<_>>());
    Ok((headers, Json(convert::completion(&head, &collected, n, logprobs))).into_response())
}

//! `/v1/completions`.

mod convert;
mod logprobs;
mod stream;
pub mod types;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use self::convert::Shape;
use self::stream::TextChunks;
use self::types::{Completion, CompletionRequest};
use super::chunks::{ChunkFrames, ChunkPlan};
use super::types::Head;
use crate::error::Error;
use crate::http::extract::StrictJson;
use crate::http::middleware::id::RequestId;
use crate::http::openapi::{OpenAiFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::{Served, Server, Serving};
use crate::http::{collect, headers, sse};
use crate::request::Request;

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
    let mut shape = body.shape(admission.limits().max_best_of)?;
    let prompts = body.own.prompt.count();
    let sequences = body.common.sequences(prompts, shape.width, admission.limits())?;
    let places = admission.enter(sequences)?;
    let (head, stream, usage) = (head(&body, &serving), body.common.answer.stream, body.common.answer.usage_reports());
    shape.echo = body.own.echoed(admission).await?;
    let requests = admission.counted(requests(body, &id, &shape, &serving))?;
    let generations = admission.submit_all(places, requests).await?;
    if stream {
        let characters = generations.iter().step_by(shape.n).map(|generation| generation.prompt_characters).sum();
        let prompt_tokens = generations.iter().map(|generation| generation.prompt_tokens).collect();
        let (n, view, prompt_alone) = (shape.n, shape.view.clone(), shape.prompt_alone);
        let plan = ChunkPlan { head, view, usage, prompt_tokens, n, prompt_alone };
        let frames = ChunkFrames::new(TextChunks::new(shape, sequences), plan);
        let response = sse::respond(generations, frames).await?;
        return Ok((headers::streamed(&server.config, characters), response).into_response());
    }
    let collected = collect::all(generations).await?;
    let headers = headers::whole(&server.config, &collected.iter().collect::<Vec<_>>());
    Ok((headers, Json(shape.completion(&head, &collected))).into_response())
}

fn head(body: &CompletionRequest, serving: &Serving) -> Head {
    Head::new(OBJECT, ID_PREFIX, body.common.answer.model.clone(), &serving.model.id)
}

fn requests(body: CompletionRequest, id: &RequestId, shape: &Shape, serving: &Serving) -> Result<Vec<Request>, Error> {
    let extras = body.extras(shape);
    let CompletionRequest { common, own } = body;
    let requests = common.requests(id, own.prompt.into_inputs(), &extras, serving)?;
    let samples = requests.first().is_some_and(|request| request.sampling.samples());
    if shape.width > shape.n && !samples {
        let message = "`best_of` above `n` needs sampling: set `temperature` above 0";
        return Err(Error::invalid("best_of", message));
    }
    Ok(requests)
}

//! TGI's own generation routes: `/generate`, `/generate_stream` and `POST /`, which is either.

mod convert;
mod stream;
pub mod types;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use self::stream::TokenFrames;
use self::types::{GenerateRequest, GenerateResponse};
use crate::error::Error;
use crate::http::extract::StrictJson;
use crate::http::middleware::id::RequestId;
use crate::http::openapi::{GenerationFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::{HttpConfig, Served, Server, Serving};
use crate::http::{collect, headers, sse};

/// The Hub's tag of text models. A model without a tag is taken for one.
const TEXT_GENERATION: &str = "text-generation";

/// `POST /generate`: a whole answer.
#[utoipa::path(
    post,
    path = "/generate",
    tag = TAG,
    request_body = GenerateRequest,
    responses((status = 200, description = "The whole answer", body = GenerateResponse), GenerationFailures)
)]
pub async fn generate(
    State(server): State<Server>,
    Served(serving): Served,
    id: RequestId,
    StrictJson(body): StrictJson<GenerateRequest>,
) -> Result<Response, Problem> {
    body.expect_stream(false, "use `/generate_stream` for a stream")?;
    whole(&server.config, &serving, &id, body, Route::Generate).await
}

/// `POST /generate_stream`: a stream of tokens.
#[utoipa::path(
    post,
    path = "/generate_stream",
    tag = TAG,
    request_body = GenerateRequest,
    responses((status = 200, description = "A frame for each token", body = String, content_type = "text/event-stream"), GenerationFailures)
)]
pub async fn generate_stream(
    State(server): State<Server>,
    Served(serving): Served,
    id: RequestId,
    StrictJson(body): StrictJson<GenerateRequest>,
) -> Result<Response, Problem> {
    body.expect_stream(true, "use `/generate` for a whole answer")?;
    streamed(&server.config, &serving, &id, body, Route::Generate).await
}

/// `POST /`: a stream or a whole answer in a list; the prompt is part of the text unless the model is none for text.
#[utoipa::path(
    post,
    path = "/",
    tag = TAG,
    request_body = GenerateRequest,
    responses(
        (status = 200, description = "The whole answer in a list, or a stream", content(
            (Vec<GenerateResponse> = "application/json"),
            (String = "text/event-stream"),
        )),
        GenerationFailures,
    )
)]
pub async fn compat(
    State(server): State<Server>,
    Served(serving): Served,
    id: RequestId,
    StrictJson(body): StrictJson<GenerateRequest>,
) -> Result<Response, Problem> {
    if body.stream == Some(true) {
        streamed(&server.config, &serving, &id, body, Route::Compat).await
    } else {
        whole(&server.config, &serving, &id, body, Route::Compat).await
    }
}

/// Which route was called; they differ in two details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Generate,
    Compat,
}

// === impl Route ===

impl Route {
    /// Whether the prompt is part of the answer when the client does not say.
    fn full_text(self, serving: &Serving) -> bool {
        self == Self::Compat && serving.model.pipeline_tag.as_deref().is_none_or(|tag| tag == TEXT_GENERATION)
    }
}

// === impl GenerateRequest ===

impl GenerateRequest {
    /// Refuses a `stream` flag that contradicts the route.
    fn expect_stream(&self, expected: bool, hint: &str) -> Result<(), Error> {
        match self.stream {
            Some(given) if given != expected => Err(Error::unsupported("stream", format!("`stream`: {hint}"))),
            _ => Ok(()),
        }
    }
}

async fn whole(
    config: &HttpConfig,
    serving: &Serving,
    id: &RequestId,
    body: GenerateRequest,
    route: Route,
) -> Result<Response, Problem> {
    let admission = &serving.admission;
    let sequences = body.sequences(admission.limits().max_best_of)?;
    let places = admission.enter(sequences)?;
    let (requests, shape) = admission.counted(body.into_requests(id, route.full_text(serving), sequences))?;
    let collected = collect::all(admission.submit_all(places, requests).await?).await?;
    let winner = convert::likeliest(&collected);
    let headers = headers::whole(config, &[&collected[winner]]);
    let response = convert::response(&collected, winner, &shape);
    Ok(match route {
        Route::Generate => (headers, Json(response)).into_response(),
        Route::Compat => (headers, Json([response])).into_response(),
    })
}

async fn streamed(
    config: &HttpConfig,
    serving: &Serving,
    id: &RequestId,
    body: GenerateRequest,
    route: Route,
) -> Result<Response, Problem> {
    let admission = &serving.admission;
    let places = admission.enter(1)?;
    admission.counted(body.check_streamable())?;
    let (requests, shape) = admission.counted(body.into_requests(id, route.full_text(serving), 1))?;
    let generations = admission.submit_all(places, requests).await?;
    let characters = generations.iter().map(|generation| generation.prompt_characters).sum();
    let stream = sse::respond(generations, TokenFrames::new(shape)).await?;
    Ok((headers::streamed(config, characters), stream).into_response())
}

//! OpenAI's API under `/v1`: chat, completions, models. Errors there have OpenAI's frame, whoever raised them.

pub mod chat;
mod chunks;
pub mod completions;
mod fields;
mod shown;
mod types;
mod unsupported;

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

pub use self::types::{ErrorBody, ErrorDetails, Model, ModelList};
use super::super::openapi::TAG;
use super::super::problem::Problem;
use super::super::state::Served;

/// Paths that begin like this are OpenAI's.
const PREFIX: &str = "/v1/";

/// Whether a path belongs to OpenAI's API.
pub fn owns(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Frames every problem of OpenAI's paths as OpenAI does.
pub async fn frame_problems(request: Request, next: Next) -> Response {
    if !owns(request.uri().path()) {
        return next.run(request).await;
    }
    let mut response = next.run(request).await;
    let problem = match (response.extensions_mut().remove::<Problem>(), response.status()) {
        (Some(problem), _) => problem,
        (None, status @ StatusCode::NOT_FOUND) => Problem::malformed(status, "there is no such route", None),
        (None, _) => return response,
    };
    let mut framed = (status(problem.status), Json(ErrorBody::of(&problem))).into_response();
    if let Some(retry) = response.headers_mut().remove(axum::http::header::RETRY_AFTER) {
        framed.headers_mut().insert(axum::http::header::RETRY_AFTER, retry);
    }
    framed
}

/// OpenAI's status for a cause: what the client can mend is 400, what the server broke is 500.
fn status(tgi: StatusCode) -> StatusCode {
    match tgi {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        StatusCode::FAILED_DEPENDENCY => StatusCode::INTERNAL_SERVER_ERROR,
        other => other,
    }
}

/// `GET /v1/models`: the served model.
#[utoipa::path(get, path = "/v1/models", tag = TAG, responses((status = 200, description = "The served model", body = ModelList), (status = 503, description = "No model is served; the text says why", body = ErrorBody)))]
pub async fn models(Served(serving): Served) -> Json<ModelList> {
    let id = serving.model.id.clone();
    let model = Model { owned_by: id.clone(), id, object: "model", created: 0 };
    Json(ModelList { object: "list", data: vec![model] })
}

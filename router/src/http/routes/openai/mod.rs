//! OpenAI's API under `/v1`: chat, completions, models. Errors there have OpenAI's frame, whoever raised them.

pub mod chat;
mod chunks;
pub mod completions;
pub mod fields;
mod shown;
mod types;
pub mod unsupported;
mod view;

use axum::Json;
use axum::extract::{Path, Request};
use axum::http::{StatusCode, header};
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
        (None, status @ StatusCode::METHOD_NOT_ALLOWED) => {
            let allowed = response.headers().get(header::ALLOW).and_then(|methods| methods.to_str().ok());
            let message = format!("the route takes another method: {}", allowed.unwrap_or_default());
            Problem::malformed(status, message, None)
        }
        (None, _) => return response,
    };
    let mut framed = (status(problem.status), Json(ErrorBody::of(&problem))).into_response();
    for name in [header::RETRY_AFTER, header::ALLOW] {
        if let Some(value) = response.headers_mut().remove(&name) {
            framed.headers_mut().insert(name, value);
        }
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
    Json(ModelList { object: "list", data: vec![Model::named(&serving.model.id)] })
}

/// `GET /v1/models/{model}`: the served model, if that is its name.
#[utoipa::path(
    get,
    path = "/v1/models/{model}",
    tag = TAG,
    params(("model" = String, Path, description = "The model's name, which may hold slashes")),
    responses(
        (status = 200, description = "The served model", body = Model),
        (status = 404, description = "Another model is served", body = ErrorBody<'_>)
    )
)]
pub async fn model(Served(serving): Served, Path(name): Path<String>) -> Result<Json<Model>, Problem> {
    let served = &serving.model.id;
    if name != *served {
        let message = format!("there is no model of this name; the served model is `{served}`");
        let problem = Problem::malformed(StatusCode::NOT_FOUND, message, Some("model".into()));
        return Err(Problem { error_type: "model_not_found", ..problem });
    }
    Ok(Json(Model::named(served)))
}

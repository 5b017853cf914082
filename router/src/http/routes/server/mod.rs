//! What the server tells about itself: health, info, metrics.

mod types;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

pub use self::types::Info;
use crate::error::Error;
use crate::http::openapi::TAG;
use crate::http::problem::{Problem, TgiError};
use crate::http::state::{Readiness, Served, Server};

/// The media type of Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; charset=utf-8";

/// `GET /health`, `/ping`, `/`: 200 without a body when new requests are taken, 503 with the reason otherwise.
#[utoipa::path(get, path = "/health", tag = TAG, responses((status = 200, description = "Requests are taken"), (status = 503, description = "They are not; the text says why", body = TgiError)))]
pub async fn health(State(server): State<Server>) -> Result<StatusCode, Problem> {
    server.serving()?;
    Ok(StatusCode::OK)
}

/// `GET /info`: the model and the limits.
#[utoipa::path(get, path = "/info", tag = TAG, responses((status = 200, description = "The model and the limits", body = Info), (status = 503, description = "No model is served; the text says why", body = TgiError)))]
pub async fn info(Served(serving): Served) -> Json<Info> {
    Json(Info::of(&serving))
}

/// `GET /metrics`: Prometheus text. Empty until the model is served.
#[utoipa::path(get, path = "/metrics", tag = TAG, responses((status = 200, description = "Prometheus text", body = String)))]
pub async fn metrics(State(server): State<Server>) -> Result<Response, Problem> {
    let text = match server.readiness() {
        Readiness::Ready(serving) | Readiness::Draining(serving) => serving.metrics.render(),
        Readiness::Starting(_) | Readiness::Failed(_) => Ok(Vec::new()),
    };
    let text = text.map_err(|error| Error::Internal(error.to_string().into()))?;
    Ok(([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response())
}

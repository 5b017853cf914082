//! Assembly: every route, and the middleware around them.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::middleware::{auth, id};
use super::openapi;
use super::routes::{generate, openai, server, tokenize};
use super::state::Server;

/// An origin that cannot stand in a header.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an origin; `--cors-allow-origin` takes values like `https://example.com`")]
pub struct OriginError(String);

/// The whole application.
///
/// # Errors
/// When a configured origin is none.
pub fn router(server: Server) -> Result<Router, OriginError> {
    let cors = cors(&server.config.cors_allow_origin)?;
    let router = Router::new()
        .route("/", get(server::health).post(generate::compat))
        .route("/generate", post(generate::generate))
        .route("/generate_stream", post(generate::generate_stream))
        .route("/health", get(server::health))
        .route("/ping", get(server::health))
        .route("/info", get(server::info))
        .route("/metrics", get(server::metrics))
        .route("/tokenize", post(tokenize::tokenize))
        .route("/chat_tokenize", post(tokenize::chat_tokenize))
        .route("/detokenize", post(tokenize::detokenize))
        .route("/v1/models", get(openai::models))
        .route("/v1/models/{*model}", get(openai::model))
        .route("/v1/completions", post(openai::completions::completions))
        .route("/v1/chat/completions", post(openai::chat::chat_completions))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .with_state(server.clone())
        .merge(openapi::docs());
    Ok(router
        .layer(from_fn_with_state(server, auth::check))
        .layer(from_fn(openai::frame_problems))
        .layer(from_fn(id::attach))
        .layer(cors))
}

/// TGI's rules, and the headers that a browser client of this server needs.
fn cors(origins: &[String]) -> Result<CorsLayer, OriginError> {
    let listed: Vec<HeaderValue> = origins
        .iter()
        .map(|origin| HeaderValue::from_str(origin).map_err(|_| OriginError(origin.clone())))
        .collect::<Result<_, _>>()?;
    let allowed = if listed.is_empty() { AllowOrigin::any() } else { AllowOrigin::list(listed) };
    Ok(CorsLayer::new()
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::CONTENT_TYPE, header::AUTHORIZATION, HeaderName::from_static("x-request-id")])
        .expose_headers([HeaderName::from_static("x-request-id")])
        .allow_origin(allowed))
}

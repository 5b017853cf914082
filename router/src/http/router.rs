//! Assembly: every route, and the middleware around them.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::middleware::{auth, id};
use super::openapi;
use super::routes::{generate, kserve, openai, sagemaker, server, tokenize, vertex};
use super::state::Server;

/// A configured value that no application can be made of.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// It cannot stand in a header.
    #[error("`{0}` is not an origin; `--cors-allow-origin` takes values like `https://example.com`")]
    Origin(String),
    /// It cannot be another path of a route.
    #[error(transparent)]
    Alias(#[from] vertex::alias::AliasError),
    /// The document of the routes cannot be written.
    #[error("the OpenAPI document cannot be written: {0}")]
    Document(#[from] serde_json::Error),
}

/// The whole application.
///
/// # Errors
/// When a configured origin is none, or a configured path cannot be served.
pub fn router(server: Server) -> Result<Router, AssemblyError> {
    let cors = cors(&server.config.cors_allow_origin)?;
    vertex::alias::check(&server.config, openapi::has_path)?;
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
        .route("/invocations", post(sagemaker::invocations))
        .route("/vertex", post(vertex::vertex))
        .merge(kserve_routes())
        .fallback(vertex::alias::fallback)
        .with_state(server.clone())
        .merge(openapi::docs()?);
    Ok(router
        .layer(from_fn_with_state(server, auth::check))
        .layer(from_fn(openai::frame_problems))
        .layer(from_fn(id::attach))
        .layer(cors))
}

fn kserve_routes() -> Router<Server> {
    let model = "/v2/models/{model_name}/versions/{model_version}";
    Router::new()
        .route("/v2", get(kserve::server_metadata))
        .route("/v2/health/live", get(kserve::live))
        .route("/v2/health/ready", get(kserve::ready))
        .route(model, get(kserve::model_metadata))
        .route(&format!("{model}/ready"), get(kserve::model_ready))
        .route(&format!("{model}/infer"), post(kserve::infer))
}

/// TGI's rules, and the headers that a browser client of this server needs.
fn cors(origins: &[String]) -> Result<CorsLayer, AssemblyError> {
    let listed: Vec<HeaderValue> = origins
        .iter()
        .map(|origin| HeaderValue::from_str(origin).map_err(|_| AssemblyError::Origin(origin.clone())))
        .collect::<Result<_, _>>()?;
    let allowed = if listed.is_empty() { AllowOrigin::any() } else { AllowOrigin::list(listed) };
    Ok(CorsLayer::new()
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::CONTENT_TYPE, header::AUTHORIZATION, HeaderName::from_static("x-request-id")])
        .expose_headers([HeaderName::from_static("x-request-id")])
        .allow_origin(allowed))
}

//! The OpenAPI document, generated from the routes and their types, and the Swagger page that shows it.

mod finish;

use axum::Router;
use serde_json::Value;
use utoipa::OpenApi;
use utoipa_swagger_ui::SwaggerUi;

use super::problem::TgiError;
use super::routes::{generate, kserve, openai, sagemaker, server, tokenize, vertex};

/// The tag of every route.
pub const TAG: &str = "Text Generation Inference";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Text Generation Inference",
        description = "Text generation server",
        license(name = "Apache 2.0", url = "https://www.apache.org/licenses/LICENSE-2.0")
    ),
    paths(
        generate::compat,
        generate::generate,
        generate::generate_stream,
        server::health,
        server::info,
        server::metrics,
        tokenize::tokenize,
        tokenize::chat_tokenize,
        tokenize::detokenize,
        openai::models,
        openai::model,
        openai::chat::chat_completions,
        openai::completions::completions,
        sagemaker::invocations,
        vertex::vertex,
        kserve::server_metadata,
        kserve::live,
        kserve::ready,
        kserve::model_metadata,
        kserve::model_ready,
        kserve::infer,
    ),
    // The derive of the failures collects their bodies, not what these contain.
    components(schemas(openai::ErrorDetails, generate::types::StreamResponse))
)]
struct Document;

/// How TGI's routes refuse and fail.
#[derive(utoipa::IntoResponses)]
#[allow(dead_code, reason = "read by the derive alone")]
pub enum GenerationFailures<'a> {
    /// Not JSON.
    #[response(status = 400)]
    Broken(#[to_schema] TgiError<'a>),
    /// The API key is missing or wrong; without a body.
    #[response(status = 401)]
    Unauthorized,
    /// Larger than the limit.
    #[response(status = 413)]
    TooLarge(#[to_schema] TgiError<'a>),
    /// Not said to be JSON.
    #[response(status = 415)]
    WrongType(#[to_schema] TgiError<'a>),
    /// Not what the route takes, or out of bounds.
    #[response(status = 422)]
    Invalid(#[to_schema] TgiError<'a>),
    /// A shard failed.
    #[response(status = 424)]
    Failed(#[to_schema] TgiError<'a>),
    /// No place is free; ask again.
    #[response(status = 429)]
    Overloaded(#[to_schema] TgiError<'a>),
    /// The model is not being served.
    #[response(status = 503)]
    NotReady(#[to_schema] TgiError<'a>),
}

/// How OpenAI's routes refuse and fail.
#[derive(utoipa::IntoResponses)]
#[allow(dead_code, reason = "read by the derive alone")]
pub enum OpenAiFailures<'a> {
    /// Not JSON, not what the route takes, or out of bounds.
    #[response(status = 400)]
    Invalid(#[to_schema] openai::ErrorBody<'a>),
    /// The API key is missing or wrong.
    #[response(status = 401)]
    Unauthorized(#[to_schema] openai::ErrorBody<'a>),
    /// Larger than the limit.
    #[response(status = 413)]
    TooLarge(#[to_schema] openai::ErrorBody<'a>),
    /// Not said to be JSON.
    #[response(status = 415)]
    WrongType(#[to_schema] openai::ErrorBody<'a>),
    /// No place is free; ask again.
    #[response(status = 429)]
    Overloaded(#[to_schema] openai::ErrorBody<'a>),
    /// A shard failed.
    #[response(status = 500)]
    Failed(#[to_schema] openai::ErrorBody<'a>),
    /// The model is not being served.
    #[response(status = 503)]
    NotReady(#[to_schema] openai::ErrorBody<'a>),
}

/// Other paths of `GET /health`, with the names that they have in the document.
const HEALTH_PATHS: [(&str, &str); 2] = [("/", "root_health"), ("/ping", "ping")];

/// The document as JSON.
///
/// # Errors
/// Never for the types of this crate: all of them can be written.
pub fn schema() -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(Document::openapi())?;
    let mut health = document["paths"]["/health"]["get"].clone();
    for (path, name) in HEALTH_PATHS {
        health["operationId"] = name.into();
        document["paths"][path]["get"] = health.clone();
    }
    finish::finish(&mut document);
    Ok(document)
}

/// Whether a fixed route has this path.
pub fn has_path(path: &str) -> bool {
    HEALTH_PATHS.iter().any(|(fixed, _)| *fixed == path) || Document::openapi().paths.paths.contains_key(path)
}

/// `/docs` and the document under `/api-doc/openapi.json`.
///
/// # Errors
/// As `schema`.
pub fn docs() -> Result<Router, serde_json::Error> {
    let page = SwaggerUi::new("/docs").external_url_unchecked("/api-doc/openapi.json", schema()?);
    Ok(Router::from(page))
}

//! The OpenAPI document, generated from the routes and their types, and the Swagger page that shows it.

use axum::Router;
use utoipa::OpenApi;
use utoipa_swagger_ui::SwaggerUi;

use super::problem::TgiError;
use super::routes::{generate, openai, server, tokenize};

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
    ),
    // The derive of the failures collects their bodies, not what these contain.
    components(schemas(openai::ErrorDetails))
)]
struct Document;

/// How TGI's routes refuse and fail.
#[derive(utoipa::IntoResponses)]
#[allow(dead_code, reason = "read by the derive alone")]
pub enum GenerationFailures<'a> {
    /// Not JSON.
    #[response(status = 400)]
    Broken(#[to_schema] TgiError<'a>),
    /// Larger than the limit.
    #[response(status = 413)]
    TooLarge(#[to_schema] TgiError<'a>),
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
    /// Larger than the limit.
    #[response(status = 413)]
    TooLarge(#[to_schema] openai::ErrorBody<'a>),
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

/// The document.
pub fn schema() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// `/docs` and the document under `/api-doc/openapi.json`.
pub fn docs() -> Router {
    let page = SwaggerUi::new("/docs").url("/api-doc/openapi.json", schema());
    Router::from(page)
}

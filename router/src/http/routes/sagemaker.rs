//! `POST /invocations`, SageMaker's one route: the body of TGI's `POST /`, of a chat or of a completion, told apart by
//! its prompt's field and answered by the route that it belongs to.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AnyOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::generate::types::GenerateRequest;
use super::openai::chat::types::ChatRequest;
use super::openai::completions::types::CompletionRequest;
use super::{generate, openai};
use crate::error::Error;
use crate::http::extract::{RequestBody, StrictJson};
use crate::http::middleware::id::RequestId;
use crate::http::openapi::{GenerationFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::{Served, Server};

/// A body of one of three routes.
#[derive(Debug)]
pub enum Invocation {
    /// That of `POST /`: it has `inputs`.
    Generate(GenerateRequest),
    /// A chat: it has `messages`.
    Chat(ChatRequest),
    /// A completion: it has `prompt`.
    Completion(CompletionRequest),
}

/// `POST /invocations`: what SageMaker calls.
#[utoipa::path(
    post,
    path = "/invocations",
    tag = TAG,
    request_body = Invocation,
    responses(
        (status = 200, description = "The answer of the route that the body belongs to, or its stream", content(
            (Value = "application/json"),
            (String = "text/event-stream"),
        )),
        GenerationFailures,
    )
)]
pub async fn invocations(
    server: State<Server>,
    served: Served,
    id: RequestId,
    StrictJson(body): StrictJson<Invocation>,
) -> Result<Response, Problem> {
    match body {
        Invocation::Generate(body) => generate::compat(server, served, id, StrictJson(body)).await,
        Invocation::Chat(body) => openai::chat::chat_completions(server, served, id, StrictJson(body)).await,
        Invocation::Completion(body) => openai::completions::completions(server, served, id, StrictJson(body)).await,
    }
}

// === impl Invocation ===

impl RequestBody for Invocation {
    fn read(fields: Map<String, Value>) -> Result<Self, Problem> {
        if fields.contains_key("inputs") {
            return GenerateRequest::read(fields).map(Self::Generate);
        }
        if fields.contains_key("messages") {
            return ChatRequest::read(fields).map(Self::Chat);
        }
        if fields.contains_key("prompt") {
            return CompletionRequest::read(fields).map(Self::Completion);
        }
        let message = "the body needs one of `inputs` (as `POST /`), `messages` (a chat) and `prompt` (a completion)";
        Err(Error::invalid("inputs", message).into())
    }
}

impl PartialSchema for Invocation {
    fn schema() -> RefOr<Schema> {
        let bodies = [GenerateRequest::name(), ChatRequest::name(), CompletionRequest::name()];
        let bodies = bodies.into_iter().fold(AnyOfBuilder::new(), |any, name| any.item(Ref::from_schema_name(name)));
        Schema::AnyOf(bodies.build()).into()
    }
}

impl ToSchema for Invocation {}

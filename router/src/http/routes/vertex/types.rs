//! The wire types of Vertex AI's route.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AnyOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::super::generate::types::GenerateRequest;
use super::super::openai::chat::types::ChatRequest;
use crate::error::Error;
use crate::http::extract::{self, RequestBody};
use crate::http::problem::Problem;

/// The body of `/vertex`.
#[derive(Debug, ToSchema)]
#[schema(description = "A call of Vertex AI.")]
pub struct VertexRequest {
    /// What to continue or to answer, each by itself.
    #[schema(min_items = 1)]
    pub instances: Vec<Instance>,
}

/// One of the things to continue or to answer.
#[derive(Debug)]
pub enum Instance {
    /// The body of `/generate`.
    Generate(GenerateRequest),
    /// The body of `/v1/chat/completions`.
    Chat(Box<ChatRequest>),
}

/// The answer of `/vertex`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Predictions {
    /// The texts, in the order of the instances.
    pub predictions: Vec<String>,
}

// === impl VertexRequest ===

impl RequestBody for VertexRequest {
    fn read(mut fields: Map<String, Value>) -> Result<Self, Problem> {
        let instances = fields.shift_remove("instances");
        if let Some(name) = fields.keys().next() {
            let problem =
                Problem::from(Error::invalid("instances", format!("unknown field `{name}`; expected `instances`")));
            return Err(Problem { field: Some(name.clone()), ..problem });
        }
        let Some(Value::Array(instances)) = instances else {
            return Err(Error::invalid("instances", "`instances` must be a list").into());
        };
        let read = |(index, instance)| {
            Instance::read(instance).map_err(|problem: Problem| problem.inside(format!("instances[{index}]")))
        };
        let instances = instances.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { instances })
    }
}

// === impl Instance ===

impl Instance {
    fn read(instance: Value) -> Result<Self, Problem> {
        match instance {
            Value::Object(fields) if fields.contains_key("messages") => {
                ChatRequest::read(fields).map(|body| Self::Chat(Box::new(body)))
            }
            Value::Object(fields) => GenerateRequest::read(fields).map(Self::Generate),
            _ => Err(extract::unfit("an instance must be an object".into(), None)),
        }
    }
}

impl PartialSchema for Instance {
    fn schema() -> RefOr<Schema> {
        let bodies = [GenerateRequest::name(), ChatRequest::name()];
        let bodies = bodies.into_iter().fold(AnyOfBuilder::new(), |any, name| any.item(Ref::from_schema_name(name)));
        Schema::AnyOf(bodies.build()).into()
    }
}

impl ToSchema for Instance {
    fn name() -> std::borrow::Cow<'static, str> {
        "VertexInstance".into()
    }
}

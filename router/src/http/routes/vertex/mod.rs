//! `POST /vertex`, Vertex AI's route: several instances in one call, each the body of `/generate` or a chat, answered
//! with their texts in order. The same handler answers at the route that `AIP_PREDICT_ROUTE` names.

pub mod alias;
mod types;

use axum::Json;

use self::types::{Instance, Predictions, VertexRequest};
use super::openai;
use crate::error::Error;
use crate::http::collect;
use crate::http::extract::StrictJson;
use crate::http::middleware::id::RequestId;
use crate::http::openapi::{GenerationFailures, TAG};
use crate::http::problem::Problem;
use crate::http::state::{Served, Serving};
use crate::request::{Request, validate};

/// `POST /vertex`: what Vertex AI calls.
#[utoipa::path(
    post,
    path = "/vertex",
    tag = TAG,
    request_body = VertexRequest,
    responses((status = 200, description = "The texts, in the order of the instances", body = Predictions), GenerationFailures)
)]
pub async fn vertex(
    Served(serving): Served,
    id: RequestId,
    StrictJson(body): StrictJson<VertexRequest>,
) -> Result<Json<Predictions>, Problem> {
    let admission = &serving.admission;
    validate::items("instances", body.instances.len(), admission.limits())?;
    let places = admission.enter(body.instances.len())?;
    let prepared = body.instances.into_iter().map(|instance| instance.into_request(&id, &serving));
    let (requests, parts): (Vec<_>, Vec<_>) =
        admission.counted(prepared.collect::<Result<Vec<_>, _>>())?.into_iter().unzip();
    let collected = collect::all(admission.submit_all(places, requests).await?).await?;
    let predictions = collected.into_iter().zip(parts).map(|(sequence, part)| match part {
        // A text keeps its stop string, as in `/generate`; an answer of a chat does not.
        Some(prefix) => prefix + &sequence.done.generated_text,
        None => sequence.text,
    });
    Ok(Json(Predictions { predictions: predictions.collect() }))
}

// === impl Instance ===

impl Instance {
    /// The request of an instance; for a text, what stands before the generated one.
    ///
    /// # Errors
    /// `Invalid` or `Unsupported`, naming the field.
    fn into_request(self, id: &RequestId, serving: &Serving) -> Result<(Request, Option<String>), Error> {
        let (requests, prefix) = match self {
            Self::Generate(body) => {
                body.sequences(1)?;
                body.check_text_only("the answer holds texts only")?;
                let (requests, shape) = body.into_requests(id, false, 1)?;
                (requests, Some(shape.prefix))
            }
            Self::Chat(body) => {
                if body.common.answer.stream {
                    return Err(Error::unsupported("stream", "`stream`: the answer holds whole texts only"));
                }
                if body.own.logprobs {
                    return Err(Error::unsupported("logprobs", "`logprobs`: the answer holds texts only"));
                }
                if body.common.answer.prompt_logprobs.is_some() {
                    let message = "`prompt_logprobs`: the answer holds texts only";
                    return Err(Error::unsupported("prompt_logprobs", message));
                }
                body.common.sequences(1, body.common.choices(), serving.admission.limits())?;
                (openai::chat::requests(*body, id, serving)?, None)
            }
        };
        let [request] = <[Request; 1]>::try_from(requests)
            .map_err(|_| Error::invalid("n", "`n` must be 1: each instance has one answer"))?;
        Ok((request, prefix))
    }
}

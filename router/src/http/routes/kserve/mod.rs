//! KServe's protocol, version 2, as TGI speaks it: what the server and its model are, whether they serve, and texts in
//! and out as lists of bytes.

mod types;

use axum::Json;
use axum::extract::{Path, State};

use self::types::{InferRequest, InferResponse, Live, ModelMetadata, OutputTensor, ServerMetadata};
use crate::error::Error;
use crate::http::collect;
use crate::http::extract::StrictJson;
use crate::http::middleware::id::RequestId;
use crate::http::openapi::{GenerationFailures, TAG};
use crate::http::problem::{Problem, TgiError};
use crate::http::state::{Served, Server};

/// `GET /v2`: the server.
#[utoipa::path(get, path = "/v2", tag = TAG, responses((status = 200, description = "The server", body = ServerMetadata)))]
pub async fn server_metadata() -> Json<ServerMetadata> {
    Json(ServerMetadata {
        name: "text-generation-inference",
        version: env!("CARGO_PKG_VERSION"),
        extensions: ["health", "models", "metrics"],
    })
}

/// `GET /v2/health/live`: 200 while the process runs.
#[utoipa::path(get, path = "/v2/health/live", tag = TAG, responses((status = 200, description = "The process runs", body = Live)))]
pub async fn live() -> Json<Live> {
    Json(Live { live: true })
}

/// `GET /v2/health/ready`: 200 when new requests are taken.
#[utoipa::path(get, path = "/v2/health/ready", tag = TAG, responses((status = 200, description = "Requests are taken", body = Live), (status = 503, description = "They are not; the text says why", body = TgiError)))]
pub async fn ready(State(server): State<Server>) -> Result<Json<Live>, Problem> {
    server.serving()?;
    Ok(Json(Live { live: true }))
}

/// `GET /v2/models/{model_name}/versions/{model_version}`: the model, under whatever name it is asked for.
#[utoipa::path(
    get,
    path = "/v2/models/{model_name}/versions/{model_version}",
    tag = TAG,
    params(("model_name" = String, Path, description = "Any name"), ("model_version" = String, Path, description = "Any version")),
    responses((status = 200, description = "The model", body = ModelMetadata), (status = 400, description = "The path is not UTF-8", body = TgiError))
)]
pub async fn model_metadata(Path((name, version)): Path<(String, String)>) -> Json<ModelMetadata> {
    Json(ModelMetadata { name, version, extensions: ["infer", "ready"] })
}

/// `GET /v2/models/{model_name}/versions/{model_version}/ready`: 200 when new requests are taken.
#[utoipa::path(
    get,
    path = "/v2/models/{model_name}/versions/{model_version}/ready",
    tag = TAG,
    params(("model_name" = String, Path, description = "Any name"), ("model_version" = String, Path, description = "Any version")),
    responses((status = 200, description = "Requests are taken", body = Live), (status = 503, description = "They are not; the text says why", body = TgiError))
)]
pub async fn model_ready(server: State<Server>) -> Result<Json<Live>, Problem> {
    ready(server).await
}

/// `POST /v2/models/{model_name}/versions/{model_version}/infer`: generated texts, one for each input.
#[utoipa::path(
    post,
    path = "/v2/models/{model_name}/versions/{model_version}/infer",
    tag = TAG,
    params(("model_name" = String, Path, description = "Any name"), ("model_version" = String, Path, description = "Any version")),
    request_body = InferRequest,
    responses((status = 200, description = "The texts, in the order of the inputs", body = InferResponse), GenerationFailures)
)]
pub async fn infer(
    Served(serving): Served,
    request_id: RequestId,
    StrictJson(body): StrictJson<InferRequest>,
) -> Result<Json<InferResponse>, Problem> {
    let admission = &serving.admission;
    let InferRequest { id, inputs, parameters, outputs } = body;
    types::check_counts(inputs.len(), outputs.len(), admission.limits())?;
    let places = admission.enter(inputs.len())?;
    let mut requests = Vec::with_capacity(inputs.len());
    let mut prefixes = Vec::with_capacity(inputs.len());
    for input in inputs {
        let body = admission.counted(input.0.into_generate(parameters.clone()))?;
        let (mut of_input, shape) = admission.counted(body.into_requests(&request_id, false, 1))?;
        requests.append(&mut of_input);
        prefixes.push(shape.prefix);
    }
    let collected = collect::all(admission.submit_all(places, requests).await?).await?;
    if collected.len() != outputs.len() {
        return Err(Error::Incomplete.into());
    }
    let texts = collected.iter().zip(prefixes).map(|(sequence, prefix)| prefix + &sequence.done.generated_text);
    let outputs = outputs.into_iter().zip(texts).map(|(output, text)| OutputTensor::of(output.0.name, text));
    Ok(Json(InferResponse { id, outputs: outputs.collect() }))
}

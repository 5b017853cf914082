//! The wire type of `/info`. Field order is TGI's.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::state::Serving;

/// The model and the limits.
#[derive(Debug, Serialize, ToSchema)]
pub struct Info {
    /// The served model.
    pub model_id: String,
    /// The commit of its Hub revision.
    pub model_sha: Option<String>,
    /// The Hub's pipeline tag.
    pub model_pipeline_tag: Option<String>,
    /// Sequences in the server at once.
    pub max_concurrent_requests: usize,
    /// Largest `best_of`.
    pub max_best_of: usize,
    /// Most stop strings of a request.
    pub max_stop_sequences: usize,
    /// Longest prompt, in tokens.
    pub max_input_tokens: usize,
    /// Longest prompt and completion together, in tokens.
    pub max_total_tokens: usize,
    /// Threads that tokenise prompts.
    pub validation_workers: usize,
    /// Most sequences of one OpenAI call.
    pub max_client_batch_size: usize,
    /// This program.
    pub router: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The commit it was built from.
    pub sha: Option<&'static str>,
    /// The label of its container image.
    pub docker_label: Option<&'static str>,
}

// === impl Info ===

impl Info {
    /// The facts about a served model.
    pub fn of(serving: &Serving) -> Self {
        let limits = serving.admission.limits();
        let engine = serving.admission.engine_limits();
        Self {
            model_id: serving.model.id.clone(),
            model_sha: serving.model.sha.clone(),
            model_pipeline_tag: serving.model.pipeline_tag.clone(),
            max_concurrent_requests: limits.max_concurrent_requests,
            max_best_of: limits.max_best_of,
            max_stop_sequences: limits.max_stop_sequences,
            max_input_tokens: engine.max_input_tokens,
            max_total_tokens: engine.max_total_tokens,
            validation_workers: limits.validation_workers,
            max_client_batch_size: limits.max_client_batch_size,
            router: "text-generation-router",
            version: env!("CARGO_PKG_VERSION"),
            sha: option_env!("GIT_SHA"),
            docker_label: option_env!("DOCKER_LABEL"),
        }
    }
}

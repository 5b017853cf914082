//! The control channel: JSON lines that the launcher writes to the router's standard input. The router starts before
//! the model is there, so that the port answers from the first second; these lines say why it is not ready yet and,
//! once prepared, where the model is. End of input means that the launcher is gone: the router then ends too.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One line of the control channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type", deny_unknown_fields)]
pub enum ControlMessage {
    /// The server is not ready; the reason is shown by `/health`.
    Status {
        /// What is going on, for people: `downloading model.safetensors, 34 %`.
        reason: String,
    },
    /// The model is prepared: the router loads its tokenizer and connects to the shards.
    Model(PreparedModel),
}

/// Where a prepared model lies. Written by `text-generation-server prepare`, passed on to the router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreparedModel {
    /// A Hugging Face folder: `config.json`, `tokenizer.json`, `*.safetensors`, ...
    pub folder: PathBuf,
    /// The name under which the model is served (`/info`, `/v1/models`).
    pub model_id: String,
    /// The commit of the Hub revision, when it came from the Hub.
    #[serde(default)]
    pub revision_sha: Option<String>,
    /// The Hub's pipeline tag, when known.
    #[serde(default)]
    pub pipeline_tag: Option<String>,
}

//! The wire types of KServe's protocol. Field order is TGI's.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use text_generation_protocol::config::Limits;
use utoipa::ToSchema;

use super::super::generate::types::{GenerateParameters, GenerateRequest, screen_parameters};
use crate::error::Error;
use crate::http::extract::{self, Object, RequestBody};
use crate::http::problem::Problem;
use crate::request::validate;

/// The answer of `/v2`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerMetadata {
    /// This program, under the name that TGI's users know.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it serves of the protocol.
    pub extensions: [&'static str; 3],
}

/// Whether something works.
#[derive(Debug, Serialize, ToSchema)]
pub struct Live {
    /// True.
    pub live: bool,
}

/// The model, under the name that it was asked for by.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelMetadata {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// What it serves of the protocol.
    pub extensions: [&'static str; 2],
}

/// A call for generated texts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InferRequest {
    /// Any name; it is answered back.
    pub id: String,
    /// The prompts.
    #[schema(value_type = Vec<InputTensor>, min_items = 1)]
    pub inputs: Vec<Object<InputTensor>>,
    /// How to go on, for every prompt. Left out = sampling with every default.
    #[schema(value_type = Option<GenerateParameters>)]
    pub parameters: Option<Object<GenerateParameters>>,
    /// Names of the texts, one for each prompt.
    #[schema(value_type = Vec<OutputName>, min_items = 1)]
    pub outputs: Vec<Object<OutputName>>,
}

/// A prompt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InputTensor {
    /// Any name.
    #[allow(dead_code, reason = "part of the protocol: every tensor has one")]
    name: String,
    /// The shape that the client gives the bytes. Its text is all of `data`, whatever stands here.
    #[allow(dead_code, reason = "part of the protocol: `data` says how long it is")]
    shape: Vec<usize>,
    /// `BYTES` or `UINT8`.
    datatype: Datatype,
    /// The text in UTF-8.
    #[schema(min_items = 1)]
    data: Vec<u8>,
}

/// Types whose values are bytes.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
enum Datatype {
    /// Strings.
    #[serde(rename = "BYTES")]
    Bytes,
    /// Single bytes.
    #[serde(rename = "UINT8")]
    Uint8,
}

/// The name of a text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputName {
    /// Any name; it is answered back.
    pub name: String,
}

/// The generated texts.
#[derive(Debug, Serialize, ToSchema)]
pub struct InferResponse {
    /// As asked.
    pub id: String,
    /// The texts, in the order of the prompts.
    pub outputs: Vec<OutputTensor>,
}

/// A generated text.
#[derive(Debug, Serialize, ToSchema)]
pub struct OutputTensor {
    /// As asked.
    pub name: String,
    /// One row of so many bytes.
    pub shape: [usize; 2],
    /// `BYTES`.
    pub datatype: &'static str,
    /// The text in UTF-8.
    pub data: Vec<u8>,
}

// === impl InferRequest ===

impl RequestBody for InferRequest {
    fn read(mut fields: Map<String, Value>) -> Result<Self, Problem> {
        extract::screen(&mut fields, &[])?;
        screen_parameters(&mut fields)?;
        extract::typed(fields)
    }
}

/// As many names as prompts, and no more than the server has places.
///
/// # Errors
/// `Invalid` with the counts.
pub fn check_counts(inputs: usize, outputs: usize, limits: &Limits) -> Result<(), Error> {
    validate::items("inputs", inputs, limits)?;
    if inputs != outputs {
        let message = format!("`outputs` must have one item for each of `inputs`. Given: {inputs} and {outputs}");
        return Err(Error::invalid("outputs", message));
    }
    Ok(())
}

// === impl InputTensor ===

impl InputTensor {
    /// The body of `/generate` that asks for the same.
    ///
    /// # Errors
    /// `Invalid` when the bytes are no text, `Unsupported` for what the answer cannot show.
    pub fn into_generate(self, parameters: Option<Object<GenerateParameters>>) -> Result<GenerateRequest, Error> {
        // Both types say the same about a list of bytes.
        let (Datatype::Bytes | Datatype::Uint8) = self.datatype;
        let inputs = String::from_utf8(self.data)
            .map_err(|error| Error::invalid("inputs", format!("`data` must be UTF-8: {}", error.utf8_error())))?;
        let body = GenerateRequest { inputs, parameters, stream: None };
        body.sequences(1)?;
        body.check_text_only("the answer holds texts only")?;
        Ok(body)
    }
}

// === impl OutputTensor ===

impl OutputTensor {
    /// A text under this name.
    pub fn of(name: String, text: String) -> Self {
        let data = text.into_bytes();
        Self { name, shape: [1, data.len()], datatype: "BYTES", data }
    }
}

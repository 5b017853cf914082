//! The wire types of TGI's own generation routes. Field order is TGI's.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::Error;
use crate::http::extract::{self, Object, RequestBody};
use crate::http::problem::Problem;
use crate::http::screen::{LEAVE_OUT, Neutral, Unsupported};

/// Parameters whose features do not exist yet.
pub static UNSUPPORTED: [Unsupported; 2] = [
    Unsupported { name: "grammar", neutral: Neutral::Null, hint: LEAVE_OUT },
    Unsupported { name: "adapter_id", neutral: Neutral::Null, hint: LEAVE_OUT },
];

/// The body of `/generate`, `/generate_stream`, `/tokenize` and `POST /`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateRequest {
    /// The prompt.
    #[schema(example = "My name is Olivier and I")]
    pub inputs: String,
    /// How to go on. Left out = sampling with every default; `{}` = greedy.
    #[schema(value_type = Option<GenerateParameters>)]
    pub parameters: Option<Object<GenerateParameters>>,
    /// Stream tokens (`POST /`).
    pub stream: Option<bool>,
}

/// How to go on from a prompt.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateParameters {
    /// Generate so many sequences and answer with the likeliest.
    #[schema(example = 1)]
    pub best_of: Option<usize>,
    /// Sharpens (< 1) or flattens (> 1) the distribution. Must be above 0.
    #[schema(example = 0.5)]
    pub temperature: Option<f32>,
    /// Divides or multiplies the scores of tokens seen before; 1 = off. Must be above 0.
    #[schema(example = 1.03)]
    pub repetition_penalty: Option<f32>,
    /// Lowers the scores of tokens by their count so far; -2 to 2.
    #[schema(example = 0.1)]
    pub frequency_penalty: Option<f32>,
    /// Choose among so many best tokens. Must be above 0.
    #[schema(example = 10)]
    pub top_k: Option<i32>,
    /// Choose among the best tokens that have this share of the probability; 0 < x <= 1.
    #[schema(example = 0.95)]
    pub top_p: Option<f32>,
    /// Choose among the most typical tokens that have this share of the probability; 0 < x <= 1.
    #[schema(example = 0.95)]
    pub typical_p: Option<f32>,
    /// Draw tokens at random.
    #[serde(default)]
    pub do_sample: bool,
    /// Most tokens to generate; left out = as many as the limits allow.
    #[schema(example = 20)]
    pub max_new_tokens: Option<u32>,
    /// Put the prompt before the generated text.
    #[schema(example = false)]
    pub return_full_text: Option<bool>,
    /// Strings that end the generation; the one that does stays in the text.
    #[schema(example = json!(["photographer"]))]
    #[serde(default)]
    pub stop: Vec<String>,
    /// Keep only the last so many prompt tokens.
    pub truncate: Option<usize>,
    /// Mark the text: a detector that knows the server's watermark finds it. Changes greedy output too.
    #[serde(default)]
    pub watermark: bool,
    /// Answer with details: tokens, logprobs, finish reason.
    #[serde(default)]
    pub details: bool,
    /// Describe the prompt's tokens too.
    #[serde(default)]
    pub decoder_input_details: bool,
    /// Makes sampling repeatable.
    pub seed: Option<u64>,
    /// Report so many best candidates beside each token.
    #[schema(example = 5)]
    pub top_n_tokens: Option<u32>,
    /// Go on past end tokens (an extension for measurements).
    #[serde(default)]
    pub ignore_eos: bool,
}

/// The answer of `/generate`.
#[derive(Debug, Serialize, ToSchema)]
pub struct GenerateResponse<'a> {
    /// The text.
    #[schema(example = "test")]
    pub generated_text: String,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details<'a>>,
}

/// How a sequence came about.
#[derive(Debug, Serialize, ToSchema)]
pub struct Details<'a> {
    /// `length`, `eos_token` or `stop_sequence`.
    pub finish_reason: &'static str,
    /// The end token included.
    pub generated_tokens: usize,
    /// When tokens were drawn.
    pub seed: Option<u64>,
    /// The prompt's tokens, when asked for.
    pub prefill: Vec<PrefillToken<'a>>,
    /// The generated tokens.
    pub tokens: Vec<WireToken<'a>>,
    /// The sequences that were not the likeliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_of_sequences: Option<Vec<BestOfSequence<'a>>>,
    /// The best candidates for each token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub top_tokens: Vec<Vec<WireToken<'a>>>,
}

/// A sequence of a `best_of` call that did not win.
#[derive(Debug, Serialize, ToSchema)]
pub struct BestOfSequence<'a> {
    /// Its text.
    pub generated_text: String,
    /// `length`, `eos_token` or `stop_sequence`.
    pub finish_reason: &'static str,
    /// The end token included.
    pub generated_tokens: usize,
    /// When tokens were drawn.
    pub seed: Option<u64>,
    /// The prompt's tokens, when asked for.
    pub prefill: Vec<PrefillToken<'a>>,
    /// The generated tokens.
    pub tokens: Vec<WireToken<'a>>,
    /// The best candidates for each token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub top_tokens: Vec<Vec<WireToken<'a>>>,
}

/// A token of the prompt.
#[derive(Debug, Serialize, ToSchema)]
pub struct PrefillToken<'a> {
    /// Vocabulary id.
    pub id: u32,
    /// Decoded alone.
    pub text: &'a str,
    /// Null for the first one.
    pub logprob: Option<f32>,
}

/// A generated token or a candidate.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Token)]
pub struct WireToken<'a> {
    /// Vocabulary id.
    pub id: u32,
    /// What it adds to the text.
    pub text: &'a str,
    /// Natural log of its probability.
    pub logprob: f32,
    /// Special tokens are not part of the text.
    pub special: bool,
}

/// One frame of a stream.
#[derive(Debug, Serialize, ToSchema)]
pub struct StreamResponse<'a> {
    /// Counts from 1.
    pub index: u32,
    /// The token.
    pub token: WireToken<'a>,
    /// The best candidates for it, when asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub top_tokens: Vec<WireToken<'a>>,
    /// The whole text, in the last frame.
    pub generated_text: Option<&'a str>,
    /// In the last frame, when asked for.
    pub details: Option<StreamDetails>,
}

/// How a streamed sequence came about.
#[derive(Debug, Serialize, ToSchema)]
pub struct StreamDetails {
    /// `length`, `eos_token` or `stop_sequence`.
    pub finish_reason: &'static str,
    /// The end token included.
    pub generated_tokens: usize,
    /// When tokens were drawn.
    pub seed: Option<u64>,
    /// Tokens of the prompt.
    pub input_length: usize,
}

// === impl GenerateRequest ===

impl RequestBody for GenerateRequest {
    fn read(mut fields: Map<String, Value>) -> Result<Self, Problem> {
        extract::screen(&mut fields, &[])?;
        screen_parameters(&mut fields)?;
        extract::typed(fields)
    }
}

/// Looks at the `parameters` of a body before they are read.
///
/// # Errors
/// `Unsupported` naming the parameter.
pub fn screen_parameters(fields: &mut Map<String, Value>) -> Result<(), Error> {
    match fields.get_mut("parameters") {
        Some(Value::Object(parameters)) => extract::screen(parameters, &UNSUPPORTED),
        _ => Ok(()),
    }
}

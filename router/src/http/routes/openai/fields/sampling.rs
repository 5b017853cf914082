//! How tokens are chosen: the fields that become `SamplingParameters`.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::Error;
use crate::model::SamplingDefaults;
use crate::request::SamplingParameters;

/// How tokens are chosen. What is left out is as the model's makers recommend, else off.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SamplingFields {
    /// 0 = the likeliest token always; left out = the model's own recommendation, else 1. x >= 0.
    pub temperature: Option<f32>,
    /// Choose among the best tokens that have this share of the probability; 0 < x <= 1.
    pub top_p: Option<f32>,
    /// Choose among so many best tokens; 0 or -1 = off (an extension).
    pub top_k: Option<i32>,
    /// Choose among tokens at least this share as probable as the best one; 0 <= x <= 1, 0 = off (an extension).
    pub min_p: Option<f32>,
    /// Choose among the most typical tokens that have this share of the probability; 0 < x <= 1 (an extension).
    pub typical_p: Option<f32>,
    /// Divides or multiplies the scores of tokens seen before; x > 0, 1 = off (an extension).
    pub repetition_penalty: Option<f32>,
    /// Lowers the scores of tokens that appeared; -2 <= x <= 2.
    pub presence_penalty: Option<f32>,
    /// Lowers the scores of tokens by their count so far; -2 <= x <= 2.
    pub frequency_penalty: Option<f32>,
    /// Makes sampling repeatable; 0 <= x < 2^64. The choices of one prompt have seeds in a row.
    pub seed: Option<u64>,
    /// From token ids, as texts, to what is added to their scores; -100 <= x <= 100.
    #[schema(value_type = Option<Object>)]
    pub logit_bias: Option<Map<String, Value>>,
    /// Watermark the text (an extension).
    pub watermark: Option<bool>,
}

// === impl SamplingFields ===

impl SamplingFields {
    /// The parameters of a sequence.
    ///
    /// # Errors
    /// `Invalid` for values that have no meaning; bounds are checked at admission.
    pub fn parameters(&self, defaults: &SamplingDefaults) -> Result<SamplingParameters, Error> {
        let recommended = if defaults.do_sample == Some(false) { Some(0.0) } else { defaults.temperature };
        Ok(SamplingParameters {
            temperature: self.temperature.or(recommended).unwrap_or(1.0),
            top_k: self.top_k(defaults)?,
            top_p: self.top_p.or(defaults.top_p).unwrap_or(1.0),
            typical_p: self.typical_p.or(defaults.typical_p).unwrap_or(1.0),
            repetition_penalty: self.repetition_penalty.or(defaults.repetition_penalty).unwrap_or(1.0),
            frequency_penalty: self.frequency_penalty.unwrap_or(0.0),
            presence_penalty: self.presence_penalty.unwrap_or(0.0),
            min_p: self.min_p.unwrap_or(0.0),
            logit_bias: self.logit_bias()?,
            watermark: self.watermark.unwrap_or(false),
            seed: self.seed,
            ..SamplingParameters::default()
        })
    }

    fn top_k(&self, defaults: &SamplingDefaults) -> Result<u32, Error> {
        match self.top_k {
            None => Ok(defaults.top_k.unwrap_or(0)),
            Some(-1) => Ok(0),
            Some(given) => u32::try_from(given)
                .map_err(|_| Error::invalid("top_k", format!("`top_k` must be >= 0, or -1 for off. Given: {given}"))),
        }
    }

    fn logit_bias(&self) -> Result<Vec<(u32, f32)>, Error> {
        self.logit_bias.iter().flatten().map(|(id, bias)| Ok((token_id(id)?, number(id, bias)?))).collect()
    }
}

/// A token id as JSON's keys spell it: digits, and only one spelling of each, so that no token is biased twice.
fn token_id(text: &str) -> Result<u32, Error> {
    let id = text.parse::<u32>().ok().filter(|id| id.to_string() == text);
    id.ok_or_else(|| Error::invalid("logit_bias", format!("`logit_bias` maps token ids. Given: `{}`", shortened(text))))
}

fn number(id: &str, bias: &Value) -> Result<f32, Error> {
    let number = bias.as_f64().map(|number| number as f32);
    number.ok_or_else(|| Error::invalid("logit_bias", format!("`logit_bias[{id}]` must be a number")))
}

/// Enough of a text to recognise it.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

//! The fields that chat and completions have in common, and what they mean for a sequence.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AllOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::unsupported;
use crate::error::Error;
use crate::http::extract::{self, Object, RequestBody};
use crate::http::middleware::id::RequestId;
use crate::http::problem::Problem;
use crate::http::state::Serving;
use crate::model::SamplingDefaults;
use crate::request::{Input, Request, SamplingParameters, Spelling};

/// How a sequence is to go on; the same for chat and completions.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommonFields {
    /// Any name; it is answered back.
    #[schema(example = "tgi")]
    pub model: Option<String>,
    /// Most tokens to generate; left out = as many as the limits allow.
    pub max_tokens: Option<u32>,
    /// The newer name of `max_tokens`.
    pub max_completion_tokens: Option<u32>,
    /// 0 = the likeliest token always; left out = the model's own recommendation, else 1.
    pub temperature: Option<f32>,
    /// Choose among the best tokens that have this share of the probability; 0 < x <= 1.
    pub top_p: Option<f32>,
    /// Choices to generate for a prompt.
    pub n: Option<usize>,
    /// A string, or several, that end the generation. They are cut from the text.
    pub stop: Option<Stop>,
    /// Stream the answer.
    #[serde(default)]
    pub stream: bool,
    /// More about the stream.
    #[schema(value_type = Option<StreamOptions>)]
    pub stream_options: Option<Object<StreamOptions>>,
    /// Makes sampling repeatable.
    pub seed: Option<u64>,
    /// Lowers the scores of tokens that appeared; -2 to 2.
    pub presence_penalty: Option<f32>,
    /// Lowers the scores of tokens by their count so far; -2 to 2.
    pub frequency_penalty: Option<f32>,
    /// Choose among so many best tokens; 0 or -1 = off (an extension).
    pub top_k: Option<i32>,
    /// Choose among the most typical tokens (an extension).
    pub typical_p: Option<f32>,
    /// Divides or multiplies the scores of tokens seen before; 1 = off (an extension).
    pub repetition_penalty: Option<f32>,
    /// Go on past end tokens (an extension for measurements).
    #[serde(default)]
    pub ignore_eos: bool,
}

/// The names of `CommonFields`.
const COMMON_NAMES: [&str; 16] = [
    "model",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "stream",
    "stream_options",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "top_k",
    "typical_p",
    "repetition_penalty",
    "ignore_eos",
];

/// One stop string or several.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub enum Stop {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// More about a stream.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamOptions {
    /// Send the usage in a last chunk.
    pub include_usage: Option<bool>,
}

/// A call: the common fields and those of its route.
#[derive(Debug)]
pub struct Call<T> {
    /// What all routes share.
    pub common: CommonFields,
    /// What the route adds.
    pub own: T,
}

/// Fields that one route adds.
pub trait RouteFields: DeserializeOwned + ToSchema {
    /// The call's name in the OpenAPI document.
    const SCHEMA: &'static str;

    /// Looks at nested fields before they are read.
    ///
    /// # Errors
    /// `Unsupported`, naming the field.
    fn screen(_fields: &mut Map<String, Value>) -> Result<(), Error> {
        Ok(())
    }
}

/// What one route asks of each sequence beyond the common fields.
#[derive(Debug)]
pub struct Extras {
    /// Candidates to report beside each token.
    pub top_n_tokens: u32,
    /// The route's names.
    pub spelling: &'static Spelling,
}

// === impl CommonFields ===

impl CommonFields {
    /// Choices for each prompt.
    pub fn choices(&self) -> usize {
        self.n.unwrap_or(1)
    }

    /// Whether a stream ends with its usage.
    pub fn include_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options.0.include_usage == Some(true))
    }

    /// How many sequences the call needs for so many prompts.
    ///
    /// # Errors
    /// `Invalid` when there are none or more than a call may have.
    pub fn sequences(&self, prompts: usize, serving: &Serving) -> Result<usize, Error> {
        let most = serving.admission.limits().max_client_batch_size;
        if prompts > most {
            let message = format!("Number of prompts exceeds the maximum allowed batch size of {most}");
            return Err(Error::invalid("prompt", message));
        }
        let n = self.choices();
        match prompts.saturating_mul(n) {
            0 => Err(Error::invalid("n", "`n` must be strictly positive")),
            sequences if sequences > most => {
                let message = format!(
                    "`n` for all prompts together must be <= {most} (`--max-client-batch-size`). Given: {sequences}"
                );
                Err(Error::invalid("n", message))
            }
            sequences => Ok(sequences),
        }
    }

    /// The requests of a call: `n` for each prompt, in a row.
    ///
    /// # Errors
    /// `Invalid` for contradictions.
    pub fn requests(
        self,
        id: &RequestId,
        prompts: Vec<Input>,
        extras: &Extras,
        defaults: &SamplingDefaults,
    ) -> Result<Vec<Request>, Error> {
        let n = self.choices();
        let sampling = self.sampling(defaults)?;
        let max_new_tokens = self.max_new_tokens()?;
        let stop = self.stop.map(Stop::into_list).unwrap_or_default();
        let request = |(index, input): (usize, Input)| Request {
            id: id.0.clone(),
            input,
            truncate: None,
            max_new_tokens,
            stop: stop.clone(),
            stop_token_ids: Vec::new(),
            include_stop: false,
            ignore_eos: self.ignore_eos,
            min_tokens: 0,
            skip_special_tokens: true,
            // Equal seeds would make equal choices.
            sampling: SamplingParameters {
                seed: sampling.seed.map(|seed| seed.wrapping_add((index % n) as u64)),
                ..sampling.clone()
            },
            top_n_tokens: extras.top_n_tokens,
            prompt_logprobs: None,
            spelling: extras.spelling,
        };
        let inputs = prompts.into_iter().flat_map(|prompt| std::iter::repeat_n(prompt, n));
        Ok(inputs.enumerate().map(request).collect())
    }

    fn max_new_tokens(&self) -> Result<Option<u32>, Error> {
        match (self.max_tokens, self.max_completion_tokens) {
            (Some(old), Some(new)) if old != new => {
                let message = "`max_tokens` and `max_completion_tokens` are the same limit; give one of them";
                Err(Error::invalid("max_tokens", message))
            }
            (old, new) => Ok(new.or(old)),
        }
    }

    fn sampling(&self, defaults: &SamplingDefaults) -> Result<SamplingParameters, Error> {
        let recommended = if defaults.do_sample == Some(false) { Some(0.0) } else { defaults.temperature };
        let top_k = match self.top_k {
            None => defaults.top_k.unwrap_or(0),
            Some(-1) => 0,
            Some(given) => u32::try_from(given)
                .map_err(|_| Error::invalid("top_k", format!("`top_k` must be >= 0, or -1 for off. Given: {given}")))?,
        };
        Ok(SamplingParameters {
            temperature: self.temperature.or(recommended).unwrap_or(1.0),
            top_k,
            top_p: self.top_p.or(defaults.top_p).unwrap_or(1.0),
            typical_p: self.typical_p.or(defaults.typical_p).unwrap_or(1.0),
            repetition_penalty: self.repetition_penalty.or(defaults.repetition_penalty).unwrap_or(1.0),
            frequency_penalty: self.frequency_penalty.unwrap_or(0.0),
            presence_penalty: self.presence_penalty.unwrap_or(0.0),
            seed: self.seed,
            ..SamplingParameters::default()
        })
    }
}

// === impl Stop ===

impl Stop {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::One(stop) => vec![stop],
            Self::Several(stops) => stops,
        }
    }
}

// === impl Call ===

impl<T: RouteFields> RequestBody for Call<T> {
    fn read(mut fields: Map<String, Value>) -> Result<Self, Problem> {
        extract::screen(&mut fields, &unsupported::REQUEST)?;
        T::screen(&mut fields)?;
        let mut common = Map::new();
        for name in COMMON_NAMES {
            if let Some(value) = fields.shift_remove(name) {
                common.insert(name.to_owned(), value);
            }
        }
        Ok(Self { common: extract::typed(common)?, own: extract::typed(fields)? })
    }
}

impl<T: RouteFields> PartialSchema for Call<T> {
    fn schema() -> RefOr<Schema> {
        let parts = AllOfBuilder::new()
            .item(Ref::from_schema_name(CommonFields::name()))
            .item(Ref::from_schema_name(T::name()));
        Schema::AllOf(parts.build()).into()
    }
}

impl<T: RouteFields> ToSchema for Call<T> {
    fn name() -> Cow<'static, str> {
        T::SCHEMA.into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((CommonFields::name().into_owned(), CommonFields::schema()));
        schemas.push((T::name().into_owned(), T::schema()));
        CommonFields::schemas(schemas);
        T::schemas(schemas);
    }
}

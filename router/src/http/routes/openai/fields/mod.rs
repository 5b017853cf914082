//! The fields that chat and completions have in common, by subject, and the requests that they ask for.

pub mod answer;
pub mod length;
pub mod prompt;
pub mod sampling;

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use text_generation_protocol::config::Limits;
use utoipa::openapi::schema::{AllOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use self::answer::AnswerFields;
use self::length::LengthFields;
use self::prompt::PromptFields;
use self::sampling::SamplingFields;
use super::unsupported;
use crate::error::Error;
use crate::http::extract::{self, RequestBody};
use crate::http::introspect::field_names;
use crate::http::middleware::id::RequestId;
use crate::http::problem::Problem;
use crate::http::screen::Unsupported;
use crate::http::state::Serving;
use crate::request::{Input, Request, SamplingParameters, Spelling};

/// What all routes share.
#[derive(Debug, Clone, Default)]
pub struct CommonFields {
    /// How tokens are chosen.
    pub sampling: SamplingFields,
    /// When a sequence ends.
    pub length: LengthFields,
    /// What is done to the prompt.
    pub prompt: PromptFields,
    /// What the answer looks like.
    pub answer: AnswerFields,
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
pub trait RouteFields: DeserializeOwned + ToSchema + Send + 'static {
    /// The call's name in the OpenAPI document.
    const SCHEMA: &'static str;
    /// Fields that other routes have.
    const UNSUPPORTED: &'static [Unsupported];

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
    /// Whether anyone looks at the logprobs of tokens: the client, or a choice of the best.
    pub reads_logprobs: bool,
    /// Sequences for each prompt.
    pub width: usize,
    /// The token budget, when it is not that of the common fields.
    pub max_new_tokens: Option<u32>,
    /// Candidates to report beside each token of the prompt.
    pub prompt_logprobs: Option<u32>,
    /// The route's names.
    pub spelling: &'static Spelling,
}

// === impl CommonFields ===

impl CommonFields {
    /// Choices for each prompt.
    pub fn choices(&self) -> usize {
        self.answer.n.unwrap_or(1)
    }

    /// How many sequences the call needs for so many prompts with `width` sequences each.
    ///
    /// # Errors
    /// `Invalid` when there are none or more than a call may have, and for options that contradict each other.
    pub fn sequences(&self, prompts: usize, width: usize, limits: &Limits) -> Result<usize, Error> {
        self.answer.check()?;
        let most = limits.max_client_batch_size;
        if prompts > most {
            let message = format!("Number of prompts exceeds the maximum allowed batch size of {most}");
            return Err(Error::invalid("prompt", message));
        }
        if self.choices() == 0 {
            return Err(Error::invalid("n", "`n` must be strictly positive"));
        }
        let field = if width > self.choices() { "best_of" } else { "n" };
        match prompts.saturating_mul(width) {
            0 => Err(Error::invalid("prompt", "`prompt` cannot be empty")),
            sequences if sequences > most => {
                let message = format!(
                    "`{field}` for all prompts together must be <= {most} (`--max-client-batch-size`). Given: \
                     {sequences}"
                );
                Err(Error::invalid(field, message))
            }
            sequences => Ok(sequences),
        }
    }

    /// The requests of a call: `width` for each prompt, in a row.
    ///
    /// # Errors
    /// `Invalid` for contradictions.
    pub fn requests(
        self,
        id: &RequestId,
        prompts: Vec<Input>,
        extras: &Extras,
        serving: &Serving,
    ) -> Result<Vec<Request>, Error> {
        let width = extras.width;
        let template = self.template(id, extras, serving)?;
        let request = |(index, input): (usize, Input)| Request {
            input,
            // Equal seeds would make equal choices.
            sampling: SamplingParameters {
                seed: template.sampling.seed.map(|seed| seed.wrapping_add((index % width) as u64)),
                ..template.sampling.clone()
            },
            ..template.clone()
        };
        let inputs = prompts.into_iter().flat_map(|prompt| std::iter::repeat_n(prompt, width));
        Ok(inputs.enumerate().map(request).collect())
    }

    /// What the requests of a call have in common: all but the prompt and the seed.
    fn template(&self, id: &RequestId, extras: &Extras, serving: &Serving) -> Result<Request, Error> {
        let max_new_tokens = self.length.max_new_tokens()?;
        Ok(Request {
            id: id.0.clone(),
            input: Input::Tokens(Vec::new()),
            truncate: self.prompt.truncate(serving.admission.engine_limits().max_input_tokens)?,
            add_special_tokens: self.prompt.add_special_tokens,
            max_new_tokens: extras.max_new_tokens.or(max_new_tokens),
            stop: self.length.stop_strings(),
            stop_token_ids: self.length.stop_token_ids.clone(),
            include_stop: self.length.include_stop_str_in_output,
            ignore_eos: self.length.ignore_eos,
            min_tokens: self.length.min_tokens,
            skip_special_tokens: self.answer.skips_special_tokens(),
            // OpenAI's logprobs are those of the model itself, whatever is sampled from. They cost a copy of the logits.
            sampling: SamplingParameters {
                raw_logprobs: extras.reads_logprobs,
                ..self.sampling.parameters(&serving.defaults)?
            },
            top_n_tokens: extras.top_n_tokens,
            prompt_logprobs: self.answer.prompt_logprobs.max(extras.prompt_logprobs),
            spelling: extras.spelling,
        })
    }
}

// === impl Call ===

impl<T: RouteFields> RequestBody for Call<T> {
    fn read(mut fields: Map<String, Value>) -> Result<Self, Problem> {
        extract::screen(&mut fields, &unsupported::REQUEST)?;
        extract::screen(&mut fields, T::UNSUPPORTED)?;
        if let Some(Value::Object(options)) = fields.get_mut("stream_options") {
            extract::screen(options, &unsupported::STREAM_OPTIONS)?;
        }
        T::screen(&mut fields)?;
        let common = CommonFields {
            sampling: group(&mut fields)?,
            length: group(&mut fields)?,
            prompt: group(&mut fields)?,
            answer: group(&mut fields)?,
        };
        Ok(Self { common, own: extract::typed(fields)? })
    }
}

/// Takes the members of one group of fields out of a body.
fn group<G: DeserializeOwned>(fields: &mut Map<String, Value>) -> Result<G, Problem> {
    let mut members = Map::new();
    for &name in field_names::<G>() {
        if let Some(value) = fields.swap_remove(name) {
            members.insert(name.to_owned(), value);
        }
    }
    extract::typed(members)
}

impl<T: RouteFields> PartialSchema for Call<T> {
    fn schema() -> RefOr<Schema> {
        let parts =
            [AnswerFields::name(), SamplingFields::name(), LengthFields::name(), PromptFields::name(), T::name()];
        let parts = parts.into_iter().fold(AllOfBuilder::new(), |all, name| all.item(Ref::from_schema_name(name)));
        Schema::AllOf(parts.build()).into()
    }
}

impl<T: RouteFields> ToSchema for Call<T> {
    fn name() -> Cow<'static, str> {
        T::SCHEMA.into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        with_schema::<AnswerFields>(schemas);
        with_schema::<SamplingFields>(schemas);
        with_schema::<LengthFields>(schemas);
        with_schema::<PromptFields>(schemas);
        with_schema::<T>(schemas);
    }
}

fn with_schema<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

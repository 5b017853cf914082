//! From TGI's wire types to requests, and from events to TGI's answers.

use super::types::{
    BestOfSequence, Details, GenerateParameters, GenerateRequest, GenerateResponse, PrefillToken, WireToken,
};
use crate::error::Error;
use crate::event::{Token, TokenEvent};
use crate::http::collect::Collected;
use crate::http::middleware::id::RequestId;
use crate::queue::reason_name;
use crate::request::validate::not_positive;
use crate::request::{Input, Request, SamplingParameters, Spelling};

/// TGI's field names.
static SPELLING: Spelling = Spelling {
    input: "inputs",
    max_new_tokens: "max_new_tokens",
    top_n_tokens: "top_n_tokens",
    prompt_logprobs: "decoder_input_details",
    truncate: "truncate",
};

/// What of the answer the client wants to see.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Put before the generated text.
    pub prefix: String,
    /// Show details.
    pub details: bool,
    /// Sequences to generate.
    pub best_of: usize,
}

// === impl GenerateRequest ===

impl GenerateRequest {
    /// The parameters; a body without any asks for sampling.
    fn parameters(&self) -> GenerateParameters {
        let default = || GenerateParameters { do_sample: true, ..GenerateParameters::default() };
        self.parameters.clone().map_or_else(default, |parameters| parameters.0)
    }

    /// How many sequences the call needs; at most `most`.
    ///
    /// # Errors
    /// `Invalid` when `best_of` is out of bounds.
    pub fn sequences(&self, most: usize) -> Result<usize, Error> {
        let given = self.parameters.as_ref().and_then(|parameters| parameters.0.best_of).unwrap_or(1);
        if given > 1 && most == 1 {
            return Err(Error::invalid("best_of", "`best_of` != 1 is not allowed for this endpoint"));
        }
        if given > most {
            return Err(Error::invalid("best_of", format!("`best_of` must be > 0 and <= {most}. Given: {given}")));
        }
        Ok(given.max(1))
    }

    /// The requests of this call. `full_text` says whether the prompt is part of the answer when the client does not.
    ///
    /// # Errors
    /// `Invalid` for combinations and bounds that only TGI's routes know.
    pub fn into_requests(
        self,
        id: &RequestId,
        full_text: bool,
        sequences: usize,
    ) -> Result<(Vec<Request>, Shape), Error> {
        let parameters = self.parameters();
        let sampling = parameters.sampling()?;
        if sequences > 1 && !sampling.samples() {
            return Err(Error::invalid("best_of", "you must use sampling when `best_of` is > 1"));
        }
        if sequences > 1 && parameters.seed.is_some() {
            return Err(Error::invalid("seed", "`seed` must not be set when `best_of` > 1"));
        }
        let full_text = parameters.return_full_text.unwrap_or(full_text);
        let shape = Shape {
            prefix: if full_text { self.inputs.clone() } else { String::new() },
            details: parameters.details || parameters.decoder_input_details,
            best_of: sequences,
        };
        let request = Request {
            id: id.0.clone(),
            input: Input::Text(self.inputs),
            truncate: parameters.truncate,
            add_special_tokens: None,
            max_new_tokens: parameters.max_new_tokens,
            stop: parameters.stop,
            stop_token_ids: Vec::new(),
            include_stop: false,
            ignore_eos: parameters.ignore_eos,
            min_tokens: 0,
            skip_special_tokens: true,
            sampling,
            top_n_tokens: parameters.top_n_tokens.unwrap_or(0),
            prompt_logprobs: parameters.decoder_input_details.then_some(0),
            spelling: &SPELLING,
        };
        Ok((vec![request; sequences], shape))
    }

    /// Refuses what an answer of nothing but texts cannot show.
    ///
    /// # Errors
    /// `Unsupported` naming the field.
    pub fn check_text_only(&self, reason: &str) -> Result<(), Error> {
        let parameters = self.parameters();
        let asked = [
            ("stream", self.stream == Some(true)),
            ("details", parameters.details),
            ("decoder_input_details", parameters.decoder_input_details),
            ("top_n_tokens", parameters.top_n_tokens.is_some_and(|count| count > 0)),
        ];
        match asked.iter().find(|(_, asked)| *asked) {
            Some((name, _)) => Err(Error::unsupported(name, format!("`{name}` is not supported here: {reason}"))),
            None => Ok(()),
        }
    }

    /// Refuses what a stream cannot show.
    ///
    /// # Errors
    /// `Invalid` for `best_of` and prompt details.
    pub fn check_streamable(&self) -> Result<(), Error> {
        let parameters = self.parameters();
        if parameters.best_of.is_some_and(|given| given != 1) {
            return Err(Error::invalid("best_of", "`best_of` != 1 is not supported when streaming tokens"));
        }
        if parameters.decoder_input_details {
            let message = "`decoder_input_details` == true is not supported when streaming tokens";
            return Err(Error::invalid("decoder_input_details", message));
        }
        Ok(())
    }
}

// === impl GenerateParameters ===

impl GenerateParameters {
    /// TGI draws at random when told so, and when any parameter is set that has no meaning otherwise.
    fn sampling(&self) -> Result<SamplingParameters, Error> {
        if self.temperature.is_some_and(|given| given <= 0.0) {
            return Err(not_positive("temperature"));
        }
        let below_one = |given: Option<f32>| given.is_some_and(|given| given != 1.0);
        let samples = self.do_sample
            || below_one(self.temperature)
            || below_one(self.top_p)
            || below_one(self.typical_p)
            || self.top_k.is_some();
        Ok(SamplingParameters {
            temperature: if samples { self.temperature.unwrap_or(1.0) } else { 0.0 },
            top_k: match self.top_k {
                None => 0,
                Some(given) => u32::try_from(given).ok().filter(|&k| k > 0).ok_or_else(|| not_positive("top_k"))?,
            },
            top_p: self.top_p.unwrap_or(1.0),
            typical_p: self.typical_p.unwrap_or(1.0),
            repetition_penalty: self.repetition_penalty.unwrap_or(1.0),
            frequency_penalty: self.frequency_penalty.unwrap_or(0.0),
            watermark: self.watermark,
            seed: self.seed,
            ..SamplingParameters::default()
        })
    }
}

/// The index of the likeliest sequence: the highest mean logprob.
pub fn likeliest(sequences: &[Collected]) -> usize {
    let mean = |sequence: &Collected| {
        let sum: f32 = sequence.tokens.iter().map(|token| token.token.logprob).sum();
        sum / sequence.tokens.len().max(1) as f32
    };
    let best = sequences.iter().enumerate().max_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b)));
    best.map_or(0, |(index, _)| index)
}

/// The answer to a call: the winner, with the others in its details.
pub fn response<'a>(sequences: &'a [Collected], winner: usize, shape: &Shape) -> GenerateResponse<'a> {
    let best = &sequences[winner];
    let others = || sequences.iter().enumerate().filter(|(index, _)| *index != winner);
    let details = || Details {
        finish_reason: reason_name(&best.done.reason),
        generated_tokens: best.done.generated_tokens,
        seed: best.done.seed,
        prefill: prefill(best),
        tokens: tokens(best),
        best_of_sequences: (shape.best_of > 1).then(|| others().map(|(_, other)| best_of(other, shape)).collect()),
        top_tokens: top_tokens(best),
    };
    GenerateResponse { generated_text: text(best, shape), details: shape.details.then(details) }
}

fn best_of<'a>(sequence: &'a Collected, shape: &Shape) -> BestOfSequence<'a> {
    BestOfSequence {
        generated_text: text(sequence, shape),
        finish_reason: reason_name(&sequence.done.reason),
        generated_tokens: sequence.done.generated_tokens,
        seed: sequence.done.seed,
        prefill: prefill(sequence),
        tokens: tokens(sequence),
        top_tokens: top_tokens(sequence),
    }
}

fn text(sequence: &Collected, shape: &Shape) -> String {
    format!("{}{}", shape.prefix, sequence.done.generated_text)
}

fn prefill(sequence: &Collected) -> Vec<PrefillToken<'_>> {
    let wire = sequence.prompt.iter();
    wire.map(|token| PrefillToken { id: token.id, text: &token.text, logprob: token.logprob }).collect()
}

fn tokens(sequence: &Collected) -> Vec<WireToken<'_>> {
    sequence.tokens.iter().map(|token| WireToken::from(&token.token)).collect()
}

/// Empty when no candidates were asked for.
fn top_tokens(sequence: &Collected) -> Vec<Vec<WireToken<'_>>> {
    if sequence.tokens.iter().all(|token| token.top_tokens.is_empty()) {
        return Vec::new();
    }
    sequence.tokens.iter().map(candidates).collect()
}

/// The candidates of one token.
pub fn candidates(token: &TokenEvent) -> Vec<WireToken<'_>> {
    token.top_tokens.iter().map(WireToken::from).collect()
}

impl<'a> From<&'a Token> for WireToken<'a> {
    fn from(token: &'a Token) -> Self {
        Self { id: token.id, text: &token.text, logprob: token.logprob, special: token.special }
    }
}

//! The checks that hold for every API: sampling parameters, stop strings and lengths. Bounds, their order and the
//! wording are TGI's. Knows no wire format; errors name fields as the client's API spells them.

use text_generation_protocol::config::Limits;

use super::{Request, SamplingParameters};
use crate::engine::EngineLimits;
use crate::error::Error;

/// Temperatures below this are greedy: the best token's share rounds to 1, and dividing by less overflows.
pub const SMALLEST_TEMPERATURE: f32 = 1e-5;

/// The penalties' bound on either side of 0.
const LARGEST_PENALTY: f32 = 2.0;

/// The bound of a logit bias on either side of 0.
const LARGEST_BIAS: f32 = 100.0;

/// Most tokens that a request may name in `logit_bias`, and in `stop_token_ids`.
const MOST_NAMED_TOKENS: usize = 1024;

/// Checks everything that can be checked without the prompt's tokens and the vocabulary.
///
/// # Errors
/// `Error::Invalid` naming the first field out of bounds.
pub fn parameters(request: &Request, limits: &Limits, engine: &EngineLimits) -> Result<(), Error> {
    sampling(&request.sampling)?;
    let spelling = request.spelling;
    if request.max_new_tokens == Some(0) {
        return Err(not_positive(spelling.max_new_tokens));
    }
    stop_strings(&request.stop, limits.max_stop_sequences)?;
    candidates(spelling.top_n_tokens, request.top_n_tokens, limits)?;
    if let Some(beside) = request.prompt_logprobs {
        if !limits.enable_prefill_logprobs {
            let message = "prompt logprobs are switched off; start the server with `--enable-prefill-logprobs`";
            return Err(Error::unsupported(spelling.prompt_logprobs, message));
        }
        candidates(spelling.prompt_logprobs, beside, limits)?;
    }
    if request.input.is_empty() {
        let name = spelling.input;
        return Err(Error::invalid(name, format!("`{name}` cannot be empty")));
    }
    match request.truncate {
        Some(given) if given == 0 || given > engine.max_input_tokens => {
            let (name, most) = (spelling.truncate, engine.max_input_tokens);
            let message = format!("`{name}` must be strictly positive and less than {most}. Given: {given}");
            Err(Error::invalid(name, message))
        }
        _ => Ok(()),
    }
}

/// Checks the tokens that a request names, which are below `vocabulary_size`.
///
/// # Errors
/// `Error::Invalid` naming the field, with the bound and the id or the number given.
pub fn token_ids(request: &Request, vocabulary_size: usize) -> Result<(), Error> {
    let bias = &request.sampling.logit_bias;
    named_tokens("logit_bias", bias.iter().map(|(id, _)| *id), vocabulary_size)?;
    let mut ids: Vec<u32> = bias.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::invalid("logit_bias", format!("`logit_bias` names token {} twice", twice[0])));
    }
    named_tokens("stop_token_ids", request.stop_token_ids.iter().copied(), vocabulary_size)
}

/// Checks the prompt's length against the limits, and returns the number of tokens to generate.
///
/// # Errors
/// `Error::Invalid` with the bound and the figures given.
pub fn lengths(request: &Request, prompt_tokens: usize, engine: &EngineLimits) -> Result<u32, Error> {
    let spelling = request.spelling;
    let (input, budget) = (spelling.input, spelling.max_new_tokens);
    if let Some(given) = request.max_new_tokens
        && prompt_tokens.saturating_add(given as usize) > engine.max_total_tokens
    {
        let total = engine.max_total_tokens;
        let message = format!(
            "`{input}` tokens + `{budget}` must be <= {total}. Given: {prompt_tokens} `{input}` tokens and {given} \
             `{budget}`"
        );
        return Err(Error::invalid(budget, message));
    }
    if prompt_tokens > engine.max_input_tokens || prompt_tokens >= engine.max_total_tokens {
        let bound = engine.max_input_tokens.min(engine.max_total_tokens.saturating_sub(1));
        let message = format!("`{input}` must have less than {bound} tokens. Given: {prompt_tokens}");
        return Err(Error::invalid(input, message));
    }
    let remaining = u32::try_from(engine.max_total_tokens - prompt_tokens).unwrap_or(u32::MAX);
    let max_new_tokens = request.max_new_tokens.unwrap_or(remaining);
    if request.min_tokens > max_new_tokens {
        let message =
            format!("`min_tokens` must be <= {max_new_tokens}, the `{budget}`. Given: {}", request.min_tokens);
        return Err(Error::invalid("min_tokens", message));
    }
    Ok(max_new_tokens)
}

fn candidates(name: &'static str, given: u32, limits: &Limits) -> Result<(), Error> {
    let most = limits.max_top_n_tokens;
    if given <= most {
        return Ok(());
    }
    Err(Error::invalid(name, format!("`{name}` must be >= 0 and <= {most}. Given: {given}")))
}

fn named_tokens(name: &'static str, ids: impl ExactSizeIterator<Item = u32>, size: usize) -> Result<(), Error> {
    let count = ids.len();
    if count > MOST_NAMED_TOKENS {
        let message = format!("`{name}` supports up to {MOST_NAMED_TOKENS} tokens. Given: {count}");
        return Err(Error::invalid(name, message));
    }
    match { ids }.find(|&id| id as usize >= size) {
        Some(id) => Err(Error::invalid(name, format!("`{name}` token ids must be < {size}. Given: {id}"))),
        None => Ok(()),
    }
}

fn sampling(parameters: &SamplingParameters) -> Result<(), Error> {
    let p = parameters;
    check("temperature", p.temperature, p.temperature >= 0.0, "must be >= 0.0")?;
    check("repetition_penalty", p.repetition_penalty, p.repetition_penalty > 0.0, "must be strictly positive")?;
    penalty("frequency_penalty", p.frequency_penalty)?;
    penalty("presence_penalty", p.presence_penalty)?;
    check("top_p", p.top_p, p.top_p > 0.0 && p.top_p <= 1.0, "must be > 0.0 and <= 1.0")?;
    check("typical_p", p.typical_p, p.typical_p > 0.0 && p.typical_p <= 1.0, "must be > 0.0 and <= 1.0")?;
    check("min_p", p.min_p, (0.0..=1.0).contains(&p.min_p), "must be >= 0.0 and <= 1.0")?;
    let bound = "values must be >= -100.0 and <= 100.0";
    p.logit_bias.iter().try_for_each(|&(_, bias)| check("logit_bias", bias, bias.abs() <= LARGEST_BIAS, bound))
}

fn penalty(field: &'static str, value: f32) -> Result<(), Error> {
    check(field, value, value.abs() <= LARGEST_PENALTY, "must be >= -2.0 and <= 2.0")
}

/// A number that is within its bound, or an error that states the bound. Infinities never pass.
fn check(field: &'static str, value: f32, within: bool, bound: &str) -> Result<(), Error> {
    if !value.is_finite() {
        return Err(Error::invalid(field, format!("`{field}` must be a finite number")));
    }
    if within { Ok(()) } else { Err(Error::invalid(field, format!("`{field}` {bound}"))) }
}

fn stop_strings(stop: &[String], most: usize) -> Result<(), Error> {
    if stop.len() > most {
        let message = format!("`stop` supports up to {most} stop sequences. Given: {}", stop.len());
        return Err(Error::invalid("stop", message));
    }
    if stop.iter().any(String::is_empty) {
        return Err(Error::invalid("stop", "`stop` cannot hold an empty string"));
    }
    Ok(())
}

/// Checks how many sequences the items of one call make, before any is read: no more than the server has places.
///
/// # Errors
/// `Error::Invalid` naming the field.
pub fn items(field: &'static str, given: usize, limits: &Limits) -> Result<(), Error> {
    let most = limits.max_concurrent_requests;
    let message = match given {
        0 => format!("`{field}` cannot be empty"),
        _ if given > most => {
            format!("`{field}` must have at most {most} items (`--max-concurrent-requests`). Given: {given}")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(field, message))
}

/// The error of a field that must be above 0.
pub fn not_positive(field: &'static str) -> Error {
    Error::invalid(field, format!("`{field}` must be strictly positive"))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;

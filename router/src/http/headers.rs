//! TGI's response headers: what a call cost.

use std::fmt::Display;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};

use super::collect::Collected;
use super::state::HttpConfig;
use crate::event::Timings;

/// The headers of a streamed answer: known before the first token.
pub fn streamed(config: &HttpConfig, prompt_characters: usize) -> HeaderMap {
    let mut headers = HeaderMap::new();
    insert(&mut headers, "x-compute-type", &config.compute_type);
    insert(&mut headers, "x-compute-characters", prompt_characters);
    headers
}

/// The headers of a whole answer; figures of several sequences are added up.
pub fn whole(config: &HttpConfig, sequences: &[&Collected]) -> HeaderMap {
    let mut headers = streamed(config, sequences.iter().map(|sequence| sequence.prompt_characters).sum());
    let time = |part: fn(&Timings) -> Duration| -> Duration {
        sequences.iter().map(|sequence| part(&sequence.done.timings)).sum()
    };
    let per_token = |sequence: &&Collected| sequence.done.timings.per_token(sequence.done.generated_tokens);
    insert(&mut headers, "x-compute-time", time(Timings::total).as_secs_f64());
    insert(&mut headers, "x-total-time", time(Timings::total).as_millis());
    insert(&mut headers, "x-validation-time", time(|timings| timings.validation).as_millis());
    insert(&mut headers, "x-queue-time", time(|timings| timings.queue).as_millis());
    insert(&mut headers, "x-inference-time", time(|timings| timings.inference).as_millis());
    insert(&mut headers, "x-time-per-token", sequences.iter().map(per_token).sum::<Duration>().as_millis());
    insert(&mut headers, "x-prompt-tokens", sequences.iter().map(|s| s.done.prompt_tokens).sum::<usize>());
    insert(&mut headers, "x-generated-tokens", sequences.iter().map(|s| s.done.generated_tokens).sum::<usize>());
    headers
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: impl Display) {
    // Only a configured compute type with control characters is no header value; it is left out.
    if let Ok(value) = HeaderValue::from_str(&value.to_string()) {
        headers.insert(name, value);
    }
}

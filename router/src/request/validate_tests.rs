//! Every bound is tried on both of its sides, and what is refused names the field and the bound.

use super::*;
use crate::request::{Input, Spelling};

static SPELLING: Spelling = Spelling {
    input: "prompt",
    max_new_tokens: "max_tokens",
    top_n_tokens: "logprobs",
    prompt_logprobs: "prompt_logprobs",
    truncate: "truncate",
};

const VOCABULARY: usize = 100;

const ENGINE: EngineLimits = EngineLimits {
    max_input_tokens: 50,
    max_total_tokens: 60,
    max_batch_prefill_tokens: 50,
    max_batch_total_tokens: 1000,
    max_batch_size: 4,
};

fn request() -> Request {
    Request {
        id: "test".into(),
        input: Input::Text("a".into()),
        add_special_tokens: None,
        truncate: None,
        max_new_tokens: Some(10),
        stop: Vec::new(),
        stop_token_ids: Vec::new(),
        include_stop: false,
        ignore_eos: false,
        min_tokens: 0,
        skip_special_tokens: true,
        sampling: SamplingParameters::default(),
        top_n_tokens: 0,
        prompt_logprobs: None,
        spelling: &SPELLING,
    }
}

/// The refusal of a request that `change` makes, if it is one.
fn refusal(change: impl FnOnce(&mut Request)) -> Option<String> {
    let mut request = request();
    change(&mut request);
    let limits = Limits { enable_prefill_logprobs: true, ..Limits::default() };
    let checked = parameters(&request, &limits, &ENGINE).and_then(|()| token_ids(&request, VOCABULARY));
    checked.and_then(|()| lengths(&request, 5, &ENGINE)).err().map(|error| error.to_string())
}

fn refused(change: impl FnOnce(&mut Request), text: &str) {
    assert_eq!(refusal(change), Some(format!("Input validation error: {text}")));
}

fn passes(change: impl FnOnce(&mut Request)) {
    assert_eq!(refusal(change), None);
}

fn biased(bias: Vec<(u32, f32)>) -> impl FnOnce(&mut Request) {
    |request| request.sampling.logit_bias = bias
}

#[test]
fn min_p_is_a_share() {
    for share in [0.0, 0.5, 1.0] {
        passes(|request| request.sampling.min_p = share);
    }
    for share in [-0.1, 1.01] {
        refused(|request| request.sampling.min_p = share, "`min_p` must be >= 0.0 and <= 1.0");
    }
    // What a number beyond the range of 32 bits becomes.
    refused(|request| request.sampling.min_p = 1e39_f64 as f32, "`min_p` must be a finite number");
    refused(|request| request.sampling.min_p = f32::NAN, "`min_p` must be a finite number");
}

#[test]
fn a_logit_bias_names_known_tokens_once_with_values_in_range() {
    passes(biased(vec![(0, -100.0), (99, 100.0)]));
    let range = "`logit_bias` values must be >= -100.0 and <= 100.0";
    refused(biased(vec![(0, 1.0), (1, 100.1)]), range);
    refused(biased(vec![(1, -100.1)]), range);
    refused(biased(vec![(1, f32::INFINITY)]), "`logit_bias` must be a finite number");
    refused(biased(vec![(100, 1.0)]), "`logit_bias` token ids must be < 100. Given: 100");
    refused(biased(vec![(7, 1.0), (3, 1.0), (7, 2.0)]), "`logit_bias` names token 7 twice");
    let many = vec![(0, 1.0); MOST_NAMED_TOKENS + 1];
    refused(biased(many), "`logit_bias` supports up to 1024 tokens. Given: 1025");
}

#[test]
fn stop_tokens_are_known() {
    passes(|request| request.stop_token_ids = vec![0, 99, 0]);
    let most = vec![1; MOST_NAMED_TOKENS];
    passes(|request| request.stop_token_ids = most);
    refused(|request| request.stop_token_ids = vec![100], "`stop_token_ids` token ids must be < 100. Given: 100");
    let many = vec![1; MOST_NAMED_TOKENS + 1];
    refused(|request| request.stop_token_ids = many, "`stop_token_ids` supports up to 1024 tokens. Given: 1025");
}

#[test]
fn the_least_number_of_tokens_is_within_the_budget() {
    passes(|request| request.min_tokens = 10);
    refused(|request| request.min_tokens = 11, "`min_tokens` must be <= 10, the `max_tokens`. Given: 11");
    let fill = |min_tokens| {
        move |request: &mut Request| {
            request.max_new_tokens = None;
            request.min_tokens = min_tokens;
        }
    };
    passes(fill(55));
    refused(fill(56), "`min_tokens` must be <= 55, the `max_tokens`. Given: 56");
}

#[test]
fn candidates_of_prompt_tokens_are_bounded_as_those_of_others() {
    passes(|request| request.prompt_logprobs = Some(5));
    refused(|request| request.prompt_logprobs = Some(6), "`prompt_logprobs` must be >= 0 and <= 5. Given: 6");
    refused(|request| request.top_n_tokens = 6, "`logprobs` must be >= 0 and <= 5. Given: 6");
}

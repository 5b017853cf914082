//! The whole engine on a scripted shard: what each sequence gets, what plans look like, and that nothing is ever lost.

pub(super) mod fixture;
mod properties;
mod shard;

use std::sync::atomic::Ordering;

use fixture::{Bench, Case, END, Sizes, collect, letter, prompt, tokenizer};
use shard::POISON;

use crate::error::Error;
use crate::event::{Event, FinishReason};
use crate::shard::ShardError;

const SIZES: Sizes = Sizes { blocks: 64, block_size: 4, slots: 8, prefill: 16, step: 32 };

fn case(length: usize, seed: u32, max_new_tokens: u32) -> Case {
    Case { prompt: prompt(length, seed), max_new_tokens, ignore_eos: true, ..Case::default() }
}

#[tokio::test]
async fn one_request_gets_its_tokens_and_leaves_nothing_behind() {
    let bench = Bench::new(SIZES, tokenizer());
    let case = Case { top_n: 3, prompt_logprobs: true, prompt_top_n: 2, ..case(40, 1, 20) };
    let (entry, events) = case.entry();
    bench.engine.submit(entry).expect("runs");
    case.check(collect(events).await);
    let plans = bench.shard.plans();
    assert_eq!(plans.len(), 3 + 19 + 1, "three chunks, no row beyond the end by length, one release");
    bench.finish().await;
}

#[tokio::test]
async fn strangers_share_steps_and_change_nothing() {
    let bench = Bench::new(SIZES, tokenizer());
    let cases: Vec<_> = (0..12).map(|seed| case(3 + seed as usize * 2, seed, 10 + seed)).collect();
    let mut all = Vec::new();
    for case in &cases {
        let (entry, events) = case.entry();
        bench.engine.submit(entry).expect("runs");
        all.push(events);
    }
    for (case, events) in cases.iter().zip(all) {
        case.check(collect(events).await);
    }
    let shared = bench.shard.plans().iter().any(|plan| {
        plan.token_counts.iter().any(|&count| count > 1) && plan.token_counts.contains(&1) && plan.slots.len() > 2
    });
    assert!(shared, "prefill and decode share a step");
    bench.finish().await;
}

#[tokio::test]
async fn two_prompts_that_each_fit_alone_both_finish() {
    let bench = Bench::new(Sizes { blocks: 10, ..SIZES }, tokenizer());
    let cases = [case(30, 1, 10), case(30, 2, 10)];
    let runs = cases.each_ref().map(|case| {
        let (entry, events) = case.entry();
        bench.engine.submit(entry).expect("runs");
        events
    });
    for (case, events) in cases.iter().zip(runs) {
        case.check(collect(events).await);
    }
    bench.finish().await;
}

#[tokio::test]
async fn a_stop_string_ends_the_text_before_it() {
    let (_, text, _) = case(5, 3, 12).reference();
    let stop = text[3..6].to_owned();
    let bench = Bench::new(SIZES, tokenizer());
    let case = Case { stop: vec![stop.clone()], ..case(5, 3, 40) };
    let (entry, events) = case.entry();
    bench.engine.submit(entry).expect("runs");
    let events = collect(events).await;
    let Some(Event::Done(done)) = events.last() else { panic!("an end") };
    assert_eq!(done.reason, FinishReason::Stop(stop.as_str().into()));
    assert!(done.generated_text.ends_with(&stop), "TGI keeps the stop string");
    case.check(events);
    bench.finish().await;
}

/// Runs one request alone and checks it against the reference. Returns why it ended.
async fn run_alone(case: Case) -> FinishReason {
    let bench = Bench::new(SIZES, tokenizer());
    let (entry, events) = case.entry();
    bench.engine.submit(entry).expect("runs");
    case.check(collect(events).await);
    bench.finish().await;
    case.reference().2
}

#[tokio::test]
async fn a_stop_token_ends_a_sequence_and_is_named() {
    let (tokens, ..) = case(5, 3, 12).reference();
    let stop = tokens[4];
    for include_stop in [false, true] {
        let case = Case { stop_token_ids: vec![stop], include_stop, ..case(5, 3, 40) };
        let first = tokens.iter().position(|&token| token == stop);
        assert_eq!(case.reference().0.len(), first.expect("it comes") + 1);
        assert_eq!(run_alone(case).await, FinishReason::StopToken(stop));
    }
}

#[tokio::test]
async fn nothing_but_the_budget_ends_a_sequence_before_its_least_number_of_tokens() {
    for seed in 0..8 {
        let every = (1..12).map(letter).collect::<Vec<_>>();
        let late = Case { stop: every, min_tokens: 9, ignore_eos: false, ..case(5, seed, 12) };
        assert_eq!(late.reference().0.len(), 10, "the next token is a stop string or an end token");
        run_alone(late.clone()).await;
        assert_eq!(run_alone(Case { min_tokens: 12, ..late }).await, FinishReason::Length);
    }
}

#[tokio::test]
async fn what_the_row_is_told_is_what_the_request_asks_for() {
    let bench = Bench::new(SIZES, tokenizer());
    let asked = Case { min_tokens: 3, stop_token_ids: vec![4, END, 4], ignore_eos: false, ..case(5, 1, 8) };
    let (mut entry, events) = asked.entry();
    entry.sampling.min_p = 0.25;
    entry.sampling.logit_bias = vec![(7, -1.5), (2, 3.0)];
    entry.sampling.watermark = true;
    entry.sampling.raw_logprobs = true;
    bench.engine.submit(entry).expect("runs");
    collect(events).await;
    let plans = bench.shard.plans();
    let told = plans[0].new_sequences[0].sampling.clone().expect("sampling parameters");
    assert_eq!((told.min_p, told.raw_logprobs, told.min_tokens), (0.25, true, 3));
    assert_eq!((told.bias_ids, told.biases), (vec![7, 2], vec![-1.5, 3.0]));
    assert_eq!(told.end_ids, [END, 4], "each once");
    assert_eq!((told.watermark_gamma, told.watermark_delta), (0.5, 2.0));
    bench.finish().await;
}

#[tokio::test]
async fn a_row_that_is_not_finite_fails_alone() {
    let bench = Bench::new(SIZES, tokenizer());
    let healthy = case(6, 4, 12);
    let poisoned = Case { prompt: vec![POISON, 1, 2], max_new_tokens: 5, ..Case::default() };
    let (entry, good) = healthy.entry();
    bench.engine.submit(entry).expect("runs");
    let (entry, bad) = poisoned.entry();
    bench.engine.submit(entry).expect("runs");
    let bad = collect(bad).await;
    assert!(matches!(bad.as_slice(), [Event::Start { .. }, Event::Error(Error::Shard(text))] if text.contains("NaN")));
    healthy.check(collect(good).await);
    bench.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_room_whatever_its_state() {
    let bench = Bench::new(Sizes { slots: 1, prefill: 2, ..SIZES }, tokenizer());
    let (running, mut events) = case(4, 1, 200).entry();
    bench.engine.submit(running).expect("runs");
    let (waiting, gone) = case(4, 2, 200).entry();
    bench.engine.submit(waiting).expect("runs");
    drop(gone);
    while !matches!(events.recv().await, Some(Event::Token(_))) {}
    drop(events);
    let (in_prompt, mut events) = case(100, 3, 10).entry();
    bench.engine.submit(in_prompt).expect("runs");
    assert!(matches!(events.recv().await, Some(Event::Start { .. })));
    drop(events);
    let last = case(20, 4, 5);
    let (entry, events) = last.entry();
    bench.engine.submit(entry).expect("runs");
    last.check(collect(events).await);
    assert_eq!(bench.counts.abandoned.load(Ordering::Relaxed), 3);
    bench.finish().await;
}

#[tokio::test]
async fn a_failed_shard_ends_everything_with_the_cause() {
    let bench = Bench::new(Sizes { slots: 1, ..SIZES }, tokenizer());
    bench.shard.fail_at(4);
    let (running, first) = case(4, 1, 100).entry();
    let (waiting, second) = case(4, 2, 100).entry();
    bench.engine.submit(running).expect("runs");
    bench.engine.submit(waiting).expect("runs");
    let first = collect(first).await;
    let tokens = first.iter().filter(|event| matches!(event, Event::Token(_))).count();
    assert_eq!(tokens, 3, "the tokens of the steps before are not lost");
    for events in [first, collect(second).await] {
        let cause = |error: &Error| error.to_string().contains("shard 0 is gone: killed");
        assert!(matches!(events.last(), Some(Event::Error(error)) if cause(error)));
    }
    let (late, _events) = case(4, 3, 5).entry();
    let refused = bench.engine.submit(late).expect_err("the engine has stopped");
    assert!(refused.to_string().contains("killed"));
    assert_eq!(bench.engine.status().borrow().unfinished, 0);
    assert!(matches!(bench.outcome().await, Err(ShardError::Gone { rank: 0, .. })));
}

#[tokio::test]
async fn an_entry_that_could_never_run_is_refused_and_harms_nobody() {
    let bench = Bench::new(SIZES, tokenizer());
    for broken in [case(250, 1, 7), case(4, 1, 0), Case { prompt: Vec::new(), ..case(1, 1, 4) }] {
        let (entry, events) = broken.entry();
        bench.engine.submit(entry).expect("the engine lives");
        assert!(matches!(collect(events).await.as_slice(), [Event::Error(Error::Internal(_))]));
    }
    let whole = case(250, 1, 6);
    let (entry, events) = whole.entry();
    bench.engine.submit(entry).expect("runs");
    whole.check(collect(events).await);
    bench.finish().await;
}

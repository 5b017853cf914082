use proptest::prelude::*;

use super::super::tests::fixture::{Case, END, letter, tokenizer};
use super::*;

/// What a request wants to see of its text.
#[derive(Debug, Clone, Default)]
struct Wish {
    stop: Vec<String>,
    min_tokens: u32,
    include_stop: bool,
    show_special: bool,
}

/// Runs tokens through an emitter; `end` goes with the last one. Returns the joined text, TGI's text and the reason.
fn run(tokens: &[u32], end: End, wish: &Wish) -> (String, String, FinishReason) {
    let case = Case { prompt: vec![1], max_new_tokens: 100, stop: wish.stop.clone(), ..Case::default() };
    let (mut entry, mut events) = case.entry();
    entry.min_tokens = wish.min_tokens;
    entry.include_stop = wish.include_stop;
    entry.skip_special_tokens = !wish.show_special;
    let mut emitter = Emitter::new(tokenizer(), &entry, 0, Instant::now());
    for (index, &id) in tokens.iter().enumerate() {
        let sampled = Sampled { id, logprob: -1.0, top_ids: &[], top_logprobs: &[] };
        if emitter.token(sampled, (index + 1 == tokens.len()).then_some(end)) {
            break;
        }
    }
    let mut text = String::new();
    loop {
        match events.try_recv().unwrap() {
            Event::Token(token) => text.push_str(&token.delta),
            Event::Done(done) => return (text + &done.tail, done.generated_text, done.reason),
            other => panic!("unexpected {other:?}"),
        }
    }
}

/// The same, looking at the whole text after each token.
fn reference(tokens: &[u32], end: End, wish: &Wish) -> (String, FinishReason) {
    let (mut text, mut watched_from) = (String::new(), 0);
    for (index, &id) in tokens.iter().enumerate() {
        let ends = index + 1 == tokens.len() && end != End::Length;
        if (id != END || wish.show_special) && (!ends || wish.include_stop) {
            text.push_str(&letter(id));
        }
        if index + 1 < wish.min_tokens as usize {
            watched_from = text.len();
            continue;
        }
        let hits = wish.stop.iter().filter_map(|stop| {
            let at = text[watched_from..].find(stop.as_str())? + watched_from;
            Some((at + stop.len(), std::cmp::Reverse(stop.len()), stop))
        });
        // The first to be complete, the longest of those.
        if let Some((after, _, stop)) = hits.min() {
            text.truncate(if wish.include_stop { after } else { after - stop.len() });
            let reason = if index + 1 == tokens.len() { reason_of(end, id) } else { FinishReason::Length };
            let stopped = FinishReason::Stop(stop.as_str().into());
            // What ends a sequence anyway goes before the stop string, but for the budget.
            return (
                text,
                if reason == FinishReason::Length { stopped_or(index, tokens, end, stopped) } else { reason },
            );
        }
    }
    (text, reason_of(end, tokens[tokens.len() - 1]))
}

/// The budget, used up by the same token, goes before a stop string.
fn stopped_or(index: usize, tokens: &[u32], end: End, stopped: FinishReason) -> FinishReason {
    if index + 1 == tokens.len() && end == End::Length { FinishReason::Length } else { stopped }
}

fn reason_of(end: End, token: u32) -> FinishReason {
    match end {
        End::Length => FinishReason::Length,
        End::ModelToken => FinishReason::EndOfSequence,
        End::RequestToken => FinishReason::StopToken(token),
    }
}

#[test]
fn a_stop_string_stays_when_asked_for() {
    let wish = Wish { stop: vec!["bc".into()], ..Wish::default() };
    let stop = || FinishReason::Stop("bc".into());
    assert_eq!(run(&[1, 2, 3, 4], End::Length, &wish), ("a".into(), "abc".into(), stop()));
    let wish = Wish { include_stop: true, ..wish };
    assert_eq!(run(&[1, 2, 3, 4], End::Length, &wish), ("abc".into(), "abc".into(), stop()));
}

#[test]
fn what_ends_a_text_is_shown_only_when_asked_for() {
    let run = |end, include_stop, show_special| {
        run(&[1, END], end, &Wish { include_stop, show_special, ..Wish::default() }).0
    };
    assert_eq!(run(End::ModelToken, false, false), "a");
    assert_eq!(run(End::ModelToken, true, false), "a");
    assert_eq!(run(End::ModelToken, false, true), "a");
    assert_eq!(run(End::ModelToken, true, true), "a</s>");
    assert_eq!(run(End::Length, false, true), "a</s>");
}

#[test]
fn a_requested_token_is_named_as_the_reason() {
    let (text, _, reason) = run(&[1, 2, 3], End::RequestToken, &Wish::default());
    assert_eq!((text.as_str(), reason), ("ab", FinishReason::StopToken(3)));
}

#[test]
fn a_stop_string_before_the_least_number_of_tokens_does_not_end() {
    let wish = Wish { stop: vec!["b".into()], min_tokens: 4, ..Wish::default() };
    let (text, _, reason) = run(&[1, 2, 3, 4, 2, 5], End::Length, &wish);
    assert_eq!((text.as_str(), reason), ("abcd", FinishReason::Stop("b".into())));
}

proptest! {
    #[test]
    fn streamed_text_equals_the_whole(
        tokens in prop::collection::vec(0u32..5, 1..14),
        stop in prop::collection::vec("[a-d]{1,3}", 0..3),
        min_tokens in 0u32..8,
        (include_stop, show_special) in any::<(bool, bool)>(),
        end in prop::sample::select(vec![End::Length, End::ModelToken, End::RequestToken]),
    ) {
        let wish = Wish { stop, min_tokens, include_stop, show_special };
        let (text, _, reason) = run(&tokens, end, &wish);
        prop_assert_eq!((text, reason), reference(&tokens, end, &wish));
    }
}

//! The text of a sequence, however its tokens cut it: deltas and tail add up to what a search in the whole text finds.

use proptest::prelude::*;

use super::super::tests::fixture::Case;
use super::*;
use crate::text::fixtures::byte_level;

/// How the tokens of one run end, and what the request keeps.
#[derive(Debug, Clone)]
struct Run {
    ids: Vec<u32>,
    stop: Vec<String>,
    include_stop: bool,
    keep_special_tokens: bool,
    end: End,
}

/// Everything that is shown, `generated_text`, and the reason.
fn shown(tokenizer: &Arc<Tokenizer>, run: &Run) -> (String, String, FinishReason) {
    let (stop, include_stop, keep_special_tokens) = (run.stop.clone(), run.include_stop, run.keep_special_tokens);
    let prompt = vec![0];
    let case = Case { prompt, stop, include_stop, keep_special_tokens, ..Case::default() };
    let (entry, mut events) = case.entry();
    let mut emitter = Emitter::new(tokenizer.clone(), &entry, 0, Instant::now());
    for (index, &id) in run.ids.iter().enumerate() {
        let end = (index + 1 == run.ids.len()).then_some(run.end);
        let sampled = Sampled { id, logprob: -1.0, top_ids: &[], top_logprobs: &[] };
        if emitter.token(sampled, end) {
            break;
        }
    }
    let mut text = String::new();
    while let Ok(event) = events.try_recv() {
        match event {
            Event::Token(token) => text.push_str(&token.delta),
            Event::Done(done) => return (text + &done.tail, done.generated_text, done.reason),
            other => panic!("unexpected {other:?}"),
        }
    }
    panic!("no end")
}

/// The whole text decoded at once, cut at the first stop string.
fn whole(tokenizer: &Tokenizer, run: &Run) -> (String, Option<String>) {
    let ends_by_token = run.end != End::Length;
    let visible = |(index, id): (usize, &u32)| {
        let ends = ends_by_token && index + 1 == run.ids.len() && !run.include_stop;
        (!ends && (run.keep_special_tokens || !tokenizer.is_special(*id))).then_some(*id)
    };
    let kept: Vec<u32> = run.ids.iter().enumerate().filter_map(visible).collect();
    let text = tokenizer.decode(&kept);
    for end in (1..=text.len()).filter(|&end| text.is_char_boundary(end)) {
        let hits = run.stop.iter().filter(|stop| text[..end].ends_with(stop.as_str()));
        if let Some(stop) = hits.max_by_key(|stop| stop.len()) {
            let end = if run.include_stop { end } else { end - stop.len() };
            return (text[..end].to_owned(), Some(stop.clone()));
        }
    }
    (text, None)
}

fn runs() -> impl Strategy<Value = Run> {
    let pieces = ["He", "é", "日", "😀", " w", "<|im_end|>", "tool", "ll"];
    let id = prop_oneof![4 => 0..270_u32, 2 => 256..268_u32];
    let stop = prop::collection::vec(prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), 0..3);
    let end = prop_oneof![Just(End::Length), Just(End::Eos), Just(End::StopToken)];
    (prop::collection::vec(id, 1..12), stop, any::<bool>(), any::<bool>(), end).prop_map(
        |(ids, stop, include_stop, keep_special_tokens, end)| Run { ids, stop, include_stop, keep_special_tokens, end },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn deltas_and_tail_are_what_the_whole_text_shows(run in runs()) {
        thread_local!(static TOKENIZER: Arc<Tokenizer> = byte_level());
        let tokenizer = TOKENIZER.with(Clone::clone);
        let (text, generated_text, _) = shown(&tokenizer, &run);
        let (expected, stop) = whole(&tokenizer, &run);
        prop_assert_eq!(&text, &expected);
        let kept = generated_text.strip_prefix(text.as_str());
        prop_assert!(kept == Some("") || kept == stop.as_deref(), "{generated_text:?} after {text:?}");
    }
}

/// Every way to tile the text with these pieces, each of one token or of the bytes of a character.
#[test]
fn every_way_to_cut_a_text_into_tokens_shows_the_same() {
    let tokenizer = byte_level();
    let cuts = cuts(&tokenizer, "Hello é日😀<|im_end|> w");
    assert!(cuts.len() > 10, "{} ways", cuts.len());
    for stop in ["lo é", "é", "日😀", "<|im_end|>", "none"] {
        for (include_stop, keep_special_tokens) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut seen = Vec::new();
            for ids in &cuts {
                let (ids, stop) = (ids.clone(), vec![stop.to_owned()]);
                let run = Run { ids, stop, include_stop, keep_special_tokens, end: End::Length };
                let (text, ..) = shown(&tokenizer, &run);
                assert_eq!(text, whole(&tokenizer, &run).0);
                seen.push(text);
            }
            seen.dedup();
            assert_eq!(seen.len(), 1, "{seen:?}");
        }
    }
}

fn cuts(tokenizer: &Tokenizer, text: &str) -> Vec<Vec<u32>> {
    let pieces = ["H", "e", "l", "o", "He", "ll", "Hell", "Hello", " ", "w", " w", "é", "日", "😀", "<|im_end|>"];
    if text.is_empty() {
        return vec![Vec::new()];
    }
    let tiled = pieces.iter().filter_map(|piece| text.strip_prefix(piece).map(|rest| (piece, rest)));
    let after = |(piece, rest): (&&str, &str)| {
        let ids = tokenizer.encode(piece, false).expect("encodes");
        cuts(tokenizer, rest).into_iter().map(move |later| [ids.clone(), later].concat()).collect::<Vec<_>>()
    };
    tiled.flat_map(after).collect()
}

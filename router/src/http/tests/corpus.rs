//! A scripted engine with a generated corpus: texts of characters that are split over tokens, stop strings that cross
//! them, special tokens in the middle. What it says follows from the script's seed and that of the request alone.

use std::sync::Arc;
use std::time::Instant;

use super::harness::done;
use crate::event::{Event, FinishReason, PromptToken, Token, TokenEvent};
use crate::queue::Entry;
use crate::text::{Detokenizer, StopMatcher, Tokenizer};

/// What texts are made of.
const PIECES: [&str; 16] = [
    "a",
    " the",
    "\u{e9}",
    "e\u{301}",
    "\u{6f22}\u{5b57}",
    "\u{1f642}",
    "\u{1f468}\u{200d}\u{1f469}",
    "  ",
    "\n\n",
    "STOP",
    "ST",
    "OP",
    "<|end|>",
    " x",
    "\u{fffd}",
    "\u{5d0}",
];

/// Numbers that look random.
pub struct Random(u64);

// === impl Random ===

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % bound
    }

    fn logprob(&mut self) -> f32 {
        -(self.below(4000) as f32) / 256.0
    }
}

/// Plays one sequence.
pub async fn play(entry: Entry, tokenizer: Arc<Tokenizer>, seed: u64) {
    let mut random = Random::new(seed ^ entry.sampling.seed.unwrap_or(0).wrapping_mul(31));
    let send = |event| drop(entry.events.send(event));
    send(Event::Start { at: Instant::now() });
    if let Some(candidates) = entry.prompt_logprobs {
        send(Event::Prompt(prompt(&entry, &tokenizer, candidates, &mut random)));
    }
    let text: String = (0..1 + random.below(12)).map(|_| PIECES[random.below(PIECES.len())]).collect();
    let ids = tokenizer.encode(&text, false).unwrap();
    let (count, end) = (ids.len(), tokenizer.encode("<|end|>", false).unwrap()[0]);
    let mut detokenizer = Detokenizer::new(tokenizer.clone(), &entry.prompt);
    let mut stops = StopMatcher::new(&entry.stop);
    let mut generated_text = String::new();
    for (index, id) in ids.into_iter().chain(std::iter::once(end)).enumerate() {
        let ends = index == count;
        let stop_token = entry.stop_token_ids.contains(&id);
        let special = id == end;
        let text: Arc<str> = if special { tokenizer.token_text(id) } else { detokenizer.push(id) }.into();
        let hidden = ends || stop_token || special && entry.skip_special_tokens;
        let (mut delta, stop) = if hidden { (Arc::default(), None) } else { stops.push(&text) };
        if let Some(stop) = stop.as_ref().filter(|_| entry.include_stop) {
            delta = format!("{delta}{stop}").into();
        }
        generated_text.push_str(&delta);
        let length = index + 1 == entry.max_new_tokens as usize;
        let reason = match stop {
            _ if ends => Some(FinishReason::EndOfSequence),
            _ if stop_token => Some(FinishReason::StopToken(id)),
            Some(stop) => Some(FinishReason::Stop(stop)),
            None => length.then_some(FinishReason::Length),
        };
        let token = Token { id, text, logprob: random.logprob(), special };
        let top_tokens = candidates(&tokenizer, entry.top_n_tokens, &mut random);
        send(Event::Token(TokenEvent { token, top_tokens, delta, last: reason.is_some() }));
        if let Some(reason) = reason {
            let tail =
                if let FinishReason::Stop(_) = reason { String::new() } else { tail(&mut detokenizer, &mut stops) };
            send(Event::Done(done(&entry, reason, index + 1, tail, generated_text)));
            return;
        }
        for _ in 0..random.below(3) {
            tokio::task::yield_now().await;
        }
    }
}

fn tail(detokenizer: &mut Detokenizer, stops: &mut StopMatcher) -> String {
    let (shown, stop) = stops.push(&detokenizer.finish().into());
    if stop.is_some() { shown.to_string() } else { format!("{shown}{}", stops.finish()) }
}

fn prompt(entry: &Entry, tokenizer: &Tokenizer, count: u32, random: &mut Random) -> Vec<PromptToken> {
    let token = |(index, &id): (usize, &u32)| PromptToken {
        id,
        text: tokenizer.token_text(id),
        logprob: (index > 0).then(|| random.logprob()),
        top_tokens: if index > 0 { candidates(tokenizer, count, random) } else { Vec::new() },
    };
    entry.prompt.iter().enumerate().map(token).collect()
}

fn candidates(tokenizer: &Tokenizer, count: u32, random: &mut Random) -> Vec<Token> {
    let candidate = |_| {
        let id = random.below(256) as u32;
        Token { id, text: tokenizer.token_text(id).into(), logprob: random.logprob(), special: false }
    };
    (0..count).map(candidate).collect()
}

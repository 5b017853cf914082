//! One row of the fake shard, and the rules that a new sequence has to keep by itself. Knows no blocks and no other
//! row.

use std::collections::BTreeSet;

use super::model::{EMPTY, absorb};
use crate::v1::{NewSequence, Sampling};

/// What a rule of plans answers: a value, or the sentence about how it was broken.
pub(super) type Rule<T = ()> = Result<T, String>;

/// Returns the sentence when the rule does not hold.
macro_rules! rule {
    ($holds:expr, $($sentence:tt)+) => {
        if !$holds {
            return Err(format!($($sentence)+));
        }
    };
}
pub(super) use rule;

/// One live row.
#[derive(Debug)]
pub(super) struct Row {
    /// `hashes[p]` is the hash of the tokens up to and including position p.
    pub(super) hashes: Vec<u64>,
    pub(super) prompt_length: u32,
    pub(super) computed: usize,
    pub(super) table: Vec<u32>,
    pub(super) sampling: Sampling,
    pub(super) prompt_logprobs: bool,
    pub(super) prompt_top_n: u32,
}

// === impl Row ===

impl Row {
    /// The row of a sequence that begins.
    ///
    /// # Errors
    /// The rule that the sequence breaks.
    pub(super) fn new(sequence: &NewSequence, vocabulary: u32) -> Rule<Self> {
        let (slot, known) = (sequence.slot, sequence.token_ids.len());
        let (prompt, computed) = (sequence.prompt_length as usize, sequence.computed as usize);
        rule!((1..=known).contains(&prompt), "slot {slot} has prompt_length {prompt} and {known} tokens");
        rule!(computed < known, "slot {slot} has computed {computed} of {known} tokens: none is left to run");
        if let Some(strange) = sequence.token_ids.iter().find(|&&token| token >= vocabulary) {
            return Err(format!("slot {slot} holds token {strange}, the vocabulary has {vocabulary}"));
        }
        let sampling = sequence.sampling.clone().unwrap_or_default();
        check_sampling(slot, &sampling)?;
        check_tokens(slot, &sampling, vocabulary)?;
        let top_n = sequence.prompt_top_n;
        rule!(top_n == 0 || sequence.prompt_logprobs, "slot {slot} has prompt_top_n {top_n} without prompt_logprobs");
        Ok(Self {
            hashes: cumulative(&sequence.token_ids),
            prompt_length: sequence.prompt_length,
            computed,
            table: sequence.block_ids.clone(),
            sampling,
            prompt_logprobs: sequence.prompt_logprobs,
            prompt_top_n: top_n,
        })
    }

    /// Takes a sampled token.
    pub(super) fn append(&mut self, token: u32) {
        self.hashes.push(absorb(self.hash(), token));
    }

    /// The hash of every token of the row.
    pub(super) fn hash(&self) -> u64 {
        self.hashes.last().copied().unwrap_or(EMPTY)
    }

    /// The index among the generated tokens of the one that comes next.
    pub(super) fn token_index(&self) -> u32 {
        self.hashes.len() as u32 - self.prompt_length
    }
}

fn cumulative(tokens: &[u32]) -> Vec<u64> {
    let grow = |hash: &mut u64, &token: &u32| {
        *hash = absorb(*hash, token);
        Some(*hash)
    };
    tokens.iter().scan(EMPTY, grow).collect()
}

fn check_sampling(slot: u32, sampling: &Sampling) -> Rule {
    let temperature = sampling.temperature;
    rule!(temperature.is_finite() && temperature >= 0.0, "slot {slot} has temperature {temperature}");
    let penalty = sampling.repetition_penalty;
    rule!(penalty.is_finite() && penalty > 0.0, "slot {slot} has repetition_penalty {penalty}");
    let mass = |name: &str, value: f32| {
        let right = temperature == 0.0 || (value > 0.0 && value <= 1.0);
        if right { Ok(()) } else { Err(format!("slot {slot} has {name} {value}")) }
    };
    mass("top_p", sampling.top_p)?;
    mass("typical_p", sampling.typical_p)?;
    let (min_p, gamma, delta) = (sampling.min_p, sampling.watermark_gamma, sampling.watermark_delta);
    rule!((0.0..=1.0).contains(&min_p), "slot {slot} has min_p {min_p}");
    rule!(delta.is_finite() && delta >= 0.0, "slot {slot} has watermark_delta {delta}");
    rule!(delta == 0.0 || (gamma > 0.0 && gamma < 1.0), "slot {slot} has watermark_gamma {gamma}");
    Ok(())
}

/// The rules of the lists of tokens.
fn check_tokens(slot: u32, sampling: &Sampling, vocabulary: u32) -> Rule {
    let (ids, biases) = (sampling.bias_ids.len(), sampling.biases.len());
    rule!(ids == biases, "slot {slot} has {ids} bias_ids and {biases} biases");
    rule!(sampling.biases.iter().all(|bias| bias.is_finite()), "slot {slot} has a bias that is not finite");
    let barred = sampling.end_ids.len();
    rule!(sampling.min_tokens > 0 || barred == 0, "slot {slot} has {barred} end_ids, but no min_tokens");
    for (name, list) in [("bias_ids", &sampling.bias_ids), ("end_ids", &sampling.end_ids)] {
        rule!(
            list.iter().all(|&token| token < vocabulary),
            "slot {slot} has {name} beyond the vocabulary of {vocabulary}"
        );
        rule!(list.iter().collect::<BTreeSet<_>>().len() == list.len(), "slot {slot} names a token twice in {name}");
    }
    Ok(())
}

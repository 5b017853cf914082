//! One row of the fake shard, and the rules that a new sequence has to keep by itself. Knows no blocks and no other
//! row.

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
        Ok(Self {
            hashes: cumulative(&sequence.token_ids),
            prompt_length: sequence.prompt_length,
            computed,
            table: sequence.block_ids.clone(),
            sampling,
            prompt_logprobs: sequence.prompt_logprobs,
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
    mass("typical_p", sampling.typical_p)
}

//! The scripted model: a token is a hash of all tokens before it. Its output is therefore independent of batching,
//! chunking and resuming, and a test can compute it beforehand. Penalties and warpers are
//! without effect; the end token keeps to `min_tokens`.

use crate::v1::Sampling;

/// Which token follows which.
#[derive(Debug, Clone, PartialEq)]
pub struct HashModel {
    /// Ids are below this.
    pub vocab_size: u32,
    /// Ids are not below this, but for the end token; keeps special tokens out of the text.
    pub lowest_token_id: u32,
    /// The end token. It is only sampled where the two fields below say so.
    pub eos_token_id: Option<u32>,
    /// The token index (0 = the first generated token) at which the end token comes.
    pub eos_after: Option<u32>,
    /// How likely each token is to be the end token.
    pub eos_probability: f64,
}

/// The hash of no token at all.
pub(super) const EMPTY: u64 = 0x9e37_79b9_7f4a_7c15;

// === impl HashModel ===

impl Default for HashModel {
    fn default() -> Self {
        Self { vocab_size: 1000, lowest_token_id: 0, eos_token_id: None, eos_after: None, eos_probability: 0.0 }
    }
}

impl HashModel {
    /// What the model generates after a prompt: `count` tokens, or fewer when the end token comes (it is included).
    pub fn generate(&self, prompt: &[u32], sampling: &Sampling, count: u32) -> Vec<u32> {
        let mut hash = prompt.iter().fold(EMPTY, |hash, &token| absorb(hash, token));
        let mut tokens = Vec::new();
        for index in 0..count {
            let token = self.sample(hash, sampling, index);
            tokens.push(token);
            if Some(token) == self.eos_token_id {
                break;
            }
            hash = absorb(hash, token);
        }
        tokens
    }

    /// The token that follows the hashed ones; `index` counts the generated tokens before it.
    pub(super) fn sample(&self, hash: u64, sampling: &Sampling, index: u32) -> u32 {
        let seed = if sampling.temperature > 0.0 { sampling.seed } else { 0 };
        let draw = mix(hash ^ mix(seed));
        if let Some(end) = self.eos_token_id {
            // 53 bits make a fraction in [0, 1).
            let fraction = (mix(draw) >> 11) as f64 / (1u64 << 53) as f64;
            let barred = index < sampling.min_tokens && sampling.end_ids.contains(&end);
            if !barred && (self.eos_after == Some(index) || fraction < self.eos_probability) {
                return end;
            }
        }
        let choices = u64::from(self.vocab_size.saturating_sub(self.lowest_token_id)).max(1);
        let token = self.lowest_token_id + (draw % choices) as u32;
        if Some(token) != self.eos_token_id {
            token
        } else if token + 1 < self.vocab_size {
            token + 1
        } else {
            self.lowest_token_id
        }
    }

    /// The log-probability that is reported for the candidate of this rank (0 = the sampled token).
    pub(super) fn logprob(token: u32, rank: u32) -> f32 {
        -((token % 16) as f32 / 32.0) - rank as f32
    }
}

/// The hash of a sequence that is one token longer.
pub(super) fn absorb(hash: u64, token: u32) -> u64 {
    mix(hash ^ u64::from(token).wrapping_add(1).wrapping_mul(EMPTY))
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_sequence_goes_on_as_before() {
        let model = HashModel::default();
        let sampling = Sampling::default();
        let whole = model.generate(&[1, 2, 3], &sampling, 8);
        let resumed = model.generate(&[&[1, 2, 3], &whole[..5]].concat(), &sampling, 3);
        assert_eq!(whole[5..], resumed);
        assert!(whole.iter().all(|&token| token < 1000));
    }

    #[test]
    fn the_seed_counts_only_when_sampling() {
        let model = HashModel::default();
        let seeded = |temperature, seed| Sampling { temperature, seed, ..Sampling::default() };
        assert_eq!(model.generate(&[7], &seeded(0.0, 1), 9), model.generate(&[7], &seeded(0.0, 2), 9));
        assert_ne!(model.generate(&[7], &seeded(1.0, 1), 9), model.generate(&[7], &seeded(1.0, 2), 9));
    }

    #[test]
    fn the_end_token_comes_only_where_scripted() {
        let never = HashModel { vocab_size: 3, eos_token_id: Some(2), lowest_token_id: 1, ..HashModel::default() };
        assert_eq!(never.generate(&[0], &Sampling::default(), 50), [1; 50]);
        let scripted = HashModel { eos_after: Some(4), ..never.clone() };
        assert_eq!(scripted.generate(&[0], &Sampling::default(), 50), [1, 1, 1, 1, 2]);
        let certain = HashModel { eos_probability: 1.0, ..never };
        assert_eq!(certain.generate(&[0], &Sampling::default(), 50), [2]);
    }
}

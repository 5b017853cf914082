//! What holds for every sequence of the served model: its end tokens and its watermark. Turns an entry's wishes into
//! the message that a shard samples by.

use text_generation_protocol::config::Watermark;
use text_generation_protocol::v1;

use crate::queue::Entry;

/// The model's rules.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Tokens that end a generation; each below the shards' vocabulary.
    pub eos_token_ids: Vec<u32>,
    /// How texts are marked, where a request asks for it.
    pub watermark: Watermark,
}

// === impl Rules ===

impl Rules {
    /// The model's end tokens, unless they are generated through.
    pub fn end_tokens(&self, ignore_eos: bool) -> Vec<u32> {
        if ignore_eos { Vec::new() } else { self.eos_token_ids.clone() }
    }

    /// How the shards choose an entry's tokens.
    pub fn sampling(&self, entry: &Entry) -> v1::Sampling {
        let sampling = &entry.sampling;
        let mut bias = sampling.logit_bias.clone();
        bias.sort_unstable_by_key(|(token, _)| *token);
        let (bias_ids, biases) = bias.into_iter().unzip();
        let Watermark { gamma, delta } = self.watermark;
        v1::Sampling {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            typical_p: sampling.typical_p,
            min_p: sampling.min_p,
            repetition_penalty: sampling.repetition_penalty,
            frequency_penalty: sampling.frequency_penalty,
            presence_penalty: sampling.presence_penalty,
            bias_ids,
            biases,
            min_tokens: entry.min_tokens,
            end_ids: self.barred(entry),
            watermark_gamma: gamma,
            watermark_delta: if sampling.watermark { delta } else { 0.0 },
            raw_logprobs: sampling.raw_logprobs,
            // A greedy row draws nothing: its seed is without effect.
            seed: sampling.seed.unwrap_or_default(),
            top_n: entry.top_n_tokens,
        }
    }

    /// The tokens that may not be chosen before `min_tokens`.
    fn barred(&self, entry: &Entry) -> Vec<u32> {
        if entry.min_tokens == 0 {
            return Vec::new();
        }
        let mut barred = self.end_tokens(entry.ignore_eos);
        barred.extend_from_slice(&entry.stop_token_ids);
        barred.sort_unstable();
        barred.dedup();
        barred
    }
}

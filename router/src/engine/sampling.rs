//! The sampling message of a sequence: what its entry asks for, together with what holds for every sequence (the
//! model's end tokens, the strength of the watermark). Decides nothing about when a sequence ends.

use text_generation_protocol::config::Watermark;
use text_generation_protocol::v1;

use crate::queue::Entry;

/// What holds for every sequence of a model.
#[derive(Debug, Clone)]
pub struct SamplingRules {
    /// The model's own end tokens, below the shards' vocabulary.
    pub eos_token_ids: Vec<u32>,
    /// How strong the watermark of those that ask for one is.
    pub watermark: Watermark,
}

// === impl SamplingRules ===

impl SamplingRules {
    /// The parameters of an entry's row.
    pub fn message(&self, entry: &Entry) -> v1::Sampling {
        let sampling = &entry.sampling;
        let (bias_ids, biases) = sampling.logit_bias.iter().copied().unzip();
        let end_ids = self.barred(entry);
        let watermark = sampling.watermark.then_some(self.watermark);
        v1::Sampling {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            typical_p: sampling.typical_p,
            repetition_penalty: sampling.repetition_penalty,
            frequency_penalty: sampling.frequency_penalty,
            presence_penalty: sampling.presence_penalty,
            // A greedy row draws nothing: its seed is without effect.
            seed: sampling.seed.unwrap_or_default(),
            top_n: entry.top_n_tokens,
            min_p: sampling.min_p,
            bias_ids,
            biases,
            min_tokens: if end_ids.is_empty() { 0 } else { entry.min_tokens },
            end_ids,
            watermark_gamma: watermark.map_or(0.0, |watermark| watermark.gamma),
            watermark_delta: watermark.map_or(0.0, |watermark| watermark.delta),
            raw_logprobs: sampling.raw_logprobs,
        }
    }

    /// The tokens that may not be chosen before `min_tokens`: those that would end the sequence.
    fn barred(&self, entry: &Entry) -> Vec<u32> {
        if entry.min_tokens == 0 {
            return Vec::new();
        }
        let own = if entry.ignore_eos { &[] } else { self.eos_token_ids.as_slice() };
        let mut ids: Vec<u32> = own.iter().chain(&entry.stop_token_ids).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

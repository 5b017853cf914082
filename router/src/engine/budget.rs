//! How many tokens one step may compute. Decodes come first, because every one of them is a client that waits for its
//! next token; what is left goes to prompts, and less of it while someone decodes.

use super::limits::{EngineLimits, Geometry};

/// Prompt tokens a step may compute while a sequence decodes. A step of this size still takes about as long as a
/// reader notices as one token; without anyone decoding there is nobody to delay and the limit falls away.
pub const PREFILL_SHARE: usize = 1024;

/// What a step may still take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepBudget {
    prefill: usize,
}

// === impl StepBudget ===

impl StepBudget {
    /// The budget for prompts beside `decodes` decoding rows of one token each.
    pub fn beside(decodes: usize, limits: &EngineLimits, geometry: &Geometry) -> Self {
        let share = if decodes == 0 { usize::MAX } else { PREFILL_SHARE };
        let room = geometry.max_step_tokens.saturating_sub(decodes);
        Self { prefill: room.min(share).min(limits.max_batch_prefill_tokens) }
    }

    /// Takes up to `wanted` prompt tokens; 0 when nothing is left.
    pub fn take(&mut self, wanted: usize) -> usize {
        let taken = wanted.min(self.prefill);
        self.prefill -= taken;
        taken
    }

    /// Whether no prompt token can be taken any more.
    pub fn is_spent(&self) -> bool {
        self.prefill == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(decodes: usize, max_batch_prefill_tokens: usize) -> StepBudget {
        let limits = EngineLimits {
            max_input_tokens: 1,
            max_total_tokens: 2,
            max_batch_prefill_tokens,
            max_batch_total_tokens: 2,
            max_batch_size: 1,
        };
        StepBudget::beside(decodes, &limits, &Geometry { blocks: 1, block_size: 1, max_step_tokens: 4096 })
    }

    #[test]
    fn prompts_get_less_while_someone_decodes() {
        assert_eq!(budget(0, 8192).take(usize::MAX), 4096);
        assert_eq!(budget(1, 8192).take(usize::MAX), PREFILL_SHARE);
        assert_eq!(budget(4000, 8192).take(usize::MAX), 96);
        assert_eq!(budget(1, 100).take(usize::MAX), 100);
    }

    #[test]
    fn takes_until_it_is_spent() {
        let mut budget = budget(0, 10);
        assert_eq!((budget.take(7), budget.take(7), budget.is_spent()), (7, 3, true));
    }
}

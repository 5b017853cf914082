//! Hands out KV blocks and takes them back. It also keeps the reservations that let a sequence start only when it can
//! end: blocks are reserved for its longest possible life, but handed out one by one as it grows. Knows block ids and
//! counts; it knows no sequence, and it never looks into a block.

/// Which blocks are free, and how many of the others are promised.
#[derive(Debug)]
pub struct BlockAllocator {
    block_size: usize,
    total: usize,
    /// Blocks promised to live sequences, handed out or not.
    reserved: usize,
    /// Used as a stack: the block that was freed last is handed out first. Sequences come back in reverse, so that a
    /// table tends to be a run of ascending ids, which some attention back ends read without a copy.
    free: Vec<u32>,
}

/// What a sequence starts with. A prefix cache fills it: `blocks` then begins with shared blocks that hold the first
/// `cached_tokens` of the prompt, and the engine computes only what follows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The first blocks of the table; they cover the whole prompt.
    pub blocks: Vec<u32>,
    /// Prompt tokens whose keys and values lie in `blocks` already. Always less than the prompt has.
    pub cached_tokens: usize,
    /// Blocks reserved for the longest possible life, `blocks` included.
    pub reserved: usize,
}

// === impl BlockAllocator ===

impl BlockAllocator {
    /// `total` blocks with ids from 0, `block_size` tokens each.
    pub fn new(total: u32, block_size: usize) -> Self {
        Self { block_size, total: total as usize, reserved: 0, free: (0..total).rev().collect() }
    }

    /// Blocks that so many tokens fill.
    pub fn blocks_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.block_size)
    }

    /// Whether a sequence of so many tokens fits into an empty cache.
    pub fn could_ever_fit(&self, tokens: usize) -> bool {
        self.blocks_for(tokens) <= self.total
    }

    /// Starts a sequence whose prompt has `prompt_tokens` and which never caches more than `longest` tokens in all.
    /// `None` when the cache cannot promise that many at present.
    pub fn allocate(&mut self, prompt_tokens: usize, longest: usize) -> Option<Allocation> {
        let reserved = self.blocks_for(longest);
        let first = self.blocks_for(prompt_tokens);
        if first > reserved || self.reserved + reserved > self.total {
            return None;
        }
        let mut blocks = self.free.split_off(self.free.len().checked_sub(first)?);
        blocks.reverse();
        self.reserved += reserved;
        Some(Allocation { blocks, cached_tokens: 0, reserved })
    }

    /// Appends blocks to the table of a sequence until it covers `tokens`; returns how many. The reservation made by
    /// `allocate` guarantees that they are there; `None` means that it was exceeded, which is a defect of the caller.
    pub fn grow(&mut self, table: &mut Vec<u32>, tokens: usize) -> Option<usize> {
        let missing = self.blocks_for(tokens).saturating_sub(table.len());
        for _ in 0..missing {
            table.push(self.free.pop()?);
        }
        Some(missing)
    }

    /// Takes back the blocks and the reservation of a sequence that ended.
    pub fn release(&mut self, blocks: &[u32], reserved: usize) {
        self.free.extend(blocks.iter().rev());
        self.reserved -= reserved;
    }

    /// Every block there is.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Blocks that are promised, handed out or not.
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    /// The free blocks.
    pub fn free(&self) -> &[u32] {
        &self.free
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::cache::audit;

    #[test]
    fn a_sequence_starts_only_when_its_longest_life_fits() {
        let mut blocks = BlockAllocator::new(4, 16);
        let first = blocks.allocate(10, 40).expect("three of four blocks");
        assert_eq!((first.blocks.len(), first.reserved, first.cached_tokens), (1, 3, 0));
        assert_eq!(blocks.allocate(1, 17), None, "two more would exceed four");
        assert!(blocks.allocate(1, 16).is_some());
    }

    #[test]
    fn blocks_are_handed_out_as_the_sequence_grows() {
        let mut blocks = BlockAllocator::new(4, 2);
        let mut table = blocks.allocate(3, 7).expect("fits").blocks;
        assert_eq!(table, [0, 1]);
        assert_eq!(blocks.grow(&mut table, 4), Some(0));
        assert_eq!(blocks.grow(&mut table, 5), Some(1));
        assert_eq!(blocks.grow(&mut table, 7), Some(1));
        assert_eq!(blocks.free().len(), 0);
        blocks.release(&table, 4);
        assert_eq!((blocks.free().len(), blocks.reserved()), (4, 0));
        assert_eq!(
            blocks.allocate(8, 8).expect("fits").blocks,
            table,
            "what comes back is handed out in the same order"
        );
    }

    /// What the allocator should be, written as simply as possible.
    #[derive(Default)]
    struct Model {
        used: BTreeSet<u32>,
        promised: usize,
    }

    #[derive(Debug, Clone)]
    enum Action {
        Start { prompt: usize, more: usize },
        Grow { which: usize, by: usize },
        End { which: usize },
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        let start = (1..20_usize, 0..20_usize).prop_map(|(prompt, more)| Action::Start { prompt, more });
        let grow = (any::<usize>(), 1..6_usize).prop_map(|(which, by)| Action::Grow { which, by });
        let end = any::<usize>().prop_map(|which| Action::End { which });
        prop::collection::vec(prop_oneof![start, grow, end], 0..80)
    }

    struct Live {
        table: Vec<u32>,
        reserved: usize,
        tokens: usize,
        longest: usize,
    }

    fn apply(blocks: &mut BlockAllocator, model: &mut Model, live: &mut Vec<Live>, action: Action) {
        match action {
            Action::Start { prompt, more } => {
                let need = (prompt + more).div_ceil(blocks.block_size);
                let started = blocks.allocate(prompt, prompt + more);
                assert_eq!(started.is_some(), model.promised + need <= blocks.total());
                let Some(Allocation { blocks: table, reserved, .. }) = started else { return };
                assert_eq!(reserved, need);
                model.promised += need;
                assert!(table.iter().all(|id| model.used.insert(*id)), "a block was handed out twice");
                live.push(Live { table, reserved, tokens: prompt, longest: prompt + more });
            }
            Action::Grow { which, by } => {
                let count = live.len().max(1);
                let Some(sequence) = live.get_mut(which % count) else { return };
                sequence.tokens = (sequence.tokens + by).min(sequence.longest);
                let before = sequence.table.len();
                let added = blocks.grow(&mut sequence.table, sequence.tokens).expect("reserved");
                assert_eq!(sequence.table.len(), before + added);
                assert_eq!(sequence.table.len(), sequence.tokens.div_ceil(blocks.block_size));
                assert!(sequence.table[before..].iter().all(|id| model.used.insert(*id)));
            }
            Action::End { which } if !live.is_empty() => {
                let Live { table, reserved, .. } = live.swap_remove(which % live.len());
                blocks.release(&table, reserved);
                model.promised -= reserved;
                assert!(table.iter().all(|id| model.used.remove(id)));
            }
            Action::End { .. } => {}
        }
    }

    proptest! {
        #[test]
        fn behaves_like_the_naive_model(total in 1..24_u32, block_size in 1..9_usize, actions in actions()) {
            let mut blocks = BlockAllocator::new(total, block_size);
            let mut model = Model::default();
            let mut live = Vec::new();
            for action in actions {
                apply(&mut blocks, &mut model, &mut live, action);
                prop_assert_eq!(blocks.free().len() + model.used.len(), blocks.total());
                prop_assert_eq!(blocks.reserved(), model.promised);
                prop_assert_eq!(audit(&blocks, live.iter().map(|sequence| sequence.table.as_slice())), Ok(()));
            }
            for sequence in live.drain(..) {
                blocks.release(&sequence.table, sequence.reserved);
            }
            prop_assert_eq!((blocks.free().len(), blocks.reserved()), (blocks.total(), 0));
        }
    }
}

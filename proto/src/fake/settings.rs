//! What a fake shard pretends to be, and how it shall break.

use std::time::Duration;

use super::model::HashModel;
use crate::{PROTOCOL_VERSION, v1};

/// A way to break. Steps are counted from 1 over the life of the shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Die without a word when this step arrives.
    KillAtStep(u64),
    /// Never answer this step; `Health` goes on answering.
    HangAtStep(u64),
    /// Run out of memory in this step.
    OutOfMemoryAtStep(u64),
    /// Report logits that are not finite for one token of one row.
    NotFinite {
        /// The row's slot.
        slot: u32,
        /// The generated token's index (0 = the first).
        token_index: u32,
    },
    /// Answer `Warmup` with RESOURCE_EXHAUSTED.
    RefuseWarmup,
    /// Fail instead of becoming LOADED.
    FailLoading,
}

/// Settings of a fake shard; `serve` starts it.
#[derive(Debug, Clone)]
pub struct FakeShard {
    /// What `Info` answers. The vocabulary's size is taken from `model`.
    pub info: v1::InfoResponse,
    /// The most that `Warmup` grants.
    pub capacity: v1::Capacity,
    /// The scripted model.
    pub model: HashModel,
    /// How long a step takes at least.
    pub step_time: Duration,
    /// How much longer for each token that it processes.
    pub token_time: Duration,
    /// How long loading takes.
    pub load_time: Duration,
    /// Every way in which it will break.
    pub faults: Vec<Fault>,
    /// Keep every plan for `FakeShardHandle::plans`.
    pub record: bool,
}

// === impl FakeShard ===

impl Default for FakeShard {
    fn default() -> Self {
        let model = HashModel::default();
        Self {
            info: v1::InfoResponse {
                protocol_version: PROTOCOL_VERSION,
                rank: 0,
                world_size: 1,
                dtype: "float32".into(),
                device: "fake".into(),
                vocab_size: model.vocab_size,
                layers: 1,
                kv_heads: 1,
                head_dim: 1,
                block_size: 16,
                max_positions: 8192,
                attention: "fake".into(),
                capabilities: Vec::new(),
            },
            capacity: v1::Capacity { blocks: 1024, max_sequences: 128, max_step_tokens: 2048, max_total_tokens: 8192 },
            model,
            step_time: Duration::ZERO,
            token_time: Duration::ZERO,
            load_time: Duration::ZERO,
            faults: Vec::new(),
            record: true,
        }
    }
}

impl FakeShard {
    /// Settings to change one by one.
    pub fn builder() -> Self {
        Self::default()
    }

    /// Replaces the model.
    pub fn model(mut self, model: HashModel) -> Self {
        self.info.vocab_size = model.vocab_size;
        self.model = model;
        self
    }

    /// Which rank of how many this is.
    pub fn rank(mut self, rank: u32, world_size: u32) -> Self {
        self.info.rank = rank;
        self.info.world_size = world_size;
        self
    }

    /// The KV cache: how many blocks of how many tokens.
    pub fn cache(mut self, blocks: u32, block_size: u32) -> Self {
        self.capacity.blocks = blocks;
        self.info.block_size = block_size;
        self
    }

    /// The most live rows, tokens of one step, and tokens of one row.
    pub fn bounds(mut self, max_sequences: u32, max_step_tokens: u32, max_total_tokens: u32) -> Self {
        self.capacity.max_sequences = max_sequences;
        self.capacity.max_step_tokens = max_step_tokens;
        self.capacity.max_total_tokens = max_total_tokens;
        self
    }

    /// How long a step takes, and how much longer for each token.
    pub fn latency(mut self, step_time: Duration, token_time: Duration) -> Self {
        self.step_time = step_time;
        self.token_time = token_time;
        self
    }

    /// How long loading takes.
    pub fn load_time(mut self, load_time: Duration) -> Self {
        self.load_time = load_time;
        self
    }

    /// Adds a way to break.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Whether plans are kept for `FakeShardHandle::plans`.
    pub fn record(mut self, record: bool) -> Self {
        self.record = record;
        self
    }

    /// What this shard grants when asked for so much.
    pub(super) fn grant(&self, request: v1::WarmupRequest) -> v1::Capacity {
        let least = |granted: u32, asked: u32| if asked == 0 { granted } else { granted.min(asked) };
        let block_size = self.info.block_size;
        let blocks = least(self.capacity.blocks, request.max_cache_tokens.div_ceil(block_size));
        let total =
            least(self.capacity.max_total_tokens, self.info.max_positions).min(blocks.saturating_mul(block_size));
        v1::Capacity {
            blocks,
            max_sequences: least(self.capacity.max_sequences, request.max_sequences),
            max_step_tokens: least(self.capacity.max_step_tokens, request.max_step_tokens),
            max_total_tokens: least(total, request.max_total_tokens),
        }
    }
}

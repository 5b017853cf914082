//! A plan while it is being made, and what the engine remembers of it until its result is in. Knows the messages of the
//! protocol; decides nothing.

use std::time::Instant;

use text_generation_protocol::v1::{PlanFlag, StepPlan};

use super::observer::StepKind;
use super::rows::RowId;

/// The only epoch so far: a failure of the shards ends the engine.
const EPOCH: u64 = 1;

/// What the engine remembers of a plan until its result is in.
#[derive(Debug)]
pub struct StepRecord {
    /// The plan's epoch.
    pub epoch: u64,
    /// The plan's number.
    pub step: u64,
    /// What it computes; `None` when it only releases rows.
    pub kind: Option<StepKind>,
    /// The rows that sample, in the order of the plan.
    pub sampling: Vec<RowId>,
    /// The rows that compute prompt tokens whose logprobs are wanted.
    pub describing: Vec<RowId>,
    /// The rows that begin.
    pub begun: Vec<RowId>,
    /// When it was planned, which is when it was sent.
    pub sent: Instant,
}

/// A plan in the making.
#[derive(Debug)]
pub struct Draft {
    /// What will be sent.
    pub plan: StepPlan,
    /// What will be remembered.
    pub record: StepRecord,
}

// === impl Draft ===

impl Draft {
    /// `rows` is how many there may be at most, so that the arrays are allocated once.
    pub fn new(step: u64, rows: usize) -> Self {
        let record = StepRecord {
            epoch: EPOCH,
            step,
            kind: None,
            sampling: Vec::with_capacity(rows),
            describing: Vec::new(),
            begun: Vec::new(),
            sent: Instant::now(),
        };
        let plan = StepPlan {
            epoch: EPOCH,
            step,
            slots: Vec::with_capacity(rows),
            token_counts: Vec::with_capacity(rows),
            row_flags: Vec::with_capacity(rows),
            block_counts: Vec::with_capacity(rows),
            ..StepPlan::default()
        };
        Self { plan, record }
    }

    /// Adds a row of `count` tokens, whose table gets the blocks `appended`.
    pub fn push_row(&mut self, slot: u32, count: usize, samples: bool, appended: &[u32]) {
        let flag = if samples { PlanFlag::Sample } else { PlanFlag::PlanNone };
        self.plan.slots.push(slot);
        self.plan.token_counts.push(count as u32);
        self.plan.row_flags.push(flag as u32);
        self.plan.block_counts.push(appended.len() as u32);
        self.plan.block_ids.extend_from_slice(appended);
    }
}

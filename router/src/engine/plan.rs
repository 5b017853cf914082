//! Decides what each step runs: who decodes, which prompts go on, which waiting entries begin. It owns every slot and
//! every block and does no input or output; the loop in `step` sends what it plans and gives it what comes back.
//!
//! Starting is first come, first served. A sequence starts when a slot is free and the cache can promise the blocks of
//! its longest life, so no running sequence ever lacks a block and every one of them ends.

use std::sync::Arc;
use std::time::Instant;

use text_generation_protocol::v1::StepPlan;

use super::budget::StepBudget;
use super::draft::{Draft, StepRecord};
use super::emit::Emitter;
use super::limits::{EngineLimits, Geometry};
use super::observer::StepKind;
use super::rows::{RowId, Rows};
use super::rules::Rules;
use super::sequence::Sequence;
use crate::cache::{BlockAllocator, Imbalance, audit};
use crate::error::Error;
use crate::event::Event;
use crate::queue::{Entry, WaitingQueue};
use crate::text::Tokenizer;

/// Plans steps and owns all that they need.
#[derive(Debug)]
pub struct Planner {
    limits: EngineLimits,
    geometry: Geometry,
    tokenizer: Arc<Tokenizer>,
    rules: Rules,
    rows: Rows,
    blocks: BlockAllocator,
    waiting: WaitingQueue,
    next_serial: u64,
    last_step: u64,
    /// Σ of the lengths that the live sequences may reach.
    max_tokens: usize,
    /// Sequences that ended since `take_ended`.
    ended: usize,
}

// === impl Planner ===

impl Planner {
    /// An engine with nothing to do.
    pub fn new(limits: EngineLimits, geometry: Geometry, tokenizer: Arc<Tokenizer>, rules: Rules) -> Self {
        Self {
            rows: Rows::new(limits.max_batch_size),
            blocks: BlockAllocator::new(geometry.blocks, geometry.block_size),
            waiting: WaitingQueue::default(),
            limits,
            geometry,
            tokenizer,
            rules,
            next_serial: 0,
            last_step: 0,
            max_tokens: 0,
            ended: 0,
        }
    }

    /// Puts an entry into the queue. One that could never run, a defect of whoever let it through, ends with an error.
    pub fn enqueue(&mut self, entry: Entry) {
        let Some(defect) = self.defect_of(&entry) else {
            self.waiting.push(entry);
            return;
        };
        tracing::error!(request_id = &*entry.request_id, "refused a request that reached the engine {defect}");
        let error = Error::Internal(format!("the request reached the engine {defect}").into());
        entry.events.send(Event::Error(error)).ok();
        self.ended += 1;
    }

    fn defect_of(&self, entry: &Entry) -> Option<String> {
        let (prompt, new, total) = (entry.prompt.len(), entry.max_new_tokens, self.limits.max_total_tokens);
        if prompt == 0 || new == 0 {
            return Some(format!("with {prompt} prompt tokens and {new} to generate; both must be at least 1"));
        }
        let longest = prompt + new as usize;
        if longest > total || !self.blocks.could_ever_fit(longest) {
            return Some(format!("with {prompt} prompt tokens and {new} to generate, more than {total} in all"));
        }
        let unseeded = entry.sampling.samples() && entry.sampling.seed.is_none();
        unseeded.then(|| "without a seed".to_owned())
    }

    /// The next step, or `None` when nothing would run. A plan that only releases rows is made when `may_only_release`.
    pub fn plan(&mut self, may_only_release: bool) -> Option<(StepPlan, StepRecord)> {
        let mut draft = Draft::new(self.last_step + 1, self.limits.max_batch_size.min(self.running() + self.waiting()));
        let decodes = self.plan_decodes(&mut draft);
        let mut budget = StepBudget::beside(decodes, &self.limits, &self.geometry);
        self.plan_prompts(&mut draft, &mut budget);
        self.begin_waiting(&mut draft, &mut budget);
        let runs = !draft.plan.slots.is_empty();
        let releases = may_only_release && self.rows.has_released();
        if !(runs || releases) {
            return None;
        }
        self.last_step = draft.record.step;
        draft.record.kind =
            runs.then_some(if draft.plan.slots.len() > decodes { StepKind::Prefill } else { StepKind::Decode });
        draft.plan.released_slots = self.rows.take_released();
        Some((draft.plan, draft.record))
    }

    fn plan_decodes(&mut self, draft: &mut Draft) -> usize {
        let before = draft.plan.slots.len();
        for index in 0..self.rows.order().len() {
            let slot = self.rows.order()[index];
            if self.rows.at(slot).is_some_and(Sequence::may_decode) {
                self.run_row(slot, 1, draft);
            }
        }
        draft.plan.slots.len() - before
    }

    fn plan_prompts(&mut self, draft: &mut Draft, budget: &mut StepBudget) {
        for index in 0..self.rows.order().len() {
            let slot = self.rows.order()[index];
            let chunk = budget.take(self.rows.at(slot).map_or(0, Sequence::prompt_left));
            if chunk > 0 {
                self.run_row(slot, chunk, draft);
            }
        }
    }

    fn begin_waiting(&mut self, draft: &mut Draft, budget: &mut StepBudget) {
        while !budget.is_spent() && self.rows.has_room() {
            let Some(row) = self.begin_first(draft.record.sent) else { return };
            let Some(sequence) = self.rows.get(row) else { return };
            draft.plan.new_sequences.push(sequence.introduction(row.slot));
            draft.record.begun.push(row);
            let chunk = budget.take(sequence.prompt_left());
            self.run_row(row.slot, chunk, draft);
        }
    }

    /// Gives the first waiting entry a slot and blocks, if the cache can promise them.
    fn begin_first(&mut self, now: Instant) -> Option<RowId> {
        let first = self.waiting.first()?;
        // The last token is never an input: its keys and values are not needed.
        let longest = first.prompt.len() + first.max_new_tokens as usize - 1;
        let allocation = self.blocks.allocate(first.prompt.len(), longest)?;
        let entry = self.waiting.pop()?;
        let emitter = Emitter::new(self.tokenizer.clone(), &entry, allocation.cached_tokens, now);
        let sequence = Sequence::new(self.next_serial, entry, allocation, emitter, &self.rules);
        self.next_serial += 1;
        self.max_tokens += sequence.max_tokens();
        self.rows.insert(Box::new(sequence))
    }

    /// Adds a row of `count` tokens to the plan.
    fn run_row(&mut self, slot: u32, count: usize, draft: &mut Draft) {
        let Some(sequence) = self.rows.at_mut(slot) else { return };
        let held = sequence.blocks.len();
        let tokens = sequence.computed_after(count);
        let Some(appended) = self.blocks.grow(&mut sequence.blocks, tokens) else {
            self.fail_outgrown(slot);
            return;
        };
        let row = RowId { slot, serial: sequence.serial };
        if sequence.wants_prompt_logprobs() && sequence.prompt_left() > 0 {
            draft.record.describing.push(row);
        }
        let samples = sequence.advance(count);
        draft.push_row(slot, count, samples, &sequence.blocks[held..held + appended]);
        if samples {
            draft.record.sampling.push(row);
        }
    }

    /// The reservation was exceeded. Only this sequence ends; the others keep what was promised to them.
    fn fail_outgrown(&mut self, slot: u32) {
        tracing::error!(slot, "a sequence outgrew its reserved blocks; please report this as a defect of the router");
        if let Some(sequence) = self.retire(slot) {
            sequence.emitter.fail(Error::Internal("the sequence outgrew its reserved KV blocks".into()));
        }
    }

    /// Ends a sequence: its blocks are free, its row is released by the next plan.
    pub fn retire(&mut self, slot: u32) -> Option<Box<Sequence>> {
        let sequence = self.rows.retire(slot)?;
        self.blocks.release(&sequence.blocks, sequence.reserved);
        self.max_tokens -= sequence.max_tokens();
        self.ended += 1;
        Some(sequence)
    }

    /// A sequence, unless it was retired in the meantime.
    pub fn get(&mut self, row: RowId) -> Option<&mut Sequence> {
        self.rows.get(row)
    }

    /// Ends every sequence, running or waiting, whose client is gone. Returns how many.
    pub fn remove_abandoned(&mut self) -> usize {
        let waiting = self.waiting.remove_abandoned();
        self.ended += waiting;
        let gone = |slot: &u32| self.rows.at(*slot).is_some_and(|sequence| sequence.emitter.is_abandoned());
        let gone: Vec<u32> = self.rows.order().iter().copied().filter(gone).collect();
        waiting + gone.into_iter().filter_map(|slot| self.retire(slot)).count()
    }

    /// Ends everything with an error.
    pub fn fail_all(&mut self, error: &Error) {
        while let Some(entry) = self.waiting.pop() {
            entry.events.send(Event::Error(error.clone())).ok();
            self.ended += 1;
        }
        for slot in self.rows.order().to_vec() {
            if let Some(sequence) = self.retire(slot) {
                sequence.emitter.fail(error.clone());
            }
        }
    }

    /// How many sequences ended since the last call.
    pub fn take_ended(&mut self) -> usize {
        std::mem::take(&mut self.ended)
    }

    /// Checks that no block is lost.
    ///
    /// # Errors
    /// `Imbalance` with the counts.
    pub fn audit(&self) -> Result<(), Imbalance> {
        audit(&self.blocks, self.rows.live().map(|sequence| sequence.blocks.as_slice()))
    }

    /// Entries that wait for their first step.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Live sequences.
    pub fn running(&self) -> usize {
        self.rows.order().len()
    }

    /// Σ of the lengths that the live sequences may reach.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }
}

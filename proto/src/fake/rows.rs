//! The rows and blocks of the fake shard: the reference of what a plan may do. Each rule that a plan can break has one
//! sentence here. Knows neither time nor transport.

use super::model::{EMPTY, absorb};
use crate::v1::{Capacity, NewSequence, PlanFlag, Sampling, StepPlan};

/// One live row.
#[derive(Debug)]
pub(super) struct Row {
    /// `hashes[p]` is the hash of the tokens up to and including position p.
    hashes: Vec<u64>,
    pub(super) prompt_length: u32,
    computed: usize,
    table: Vec<u32>,
    pub(super) sampling: Sampling,
    pub(super) prompt_logprobs: bool,
}

/// What a block holds: for each offset, the hash of the row's tokens up to there.
#[derive(Debug, Clone, Default)]
struct Block {
    owners: u32,
    hashes: Vec<u64>,
}

/// Everything that plans act on.
#[derive(Debug)]
pub(super) struct Rows {
    rows: Vec<Option<Row>>,
    blocks: Vec<Block>,
    block_size: usize,
    vocab_size: u32,
    capacity: Capacity,
}

/// A row that ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub(super) slot: u32,
    /// Position of the first token that was processed.
    pub(super) start: u32,
    pub(super) count: u32,
    pub(super) sample: bool,
}

type Rule<T = ()> = Result<T, String>;

macro_rules! rule {
    ($holds:expr, $($sentence:tt)+) => {
        if !$holds {
            return Err(format!($($sentence)+));
        }
    };
}

// === impl Rows ===

impl Rows {
    pub(super) fn new(capacity: Capacity, block_size: u32, vocab_size: u32) -> Self {
        Self {
            rows: (0..capacity.max_sequences).map(|_| None).collect(),
            blocks: vec![Block::default(); capacity.blocks as usize],
            block_size: block_size as usize,
            vocab_size,
            capacity,
        }
    }

    /// Ends every row. What the blocks hold stays.
    pub(super) fn reset(&mut self) {
        self.rows.iter_mut().for_each(|row| *row = None);
        self.blocks.iter_mut().for_each(|block| block.owners = 0);
    }

    pub(super) fn live(&self) -> usize {
        self.rows.iter().flatten().count()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Row> {
        self.rows.get(slot as usize)?.as_ref()
    }

    /// Does what a plan says, up to sampling, and returns the rows that ran. Its shape has been checked.
    ///
    /// # Errors
    /// The rule that the plan breaks.
    pub(super) fn apply(&mut self, plan: &StepPlan) -> Rule<Vec<Ran>> {
        let tokens: u64 = plan.token_counts.iter().map(|&count| u64::from(count)).sum();
        let most = self.capacity.max_step_tokens;
        rule!(tokens <= u64::from(most), "the plan runs {tokens} tokens, max_step_tokens is {most}");
        plan.released_slots.iter().try_for_each(|&slot| self.release(slot))?;
        plan.copy_from.iter().zip(&plan.copy_to).try_for_each(|(&from, &to)| self.copy(from, to))?;
        plan.new_sequences.iter().try_for_each(|sequence| self.begin(sequence))?;
        self.extend_tables(plan)?;
        self.run(plan)
    }

    /// Appends a sampled token to a row.
    pub(super) fn append(&mut self, slot: u32, token: u32) {
        if let Some(row) = self.rows.get_mut(slot as usize).and_then(Option::as_mut) {
            row.hashes.push(absorb(row.hash(), token));
        }
    }

    fn release(&mut self, slot: u32) -> Rule {
        let row = self.rows.get_mut(slot as usize).and_then(Option::take);
        let row = row.ok_or_else(|| format!("slot {slot} is released but not live"))?;
        for block in row.table {
            self.blocks[block as usize].owners -= 1;
        }
        Ok(())
    }

    fn copy(&mut self, from: u32, to: u32) -> Rule {
        self.in_range(from)?;
        self.in_range(to)?;
        let owners = self.blocks[to as usize].owners;
        rule!(owners == 0, "block {to} is the target of a copy but belongs to {owners} live rows");
        self.blocks[to as usize].hashes = self.blocks[from as usize].hashes.clone();
        Ok(())
    }

    fn begin(&mut self, sequence: &NewSequence) -> Rule {
        let (slot, known) = (sequence.slot, sequence.token_ids.len());
        let (slots, longest) = (self.capacity.max_sequences, self.capacity.max_total_tokens);
        rule!(slot < slots, "slot {slot} is out of range, max_sequences is {slots}");
        rule!(self.get(slot).is_none(), "slot {slot} begins but is still live");
        let prompt = sequence.prompt_length as usize;
        rule!((1..=known).contains(&prompt), "slot {slot} has prompt_length {prompt} and {known} tokens");
        rule!(known <= longest as usize, "slot {slot} begins with {known} tokens, max_total_tokens is {longest}");
        let computed = sequence.computed as usize;
        rule!(computed < known, "slot {slot} has computed {computed} of {known} tokens: none is left to run");
        let vocabulary = self.vocab_size;
        let strange = sequence.token_ids.iter().find(|&&token| token >= vocabulary);
        rule!(strange.is_none(), "slot {slot} holds token {strange:?}, the vocabulary has {vocabulary}");
        let sampling = sequence.sampling.unwrap_or_default();
        check_sampling(slot, &sampling)?;
        let hashes = cumulative(&sequence.token_ids);
        self.take_blocks(slot, &sequence.block_ids, computed / self.block_size)?;
        self.check_reuse(slot, &sequence.block_ids, &hashes[..computed])?;
        self.rows[slot as usize] = Some(Row {
            hashes,
            prompt_length: sequence.prompt_length,
            computed,
            table: sequence.block_ids.clone(),
            sampling,
            prompt_logprobs: sequence.prompt_logprobs,
        });
        Ok(())
    }

    /// Gives blocks to a row. The first `shared` of them may belong to other rows too: they are only read.
    fn take_blocks(&mut self, slot: u32, blocks: &[u32], shared: usize) -> Rule {
        for (index, &block) in blocks.iter().enumerate() {
            self.in_range(block)?;
            let owners = self.blocks[block as usize].owners;
            rule!(index < shared || owners == 0, "block {block} is given to slot {slot} but belongs to a live row");
            self.blocks[block as usize].owners += 1;
        }
        Ok(())
    }

    /// The blocks that a new row declares as computed must hold just these tokens, from position 0 on.
    fn check_reuse(&self, slot: u32, table: &[u32], computed: &[u64]) -> Rule {
        for (index, hashes) in computed.chunks(self.block_size).enumerate() {
            let block = *table.get(index).ok_or_else(|| {
                format!(
                    "slot {slot} declares {} tokens as computed, its {} blocks hold fewer",
                    computed.len(),
                    table.len()
                )
            })?;
            let held = &self.blocks[block as usize].hashes;
            rule!(held.starts_with(hashes), "slot {slot} declares block {block} as computed, it holds something else");
        }
        Ok(())
    }

    fn extend_tables(&mut self, plan: &StepPlan) -> Rule {
        let mut blocks = plan.block_ids.as_slice();
        for (&slot, &count) in plan.slots.iter().zip(&plan.block_counts) {
            rule!(self.get(slot).is_some(), "slot {slot} runs but is not live");
            let (mine, rest) = blocks.split_at(count as usize);
            blocks = rest;
            self.take_blocks(slot, mine, 0)?;
            if let Some(row) = self.rows[slot as usize].as_mut() {
                row.table.extend_from_slice(mine);
            }
        }
        Ok(())
    }

    fn run(&mut self, plan: &StepPlan) -> Rule<Vec<Ran>> {
        let mut seen = vec![false; self.rows.len()];
        let mut ran = Vec::with_capacity(plan.slots.len());
        for ((&slot, &count), &flags) in plan.slots.iter().zip(&plan.token_counts).zip(&plan.row_flags) {
            rule!(!std::mem::replace(&mut seen[slot as usize], true), "slot {slot} runs twice in one plan");
            rule!(flags & !(PlanFlag::Sample as u32) == 0, "slot {slot} has unknown row_flags {flags}");
            ran.push(self.run_row(slot, count, flags != 0)?);
        }
        Ok(ran)
    }

    fn run_row(&mut self, slot: u32, count: u32, sample: bool) -> Rule<Ran> {
        let row = self.rows[slot as usize].as_mut().ok_or_else(|| format!("slot {slot} runs but is not live"))?;
        let (start, known) = (row.computed, row.hashes.len());
        let (end, longest) = (start + count as usize, self.capacity.max_total_tokens as usize);
        rule!(count > 0, "slot {slot} runs no token");
        rule!(end <= known, "slot {slot} runs up to position {end}, only {known} tokens are known");
        rule!(sample == (end == known), "slot {slot} runs up to {end} of {known} tokens with SAMPLE = {sample}");
        rule!(!sample || known < longest, "slot {slot} samples beyond max_total_tokens, which is {longest}");
        let room = row.table.len() * self.block_size;
        rule!(end <= room, "slot {slot} runs up to position {end}, its blocks hold {room}");
        for position in start..end {
            let (block, offset) = (row.table[position / self.block_size], position % self.block_size);
            let block = &mut self.blocks[block as usize];
            block.hashes.truncate(offset);
            block.hashes.push(row.hashes[position]);
        }
        row.computed = end;
        Ok(Ran { slot, start: start as u32, count, sample })
    }

    fn in_range(&self, block: u32) -> Rule {
        let blocks = self.blocks.len();
        rule!((block as usize) < blocks, "block {block} is out of range, there are {blocks}");
        Ok(())
    }
}

// === impl Row ===

impl Row {
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

//! The rows and blocks of the fake shard: the reference of what a plan may do. Each rule that a plan can break has one
//! sentence here. Knows neither time nor transport.

use super::row::{Row, Rule, rule};
use crate::v1::{Capacity, NewSequence, PlanFlag, StepPlan};

#[cfg(test)]
mod tests;

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
            row.append(token);
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
        rule!(known <= longest as usize, "slot {slot} begins with {known} tokens, max_total_tokens is {longest}");
        let row = Row::new(sequence, self.vocab_size)?;
        self.take_blocks(slot, &row.table, row.computed / self.block_size)?;
        self.check_reuse(slot, &row.table, &row.hashes[..row.computed])?;
        self.rows[slot as usize] = Some(row);
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

//! Every rule that a plan can break, broken once, next to the plans that keep them.

use super::*;
use crate::v1::Sampling;

/// Tokens a block.
const BLOCK: u32 = 4;

fn rows() -> Rows {
    let capacity = Capacity { blocks: 8, max_sequences: 3, max_step_tokens: 10, max_total_tokens: 12 };
    Rows::new(capacity, BLOCK, 100)
}

fn greedy() -> Sampling {
    Sampling { repetition_penalty: 1.0, top_p: 1.0, typical_p: 1.0, ..Sampling::default() }
}

fn sequence(slot: u32, tokens: &[u32], blocks: &[u32]) -> NewSequence {
    NewSequence {
        slot,
        token_ids: tokens.to_vec(),
        prompt_length: tokens.len() as u32,
        block_ids: blocks.to_vec(),
        sampling: Some(greedy()),
        ..NewSequence::default()
    }
}

/// A plan that runs (slot, tokens, SAMPLE) rows.
fn run(rows: &[(u32, u32, u32)]) -> StepPlan {
    StepPlan {
        slots: rows.iter().map(|row| row.0).collect(),
        token_counts: rows.iter().map(|row| row.1).collect(),
        row_flags: rows.iter().map(|row| row.2).collect(),
        block_counts: vec![0; rows.len()],
        ..StepPlan::default()
    }
}

fn begin(sequence: NewSequence) -> StepPlan {
    StepPlan { new_sequences: vec![sequence], ..StepPlan::default() }
}

/// Rows with slot 0 after its prompt of five tokens (blocks 0 and 1) and one sampled token.
fn started() -> Rows {
    let mut rows = rows();
    let first = sequence(0, &[1, 2, 3, 4, 5], &[0, 1]);
    rows.apply(&StepPlan { new_sequences: vec![first], ..run(&[(0, 5, 1)]) }).unwrap();
    rows.append(0, 6);
    rows
}

/// Asserts that a plan is refused with just this sentence.
fn refused(mut rows: Rows, plan: &StepPlan, sentence: &str) {
    assert_eq!(rows.apply(plan).unwrap_err(), sentence);
}

#[test]
fn a_step_has_a_bound_of_tokens() {
    refused(started(), &run(&[(0, 11, 1)]), "the plan runs 11 tokens, max_step_tokens is 10");
}

#[test]
fn only_live_rows_are_released_or_run() {
    let release = StepPlan { released_slots: vec![1], ..StepPlan::default() };
    refused(started(), &release, "slot 1 is released but not live");
    let release = StepPlan { released_slots: vec![9], ..StepPlan::default() };
    refused(started(), &release, "slot 9 is released but not live");
    refused(started(), &run(&[(2, 1, 1)]), "slot 2 runs but is not live");
    refused(started(), &run(&[(9, 1, 1)]), "slot 9 runs but is not live");
}

#[test]
fn copies_go_to_blocks_that_nobody_owns() {
    let copy = |from, to| StepPlan { copy_from: vec![from], copy_to: vec![to], ..StepPlan::default() };
    refused(started(), &copy(8, 2), "block 8 is out of range, there are 8");
    refused(started(), &copy(0, 8), "block 8 is out of range, there are 8");
    refused(started(), &copy(2, 1), "block 1 is the target of a copy but belongs to 1 live rows");
    started().apply(&copy(1, 2)).unwrap();
}

#[test]
fn a_sequence_begins_in_a_free_slot_within_bounds() {
    refused(started(), &begin(sequence(3, &[1], &[])), "slot 3 is out of range, max_sequences is 3");
    refused(started(), &begin(sequence(0, &[1], &[])), "slot 0 begins but is still live");
    let long = sequence(1, &[1; 13], &[]);
    refused(started(), &begin(long), "slot 1 begins with 13 tokens, max_total_tokens is 12");
    let strange = sequence(1, &[1, 100], &[]);
    refused(started(), &begin(strange), "slot 1 holds token 100, the vocabulary has 100");
}

#[test]
fn a_sequence_has_a_prompt_and_something_left_to_run() {
    let base = || sequence(1, &[1, 2], &[2]);
    let none = NewSequence { prompt_length: 0, ..base() };
    refused(started(), &begin(none), "slot 1 has prompt_length 0 and 2 tokens");
    let more = NewSequence { prompt_length: 3, ..base() };
    refused(started(), &begin(more), "slot 1 has prompt_length 3 and 2 tokens");
    let all = NewSequence { computed: 2, ..base() };
    refused(started(), &begin(all), "slot 1 has computed 2 of 2 tokens: none is left to run");
}

#[test]
fn sampling_parameters_are_in_range() {
    let with = |sampling| begin(NewSequence { sampling: Some(sampling), ..sequence(1, &[1], &[2]) });
    let warm = Sampling { temperature: 1.0, ..greedy() };
    refused(started(), &with(Sampling { temperature: -1.0, ..greedy() }), "slot 1 has temperature -1");
    refused(started(), &with(Sampling { temperature: f32::NAN, ..greedy() }), "slot 1 has temperature NaN");
    refused(started(), &with(Sampling { repetition_penalty: 0.0, ..greedy() }), "slot 1 has repetition_penalty 0");
    refused(started(), &with(Sampling { top_p: 0.0, ..warm.clone() }), "slot 1 has top_p 0");
    refused(started(), &with(Sampling { typical_p: 1.5, ..warm }), "slot 1 has typical_p 1.5");
    refused(started(), &with(Sampling { min_p: 1.5, ..greedy() }), "slot 1 has min_p 1.5");
    refused(started(), &with(Sampling { bias_ids: vec![1], ..greedy() }), "slot 1 has 1 bias_ids and 0 biases");
    let end_ids = vec![3, 3];
    let twice = Sampling { min_tokens: 2, end_ids: end_ids.clone(), ..greedy() };
    refused(started(), &with(twice), "slot 1 names a token twice in end_ids");
    refused(started(), &with(Sampling { end_ids, ..greedy() }), "slot 1 has 2 end_ids, but no min_tokens");
    let marked = Sampling { watermark_delta: 2.0, watermark_gamma: 1.0, ..greedy() };
    refused(started(), &with(marked), "slot 1 has watermark_gamma 1");
    started().apply(&with(Sampling { top_p: 0.0, ..greedy() })).unwrap();
}

#[test]
fn a_block_that_is_written_has_one_owner() {
    let taken = begin(sequence(1, &[1], &[1]));
    refused(started(), &taken, "block 1 is given to slot 1 but belongs to a live row");
    refused(started(), &begin(sequence(1, &[1], &[8])), "block 8 is out of range, there are 8");
    let grow = StepPlan { block_counts: vec![1], block_ids: vec![0], ..run(&[(0, 1, 1)]) };
    refused(started(), &grow, "block 0 is given to slot 0 but belongs to a live row");
    let handed_on = StepPlan { released_slots: vec![0], ..taken };
    started().apply(&handed_on).unwrap();
}

#[test]
fn a_full_block_may_be_shared_when_it_holds_the_same_tokens() {
    let reuse =
        |tokens: &[u32], blocks: &[u32], computed| begin(NewSequence { computed, ..sequence(1, tokens, blocks) });
    started().apply(&reuse(&[1, 2, 3, 4, 9], &[0, 2], 4)).unwrap();
    let other = "slot 1 declares block 0 as computed, it holds something else";
    refused(started(), &reuse(&[1, 2, 3, 7, 9], &[0, 2], 4), other);
    let few = "slot 1 declares 8 tokens as computed, its 1 blocks hold fewer";
    refused(started(), &reuse(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[0], 8), few);
    let partial = "block 1 is given to slot 1 but belongs to a live row";
    refused(started(), &reuse(&[1, 2, 3, 4, 5, 9], &[0, 1], 5), partial);
}

#[test]
fn a_copied_block_holds_what_the_original_holds() {
    let copy = StepPlan { copy_from: vec![1], copy_to: vec![2], ..StepPlan::default() };
    let resumed = NewSequence { computed: 5, ..sequence(1, &[1, 2, 3, 4, 5, 9], &[0, 2]) };
    let mut rows = started();
    rows.apply(&StepPlan { new_sequences: vec![resumed], ..copy }).unwrap();
    rows.apply(&run(&[(1, 1, 1)])).unwrap();
}

#[test]
fn a_row_runs_once_and_up_to_its_last_token_at_most() {
    refused(started(), &run(&[(0, 1, 1), (0, 1, 1)]), "slot 0 runs twice in one plan");
    refused(started(), &run(&[(0, 1, 2)]), "slot 0 has unknown row_flags 2");
    refused(started(), &run(&[(0, 0, 0)]), "slot 0 runs no token");
    refused(started(), &run(&[(0, 2, 1)]), "slot 0 runs up to position 7, only 6 tokens are known");
}

#[test]
fn a_row_samples_just_where_it_runs_its_last_token() {
    refused(started(), &run(&[(0, 1, 0)]), "slot 0 runs up to 6 of 6 tokens with SAMPLE = false");
    let chunk = StepPlan { new_sequences: vec![sequence(1, &[1, 2, 3], &[2])], ..run(&[(1, 2, 1)]) };
    refused(started(), &chunk, "slot 1 runs up to 2 of 3 tokens with SAMPLE = true");
    let full = StepPlan { new_sequences: vec![sequence(1, &[1; 12], &[2, 3, 4])], ..run(&[(1, 10, 0)]) };
    let mut rows = started();
    rows.apply(&full).unwrap();
    refused(rows, &run(&[(1, 2, 1)]), "slot 1 samples beyond max_total_tokens, which is 12");
}

#[test]
fn a_row_runs_within_its_blocks() {
    let small = StepPlan { new_sequences: vec![sequence(1, &[1; 5], &[2])], ..run(&[(1, 5, 1)]) };
    refused(started(), &small, "slot 1 runs up to position 5, its blocks hold 4");
    let room = StepPlan { block_counts: vec![1], block_ids: vec![3], ..small };
    let ran = started().apply(&room).unwrap();
    assert_eq!(
        ran.iter().map(|row| (row.slot, row.start, row.count, row.sample)).collect::<Vec<_>>(),
        [(1, 0, 5, true)]
    );
}

#[test]
fn a_reset_ends_the_rows_and_keeps_what_the_blocks_hold() {
    let mut rows = started();
    rows.reset();
    assert_eq!(rows.live(), 0);
    let reuse = NewSequence { computed: 4, ..sequence(2, &[1, 2, 3, 4, 9], &[0, 1]) };
    rows.apply(&begin(reuse)).unwrap();
    assert_eq!(rows.live(), 1);
}

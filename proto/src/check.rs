//! The rules of plans and results that need no state of a shard: which arrays have the same length, which sums must
//! agree, and in which order plans follow each other. Every end of the protocol uses them, so that the code behind may
//! index without looking. Knows nothing of rows and blocks.

use crate::v1::{PromptLogprobs, Sampling, StepPlan, StepResult};

/// The order of the plans of one stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOrder {
    newest: Option<(u64, u64)>,
}

/// How a plan follows those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The first of its stream or of a newer epoch: rows from before are void.
    First,
    /// One step after the last.
    Next,
    /// Of an older epoch: to be ignored.
    Stale,
}

// === impl PlanOrder ===

impl PlanOrder {
    /// Takes note of a plan.
    ///
    /// # Errors
    /// A sentence with both step numbers when a step does not follow the last one.
    pub fn follow(&mut self, epoch: u64, step: u64) -> Result<Arrival, String> {
        let arrival = match self.newest {
            Some((newest, _)) if epoch < newest => return Ok(Arrival::Stale),
            Some((newest, last)) if epoch == newest && step != last + 1 => {
                return Err(format!("step {step} follows step {last}"));
            }
            Some((newest, _)) if epoch == newest => Arrival::Next,
            _ => Arrival::First,
        };
        self.newest = Some((epoch, step));
        Ok(arrival)
    }
}

/// Checks that the arrays of a plan fit together.
///
/// # Errors
/// A sentence that names the arrays and their lengths.
pub fn plan_shape(plan: &StepPlan) -> Result<(), String> {
    let rows = plan.slots.len();
    same("token_counts", plan.token_counts.len(), "slots", rows)?;
    same("row_flags", plan.row_flags.len(), "slots", rows)?;
    same("block_counts", plan.block_counts.len(), "slots", rows)?;
    same("block_ids", plan.block_ids.len(), "the sum of block_counts", sum(&plan.block_counts))?;
    same("copy_from", plan.copy_from.len(), "copy_to", plan.copy_to.len())?;
    plan.new_sequences.iter().try_for_each(|sequence| match &sequence.sampling {
        None => Err(format!("the new sequence in slot {} has no sampling parameters", sequence.slot)),
        Some(Sampling { biases, bias_ids, .. }) => same("biases", biases.len(), "bias_ids", bias_ids.len()),
    })
}

/// Checks that the arrays of a result fit together.
///
/// # Errors
/// A sentence that names the arrays and their lengths.
pub fn result_shape(result: &StepResult) -> Result<(), String> {
    let (rows, tokens) = (result.slots.len(), result.token_ids.len());
    same("token_counts", result.token_counts.len(), "slots", rows)?;
    same("row_flags", result.row_flags.len(), "slots", rows)?;
    same("token_ids", tokens, "the sum of token_counts", sum(&result.token_counts))?;
    same("logprobs", result.logprobs.len(), "token_ids", tokens)?;
    if !result.top_counts.is_empty() {
        same("top_counts", result.top_counts.len(), "token_ids", tokens)?;
    }
    same("top_ids", result.top_ids.len(), "the sum of top_counts", sum(&result.top_counts))?;
    same("top_logprobs", result.top_logprobs.len(), "top_ids", result.top_ids.len())?;
    result.prompt_logprobs.iter().try_for_each(prompt_shape)
}

/// Each prompt token has as many candidates as the others of its row.
fn prompt_shape(told: &PromptLogprobs) -> Result<(), String> {
    let (tokens, candidates) = (told.logprobs.len(), told.top_ids.len());
    same("top_logprobs of a prompt", told.top_logprobs.len(), "its top_ids", candidates)?;
    let even = if tokens == 0 { candidates == 0 } else { candidates.is_multiple_of(tokens) };
    if even { Ok(()) } else { Err(format!("top_ids of a prompt has {candidates} entries for {tokens} tokens")) }
}

fn sum(counts: &[u32]) -> usize {
    counts.iter().map(|&count| count as usize).sum()
}

fn same(name: &str, found: usize, other: &str, expected: usize) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{name} has {found} entries where {other} makes {expected}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::NewSequence;

    #[test]
    fn empty_messages_fit() {
        assert_eq!(plan_shape(&StepPlan::default()), Ok(()));
        assert_eq!(result_shape(&StepResult::default()), Ok(()));
    }

    #[test]
    fn a_wrong_length_is_named_with_both_numbers() {
        let plan = StepPlan {
            slots: vec![0],
            token_counts: vec![1],
            row_flags: vec![1],
            block_counts: vec![2],
            block_ids: vec![5],
            ..StepPlan::default()
        };
        assert_eq!(plan_shape(&plan), Err("block_ids has 1 entries where the sum of block_counts makes 2".into()));
        let result = StepResult { slots: vec![3], ..StepResult::default() };
        assert_eq!(result_shape(&result), Err("token_counts has 0 entries where slots makes 1".into()));
        let biased = Sampling { bias_ids: vec![1, 2], biases: vec![0.5], ..Sampling::default() };
        let sequence = NewSequence { sampling: Some(biased), ..NewSequence::default() };
        let plan = StepPlan { new_sequences: vec![sequence], ..StepPlan::default() };
        assert_eq!(plan_shape(&plan), Err("biases has 1 entries where bias_ids makes 2".into()));
    }

    #[test]
    fn prompt_tokens_have_the_same_number_of_candidates() {
        let told = |tokens: usize, ids: usize, logprobs: usize| {
            let (top_ids, top_logprobs) = (vec![0; ids], vec![0.0; logprobs]);
            let told = PromptLogprobs { logprobs: vec![0.0; tokens], top_ids, top_logprobs, ..Default::default() };
            result_shape(&StepResult { prompt_logprobs: vec![told], ..StepResult::default() })
        };
        assert_eq!((told(2, 4, 4), told(2, 0, 0)), (Ok(()), Ok(())));
        assert_eq!(told(2, 3, 3), Err("top_ids of a prompt has 3 entries for 2 tokens".into()));
        assert_eq!(told(2, 4, 2), Err("top_logprobs of a prompt has 2 entries where its top_ids makes 4".into()));
        assert!(told(0, 1, 1).is_err());
    }
}

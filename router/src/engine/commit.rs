//! Takes the result of a step into the books: checks it against what was planned, appends the tokens, and retires the
//! sequences that are over by count or by id, so that the next plan can already use their room. Text comes later.

use std::ops::Range;

use text_generation_protocol::v1::{ResultFlag, StepResult};

use super::draft::StepRecord;
use super::emit::{End, Sampled};
use super::plan::Planner;
use super::rows::RowId;
use super::sequence::Sequence;
use crate::shard::ShardError;

/// Tokens of one step that wait to be turned into text.
#[derive(Debug, Default)]
pub struct Outputs {
    tokens: Vec<Output>,
    top_ids: Vec<u32>,
    top_logprobs: Vec<f32>,
}

/// One sampled token of a sequence that is not abandoned.
#[derive(Debug)]
pub struct Output {
    /// Whose it is.
    pub row: RowId,
    /// What to say about it.
    pub verdict: Verdict,
    /// The sequence itself when it was retired already.
    pub retired: Option<Box<Sequence>>,
    id: u32,
    logprob: f32,
    tops: Range<usize>,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A token; the sequence goes on, as far as its count and its id tell.
    Token,
    /// The last token.
    Last(End),
    /// No token: the logits held NaN or infinity.
    NotFinite,
}

// === impl Outputs ===

impl Outputs {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Takes the tokens out.
    pub fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.tokens)
    }

    /// A token with its candidates.
    pub fn sampled(&self, output: &Output) -> Sampled<'_> {
        Sampled {
            id: output.id,
            logprob: output.logprob,
            top_ids: &self.top_ids[output.tops.clone()],
            top_logprobs: &self.top_logprobs[output.tops.clone()],
        }
    }
}

/// Takes a result into the books.
///
/// # Errors
/// `ShardError::Protocol` when it does not answer the plan.
pub fn commit(planner: &mut Planner, record: &StepRecord, result: StepResult) -> Result<Outputs, ShardError> {
    check(record, &result)?;
    take_prompt_logprobs(planner, record, &result)?;
    let mut outputs = Outputs { tokens: Vec::with_capacity(record.sampling.len()), ..Outputs::default() };
    let mut top = 0;
    for (index, &row) in record.sampling.iter().enumerate() {
        let tops = top..top + result.top_counts.get(index).map_or(0, |&count| count as usize);
        top = tops.end;
        // A surplus row of a sequence that has ended meanwhile: its token is dropped.
        let Some(sequence) = planner.get(row) else { continue };
        if !sequence.is_described() {
            return Err(disagreement(record, "a token, but not the logprobs of the whole prompt"));
        }
        let verdict = judge(sequence, result.token_ids[index], result.row_flags[index]);
        let retired = if verdict == Verdict::Token { None } else { planner.retire(row.slot) };
        let (id, logprob) = (result.token_ids[index], result.logprobs[index]);
        outputs.tokens.push(Output { row, verdict, retired, id, logprob, tops });
    }
    outputs.top_ids = result.top_ids;
    outputs.top_logprobs = result.top_logprobs;
    Ok(outputs)
}

fn judge(sequence: &mut Sequence, token: u32, flags: u32) -> Verdict {
    if flags & ResultFlag::RowNotFinite as u32 != 0 {
        return Verdict::NotFinite;
    }
    sequence.accept(token).map_or(Verdict::Token, Verdict::Last)
}

fn take_prompt_logprobs(planner: &mut Planner, record: &StepRecord, result: &StepResult) -> Result<(), ShardError> {
    for told in &result.prompt_logprobs {
        let row = record.describing.iter().find(|row| row.slot == told.slot);
        let row = row.ok_or_else(|| disagreement(record, "prompt logprobs of a row that has none"))?;
        let Some(sequence) = planner.get(*row) else { continue };
        sequence
            .accept_prompt_logprobs(told)
            .ok_or_else(|| disagreement(record, "prompt logprobs that do not fit the prompt"))?;
    }
    Ok(())
}

/// Checks that a result has the shape that the plan asks for.
fn check(record: &StepRecord, result: &StepResult) -> Result<(), ShardError> {
    if (result.epoch, result.step) != (record.epoch, record.step) {
        return Err(disagreement(record, &format!("epoch {} step {}", result.epoch, result.step)));
    }
    let rows = record.sampling.len();
    if !result.slots.iter().copied().eq(record.sampling.iter().map(|row| row.slot)) {
        return Err(disagreement(record, &format!("tokens for slots {:?}", result.slots)));
    }
    if result.token_counts.len() != rows || result.token_counts.iter().any(|&count| count != 1) {
        return Err(disagreement(record, "a number of tokens other than one a row"));
    }
    let lengths = [result.row_flags.len(), result.token_ids.len(), result.logprobs.len()];
    if lengths.iter().any(|&length| length != rows) {
        return Err(disagreement(record, &format!("arrays of {lengths:?} entries for {rows} rows")));
    }
    let candidates: usize = result.top_counts.iter().map(|&count| count as usize).sum();
    let counts_fit = result.top_counts.is_empty() || result.top_counts.len() == rows;
    if !counts_fit || result.top_ids.len() != candidates || result.top_logprobs.len() != candidates {
        return Err(disagreement(record, "candidates that do not fit their counts"));
    }
    Ok(())
}

fn disagreement(record: &StepRecord, what: &str) -> ShardError {
    ShardError::Protocol(format!("the plan was epoch {} step {}, the result has {what}", record.epoch, record.step))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn record() -> StepRecord {
        let sampling = vec![RowId { slot: 3, serial: 7 }, RowId { slot: 1, serial: 9 }];
        let (describing, begun) = (Vec::new(), Vec::new());
        StepRecord { epoch: 1, step: 5, kind: None, sampling, describing, begun, sent: Instant::now() }
    }

    fn answer() -> StepResult {
        StepResult {
            epoch: 1,
            step: 5,
            slots: vec![3, 1],
            token_counts: vec![1, 1],
            row_flags: vec![0, 0],
            token_ids: vec![10, 11],
            logprobs: vec![-1.0, -2.0],
            ..StepResult::default()
        }
    }

    #[test]
    fn a_result_must_answer_its_plan() {
        assert!(check(&record(), &answer()).is_ok());
        let broken = [
            StepResult { step: 6, ..answer() },
            StepResult { epoch: 2, ..answer() },
            StepResult { slots: vec![1, 3], ..answer() },
            StepResult { token_counts: vec![1, 2], ..answer() },
            StepResult { token_ids: vec![10], ..answer() },
            StepResult { top_counts: vec![1, 0], ..answer() },
        ];
        for result in broken {
            let Err(ShardError::Protocol(text)) = check(&record(), &result) else { panic!("accepted {result:?}") };
            assert!(text.starts_with("the plan was epoch 1 step 5, the result has"), "{text}");
        }
    }
}

//! Drives shards through one scripted sequence, as the router would, and prints what they answered as JSON. The shards
//! may be written in any language: this is the other end for testing one.
//!
//! `drive_shards TOKENS SOCKET...`, the sockets rank by rank: one prompt in two chunks, then `TOKENS` generated tokens
//! with one step of lookahead, then the release of the row.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use text_generation_protocol::v1::{NewSequence, PlanFlag, Sampling, StepPlan, StepResult, WarmupRequest};
use text_generation_router::shard::{PlanSender, ResultReceiver, ShardGroup};

const SLOT: u32 = 1;
const PROMPT: [u32; 5] = [11, 12, 13, 14, 15];
/// Tokens of the first chunk.
const CHUNK: u32 = 3;
const LONGEST_STEP: Duration = Duration::from_secs(10);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let usage = "usage: drive_shards TOKENS SOCKET...";
    let mut arguments = std::env::args_os().skip(1);
    let tokens: u64 = arguments.next().ok_or(usage)?.to_str().ok_or(usage)?.parse()?;
    let sockets: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let report = drive(&sockets, tokens).await?;
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}

async fn drive(sockets: &[PathBuf], tokens: u64) -> Outcome<Value> {
    let group = ShardGroup::connect(sockets, |_| ()).await?;
    let asked = WarmupRequest { max_total_tokens: 64, max_sequences: 4, ..WarmupRequest::default() };
    let capacity = group.warmup(asked).await?;
    let (mut plans, mut results) = group.open().await?;
    let answers = run(&mut plans, &mut results, tokens, group.info().block_size).await?;
    group.health(LONGEST_STEP).await?;
    Ok(json!({
        "vocab_size": group.info().vocab_size,
        "blocks": capacity.blocks,
        "steps": answers.iter().map(|answer| answer.step).collect::<Vec<_>>(),
        "token_ids": answers.iter().flat_map(|answer| answer.token_ids.clone()).collect::<Vec<_>>(),
        "logprobs": answers.iter().flat_map(|answer| answer.logprobs.clone()).collect::<Vec<_>>(),
    }))
}

/// Sends every plan, at most one ahead of the results, and returns the results.
async fn run(
    plans: &mut PlanSender,
    results: &mut ResultReceiver,
    tokens: u64,
    block_size: u32,
) -> Outcome<Vec<StepResult>> {
    let release = StepPlan { step: tokens + 2, released_slots: vec![SLOT], ..StepPlan::default() };
    let script = [begin(1, block_size, tokens), row(2, PROMPT.len() as u32 - CHUNK, true)];
    let script = script.into_iter().chain((3..tokens + 2).map(|step| row(step, 1, true))).chain([release]);
    let mut answers = Vec::new();
    for plan in script {
        let ahead = plan.step > 1;
        plans.send(plan)?;
        if ahead {
            answers.push(results.next().await?);
        }
    }
    answers.push(results.next().await?);
    Ok(answers)
}

/// The first plan: the sequence with every block that it will need, and its first chunk.
fn begin(step: u64, block_size: u32, tokens: u64) -> StepPlan {
    let blocks = (PROMPT.len() as u32 + tokens as u32).div_ceil(block_size);
    let sampling = Sampling { top_p: 1.0, typical_p: 1.0, repetition_penalty: 1.0, ..Sampling::default() };
    let sequence = NewSequence {
        slot: SLOT,
        token_ids: PROMPT.to_vec(),
        prompt_length: PROMPT.len() as u32,
        block_ids: (0..blocks).collect(),
        sampling: Some(sampling),
        ..NewSequence::default()
    };
    StepPlan { new_sequences: vec![sequence], ..row(step, CHUNK, false) }
}

/// A plan that runs the row.
fn row(step: u64, tokens: u32, sample: bool) -> StepPlan {
    StepPlan {
        step,
        slots: vec![SLOT],
        token_counts: vec![tokens],
        row_flags: vec![if sample { PlanFlag::Sample as u32 } else { 0 }],
        block_counts: vec![0],
        ..StepPlan::default()
    }
}

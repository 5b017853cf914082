//! The shard group against fake shards, three ranks at a time.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use text_generation_protocol::fake::{FakeShard, FakeShardHandle, Fault, HashModel};
use text_generation_protocol::v1;

use super::{PlanSender, ResultReceiver, ShardError, ShardGroup};

const RANKS: u32 = 3;

/// No wait of a test may last longer.
const PATIENCE: Duration = Duration::from_secs(10);

struct Shards {
    handles: Vec<FakeShardHandle>,
    sockets: Vec<PathBuf>,
    _folder: TempDir,
}

fn start(change: impl Fn(u32, FakeShard) -> FakeShard) -> Shards {
    let folder = tempfile::tempdir().unwrap();
    let sockets: Vec<PathBuf> = (0..RANKS).map(|rank| folder.path().join(format!("{rank}.sock"))).collect();
    let serve = |rank: u32| change(rank, FakeShard::builder().rank(rank, RANKS)).serve(&sockets[rank as usize]);
    let handles = (0..RANKS).map(|rank| serve(rank).unwrap()).collect();
    Shards { handles, sockets, _folder: folder }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("a hang")
}

async fn group(shards: &Shards) -> ShardGroup {
    soon(ShardGroup::connect(&shards.sockets, |_| ())).await.unwrap()
}

async fn opened(shards: &Shards) -> (PlanSender, ResultReceiver) {
    let group = group(shards).await;
    soon(group.warmup(v1::WarmupRequest::default())).await.unwrap();
    soon(group.open()).await.unwrap()
}

fn greedy() -> v1::Sampling {
    v1::Sampling { repetition_penalty: 1.0, top_p: 1.0, typical_p: 1.0, ..v1::Sampling::default() }
}

fn prefill(step: u64, tokens: &[u32]) -> v1::StepPlan {
    let count = tokens.len() as u32;
    let sequence = v1::NewSequence {
        slot: 0,
        token_ids: tokens.to_vec(),
        prompt_length: count,
        block_ids: vec![0],
        sampling: Some(greedy()),
        ..v1::NewSequence::default()
    };
    v1::StepPlan { new_sequences: vec![sequence], ..run(step, count) }
}

fn run(step: u64, count: u32) -> v1::StepPlan {
    v1::StepPlan {
        step,
        slots: vec![0],
        token_counts: vec![count],
        row_flags: vec![1],
        block_counts: vec![0],
        ..v1::StepPlan::default()
    }
}

/// Sends two steps and returns the first error.
async fn broken(shards: &Shards) -> ShardError {
    let (plans, mut results) = opened(shards).await;
    plans.send(prefill(1, &[5, 6])).unwrap();
    plans.send(run(2, 1)).unwrap();
    soon(results.next()).await.unwrap();
    soon(results.next()).await.unwrap_err()
}

#[tokio::test]
async fn steps_run_on_every_rank_with_lookahead() {
    let shards = start(|_, shard| shard);
    let (plans, mut results) = opened(&shards).await;
    plans.send(prefill(1, &[5, 6, 7])).unwrap();
    let mut tokens = Vec::new();
    for step in 2..10 {
        plans.send(run(step, 1)).unwrap();
        tokens.extend(soon(results.next()).await.unwrap().token_ids);
    }
    assert_eq!(tokens, HashModel::default().generate(&[5, 6, 7], &greedy(), 8));
    soon(results.next()).await.unwrap();
    assert!(shards.handles.iter().all(|shard| shard.plans().len() == 9));
    assert_eq!(shards.handles[0].plans(), shards.handles[2].plans());
}

#[tokio::test]
async fn loading_is_waited_for_and_reported() {
    let shards = start(|_, shard| shard.load_time(Duration::from_millis(250)));
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let tell = move |text| told.send(text).unwrap();
    soon(ShardGroup::connect(&shards.sockets, tell)).await.unwrap().health(PATIENCE).await.unwrap();
    let mut texts = Vec::new();
    while let Ok(text) = heard.try_recv() {
        texts.push(text);
    }
    assert!(texts.iter().any(|text| text.contains("shard 1: loading weights, 1 of 2 layers")), "{texts:?}");
}

#[tokio::test]
async fn the_least_capacity_counts() {
    let shards = start(|rank, shard| shard.cache(100 - rank, 16));
    let capacity = group(&shards).await.warmup(v1::WarmupRequest::default()).await.unwrap();
    assert_eq!(capacity.blocks, 98);
}

#[tokio::test]
async fn ranks_that_disagree_are_refused() {
    let shards = start(|rank, shard| shard.cache(64, if rank == 2 { 32 } else { 16 }));
    let error = soon(ShardGroup::connect(&shards.sockets, |_| ())).await.unwrap_err();
    assert_eq!(error.to_string(), "shards disagree: rank 2 says block size 32, expected 16");
}

#[tokio::test]
async fn a_failure_to_load_or_warm_up_names_the_rank() {
    let only = |rank, fault| move |index, shard: FakeShard| if index == rank { shard.fault(fault) } else { shard };
    let shards = start(only(1, Fault::FailLoading));
    let error = soon(ShardGroup::connect(&shards.sockets, |_| ())).await.unwrap_err();
    assert_eq!(error.to_string(), "shard 1 failed: model.safetensors is truncated");
    let shards = start(only(2, Fault::RefuseWarmup));
    let error = soon(group(&shards).await.warmup(v1::WarmupRequest::default())).await.unwrap_err();
    assert_eq!(error.to_string(), "shard 2 failed: the KV cache needs 9 GiB, 8 GiB are free");
}

#[tokio::test]
async fn a_failure_is_noticed_while_another_rank_is_missing() {
    let mut shards = start(|rank, shard| if rank == 1 { shard.fault(Fault::FailLoading) } else { shard });
    shards.sockets[0] = PathBuf::from("/nowhere/0.sock");
    let error = soon(ShardGroup::connect(&shards.sockets, |_| ())).await.unwrap_err();
    assert_eq!(error.to_string(), "shard 1 failed: model.safetensors is truncated");
}

#[tokio::test]
async fn rank_0_knows_how_many_there_are() {
    let shards = start(|_, shard| shard);
    assert_eq!(soon(ShardGroup::world_size(&shards.sockets[0], |_| ())).await.unwrap(), RANKS as usize);
}

#[tokio::test]
async fn a_step_that_hangs_is_seen_by_its_health() {
    let shards = start(|rank, shard| if rank == 1 { shard.fault(Fault::HangAtStep(2)) } else { shard });
    let group = group(&shards).await;
    soon(group.warmup(v1::WarmupRequest::default())).await.unwrap();
    let (plans, mut results) = soon(group.open()).await.unwrap();
    plans.send(prefill(1, &[5, 6])).unwrap();
    plans.send(run(2, 1)).unwrap();
    soon(results.next()).await.unwrap();
    let hangs = async {
        loop {
            if let Err(error) = group.health(Duration::ZERO).await {
                return error;
            }
        }
    };
    let error = soon(hangs).await;
    assert_eq!(error.to_string(), "shard 1 hangs: the step after 1 has been running for 0 s");
    soon(group.health(PATIENCE)).await.unwrap();
}

#[tokio::test]
async fn a_rank_that_dies_or_fails_ends_the_step_while_others_hang() {
    let hang_but =
        |fault| move |rank, shard: FakeShard| shard.fault(if rank == 2 { fault } else { Fault::HangAtStep(2) });
    let error = broken(&start(hang_but(Fault::KillAtStep(2)))).await;
    assert!(matches!(error, ShardError::Gone { rank: 2, .. }), "{error:?}");
    let error = broken(&start(hang_but(Fault::OutOfMemoryAtStep(2)))).await;
    assert!(matches!(&error, ShardError::Failed { rank: 2, reason } if reason.contains("out of memory")), "{error:?}");
}

#[tokio::test]
async fn a_broken_rule_is_named() {
    let shards = start(|_, shard| shard);
    let (plans, mut results) = opened(&shards).await;
    plans.send(run(1, 1)).unwrap();
    let error = soon(results.next()).await.unwrap_err();
    assert!(error.to_string().contains("slot 0 runs but is not live"), "{error}");
    // The first rank to refuse ends the step; the others may not have seen the plan yet.
    let said = |handle: &FakeShardHandle| handle.failure().as_deref() == Some("slot 0 runs but is not live");
    assert!(shards.handles.iter().any(said));
}

#[tokio::test]
async fn a_row_that_is_not_finite_is_flagged() {
    let shards = start(|_, shard| shard.fault(Fault::NotFinite { slot: 0, token_index: 0 }));
    let (plans, mut results) = opened(&shards).await;
    plans.send(prefill(1, &[5])).unwrap();
    let result = soon(results.next()).await.unwrap();
    assert_eq!((result.row_flags, result.token_ids), (vec![v1::ResultFlag::RowNotFinite as u32], vec![0]));
}

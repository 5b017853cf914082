//! A scripted shard for the engine's tests. It checks every plan against the rules of the protocol, keeps a cache whose
//! content it verifies, and samples a token that depends on every token before it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use text_generation_protocol::v1::{NewSequence, PlanFlag, PromptLogprobs, ResultFlag, Sampling, StepPlan, StepResult};

use crate::engine::budget::PREFILL_SHARE;
use crate::engine::{EngineLimits, Geometry, PlanPort, ResultPort};
use crate::shard::ShardError;

/// Vocabulary: 0 is the end token, the others are letters.
pub const VOCABULARY: u32 = 12;
/// A prompt that begins with this token has logits that are not finite.
pub const POISON: u32 = VOCABULARY;

/// The token that follows these.
pub fn next_token(tokens: &[u32]) -> u32 {
    (digest(tokens) >> 7) as u32 % VOCABULARY
}

/// The token that follows these where some are barred.
pub fn next_allowed(tokens: &[u32], barred: &[u32]) -> u32 {
    let first = next_token(tokens);
    let others = (first..VOCABULARY).chain(0..first);
    others.into_iter().find(|token| !barred.contains(token)).unwrap_or(first)
}

fn digest(tokens: &[u32]) -> u64 {
    tokens.iter().fold(0x9e37_79b9_7f4a_7c15, |hash: u64, &token| {
        (hash ^ u64::from(token + 1)).wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(23)
    })
}

struct Row {
    tokens: Vec<u32>,
    prompt_length: usize,
    computed: usize,
    table: Vec<u32>,
    sampling: Sampling,
    describes: bool,
    prompt_top_n: u32,
}

struct State {
    limits: EngineLimits,
    geometry: Geometry,
    rows: Vec<Option<Row>>,
    /// What was written last at each place of the cache: the digest of the tokens up to there.
    cache: Vec<u64>,
    plans: VecDeque<StepPlan>,
    last_step: u64,
    fail_at: Option<u64>,
    /// Plans sent, for tests that look at them.
    log: Vec<StepPlan>,
}

/// Both ends of the scripted shard.
#[derive(Clone)]
pub struct ScriptedShard(Arc<Mutex<State>>);

impl ScriptedShard {
    pub fn new(limits: EngineLimits, geometry: Geometry) -> Self {
        let rows = (0..limits.max_batch_size).map(|_| None).collect();
        let cache = vec![0; geometry.cache_tokens()];
        let (plans, log) = (VecDeque::new(), Vec::new());
        let state = State { limits, geometry, rows, cache, plans, last_step: 0, fail_at: None, log };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Fails instead of answering this step.
    pub fn fail_at(&self, step: u64) {
        self.0.lock().fail_at = Some(step);
    }

    pub fn live_rows(&self) -> usize {
        self.0.lock().rows.iter().flatten().count()
    }

    pub fn plans(&self) -> Vec<StepPlan> {
        self.0.lock().log.clone()
    }
}

impl PlanPort for ScriptedShard {
    fn send(&mut self, plan: StepPlan) -> Result<(), ShardError> {
        let mut state = self.0.lock();
        state.last_step += 1;
        assert_eq!((plan.epoch, plan.step), (1, state.last_step), "steps count up by one");
        state.log.push(plan.clone());
        state.plans.push_back(plan);
        assert!(state.plans.len() <= 2, "one step of lookahead, never more");
        Ok(())
    }
}

impl ResultPort for ScriptedShard {
    async fn next(&mut self) -> Result<StepResult, ShardError> {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        let mut state = self.0.lock();
        let plan = state.plans.pop_front().expect("a result is awaited only when a plan is under way");
        if state.fail_at == Some(plan.step) {
            return Err(ShardError::Gone { rank: 0, reason: "killed".into() });
        }
        Ok(state.run(&plan))
    }
}

impl State {
    fn run(&mut self, plan: &StepPlan) -> StepResult {
        self.check_budgets(plan);
        for &slot in &plan.released_slots {
            assert!(self.rows[slot as usize].take().is_some(), "released row {slot} does not live");
        }
        for new in &plan.new_sequences {
            self.begin(new);
        }
        let mut result = StepResult { epoch: plan.epoch, step: plan.step, ..StepResult::default() };
        let mut ids = plan.block_ids.as_slice();
        for (index, &slot) in plan.slots.iter().enumerate() {
            let (appended, rest) = ids.split_at(plan.block_counts[index] as usize);
            ids = rest;
            let samples = plan.row_flags[index] == PlanFlag::Sample as u32;
            self.run_row(slot, plan.token_counts[index] as usize, appended, samples, &mut result);
        }
        assert!(ids.is_empty(), "more block ids than counted");
        result
    }

    fn check_budgets(&self, plan: &StepPlan) {
        let rows = plan.slots.len();
        assert!(rows > 0 || !plan.released_slots.is_empty(), "a plan does something");
        assert!(plan.copy_from.is_empty() && plan.copy_to.is_empty());
        let lengths = [plan.token_counts.len(), plan.row_flags.len(), plan.block_counts.len()];
        assert_eq!(lengths, [rows; 3], "arrays of the same length");
        assert_eq!(plan.slots.iter().collect::<HashSet<_>>().len(), rows, "a row runs once a step");
        let is_new = |slot: u32| plan.new_sequences.iter().any(|new| new.slot == slot);
        let in_prompt = |slot: u32| {
            is_new(slot) || self.rows[slot as usize].as_ref().is_some_and(|row| row.computed < row.prompt_length)
        };
        let counts = || plan.slots.iter().copied().zip(plan.token_counts.iter().map(|&count| count as usize));
        let total: usize = counts().map(|(_, count)| count).sum();
        let prefill: usize = counts().filter(|(slot, _)| in_prompt(*slot)).map(|(_, count)| count).sum();
        assert!(total <= self.geometry.max_step_tokens, "{total} tokens in a step");
        assert!(prefill <= self.limits.max_batch_prefill_tokens, "{prefill} prompt tokens in a step");
        assert!(prefill == total || prefill <= PREFILL_SHARE);
    }

    fn begin(&mut self, new: &NewSequence) {
        assert!(self.rows[new.slot as usize].is_none(), "row {} lives already", new.slot);
        assert_eq!(new.token_ids.len(), new.prompt_length as usize);
        assert_eq!(new.computed, 0, "nothing is cached yet");
        self.check_blocks(&new.block_ids);
        self.rows[new.slot as usize] = Some(Row {
            tokens: new.token_ids.clone(),
            prompt_length: new.prompt_length as usize,
            computed: 0,
            table: new.block_ids.clone(),
            sampling: new.sampling.clone().expect("sampling parameters"),
            describes: new.prompt_logprobs,
            prompt_top_n: new.prompt_top_n,
        });
    }

    fn check_blocks(&self, ids: &[u32]) {
        for id in ids {
            assert!(*id < self.geometry.blocks, "block {id} does not exist");
            let shared = self.rows.iter().flatten().any(|row| row.table.contains(id));
            assert!(!shared, "block {id} belongs to a live row");
        }
    }

    fn run_row(&mut self, slot: u32, count: usize, appended: &[u32], samples: bool, result: &mut StepResult) {
        self.check_blocks(appended);
        let block_size = self.geometry.block_size;
        let row = self.rows[slot as usize].as_mut().expect("the row lives");
        row.table.extend_from_slice(appended);
        let place =
            |row: &Row, position: usize| row.table[position / block_size] as usize * block_size + position % block_size;
        assert!(count > 0 && row.computed + count <= row.tokens.len(), "runs tokens that are known");
        for position in row.computed..row.computed + count {
            let place = place(row, position);
            self.cache[place] = digest(&row.tokens[..=position]);
        }
        let first = row.computed + 1;
        row.computed += count;
        if row.describes && first < row.prompt_length {
            let end = (row.computed + 1).min(row.prompt_length);
            let logprobs = (first..end).map(|position| -(position as f32)).collect();
            let top_ids = (first..end).flat_map(|_| 1..=row.prompt_top_n).collect();
            let top_logprobs = (first..end).flat_map(|_| (0..row.prompt_top_n).map(|rank| -(rank as f32))).collect();
            let position = first as u32;
            result.prompt_logprobs.push(PromptLogprobs { slot, position, logprobs, top_ids, top_logprobs });
        }
        assert_eq!(samples, row.computed == row.tokens.len(), "samples exactly at the last known token");
        assert!(row.tokens.len() <= self.limits.max_total_tokens, "no row is planned beyond the limit");
        if !samples {
            return;
        }
        for position in 0..row.computed {
            assert_eq!(self.cache[place(row, position)], digest(&row.tokens[..=position]), "another row wrote here");
        }
        let poisoned = row.tokens[0] == POISON;
        let generated = (row.tokens.len() - row.prompt_length) as u32;
        let barred = if generated < row.sampling.min_tokens { row.sampling.end_ids.as_slice() } else { &[] };
        let token = if poisoned { 0 } else { next_allowed(&row.tokens, barred) };
        let top_n = row.sampling.top_n;
        row.tokens.push(token);
        result.slots.push(slot);
        result.token_counts.push(1);
        result.row_flags.push(if poisoned { ResultFlag::RowNotFinite as u32 } else { 0 });
        result.token_ids.push(token);
        result.logprobs.push(-1.0);
        result.top_counts.push(top_n);
        result.top_ids.extend((0..top_n).map(|rank| (token + rank) % VOCABULARY));
        result.top_logprobs.extend((0..top_n).map(|rank| -(rank as f32)));
    }
}

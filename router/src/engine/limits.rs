//! What the engine can hold, found from the configured limits and from what the shards measured at warm-up. The only
//! place where the two are weighed against each other; everything else takes the result as given.

use text_generation_protocol::config::Limits;
use text_generation_protocol::v1::{Capacity, InfoResponse, WarmupRequest};

use crate::model::ModelConfig;

/// The bounds that clients and `/info` see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// Longest prompt, in tokens.
    pub max_input_tokens: usize,
    /// Longest prompt and completion together, in tokens.
    pub max_total_tokens: usize,
    /// Most prompt tokens computed in one step.
    pub max_batch_prefill_tokens: usize,
    /// KV cache size, in tokens.
    pub max_batch_total_tokens: usize,
    /// Most sequences that run at once.
    pub max_batch_size: usize,
}

/// The shape of the shards' memory and steps, as the planner needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// KV blocks, ids from 0.
    pub blocks: u32,
    /// Tokens a block.
    pub block_size: usize,
    /// Most tokens of one step, prefill and decode together.
    pub max_step_tokens: usize,
}

/// Why a configured limit cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// A flag asks for more than there is.
    #[error("`{flag} {given}` is more than {bound}, {available}; lower `{flag}` to {available} or less{otherwise}")]
    TooLarge {
        /// The flag.
        flag: &'static str,
        /// Its value.
        given: usize,
        /// What bounds it, for people.
        bound: &'static str,
        /// The largest value that fits.
        available: usize,
        /// Another way out, or nothing.
        otherwise: &'static str,
    },
    /// A flag of 0 would serve nobody.
    #[error("`{flag} 0` would serve no request; give at least 1, or leave it out to have it found from the memory")]
    Zero {
        /// The flag.
        flag: &'static str,
    },
    /// No generation fits at all.
    #[error(
        "the shards can hold sequences of {available} tokens, and a prompt with its completion needs at least 2; \
         free device memory, or raise `--max-total-tokens` or `--max-batch-total-tokens` where they are given"
    )]
    NoRoom {
        /// Tokens of the longest sequence.
        available: usize,
    },
}

const MAX_INPUT_TOKENS: &str = "--max-input-tokens";
const MAX_TOTAL_TOKENS: &str = "--max-total-tokens";
const MAX_BATCH_PREFILL_TOKENS: &str = "--max-batch-prefill-tokens";
const MAX_BATCH_TOTAL_TOKENS: &str = "--max-batch-total-tokens";
const MAX_BATCH_SIZE: &str = "--max-batch-size";

/// The shortest sequence that generates anything: one token of prompt, one of completion.
const SHORTEST_SEQUENCE: usize = 2;

// === impl EngineLimits ===

impl EngineLimits {
    /// Weighs the configured limits against what the shards can hold.
    ///
    /// # Errors
    /// `LimitsError` when a given value does not fit; the text names both numbers and the way out.
    pub fn resolve(
        limits: &Limits,
        info: &InfoResponse,
        capacity: &Capacity,
        model: &ModelConfig,
    ) -> Result<Self, LimitsError> {
        let geometry = Geometry::new(info, capacity);
        let max_total_tokens = max_total_tokens(limits, info, capacity, model)?;
        let max_step_tokens = geometry.max_step_tokens;
        // A step must have a token for each running sequence, so that none of them has to sit out.
        let rows = (capacity.max_sequences as usize).min(max_step_tokens);
        Ok(Self {
            max_input_tokens: at_most(
                MAX_INPUT_TOKENS,
                limits.max_input_tokens,
                max_total_tokens - 1,
                "the longest sequence less one generated token",
                ", or raise `--max-total-tokens`",
            )?,
            max_total_tokens,
            max_batch_prefill_tokens: at_most(
                MAX_BATCH_PREFILL_TOKENS,
                limits.max_batch_prefill_tokens,
                max_step_tokens,
                "the shards can compute in one step",
                "",
            )?,
            max_batch_total_tokens: geometry.cache_tokens(),
            max_batch_size: at_most(
                MAX_BATCH_SIZE,
                limits.max_batch_size,
                rows,
                "the shards can run at once",
                ", or raise `--max-batch-prefill-tokens`",
            )?,
        })
    }
}

// === impl Geometry ===

impl Geometry {
    /// From the shards' own figures.
    pub fn new(info: &InfoResponse, capacity: &Capacity) -> Self {
        Self {
            blocks: capacity.blocks,
            block_size: info.block_size.max(1) as usize,
            max_step_tokens: capacity.max_step_tokens as usize,
        }
    }

    /// KV cache size, in tokens.
    pub fn cache_tokens(&self) -> usize {
        self.blocks as usize * self.block_size
    }
}

/// What to ask the shards for at warm-up, so that the configured limits can be kept.
pub fn warmup_request(limits: &Limits) -> WarmupRequest {
    // A small bound on prompts must not bound how many may run: each running sequence takes a token of every step.
    let rows = limits.max_batch_size.unwrap_or(limits.max_concurrent_requests);
    let max_step_tokens = limits.max_batch_prefill_tokens.map(|tokens| tokens.max(rows));
    WarmupRequest {
        max_total_tokens: or_automatic(limits.max_total_tokens),
        max_sequences: or_automatic(limits.max_batch_size),
        max_step_tokens: or_automatic(max_step_tokens),
        max_cache_tokens: or_automatic(limits.max_batch_total_tokens),
    }
}

/// A figure of `WarmupRequest`, where 0 leaves the choice to the shard.
fn or_automatic(given: Option<usize>) -> u32 {
    given.map_or(0, |given| u32::try_from(given).unwrap_or(u32::MAX))
}

fn max_total_tokens(
    limits: &Limits,
    info: &InfoResponse,
    capacity: &Capacity,
    model: &ModelConfig,
) -> Result<usize, LimitsError> {
    let geometry = Geometry::new(info, capacity);
    if let Some(given) = limits.max_batch_total_tokens
        && given / geometry.block_size > geometry.blocks as usize
    {
        let (flag, available) = (MAX_BATCH_TOTAL_TOKENS, geometry.cache_tokens());
        return Err(LimitsError::TooLarge { flag, given, bound: "the KV cache holds", available, otherwise: "" });
    }
    // The shard knows of changed rope scaling, the files do not: its figure goes first.
    let positions = Some(info.max_positions as usize).filter(|&positions| positions > 0).or(model.max_positions);
    let bounds = [
        (capacity.max_total_tokens as usize, "a row of the shards holds"),
        (geometry.cache_tokens(), "the KV cache holds"),
        (positions.unwrap_or(usize::MAX), "the positions of the model allow"),
    ];
    let (available, bound) = bounds.into_iter().min_by_key(|(tokens, _)| *tokens).unwrap_or_default();
    let total = at_most(MAX_TOTAL_TOKENS, limits.max_total_tokens, available, bound, "")?;
    if total < SHORTEST_SEQUENCE {
        return Err(LimitsError::NoRoom { available: total });
    }
    Ok(total)
}

/// The given value if it fits, the largest one that does if none was given.
fn at_most(
    flag: &'static str,
    given: Option<usize>,
    available: usize,
    bound: &'static str,
    otherwise: &'static str,
) -> Result<usize, LimitsError> {
    match given {
        None => Ok(available),
        Some(0) => Err(LimitsError::Zero { flag }),
        Some(given) if given > available => Err(LimitsError::TooLarge { flag, given, bound, available, otherwise }),
        Some(given) => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards() -> (InfoResponse, Capacity) {
        let info = InfoResponse { block_size: 16, max_positions: 2048, ..Default::default() };
        let capacity = Capacity { blocks: 256, max_sequences: 64, max_step_tokens: 2048, max_total_tokens: 4096 };
        (info, capacity)
    }

    fn resolve(limits: &Limits) -> Result<EngineLimits, LimitsError> {
        let (info, capacity) = shards();
        EngineLimits::resolve(limits, &info, &capacity, &ModelConfig::default())
    }

    #[test]
    fn everything_is_found_when_nothing_is_given() {
        let found = resolve(&Limits::default()).expect("fits");
        let expected = EngineLimits {
            max_input_tokens: 2047,
            max_total_tokens: 2048,
            max_batch_prefill_tokens: 2048,
            max_batch_total_tokens: 4096,
            max_batch_size: 64,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn given_values_are_kept() {
        let limits = Limits {
            max_input_tokens: Some(100),
            max_total_tokens: Some(200),
            max_batch_prefill_tokens: Some(64),
            max_batch_size: Some(8),
            ..Limits::default()
        };
        let found = resolve(&limits).expect("fits");
        assert_eq!((found.max_input_tokens, found.max_total_tokens), (100, 200));
        assert_eq!((found.max_batch_prefill_tokens, found.max_batch_size), (64, 8));
    }

    #[test]
    fn the_least_bound_decides() {
        let (mut info, mut capacity) = shards();
        let model = ModelConfig { max_positions: Some(1000), ..Default::default() };
        let total = |info: &InfoResponse, capacity: &Capacity| {
            EngineLimits::resolve(&Limits::default(), info, capacity, &model).map(|found| found.max_total_tokens)
        };
        assert_eq!(total(&info, &capacity), Ok(2048), "the shard's positions go before the file's");
        info.max_positions = 0;
        assert_eq!(total(&info, &capacity), Ok(1000));
        capacity.blocks = 10;
        assert_eq!(total(&info, &capacity), Ok(160));
        capacity.max_total_tokens = 1;
        assert_eq!(total(&info, &capacity), Err(LimitsError::NoRoom { available: 1 }));
    }

    #[test]
    fn a_refusal_names_both_numbers_and_the_way_out() {
        let text = |limits: Limits| resolve(&limits).expect_err("does not fit").to_string();
        assert_eq!(
            text(Limits { max_total_tokens: Some(3000), ..Limits::default() }),
            "`--max-total-tokens 3000` is more than the positions of the model allow, 2048; \
             lower `--max-total-tokens` to 2048 or less"
        );
        assert_eq!(
            text(Limits { max_input_tokens: Some(200), max_total_tokens: Some(200), ..Limits::default() }),
            "`--max-input-tokens 200` is more than the longest sequence less one generated token, 199; \
             lower `--max-input-tokens` to 199 or less, or raise `--max-total-tokens`"
        );
        assert!(text(Limits { max_batch_total_tokens: Some(5000), ..Limits::default() }).contains("4096"));
        assert!(text(Limits { max_batch_size: Some(65), ..Limits::default() }).contains("64"));
        assert!(text(Limits { max_batch_prefill_tokens: Some(0), ..Limits::default() }).contains("at least 1"));
    }

    #[test]
    fn warmup_asks_for_what_was_given() {
        let limits = Limits {
            max_total_tokens: Some(4096),
            max_batch_prefill_tokens: Some(16),
            max_batch_size: Some(32),
            ..Limits::default()
        };
        let request = warmup_request(&limits);
        assert_eq!((request.max_total_tokens, request.max_sequences), (4096, 32));
        assert_eq!((request.max_step_tokens, request.max_cache_tokens), (32, 0));
        assert_eq!(warmup_request(&Limits { max_batch_size: None, ..limits }).max_step_tokens, 128);
    }
}

//! The engine: one task that owns every sequence. It admits entries, plans steps, sends them to the shards, and turns
//! results into events. Knows nothing of HTTP.

mod budget;
mod commit;
mod draft;
mod emit;
mod handle;
mod limits;
mod observer;
mod plan;
mod port;
mod prompt_scores;
mod rows;
mod rules;
mod sequence;
mod step;
#[cfg(test)]
mod tests;

pub use handle::{Engine, EngineStatus};
pub use limits::{EngineLimits, Geometry, LimitsError, warmup_request};
pub use observer::{NoObserver, Observer, StepKind, StepReport};
pub use port::{PlanPort, ResultPort};
pub use rules::Rules;
pub use step::{EngineSetup, start};

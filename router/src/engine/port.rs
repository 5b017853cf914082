//! The two ends of the step stream as the engine sees them. The shard group implements them; tests put a scripted
//! shard in its place.

use std::future::Future;

use text_generation_protocol::v1::{StepPlan, StepResult};

use crate::shard::{PlanSender, ResultReceiver, ShardError};

/// Where plans go.
pub trait PlanPort: Send + 'static {
    /// Sends one plan to every rank. Does not wait.
    ///
    /// # Errors
    /// `ShardError` when the stream has ended.
    fn send(&mut self, plan: StepPlan) -> Result<(), ShardError>;
}

/// Where results come from.
pub trait ResultPort: Send + 'static {
    /// The result of the oldest plan that has none yet.
    ///
    /// # Errors
    /// `ShardError` when the stream has ended.
    fn next(&mut self) -> impl Future<Output = Result<StepResult, ShardError>> + Send;
}

impl PlanPort for PlanSender {
    fn send(&mut self, plan: StepPlan) -> Result<(), ShardError> {
        Self::send(self, plan)
    }
}

impl ResultPort for ResultReceiver {
    async fn next(&mut self) -> Result<StepResult, ShardError> {
        Self::next(self).await
    }
}

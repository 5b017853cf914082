//! The launcher's end of the router's standard input: reasons for not being ready, then the model, then its end.

use text_generation_protocol::control::{ControlMessage, PreparedModel};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::sync::watch;

use super::AppError;
use crate::http::Readiness;

/// The control channel.
#[derive(Debug)]
pub struct Control {
    lines: Lines<BufReader<Stdin>>,
}

// === impl Control ===

impl Control {
    /// Reads standard input from now on.
    pub fn open() -> Self {
        Self { lines: BufReader::new(tokio::io::stdin()).lines() }
    }

    /// Shows the launcher's reasons until the model is prepared; `None` when the launcher is gone.
    ///
    /// # Errors
    /// For a line that is no `ControlMessage`.
    pub async fn model(&mut self, readiness: &watch::Sender<Readiness>) -> Result<Option<PreparedModel>, AppError> {
        while let Some(message) = self.next().await? {
            match message {
                ControlMessage::Status { reason } => {
                    readiness.send_replace(Readiness::Starting(reason.into()));
                }
                ControlMessage::Model(model) => return Ok(Some(model)),
            }
        }
        Ok(None)
    }

    /// Waits for the end of the launcher; reasons that come late are logged.
    ///
    /// # Errors
    /// For a line that is no `ControlMessage`.
    pub async fn closed(&mut self) -> Result<(), AppError> {
        while let Some(message) = self.next().await? {
            tracing::debug!(?message, "a control message came after the model");
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<ControlMessage>, AppError> {
        let unusable = |reason: String| {
            AppError::new(
                format!("the control channel cannot be read: {reason}"),
                "Install launcher and router of the same version.",
            )
        };
        let Some(line) = self.lines.next_line().await.map_err(|error| unusable(error.to_string()))? else {
            return Ok(None);
        };
        serde_json::from_str(&line).map(Some).map_err(|error| unusable(error.to_string()))
    }
}

//! The launcher's end of the router's standard input: reasons for not being ready, then the model, then its end.

use text_generation_protocol::control::{ControlMessage, PreparedModel};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines, Stdin};
use tokio::sync::watch;

use super::AppError;
use crate::http::Readiness;

/// The control channel.
#[derive(Debug)]
pub struct Control<R = Stdin> {
    lines: Lines<BufReader<R>>,
}

// === impl Control ===

impl Control {
    /// Reads standard input from now on.
    pub fn open() -> Self {
        Self::reading(tokio::io::stdin())
    }
}

impl<R: AsyncRead + Unpin> Control<R> {
    fn reading(input: R) -> Self {
        Self { lines: BufReader::new(input).lines() }
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

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = r#"{"type": "status", "reason": "downloading, 34 %"}"#;
    const MODEL: &str = r#"{"type": "model", "folder": "/m", "model_id": "demo"}"#;

    fn starting() -> watch::Sender<Readiness> {
        watch::Sender::new(Readiness::Starting("starting".into()))
    }

    #[tokio::test]
    async fn reasons_are_shown_until_the_model_is_named() {
        let text = format!("{STATUS}\n{MODEL}\n{STATUS}\n");
        let (readiness, mut control) = (starting(), Control::reading(text.as_bytes()));
        let model = control.model(&readiness).await.unwrap().unwrap();
        assert_eq!((model.model_id.as_str(), model.revision_sha), ("demo", None));
        assert!(matches!(&*readiness.borrow(), Readiness::Starting(reason) if &**reason == "downloading, 34 %"));
        // A late reason is no reason to end; the end of the input is.
        control.closed().await.unwrap();
    }

    #[tokio::test]
    async fn the_end_of_the_input_is_the_end_of_the_launcher() {
        let text = format!("{STATUS}\n");
        assert_eq!(Control::reading(text.as_bytes()).model(&starting()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_line_of_another_version_is_refused() {
        for line in ["no JSON\n", "{\"type\": \"surprise\"}\n"] {
            let refusal = Control::reading(line.as_bytes()).model(&starting()).await.unwrap_err();
            assert!(refusal.cause.starts_with("the control channel cannot be read"), "{refusal}");
            assert!(Control::reading(line.as_bytes()).closed().await.is_err());
        }
    }
}

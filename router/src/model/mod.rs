//! What the router knows of a model from its files: the parts of `config.json` and `generation_config.json` that
//! bound and end a generation.

mod config;
mod files;

pub use config::{ModelConfig, ModelConfigError, SamplingDefaults};
pub(crate) use files::{read_object, read_text};

//! What the router knows of a model from its files: the parts of `config.json` and `generation_config.json` that
//! bound and end a generation.

mod config;

pub use config::{ModelConfig, ModelConfigError, SamplingDefaults};

//! Conversations to prompts: the model's chat template, rendered as `transformers` renders it. Knows nothing of HTTP.

mod template;

pub use template::{ChatTemplate, TemplateError};

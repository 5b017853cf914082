//! Conversations to prompts: the model's chat template, rendered as `transformers` renders it. Knows nothing of HTTP.

mod arguments;
mod continuation;
mod environment;
mod filters;
mod json;
mod methods;
mod python;
mod rewrite;
mod source;
mod splits;
mod template;
mod texts;

pub use source::Replacement;
pub use template::{ChatTemplate, TemplateError};

//! The chat template of a model: found in its files, compiled once, rendered for each conversation.

use std::path::Path;

use chrono::NaiveDateTime;
use minijinja::{Environment, Value};
use serde_json::Map;

use super::continuation::Continuation;
use super::environment;
use super::source::{DEFAULT, Replacement, Sources};
use crate::model::ModelConfigError;
use crate::request::ChatInput;

/// The template that is preferred when a conversation has tools.
const TOOL_USE: &str = "tool_use";

/// Variables that the request's own fields set.
const RESERVED: [&str; 4] = ["messages", "tools", "add_generation_prompt", "continue_final_message"];

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

/// The compiled chat templates of a model.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    sources: Vec<(String, String)>,
    special_tokens: Map<String, serde_json::Value>,
}

// === impl TemplateError ===

impl From<ModelConfigError> for TemplateError {
    fn from(error: ModelConfigError) -> Self {
        Self::Load(error.to_string())
    }
}

// === impl ChatTemplate ===

impl ChatTemplate {
    /// Loads the templates of a model folder (`chat_template.jinja`, `chat_template.json`, `tokenizer_config.json`,
    /// further ones in `additional_chat_templates/`), or their `replacement`; `None` when the model has none.
    ///
    /// # Errors
    /// `TemplateError::Load` when a template is there but cannot be used.
    pub fn load(folder: &Path, replacement: &Replacement) -> Result<Option<Self>, TemplateError> {
        let sources = Sources::find(folder, replacement)?;
        if sources.templates.is_empty() {
            return Ok(None);
        }
        Self::compile(sources, || chrono::Local::now().naive_local()).map(Some)
    }

    /// Compiles templates; `now` is the local time that they see.
    pub(super) fn compile(sources: Sources, now: fn() -> NaiveDateTime) -> Result<Self, TemplateError> {
        let mut environment = environment::build(now)?;
        for (name, source) in &sources.templates {
            environment.add_template_owned(name.clone(), super::rewrite::rewrite(source)).map_err(|error| {
                TemplateError::Load(format!("the chat template `{name}` does not compile: {error}"))
            })?;
        }
        Ok(Self { environment, sources: sources.templates, special_tokens: sources.special_tokens })
    }

    /// The prompt of a conversation. `variables` win over special tokens of the same name.
    ///
    /// # Errors
    /// `TemplateError::Render` with the template's own text when it raises; also when there are no messages, a variable
    /// has a name that the request's own fields set, or the final message cannot be continued.
    pub fn render(&self, input: &ChatInput) -> Result<String, TemplateError> {
        let refuse = |reason: String| Err(TemplateError::Render(reason));
        if input.messages.is_empty() {
            return refuse("the conversation is empty: send at least one message".into());
        }
        if input.add_generation_prompt && input.continue_final_message {
            return refuse("`continue_final_message` and `add_generation_prompt` exclude each other".into());
        }
        if let Some(name) = RESERVED.into_iter().find(|name| input.variables.contains_key(*name)) {
            return refuse(format!("`{name}` cannot be a template variable: use the request's field of that name"));
        }
        let (name, source) = self.choose(input.tools.is_some())?;
        if !input.continue_final_message {
            return self.render_messages(name, input, &input.messages);
        }
        let (continuation, messages) = Continuation::mark(&input.messages, source)?;
        continuation.cut(self.render_messages(name, input, &messages)?)
    }

    /// The template for a conversation with or without tools, and its text.
    fn choose(&self, tools: bool) -> Result<(&str, &str), TemplateError> {
        let find = |wanted: &str| self.sources.iter().find(|(name, _)| name == wanted);
        let found = find(TOOL_USE).filter(|_| tools).or_else(|| find(DEFAULT));
        found.map(|(name, source)| (name.as_str(), source.as_str())).ok_or_else(|| {
            let names: Vec<&str> = self.sources.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join("`, `");
            TemplateError::Render(format!("the model has no chat template named `{DEFAULT}`, only `{names}`"))
        })
    }

    fn render_messages(
        &self,
        name: &str,
        input: &ChatInput,
        messages: &[serde_json::Value],
    ) -> Result<String, TemplateError> {
        let mut context: Vec<(&str, Value)> = vec![("documents", Value::from(()))];
        for (name, value) in self.special_tokens.iter().chain(&input.variables) {
            context.push((name, environment::value(value)));
        }
        context.push(("messages", messages.iter().map(environment::value).collect()));
        context.push(("tools", input.tools.as_ref().map_or_else(|| Value::from(()), environment::value)));
        context.push(("add_generation_prompt", Value::from(input.add_generation_prompt)));
        let template = self.environment.get_template(name);
        let rendered = template.and_then(|template| template.render(Value::from_pairs(context)));
        rendered.map_err(|error| TemplateError::Render(environment::reason(&error)))
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;

//! Leaving the final message open: the template closes every message, so a mark is put behind the final one and the
//! rendered text is cut there. The rules are those of `transformers`.

use serde_json::Value;

use super::TemplateError;
use super::python;

/// Stands behind the final message while it is rendered. The space tells whether the template trims messages.
const MARK: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// The field that is continued.
const FIELD: &str = "content";

/// A final message that is being continued.
#[derive(Debug)]
pub(super) struct Continuation {
    text: String,
}

// === impl Continuation ===

impl Continuation {
    /// Marks the final message; returns the messages to render.
    pub fn mark(messages: &[Value], template: &str) -> Result<(Self, Vec<Value>), TemplateError> {
        let mut messages = messages.to_vec();
        let content = messages.last_mut().and_then(|message| message.get_mut(FIELD));
        let text = match content {
            None | Some(Value::Null) => return refuse(format!("the final message has no `{FIELD}` to continue")),
            _ if !template.contains(FIELD) => {
                return refuse(format!("the chat template does not use `{FIELD}`, so it cannot be continued"));
            }
            Some(Value::String(text)) => Some(text),
            Some(Value::Array(parts)) => parts.iter_mut().rev().find_map(|part| match part.get_mut("text") {
                Some(Value::String(text)) => Some(text),
                _ => None,
            }),
            Some(_) => None,
        };
        let Some(text) = text else { return refuse("the final message has no text to continue".into()) };
        let continuation = Self { text: text.clone() };
        text.push_str(MARK);
        Ok((continuation, messages))
    }

    /// Cuts a rendered text behind the final message.
    pub fn cut(&self, mut rendered: String) -> Result<String, TemplateError> {
        let at = rendered.rfind(MARK.trim_end()).filter(|_| rendered.contains(python::strip(&self.text)));
        let Some(at) = at else {
            return refuse(
                "the chat template does not show the final message as it is, so it cannot be continued".into(),
            );
        };
        let trims_messages = !rendered[at..].starts_with(MARK);
        rendered.truncate(at);
        if trims_messages {
            rendered.truncate(rendered.trim_end_matches(python::is_space).len());
        }
        Ok(rendered)
    }
}

fn refuse<T>(reason: String) -> Result<T, TemplateError> {
    Err(TemplateError::Render(reason))
}

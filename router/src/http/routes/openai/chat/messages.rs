//! Messages as clients send them, made into what chat templates expect: every content a string, `developer` a system
//! message, neighbouring system messages one, tool arguments an object.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::Error;
use crate::http::extract::Object;

/// Roles that templates know.
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];
/// OpenAI's newer name of the system role.
const DEVELOPER: &str = "developer";
const SYSTEM: &str = "system";

/// A message of a conversation.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    #[schema(example = "user")]
    pub role: String,
    /// A text, or text parts.
    pub content: Option<Content>,
    /// Who speaks.
    pub name: Option<String>,
    /// Calls that the assistant made.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tool_calls: Option<Vec<Map<String, Value>>>,
    /// The call that a `tool` message answers.
    pub tool_call_id: Option<String>,
    /// What the assistant thought before it spoke, for templates that show it.
    pub reasoning_content: Option<String>,
}

/// The content of a message.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of content parts with a `type`")]
pub enum Content {
    /// A text.
    Text(String),
    /// Parts, joined without a separator.
    #[schema(value_type = Vec<Part>)]
    Parts(Vec<Object<Part>>),
}

/// A part of a content. Only text is understood.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Part {
    /// `text`.
    #[schema(example = "text")]
    pub r#type: String,
    /// The text.
    pub text: Option<String>,
    /// Whatever else the part holds.
    #[serde(flatten)]
    #[schema(ignore)]
    pub rest: Map<String, Value>,
}

/// The messages for the template, in order.
///
/// # Errors
/// `Invalid` or `Unsupported`, naming the message.
pub fn normalise(messages: Vec<Object<Message>>) -> Result<Vec<Value>, Error> {
    let mut normal: Vec<Map<String, Value>> = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        let message = message.0.normalise(index)?;
        match normal.last_mut() {
            Some(last) if is_system(last) && is_system(&message) => append(last, &message),
            _ => normal.push(message),
        }
    }
    if normal.is_empty() {
        return Err(Error::invalid("messages", "`messages` cannot be empty"));
    }
    Ok(normal.into_iter().map(Value::Object).collect())
}

// === impl Message ===

impl Message {
    fn normalise(self, index: usize) -> Result<Map<String, Value>, Error> {
        let role = if self.role == DEVELOPER { SYSTEM.to_owned() } else { self.role };
        if !ROLES.contains(&role.as_str()) {
            let message = format!(
                "`messages[{index}].role` must be one of `system`, `developer`, `user`, `assistant`, `tool`. Given: \
                 `{role}`"
            );
            return Err(Error::invalid("messages", message));
        }
        let content = self.content.map_or(Ok(String::new()), |content| content.text(index))?;
        let mut message = Map::new();
        message.insert("role".into(), role.into());
        message.insert("content".into(), content.into());
        if let Some(name) = self.name {
            message.insert("name".into(), name.into());
        }
        if let Some(calls) = self.tool_calls.filter(|calls| !calls.is_empty()) {
            message
                .insert("tool_calls".into(), calls.into_iter().map(Value::Object).map(with_parsed_arguments).collect());
        }
        let texts = [("tool_call_id", self.tool_call_id), ("reasoning_content", self.reasoning_content)];
        for (name, text) in texts {
            if let Some(text) = text {
                message.insert(name.into(), text.into());
            }
        }
        Ok(message)
    }
}

// === impl Content ===

impl Content {
    fn text(self, index: usize) -> Result<String, Error> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Parts(parts) => parts.into_iter().map(|part| part.0.text(index)).collect(),
        }
    }
}

// === impl Part ===

impl Part {
    fn text(self, index: usize) -> Result<String, Error> {
        if self.r#type != "text" {
            let message = format!("`messages[{index}].content` holds a part of type `{}`; only `text` is", self.r#type);
            return Err(Error::unsupported("messages", format!("{message} supported")));
        }
        // Where a cached prompt may be cut; nothing is cached from one request to the next.
        if let Some(name) = self.rest.keys().find(|name| *name != "cache_control") {
            let message = format!("`messages[{index}].content` holds a text part with the unknown field `{name}`");
            return Err(Error::invalid("messages", message));
        }
        self.text.ok_or_else(|| {
            Error::invalid("messages", format!("`messages[{index}].content` holds a text part without `text`"))
        })
    }
}

fn is_system(message: &Map<String, Value>) -> bool {
    message.get("role").is_some_and(|role| role == SYSTEM)
}

/// Joins two system messages: templates take one.
fn append(first: &mut Map<String, Value>, second: &Map<String, Value>) {
    let text = |message: &Map<String, Value>| message["content"].as_str().unwrap_or_default().to_owned();
    let joined = format!("{}\n{}", text(first), text(second));
    first.insert("content".into(), joined.into());
}

/// Templates iterate over the arguments of a call; OpenAI's clients send them as a string of JSON.
fn with_parsed_arguments(mut call: Value) -> Value {
    if let Some(arguments) = call.pointer_mut("/function/arguments")
        && let Some(Ok(parsed @ Value::Object(_))) = arguments.as_str().map(serde_json::from_str)
    {
        *arguments = parsed;
    }
    call
}

//! One log line: read from a child's JSON, and written as text or JSON. All processes use the same field names.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use crate::event::Role;

/// How serious a line of the launcher's own is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// What is going on.
    Info,
    /// Something to look at.
    Warn,
    /// A reason to end.
    Error,
}

/// A log line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Record {
    /// When, in UTC; filled in when the child did not say.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// `INFO`, `WARN`, `ERROR`, ...; Python's names are understood.
    pub level: String,
    /// What happened.
    pub message: String,
    /// The part of the program that says so.
    #[serde(default)]
    pub target: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

// === impl Severity ===

impl Severity {
    /// The least serious lines that pass a filter; a directive for single targets leaves ours at info.
    pub fn threshold(level: &str) -> Self {
        match level.to_ascii_lowercase().as_str() {
            "warn" => Self::Warn,
            "error" | "off" => Self::Error,
            _ => Self::Info,
        }
    }
}

// === impl Record ===

impl Record {
    /// Read a child's line; `None` when it is not a JSON record.
    pub fn parse(line: &str) -> Option<Self> {
        if !line.starts_with('{') {
            return None;
        }
        let mut record: Self = serde_json::from_str(line).ok()?;
        record.level = match record.level.to_ascii_uppercase().as_str() {
            "WARNING" => "WARN".to_owned(),
            "CRITICAL" | "FATAL" => "ERROR".to_owned(),
            other => other.to_owned(),
        };
        Some(record)
    }

    /// A line of the launcher, or a line that a child printed outside its log.
    pub fn own(severity: Severity, message: &str) -> Self {
        let level = match severity {
            Severity::Info => "INFO",
            Severity::Warn => "WARN",
            Severity::Error => "ERROR",
        };
        Self { timestamp: None, level: level.to_owned(), message: message.to_owned(), target: None, fields: Map::new() }
    }

    /// Whether this line tells users what the preparation is doing.
    pub fn is_progress(&self) -> bool {
        self.level == "INFO"
    }

    /// Whether this line can be the reason why its process ended.
    pub fn is_error(&self) -> bool {
        self.level == "ERROR"
    }

    /// The line as printed, with its end.
    pub fn render(self, role: Option<Role>, as_json: bool) -> String {
        let timestamp = self.timestamp.clone().unwrap_or_else(now);
        if as_json { self.render_json(&timestamp, role) } else { self.render_text(&timestamp, role) }
    }

    fn render_json(self, timestamp: &str, role: Option<Role>) -> String {
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), json!(timestamp));
        line.insert("level".to_owned(), json!(self.level));
        line.insert("message".to_owned(), json!(self.message));
        line.insert("target".to_owned(), json!(self.target.as_deref().unwrap_or("text_generation_launcher")));
        line.insert("source".to_owned(), json!(role.map_or_else(|| "launcher".to_owned(), |role| role.to_string())));
        line.extend(self.fields);
        format!("{}\n", Value::Object(line))
    }

    fn render_text(&self, timestamp: &str, role: Option<Role>) -> String {
        let mut line = format!("{timestamp} {:>5} ", self.level);
        // Writing to a String cannot fail.
        let _infallible = match role {
            Some(role) => write!(line, "{role}: {}", self.message),
            None => write!(line, "{}", self.message),
        };
        for (name, value) in &self.fields {
            let _infallible = match value {
                // An exception's traceback, for example: readable only as it is.
                Value::String(text) if text.contains('\n') => write!(line, "\n{}", text.trim_end()),
                Value::String(text) => write!(line, " {name}={text}"),
                other => write!(line, " {name}={other}"),
            };
        }
        line.push('\n');
        line
    }
}

fn now() -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _infallible = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

//! Fields of a request body that do nothing: those that clients send for their own sake, and those whose feature does
//! not exist. Both are declared here as data, so that the reader of bodies and the published table say the same. Knows
//! no route; each API keeps its own list.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

use crate::error::Error;

/// Fields that clients send for their own sake. They change nothing here; each is logged once.
static IGNORED: [Ignored; 9] = [
    Ignored::new("user", "nobody is told apart by it"),
    Ignored::new("metadata", "nothing is stored"),
    Ignored::new("service_tier", "there is one tier"),
    Ignored::new("options", "the Hub's hosted API reads it, its servers do not"),
    Ignored::new("safety_identifier", "nobody is told apart by it"),
    Ignored::new("prompt_cache_key", "nothing is kept from one request to the next"),
    Ignored::new("prompt_cache_retention", "nothing is kept from one request to the next"),
    Ignored::new("prompt_cache_options", "nothing is kept from one request to the next"),
    Ignored::new("cache_salt", "nothing is kept from one request to the next"),
];

/// A field of no consequence.
struct Ignored {
    name: &'static str,
    /// Why it has no effect.
    reason: &'static str,
    logged: AtomicBool,
}

/// A field whose feature does not exist. It is accepted while its value asks for nothing.
#[derive(Debug)]
pub struct Unsupported {
    /// As clients spell it.
    pub name: &'static str,
    /// Values that ask for nothing.
    pub neutral: Neutral,
    /// What to do instead; ends the sentence "`name` is not supported; ...".
    pub hint: &'static str,
}

/// Values that ask for nothing. Null always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neutral {
    /// No other value.
    Null,
    /// An empty text, list or object.
    Empty,
    /// Any of these JSON values; numbers are compared by value.
    Values(&'static [&'static str]),
}

/// Nothing but `false`.
pub const FALSE: Neutral = Neutral::Values(&["false"]);
/// Either boolean.
pub const BOOLEAN: Neutral = Neutral::Values(&["true", "false"]);
/// What to do without a feature that has no other spelling.
pub const LEAVE_OUT: &str = "leave it out";

// === impl Ignored ===

impl Ignored {
    const fn new(name: &'static str, reason: &'static str) -> Self {
        Self { name, reason, logged: AtomicBool::new(false) }
    }
}

/// Name and reason of every field that is accepted without effect.
pub fn ignored() -> impl Iterator<Item = (&'static str, &'static str)> {
    IGNORED.iter().map(|field| (field.name, field.reason))
}

// === impl Neutral ===

impl Neutral {
    /// Whether a value asks for nothing.
    pub fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null) => true,
            (Self::Null, _) => false,
            (Self::Empty, Value::String(text)) => text.is_empty(),
            (Self::Empty, Value::Array(items)) => items.is_empty(),
            (Self::Empty, Value::Object(members)) => members.is_empty(),
            (Self::Empty, _) => false,
            (Self::Values(texts), value) => texts.iter().any(|text| is_written(value, text)),
        }
    }
}

/// Whether a value is what a JSON text says.
fn is_written(value: &Value, text: &str) -> bool {
    match (value.as_f64(), serde_json::from_str::<Value>(text)) {
        (Some(number), Ok(written)) => written.as_f64() == Some(number),
        (None, Ok(written)) => written == *value,
        (_, Err(_)) => false,
    }
}

/// Drops members that are null or of no consequence, and refuses those of `unsupported` that ask for something.
///
/// # Errors
/// `Error::Unsupported` naming the field.
pub fn screen(fields: &mut Map<String, Value>, unsupported: &'static [Unsupported]) -> Result<(), Error> {
    fields.retain(|_, value| !value.is_null());
    for field in &IGNORED {
        if fields.swap_remove(field.name).is_some() && !field.logged.swap(true, Ordering::Relaxed) {
            tracing::info!(field = field.name, "requests carry this field; it has no effect here");
        }
    }
    for field in unsupported {
        match fields.swap_remove(field.name) {
            Some(value) if !field.neutral.admits(&value) => {
                let (name, hint) = (field.name, field.hint);
                return Err(Error::unsupported(name, format!("`{name}` is not supported; {hint}")));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn neutral_values() {
        let kind = Neutral::Values(&[r#"{"type":"text"}"#]);
        for (neutral, value, admitted) in [
            (Neutral::Null, json!(null), true),
            (Neutral::Null, json!(false), false),
            (Neutral::Empty, json!({}), true),
            (Neutral::Empty, json!(0), false),
            (FALSE, json!(false), true),
            (FALSE, json!(0), false),
            (BOOLEAN, json!(true), true),
            (Neutral::Values(&["1"]), json!(1.0), true),
            (Neutral::Values(&["1"]), json!("1"), false),
            (kind, json!({"type": "text"}), true),
            (kind, json!({"type": "json_object"}), false),
        ] {
            assert_eq!(neutral.admits(&value), admitted, "{neutral:?} {value}");
        }
    }
}

//! `json.dumps`: values as Python writes them in JSON. Knows the engine's values and nothing of templates.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::python::{float_text, text};

/// The arguments of `json.dumps`.
#[derive(Debug, Default)]
pub(super) struct Style {
    /// Escape everything beyond ASCII.
    pub ascii: bool,
    /// Line by line, indented by this text per level.
    pub indent: Option<String>,
    /// A pair of texts: between items, and between key and value.
    pub separators: Option<Value>,
    /// Sort the keys of objects.
    pub sort_keys: bool,
}

/// Writes one value as JSON.
struct Writer<'a> {
    style: &'a Style,
    between_items: String,
    behind_key: String,
    out: String,
}

/// `json.dumps(value)`.
pub(super) fn write(value: &Value, style: &Style) -> Result<String, Error> {
    let (between_items, behind_key) = match &style.separators {
        Some(pair) => (text(&pair.get_item_by_index(0)?)?, text(&pair.get_item_by_index(1)?)?),
        None if style.indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
    };
    let mut writer = Writer { style, between_items, behind_key, out: String::new() };
    writer.value(value, 0)?;
    Ok(writer.out)
}

// === impl Writer ===

impl Writer<'_> {
    fn value(&mut self, value: &Value, level: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq => self.array(value, level)?,
            ValueKind::Map => self.object(value, level)?,
            _ => {
                let scalar = scalar(value)?;
                self.out.push_str(&scalar);
            }
        }
        Ok(())
    }

    fn array(&mut self, value: &Value, level: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut first = true;
        for item in value.try_iter()? {
            self.before_item(&mut first, level + 1);
            self.value(&item, level + 1)?;
        }
        self.close(first, level, ']');
        Ok(())
    }

    fn object(&mut self, value: &Value, level: usize) -> Result<(), Error> {
        self.out.push('{');
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.style.sort_keys {
            keys.sort();
        }
        let mut first = true;
        for key in keys {
            self.before_item(&mut first, level + 1);
            match key.as_str() {
                Some(key) => self.string(key),
                None => self.string(&scalar(&key)?),
            }
            self.out.push_str(&self.behind_key);
            self.value(&value.get_item(&key)?, level + 1)?;
        }
        self.close(first, level, '}');
        Ok(())
    }

    fn before_item(&mut self, first: &mut bool, level: usize) {
        if !std::mem::take(first) {
            self.out.push_str(&self.between_items);
        }
        self.new_line(level);
    }

    fn close(&mut self, empty: bool, level: usize, bracket: char) {
        if !empty {
            self.new_line(level);
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self, level: usize) {
        if let Some(indent) = &self.style.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(indent.as_str(), level));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{08}' => self.out.push_str("\\b"),
                '\u{0C}' => self.out.push_str("\\f"),
                c if c < ' ' || self.style.ascii && c > '~' => self.escape(c),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _infallible = write!(self.out, "\\u{unit:04x}");
        }
    }
}

/// A JSON text of what is neither a string nor a container; also an object's key.
fn scalar(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(value.is_true().to_string()),
        ValueKind::Number if value.is_integer() => Ok(value.to_string()),
        ValueKind::Number => Ok(float_text(f64::try_from(value.clone())?, ["NaN", "Infinity", "-Infinity"])),
        kind => Err(Error::new(ErrorKind::InvalidOperation, format!("{kind} cannot be written as JSON"))),
    }
}

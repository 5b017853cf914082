//! How Python writes values: `str` and `repr` of numbers and containers, `json.dumps`, and what it takes for white
//! space. Knows the engine's values and nothing of templates.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// The arguments of `json.dumps`.
#[derive(Debug, Default)]
pub(super) struct JsonStyle {
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
struct JsonWriter<'a> {
    style: &'a JsonStyle,
    between_items: String,
    behind_key: String,
    out: String,
}

/// Whether Python takes a character for white space.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&c)
}

/// `str.strip()`.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Whether the engine writes a value other than Python does.
pub(super) fn needs_own_text(value: &Value) -> bool {
    is_float(value) || matches!(value.kind(), ValueKind::Seq | ValueKind::Map)
}

/// `str(value)`.
pub(super) fn text(value: &Value) -> Result<String, Error> {
    if needs_own_text(value) { representation(value) } else { Ok(value.to_string()) }
}

/// `repr(value)`.
fn representation(value: &Value) -> Result<String, Error> {
    if is_float(value) {
        return Ok(float_text(f64::try_from(value.clone())?, ["nan", "inf", "-inf"]));
    }
    match value.kind() {
        ValueKind::Seq => {
            let items: Vec<String> = value.try_iter()?.map(|item| representation(&item)).collect::<Result<_, _>>()?;
            let comma = if items.len() == 1 { "," } else { "" };
            let inner = items.join(", ");
            Ok(if value.is_tuple() { format!("({inner}{comma})") } else { format!("[{inner}]") })
        }
        ValueKind::Map => {
            let mut items = Vec::new();
            for key in value.try_iter()? {
                items.push(format!("{}: {}", representation(&key)?, representation(&value.get_item(&key)?)?));
            }
            Ok(format!("{{{}}}", items.join(", ")))
        }
        _ => Ok(format!("{value:?}")),
    }
}

fn is_float(value: &Value) -> bool {
    value.is_number() && !value.is_integer()
}

/// A float as Python's `repr`: the shortest digits, an exponent beyond 16 digits; `names` of what is not finite.
fn float_text(number: f64, names: [&str; 3]) -> String {
    if !number.is_finite() {
        let index = if number.is_nan() { 0 } else { 1 + usize::from(number < 0.0) };
        return names[index].to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The `indent` argument of `json.dumps` as text.
pub(super) fn indent(argument: &Value) -> Result<String, Error> {
    match argument.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Ok(" ".repeat(usize::try_from(i64::try_from(argument.clone())?.max(0)).unwrap_or_default())),
    }
}

/// `json.dumps(value)`.
pub(super) fn json(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let (between_items, behind_key) = match &style.separators {
        Some(pair) => (text(&pair.get_item_by_index(0)?)?, text(&pair.get_item_by_index(1)?)?),
        None if style.indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
    };
    let mut writer = JsonWriter { style, between_items, behind_key, out: String::new() };
    writer.value(value, 0)?;
    Ok(writer.out)
}

// === impl JsonWriter ===

impl JsonWriter<'_> {
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

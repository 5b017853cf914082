//! Methods of Python's strings, lists and dictionaries that templates call and the engine does not have. Knows nothing
//! of templates.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::python::is_space;
use super::{splits, texts};

/// Calls a method that the engine itself does not know: ours first, then those of the compatibility library.
pub(super) fn call(state: &mut State, value: &Value, method: &str, arguments: &[Value]) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => string_method(value.as_str().unwrap_or_default(), method, arguments)?,
        ValueKind::Map if method == "copy" => Some(value.clone()),
        ValueKind::Seq if method == "copy" => Some(value.clone()),
        ValueKind::Seq if method == "index" => Some(index_of(value, arguments)?),
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => pycompat::unknown_method_callback(state, value, method, arguments),
    }
}

fn string_method(text: &str, method: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    let result = match method {
        "strip" | "lstrip" | "rstrip" => {
            let (characters,): (Option<&str>,) = from_args(arguments)?;
            let matches = |c: char| characters.map_or_else(|| is_space(c), |characters| characters.contains(c));
            let start = if method == "rstrip" { text } else { text.trim_start_matches(matches) };
            Value::from(if method == "lstrip" { start } else { start.trim_end_matches(matches) })
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(arguments)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(arguments)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "index" => {
            let (part,): (&str,) = from_args(arguments)?;
            let at = text.find(part).ok_or_else(|| invalid("substring not found"))?;
            Value::from(text[..at].chars().count())
        }
        "zfill" => {
            let (width,): (usize,) = from_args(arguments)?;
            Value::from(zero_filled(text, width))
        }
        "ljust" | "rjust" => {
            let (width, fill): (usize, Option<char>) = from_args(arguments)?;
            let filling = filling(text, width, fill.unwrap_or(' '));
            Value::from(if method == "ljust" { text.to_owned() + &filling } else { filling + text })
        }
        "center" => {
            let (width, fill): (usize, Option<char>) = from_args(arguments)?;
            Value::from(texts::centered(text, width, fill.unwrap_or(' ')))
        }
        "swapcase" => Value::from(text.chars().map(swapped).collect::<String>()),
        "title" => Value::from(title(text)),
        "casefold" => Value::from(text.to_lowercase()),
        _ => return splits::call(text, method, arguments),
    };
    Ok(Some(result))
}

fn zero_filled(text: &str, width: usize) -> String {
    let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    format!("{sign}{}{digits}", filling(text, width, '0'))
}

fn filling(text: &str, width: usize, fill: char) -> String {
    std::iter::repeat_n(fill, width.saturating_sub(text.chars().count())).collect()
}

/// `str.title()`: a letter behind anything but a letter is a first one.
fn title(text: &str) -> String {
    let mut inside = false;
    let mut out = String::new();
    for c in text.chars() {
        match inside {
            true => out.extend(c.to_lowercase()),
            false => out.extend(c.to_uppercase()),
        }
        inside = c.is_alphabetic();
    }
    out
}

fn swapped(c: char) -> String {
    if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
}

fn index_of(list: &Value, arguments: &[Value]) -> Result<Value, Error> {
    let (wanted,): (Value,) = from_args(arguments)?;
    let at = list.try_iter()?.position(|item| item == wanted);
    at.map(Value::from).ok_or_else(|| invalid("the value is not in the list"))
}

fn invalid(reason: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}

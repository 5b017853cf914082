//! Methods of Python's strings, lists and dictionaries that templates call and the engine does not have. Knows nothing
//! of templates.

use minijinja::value::{Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::python::is_space;

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
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(arguments)?;
            partition(text, separator, method == "rpartition")?
        }
        "rsplit" => {
            let (separator, most): (Option<&str>, Option<i64>) = from_args(arguments)?;
            Value::from(split_from_right(text, separator, most))
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
        "swapcase" => Value::from(text.chars().map(swapped).collect::<String>()),
        "casefold" => Value::from(text.to_lowercase()),
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn partition(text: &str, separator: &str, from_right: bool) -> Result<Value, Error> {
    if separator.is_empty() {
        return Err(invalid("empty separator"));
    }
    let cut = if from_right { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match cut {
        Some((before, after)) => [before, separator, after],
        None if from_right => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from).to_vec())))
}

/// `str.rsplit`: at most `most` cuts, from the right; without a separator, at runs of white space.
fn split_from_right(text: &str, separator: Option<&str>, most: Option<i64>) -> Vec<Value> {
    let most = most.and_then(|most| usize::try_from(most).ok());
    let mut parts = Vec::new();
    let mut rest = match separator {
        Some(_) => text,
        None => text.trim_matches(is_space),
    };
    while most.is_none_or(|most| parts.len() < most) {
        let cut = match separator {
            Some(separator) => rest.rsplit_once(separator),
            None => rest.rsplit_once(is_space).map(|(before, after)| (before.trim_end_matches(is_space), after)),
        };
        let Some((before, after)) = cut else { break };
        parts.push(Value::from(after));
        rest = before;
    }
    if separator.is_some() || !rest.is_empty() {
        parts.push(Value::from(rest));
    }
    parts.reverse();
    parts
}

fn zero_filled(text: &str, width: usize) -> String {
    let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    format!("{sign}{}{digits}", filling(text, width, '0'))
}

fn filling(text: &str, width: usize, fill: char) -> String {
    std::iter::repeat_n(fill, width.saturating_sub(text.chars().count())).collect()
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

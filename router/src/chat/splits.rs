//! The methods of Python's strings that take a text apart, with Python's arguments and idea of white space.

use minijinja::value::{Kwargs, Tuple, from_args};
use minijinja::{Error, ErrorKind, Value};

use super::python::is_space;

/// Characters that end a line, beside the pair `\r\n`.
const LINE_ENDS: [char; 10] =
    ['\n', '\r', '\u{0B}', '\u{0C}', '\u{1C}', '\u{1D}', '\u{1E}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Where and how often to cut.
struct Cuts<'a> {
    /// `None` = at runs of white space.
    separator: Option<&'a str>,
    most: usize,
}

/// Calls one of the methods; `None` when it is none of them.
pub(super) fn call(text: &str, method: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    let result = match method {
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(arguments)?;
            partition(text, separator, method == "rpartition")?
        }
        "split" | "rsplit" => {
            let (separator, most, named): (Option<&str>, Option<i64>, Kwargs) = from_args(arguments)?;
            let separator = separator.or(named.get("sep")?);
            let most = most.or(named.get("maxsplit")?).and_then(|most| usize::try_from(most).ok());
            named.assert_all_used()?;
            if separator == Some("") {
                return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
            }
            let cuts = Cuts { separator, most: most.unwrap_or(usize::MAX) };
            list(if method == "split" { cuts.cut_forwards(text) } else { cuts.cut_backwards(text) })
        }
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(arguments)?;
            list(lines(text, keep_ends.unwrap_or(false)))
        }
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn list(parts: Vec<&str>) -> Value {
    parts.into_iter().map(Value::from).collect()
}

fn partition(text: &str, separator: &str, from_right: bool) -> Result<Value, Error> {
    if separator.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    let cut = if from_right { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match cut {
        Some((before, after)) => [before, separator, after],
        None if from_right => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

// === impl Cuts ===

impl Cuts<'_> {
    fn cut_forwards<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut parts = Vec::new();
        let mut rest = if self.separator.is_some() { text } else { text.trim_start_matches(is_space) };
        while parts.len() < self.most {
            let cut = match self.separator {
                Some(separator) => rest.split_once(separator),
                None => rest.split_once(is_space).map(|(before, after)| (before, after.trim_start_matches(is_space))),
            };
            let Some((before, after)) = cut else { break };
            parts.push(before);
            rest = after;
        }
        if self.separator.is_some() || !rest.is_empty() {
            parts.push(rest);
        }
        parts
    }

    fn cut_backwards<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut parts = Vec::new();
        let mut rest = if self.separator.is_some() { text } else { text.trim_end_matches(is_space) };
        while parts.len() < self.most {
            let cut = match self.separator {
                Some(separator) => rest.rsplit_once(separator),
                None => rest.rsplit_once(is_space).map(|(before, after)| (before.trim_end_matches(is_space), after)),
            };
            let Some((before, after)) = cut else { break };
            parts.push(after);
            rest = before;
        }
        if self.separator.is_some() || !rest.is_empty() {
            parts.push(rest);
        }
        parts.reverse();
        parts
    }
}

/// `str.splitlines()`.
pub(super) fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(LINE_ENDS) {
        let length = rest[at..].chars().next().map_or(0, char::len_utf8);
        let end = at + if rest[at..].starts_with("\r\n") { 2 } else { length };
        lines.push(&rest[..if keep_ends { end } else { at }]);
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

//! Filters on texts with Jinja2's arguments and results. Knows values, no templates.

use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, ErrorKind, Value};

use super::arguments::{bind, holds, or, text};
use super::{python, splits};

/// Adds the filters.
pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("string", |value: &Value| python::text(value));
    environment.add_filter("trim", trim);
    environment.add_filter("center", center);
    environment.add_filter("indent", indent);
    environment.add_filter("truncate", truncate);
    environment.add_filter("wordcount", word_count);
    environment.add_filter("escape", escape);
    environment.add_filter("e", escape);
    environment.add_filter("forceescape", force_escape);
}

/// A text in the middle of `width` characters; an odd one goes where Python puts it.
pub(super) fn centered(text: &str, width: usize, fill: char) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let left = missing / 2 + (missing & width & 1);
    let filling = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
    format!("{}{text}{}", filling(left), filling(missing - left))
}

fn trim(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let [characters] = bind(["chars"], &placed, &named)?;
    let whole = python::text(value)?;
    Ok(match characters.filter(|characters| !characters.is_none()) {
        Some(characters) => {
            let characters = text(&characters)?;
            whole.trim_matches(|c| characters.contains(c)).to_owned()
        }
        None => python::strip(&whole).to_owned(),
    })
}

fn center(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    const DEFAULT_WIDTH: usize = 80;
    let [width] = bind(["width"], &placed, &named)?;
    Ok(centered(&python::text(value)?, or(width, DEFAULT_WIDTH)?, ' '))
}

/// Every line behind the first one moves to the right by a text, or by so many spaces.
fn indent(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    const DEFAULT_WIDTH: i64 = 4;
    let [width, first, blank] = bind(["width", "first", "blank"], &placed, &named)?;
    let indention = python::indent(&width.unwrap_or_else(|| DEFAULT_WIDTH.into()))?;
    let (first, blank) = (holds(first), holds(blank));
    // With one more line end, a last line that is empty counts, as in Jinja2.
    let whole = format!("{}\n", text(value)?);
    let mut out = String::new();
    for (index, line) in splits::lines(&whole, false).into_iter().enumerate() {
        let moved = if index == 0 { first } else { blank || !line.is_empty() };
        out.extend([if index == 0 { "" } else { "\n" }, if moved { &indention } else { "" }, line]);
    }
    Ok(out)
}

/// A text that is longer than `length` and the leeway is cut to `length`, its `end` included; at a space, unless words
/// may be cut.
fn truncate(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<Value, Error> {
    const DEFAULT_LENGTH: usize = 255;
    const DEFAULT_LEEWAY: usize = 5;
    let [length, kill_words, end, leeway] = bind(["length", "killwords", "end", "leeway"], &placed, &named)?;
    let length = or(length, DEFAULT_LENGTH)?;
    let leeway = or(leeway.filter(|leeway| !leeway.is_none()), DEFAULT_LEEWAY)?;
    let end = end.unwrap_or_else(|| "...".into());
    let end = text(&end)?;
    let Some(room) = length.checked_sub(end.chars().count()) else {
        let reason = format!("`truncate` to {length} leaves no room for its end `{end}`");
        return Err(Error::new(ErrorKind::InvalidOperation, reason));
    };
    // Python takes the length of lists and of what is not defined too.
    let size = if value.is_undefined() { Some(0) } else { value.len() };
    if size.is_some_and(|size| size <= length.saturating_add(leeway)) {
        return Ok(value.clone());
    }
    let whole = text(value)?;
    let start = &whole[..whole.char_indices().nth(room).map_or(whole.len(), |(at, _)| at)];
    let words = start.rsplit_once(' ').map_or(start, |(words, _)| words);
    Ok(Value::from(format!("{}{end}", if holds(kill_words) { start } else { words })))
}

fn word_count(value: &Value) -> Result<usize, Error> {
    let text = python::text(value)?;
    Ok(text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).count())
}

/// HTML's special characters as Jinja2 writes them; a text that is escaped already stays.
fn escape(value: &Value) -> Result<Value, Error> {
    if value.is_safe() { Ok(value.clone()) } else { force_escape(value) }
}

fn force_escape(value: &Value) -> Result<Value, Error> {
    let mut out = String::new();
    for c in python::text(value)?.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    Ok(Value::from_safe_string(out))
}

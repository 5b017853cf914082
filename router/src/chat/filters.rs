//! Filters that the engine lacks or that work otherwise than Jinja2's and `transformers`'. Knows values, no templates.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, Value};

use super::python::{self, JsonStyle};
use super::rewrite::PERCENT_FILTER;

/// Adds the filters.
pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |value: &Value| python::text(value));
    environment.add_filter("trim", trim);
    environment.add_filter("int", to_int);
    environment.add_filter("float", to_float);
    environment.add_filter("center", center);
    environment.add_filter("wordcount", word_count);
    environment.add_filter(PERCENT_FILTER, percent);
}

/// `json.dumps` with the arguments that `transformers` passes on.
fn to_json(value: &Value, arguments: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let argument = |index: usize, name: &str| {
        let value = match arguments.get(index) {
            Some(value) => Some(value.clone()),
            None => named.get::<Option<Value>>(name)?,
        };
        Ok::<_, Error>(value.filter(|value| !value.is_none()))
    };
    let style = JsonStyle {
        ascii: argument(0, "ensure_ascii")?.is_some_and(|flag| flag.is_true()),
        indent: argument(1, "indent")?.map(|indent| python::indent(&indent)).transpose()?,
        separators: argument(2, "separators")?,
        sort_keys: argument(3, "sort_keys")?.is_some_and(|flag| flag.is_true()),
    };
    named.assert_all_used()?;
    python::json(value, &style)
}

fn trim(value: &Value, characters: Option<&str>) -> Result<String, Error> {
    let text = python::text(value)?;
    Ok(match characters {
        Some(characters) => text.trim_matches(|c| characters.contains(c)).to_owned(),
        None => python::strip(&text).to_owned(),
    })
}

/// What is no number becomes the default; fractions are cut off.
fn to_int(value: &Value, default: Option<Value>, base: Option<u32>) -> Value {
    let whole = match value.as_str().map(python::strip) {
        Some(text) => i128::from_str_radix(text, base.filter(|base| (2..=36).contains(base)).unwrap_or(10))
            .ok()
            .or_else(|| Some(text.parse::<f64>().ok()?.trunc() as i128)),
        None if value.is_number() && !value.is_integer() => {
            f64::try_from(value.clone()).ok().map(|number| number.trunc() as i128)
        }
        None => i128::try_from(value.clone()).ok().or_else(|| (value == &Value::from(true)).then_some(1)),
    };
    match whole {
        // Small numbers keep their small type, which the engine compares and prints alike.
        Some(whole) => i64::try_from(whole).map_or_else(|_| Value::from(whole), Value::from),
        None => default.unwrap_or_else(|| Value::from(0)),
    }
}

/// What is no number becomes the default.
fn to_float(value: &Value, default: Option<Value>) -> Value {
    let number = match value.as_str().map(python::strip) {
        Some(text) => text.parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    number.map_or_else(|| default.unwrap_or_else(|| Value::from(0.0)), |number: f64| Value::from(number))
}

/// The text in the middle of `width` characters; an odd space goes where Python puts it.
fn center(value: &Value, width: Option<usize>) -> Result<String, Error> {
    const DEFAULT_WIDTH: usize = 80;
    let (text, width) = (python::text(value)?, width.unwrap_or(DEFAULT_WIDTH));
    let missing = width.saturating_sub(text.chars().count());
    let left = missing / 2 + (missing & width & 1);
    Ok(format!("{}{text}{}", " ".repeat(left), " ".repeat(missing - left)))
}

fn word_count(value: &Value) -> Result<usize, Error> {
    let text = python::text(value)?;
    Ok(text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).count())
}

/// `'...' % arguments`.
fn percent(pattern: &str, arguments: Value) -> Result<String, Error> {
    let arguments = if arguments.is_tuple() { arguments.try_iter()?.collect() } else { vec![arguments] };
    format(FormatStyle::Printf, pattern, &arguments)
}

//! Filters that the engine lacks or that work otherwise than Jinja2's and `transformers`'; those on texts are in
//! `texts`. Knows values, no templates.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Rest, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value};

use super::arguments::{bind, holds, or};
use super::rewrite::PERCENT_FILTER;
use super::{json, python, texts};

/// The base of numbers in texts, unless another one is given.
const DECIMAL: u32 = 10;

/// Adds the filters.
pub(super) fn add(environment: &mut Environment<'static>) {
    texts::add(environment);
    environment.add_filter("tojson", to_json);
    environment.add_filter("int", to_int);
    environment.add_filter("float", to_float);
    environment.add_filter("default", or_default);
    environment.add_filter("d", or_default);
    environment.add_filter("map", map);
    environment.add_filter(PERCENT_FILTER, percent);
}

/// `json.dumps` with the arguments that `transformers` passes on.
fn to_json(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let [ascii, indent, separators, sort_keys] =
        bind(["ensure_ascii", "indent", "separators", "sort_keys"], &placed, &named)?;
    let given = |argument: Option<Value>| argument.filter(|argument| !argument.is_none());
    let style = json::Style {
        ascii: holds(ascii),
        indent: given(indent).map(|indent| python::indent(&indent)).transpose()?,
        separators: given(separators),
        sort_keys: holds(sort_keys),
    };
    json::write(value, &style)
}

/// What is no number becomes the default; fractions are cut off.
fn to_int(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<Value, Error> {
    let [default, base] = bind(["default", "base"], &placed, &named)?;
    let base = or(base, DECIMAL)?;
    let cut = |number: f64| number.is_finite().then(|| number.trunc() as i128);
    let whole = match value.as_str().map(python::strip) {
        Some(text) => python::integer(text, base).or_else(|| cut(text.parse().ok()?)),
        None if value.is_number() && !value.is_integer() => f64::try_from(value.clone()).ok().and_then(cut),
        None => i128::try_from(value.clone()).ok().or_else(|| (value == &Value::from(true)).then_some(1)),
    };
    Ok(match whole {
        // Small numbers keep their small type, which the engine compares and prints alike.
        Some(whole) => i64::try_from(whole).map_or_else(|_| Value::from(whole), Value::from),
        None => default.unwrap_or_else(|| Value::from(0)),
    })
}

/// What is no number becomes the default.
fn to_float(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<Value, Error> {
    let [default] = bind(["default"], &placed, &named)?;
    let number = match value.as_str().map(python::strip) {
        Some(text) => text.parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    Ok(number.map_or_else(|| default.unwrap_or_else(|| Value::from(0.0)), |number: f64| Value::from(number)))
}

/// What is not defined becomes the default; with `boolean`, so does what counts as false.
fn or_default(value: &Value, placed: Rest<Value>, named: Kwargs) -> Result<Value, Error> {
    let [default, boolean] = bind(["default_value", "boolean"], &placed, &named)?;
    let replaced = value.is_undefined() || holds(boolean) && !value.is_true();
    Ok(if replaced { default.unwrap_or_else(|| "".into()) } else { value.clone() })
}

/// A filter over every item, with all of its arguments: the engine drops those that are named. Attributes are the
/// engine's matter.
fn map(state: &mut State, value: Value, arguments: Rest<ValueOrKwargs>) -> Result<Vec<Value>, Error> {
    let given: Vec<Value> = arguments.iter().map(|argument| (**argument).clone()).collect();
    let Some((Some(filter), rest)) = given.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
        return minijinja::filters::map(state, value, arguments);
    };
    let mut mapped = Vec::new();
    for item in value.try_iter()? {
        mapped.push(state.apply_filter(filter, &[&[item], rest].concat())?);
    }
    Ok(mapped)
}

/// `'...' % arguments`.
fn percent(pattern: &str, arguments: Value) -> Result<String, Error> {
    let arguments = if arguments.is_tuple() { arguments.try_iter()?.collect() } else { vec![arguments] };
    format(FormatStyle::Printf, pattern, &arguments)
}

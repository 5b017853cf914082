//! The template engine, set up to do what `transformers` and Jinja2 do: white-space rules, tests, functions and the
//! printing of values. Knows no model and no conversation.
//!
//! Known to differ, and harmless in practice: a loop over `none` is empty instead of an error; a loop's `else` is not
//! taken when every round ended in `continue`; `%` formats only behind a literal text. What Jinja2 has and the engine lacks
//! (`docs/compatibility.md` lists it) is an error.

use std::fmt::Write;

use chrono::NaiveDateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};

use super::{TemplateError, filters, methods, python};

/// The text that a template gave to `raise_exception`, carried through the engine's own errors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

/// An engine without templates. `now` is the local time.
pub(super) fn build(now: fn() -> NaiveDateTime) -> Result<Environment<'static>, TemplateError> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|error| TemplateError::Load(error.to_string()))?);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(|out, state, value| match python::needs_own_text(value) {
        true => Ok(out.write_str(&python::text(value)?)?),
        false => minijinja::escape_formatter(out, state, value),
    });
    environment.set_unknown_method_callback(methods::call);
    // The engine's writes a value over many lines where Jinja2's writes one: an error is better than another prompt.
    environment.remove_filter("pprint");
    filters::add(&mut environment);
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_test("sequence", is_sequence);
    environment.add_test("number", |value: &Value| value.is_number() || value.kind() == ValueKind::Bool);
    environment.add_test("callable", is_callable);
    environment.add_function("joiner", minijinja_contrib::globals::joiner);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", move |pattern: &str| strftime(now(), pattern));
    Ok(environment)
}

/// A JSON value as templates see it.
pub(super) fn value(json: &serde_json::Value) -> Value {
    Value::from(Serde(json))
}

/// What to tell about a failed rendering: the template's own words if it raised, else the engine's.
pub(super) fn reason(error: &Error) -> String {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(Raised(text)) = current.downcast_ref() {
            return text.clone();
        }
        cause = current.source();
    }
    error.to_string()
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let text = python::text(message)?;
    Err(Error::new(ErrorKind::InvalidOperation, text.clone()).with_source(Raised(text)))
}

/// Local time by a pattern of C's `strftime`. Python's differences: `%f` has six digits, a time without zone has no name.
fn strftime(now: NaiveDateTime, pattern: &str) -> Result<String, Error> {
    let mut translated = String::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match (c, if c == '%' { characters.next() } else { None }) {
            ('%', Some('f')) => translated.push_str("%6f"),
            ('%', Some('Z' | 'z')) => {}
            (c, next) => translated.extend([c].into_iter().chain(next)),
        }
    }
    let mut text = String::new();
    write!(text, "{}", now.format(&translated)).map_err(|_| {
        Error::new(ErrorKind::InvalidOperation, format!("`strftime_now` does not know the pattern `{pattern}`"))
    })?;
    Ok(text)
}

/// Functions and macros. Calling what is not defined is an error, but Jinja2 takes it for callable too.
fn is_callable(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Plain | ValueKind::Undefined => true,
        // A macro counts as a map of its properties, but is not written as one.
        ValueKind::Map => value.to_string().starts_with("<macro "),
        _ => false,
    }
}

/// As Python's: what has a length and can be indexed.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined)
}

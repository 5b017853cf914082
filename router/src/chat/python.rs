//! How Python writes values, `str` and `repr` of numbers and containers, and what it takes for numbers and white space.
//! Knows the engine's values and nothing of templates.

use std::ops::RangeInclusive;

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

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
        ValueKind::String => Ok(quoted(value.as_str().unwrap_or_default())),
        _ => Ok(value.to_string()),
    }
}

/// `repr` of a text: in single quotes unless it has them and no double ones.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote || c == '\\' => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c if c <= '\u{FF}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c <= '\u{FFFF}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push(quote);
    out
}

/// `str.isprintable()` of one character. Rust escapes the same classes when it shows a text for debugging, but also
/// combining marks at its start; so the character is put second.
fn is_printable(c: char) -> bool {
    if c.is_ascii() { !c.is_ascii_control() } else { format!("a{c}").escape_debug().count() == 2 }
}

fn is_float(value: &Value) -> bool {
    value.is_number() && !value.is_integer()
}

/// A float as Python's `repr`: the shortest digits, an exponent beyond 16 digits; `names` of what is not finite.
pub(super) fn float_text(number: f64, names: [&str; 3]) -> String {
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

/// `int(text, base)`: a sign, the prefix of the base, and underscores between digits may be there. `None` = no number, or
/// one beyond 128 bits.
pub(super) fn integer(text: &str, base: u32) -> Option<i128> {
    const BASES: RangeInclusive<u32> = 2..=36;
    let (sign, unsigned) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    let prefixes = match base {
        2 => ["0b", "0B"],
        8 => ["0o", "0O"],
        16 => ["0x", "0X"],
        _ => [""; 2],
    };
    let [small, capital] = prefixes.map(|prefix| unsigned.strip_prefix(prefix).filter(|_| !prefix.is_empty()));
    let body = small.or(capital).map_or(unsigned, |behind| behind.strip_prefix('_').unwrap_or(behind));
    let whole = body.split('_').all(|digits| !digits.is_empty() && !digits.contains(['+', '-']));
    let number = (whole && BASES.contains(&base)).then(|| format!("{sign}{}", body.replace('_', "")))?;
    i128::from_str_radix(&number, base).ok()
}

/// An argument that indents, as text: itself, or so many spaces.
pub(super) fn indent(argument: &Value) -> Result<String, Error> {
    match argument.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Ok(" ".repeat(usize::try_from(i64::try_from(argument.clone())?.max(0)).unwrap_or_default())),
    }
}

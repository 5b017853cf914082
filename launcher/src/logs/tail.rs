//! The last lines of one child, kept so that its end can be explained.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::record::Record;

/// Lines kept of each child.
pub const KEPT_LINES: usize = 40;

/// How a child that refuses to start begins its two lines: the cause, and then the way out.
pub const REFUSAL: &str = "Error: ";

/// A tail that the pipes of one child write and the supervisor reads.
pub type SharedTail = Arc<Mutex<Tail>>;

/// The last lines of one child, oldest first.
#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A log record of level error.
    Error,
    /// Any other log record.
    Record,
    /// Printed outside the log.
    Raw,
}

// === impl Tail ===

impl Tail {
    /// Keep one more line.
    pub fn push(&mut self, line: &str, record: Option<&Record>) {
        if self.lines.len() == KEPT_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(match record {
            Some(record) => {
                Kept { text: explained(record), kind: if record.is_error() { Kind::Error } else { Kind::Record } }
            }
            None => Kept { text: plain(line), kind: Kind::Raw },
        });
    }

    /// Why the child ended, as far as its lines tell: its refusal, else its last error record, else its last raw line
    /// that speaks of an error, else its last raw line. One line of text.
    pub fn cause(&self) -> Option<String> {
        let newest = || self.lines.iter().rev();
        let raw = || newest().filter(|kept| kept.kind == Kind::Raw);
        let text = self
            .refusal()
            .or_else(|| newest().find(|kept| kept.kind == Kind::Error).map(|kept| kept.text.clone()))
            .or_else(|| raw().find(|kept| speaks_of_error(&kept.text)).map(|kept| kept.text.clone()))
            .or_else(|| raw().next().map(|kept| kept.text.clone()))?;
        let parts: Vec<_> = text.lines().map(str::trim).filter(|part| !part.is_empty()).collect();
        Some(parts.join("; ")).filter(|text| !text.is_empty())
    }

    /// The last refusal and the raw line after it.
    fn refusal(&self) -> Option<String> {
        let raw: Vec<_> = self.raw_lines();
        let start = raw.iter().rposition(|line| line.starts_with(REFUSAL))?;
        Some(raw[start..].iter().take(2).cloned().collect::<Vec<_>>().join("\n"))
    }

    /// The lines printed outside the log: tracebacks and the like.
    pub fn raw_lines(&self) -> Vec<String> {
        self.lines.iter().filter(|kept| kept.kind == Kind::Raw).map(|kept| kept.text.clone()).collect()
    }
}

/// The message, with the last line of the exception that came with it.
fn explained(record: &Record) -> String {
    let exception = record.fields.get("exception").and_then(serde_json::Value::as_str);
    match exception.and_then(|trace| trace.trim_end().lines().last()) {
        Some(last) => format!("{}\n{last}", record.message),
        None => record.message.clone(),
    }
}

fn speaks_of_error(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.contains("error") || line.contains("panicked")
}

/// A line without the escape sequences that colour it.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, escaped)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        rest = escaped.split_once(|end: char| end.is_ascii_alphabetic()).map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}

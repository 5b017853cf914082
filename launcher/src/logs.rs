//! One stream of log lines from all processes, on standard output. Owns how a child's pipe becomes lines and how lines
//! reach the output. Children write JSON lines; anything else they print (tracebacks, messages of C++ libraries) is
//! passed on too. The router formats its own lines, so they go through unchanged; where JSON was asked for, what is no
//! record becomes one. Knows nothing of why processes end.

pub mod record;
pub mod tail;

use std::io::Write as _;
use std::sync::mpsc as blocking;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::sync::mpsc;

use crate::event::{Event, Role};
use record::{Record, Severity};
use tail::SharedTail;

/// Lines that wait for a slow reader of our output; then children wait as well.
const WAITING_LINES: usize = 1024;

/// A longer line is passed on in pieces, so that no child can fill our memory.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// How long the last lines may take to be written when the launcher ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes lines to standard output, from a thread of its own: a reader that stands still never stops the supervisor.
#[derive(Debug, Clone)]
pub struct Printer {
    lines: mpsc::Sender<String>,
    json: bool,
    threshold: Severity,
}

/// Waits for the lines that are still to be written.
#[derive(Debug)]
pub struct PrinterEnd {
    written: blocking::Receiver<()>,
}

/// Where the lines of one pipe go, besides the output.
#[derive(Debug, Clone)]
pub struct Destination {
    /// Whose pipe it is.
    pub role: Role,
    /// The output.
    pub printer: Printer,
    /// Keeps the last lines.
    pub tail: SharedTail,
    /// Hears of the preparation's progress.
    pub events: mpsc::UnboundedSender<Event>,
}

// === impl Printer ===

impl Printer {
    /// Start the writing thread. `level` is the filter of all processes.
    pub fn start(json: bool, level: &str) -> (Self, PrinterEnd) {
        let (lines, mut waiting) = mpsc::channel::<String>(WAITING_LINES);
        let (done, written) = blocking::channel();
        thread::spawn(move || {
            let mut output = std::io::stdout().lock();
            let mut broken = false;
            while let Some(line) = waiting.blocking_recv() {
                // A reader that went away does not end the service; the lines are read off all the same.
                broken = broken || output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err();
            }
            // Nobody may be waiting any more.
            let _unheard = done.send(());
        });
        (Self { lines, json, threshold: Severity::threshold(level) }, PrinterEnd { written })
    }

    /// Print a line of the launcher's own. Lost when nobody reads the output: supervising is more important.
    pub fn say(&self, severity: Severity, message: &str) {
        if severity >= self.threshold {
            let record = Record::own(severity, message);
            let _lost = self.lines.try_send(record.render(None, self.json));
        }
    }

    /// Pass a child's line on. Waits while the output is full.
    async fn relay(&self, role: Role, line: &str, record: Option<Record>) {
        let text = match (role, record) {
            (Role::Router, Some(_)) => format!("{line}\n"),
            (Role::Router, None) if !self.json => format!("{line}\n"),
            (_, Some(record)) => record.render(Some(role), self.json),
            (_, None) => {
                let severity = if line.starts_with(tail::REFUSAL) { Severity::Error } else { Severity::Info };
                Record::own(severity, line).render(Some(role), self.json)
            }
        };
        // Fails only when the writing thread is gone, which outlives every child.
        let _gone = self.lines.send(text).await;
    }
}

// === impl PrinterEnd ===

impl PrinterEnd {
    /// Wait until everything is written, for a short time at most. Every `Printer` must be dropped before.
    pub fn flush(self) {
        // Too late or done: both end the waiting.
        let _late = self.written.recv_timeout(FLUSH_TIMEOUT);
    }
}

/// Pass on everything from a child's pipe until it closes.
pub async fn relay(pipe: impl AsyncRead + Unpin, to: Destination) {
    let mut reader = BufReader::new(pipe);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut buffer).await {
            Ok(0) => return,
            Ok(_) => to.deliver(String::from_utf8_lossy(&buffer).trim_end_matches(['\n', '\r'])).await,
            Err(error) => {
                to.printer.say(Severity::Warn, &format!("cannot read what {} prints: {error}", to.role));
                return;
            }
        }
    }
}

// === impl Destination ===

impl Destination {
    async fn deliver(&self, line: &str) {
        if line.is_empty() {
            return;
        }
        let record = Record::parse(line);
        self.tail.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line, record.as_ref());
        if let (Role::Prepare, Some(record)) = (self.role, &record)
            && record.is_progress()
        {
            // Without a supervisor there is no one to tell.
            let _unheard = self.events.send(Event::Progress(record.message.clone()));
        }
        self.printer.relay(self.role, line, record).await;
    }
}

#[cfg(test)]
#[path = "logs/tests.rs"]
mod tests;

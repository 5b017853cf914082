//! The last words of the launcher: what goes to standard error, and the exit code. Decides nothing else.

use std::io::Write as _;

use nix::sys::signal::Signal;

use crate::child::describe;
use crate::event::Role;
use crate::logs::tail::REFUSAL;
use crate::outcome::{Failure, Outcome};

/// Something was wrong: the configuration, a child, or the machine.
pub const FAILED: i32 = 1;

/// Shells add this to the number of the signal that ended a program.
const SIGNAL_BASE: i32 = 128;

/// Print to standard error, where only the last words go.
pub fn complain(text: &str) {
    // Nothing can be done when nobody listens.
    let _unheard = writeln!(std::io::stderr(), "{text}");
}

/// Print a result to standard output; returns the exit code.
pub fn print_result(text: &str) -> i32 {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => FAILED,
    }
}

/// Say how it ended; returns the exit code.
pub fn conclude(outcome: &Outcome) -> i32 {
    match outcome {
        Outcome::Ended => 0,
        Outcome::Cut(signal) => {
            complain(&format!("Error: a second signal ({signal}) ended everything at once"));
            SIGNAL_BASE + signal_number(*signal)
        }
        Outcome::CannotStart(error) => {
            complain(&error.to_string());
            FAILED
        }
        Outcome::Failed(failure) => {
            complain(&explain(failure));
            FAILED
        }
    }
}

fn signal_number(signal: Signal) -> i32 {
    signal as i32
}

/// The lines that the child printed outside its log, then one line that names it, its end and the cause. A refusal says
/// all in its two lines, and the router's lines are its log, which went to standard output already: both are left out.
fn explain(failure: &Failure) -> String {
    let cause = failure.cause.as_deref().unwrap_or("it gave no reason");
    let refusal = cause.strip_prefix(REFUSAL);
    let mut text = String::new();
    if failure.role != Role::Router && refusal.is_none() && !failure.last_lines.is_empty() {
        text.push_str(&format!("last lines of {}:\n", failure.role));
        failure.last_lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    let cause = refusal.unwrap_or(cause);
    text.push_str(&format!("{REFUSAL}{} ended with {}: {cause}", failure.role, describe(failure.status)));
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn failure(raw: i32, cause: Option<&str>, lines: &[&str]) -> Failure {
        Failure {
            role: Role::Shard(2),
            status: ExitStatus::from_raw(raw),
            cause: cause.map(str::to_owned),
            last_lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    #[test]
    fn one_line_names_the_child_its_end_and_the_cause() {
        let text = explain(&failure(256, Some("Error: no such tensor"), &[]));
        assert_eq!(text, "Error: shard 2 ended with exit status 1: no such tensor");
        let killed = explain(&failure(9, None, &[]));
        assert!(killed.starts_with("Error: shard 2 ended with signal 9 (SIGKILL"), "{killed}");
        assert!(explain(&failure(11, None, &[])).contains("signal 11 (SIGSEGV)"));
    }

    #[test]
    fn a_traceback_comes_before_the_last_line() {
        let lines = ["Traceback (most recent call last):", "  File x", "ValueError: bad"];
        let text = explain(&failure(256, Some("ValueError: bad"), &lines));
        assert_eq!(text.lines().count(), 5);
        assert!(text.lines().last().unwrap_or_default().ends_with("exit status 1: ValueError: bad"));
    }
}

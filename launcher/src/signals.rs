//! Turns the signals that ask the launcher to end into events. Installed before the first child starts. Decides nothing.

use std::io;

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use crate::event::Event;

/// Send an event for each SIGTERM, SIGINT and SIGHUP from now on. Must be called inside the runtime.
///
/// # Errors
/// A handler cannot be installed.
pub fn watch(events: &UnboundedSender<Event>) -> io::Result<()> {
    forward(SignalKind::terminate(), Signal::SIGTERM, events)?;
    forward(SignalKind::interrupt(), Signal::SIGINT, events)?;
    // `nohup` starts us with SIGHUP ignored: then a closed terminal must not end the service.
    if !is_ignored(Signal::SIGHUP)? {
        forward(SignalKind::hangup(), Signal::SIGHUP, events)?;
    }
    Ok(())
}

fn forward(kind: SignalKind, meaning: Signal, events: &UnboundedSender<Event>) -> io::Result<()> {
    let mut stream = signal(kind)?;
    let events = events.clone();
    tokio::spawn(async move {
        while stream.recv().await.is_some() {
            if events.send(Event::Signal(meaning)).is_err() {
                break;
            }
        }
    });
    Ok(())
}

fn is_ignored(signal: Signal) -> io::Result<bool> {
    Ok(ignored_in(&std::fs::read_to_string("/proc/self/status")?, signal))
}

/// The kernel lists ignored signals as a mask: bit n-1 stands for signal n.
fn ignored_in(status: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal as i32 - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read_bit_by_bit() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        assert!(ignored_in(status, Signal::SIGHUP));
        assert!(ignored_in(status, Signal::SIGPIPE));
        assert!(!ignored_in(status, Signal::SIGINT));
    }
}

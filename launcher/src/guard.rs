//! The last resort when the launcher is killed with SIGKILL: a tiny shell that holds one end of a pipe. When the pipe
//! closes it kills the process groups that are still listed, grandchildren included. Children also get a death signal
//! from the kernel (`child`), but their own children do not.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use nix::unistd::Pid;

/// Each line replaces the list; the last one counts. Signals meant for the launcher must not end the guard before it.
/// (`kill -s KILL --` is the one spelling of a group that dash, bash and busybox all take.)
const SCRIPT: &str = "\
trap '' HUP INT TERM
while read -r line; do groups=$line; done
[ -z \"$groups\" ] || kill -s KILL -- $groups";

/// The shell and our end of its pipe.
#[derive(Debug)]
pub struct Guard {
    shell: Child,
    list: Option<ChildStdin>,
}

// === impl Guard ===

impl Guard {
    /// Start the shell.
    ///
    /// # Errors
    /// There is no `/bin/sh`.
    pub fn start() -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let list = shell.stdin.take();
        Ok(Self { shell, list })
    }

    /// Say which process groups must not outlive the launcher.
    ///
    /// # Errors
    /// The shell is gone.
    pub fn watch(&mut self, groups: impl Iterator<Item = Pid>) -> io::Result<()> {
        let words: Vec<_> = groups.map(|group| format!("-{group}")).collect();
        match &mut self.list {
            Some(list) => writeln!(list, "{}", words.join(" ")),
            None => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    /// Dismiss the shell; nothing is left to kill.
    ///
    /// # Errors
    /// The shell is gone already.
    pub fn dismiss(mut self) -> io::Result<()> {
        let told = self.watch(std::iter::empty());
        self.list = None;
        self.shell.wait()?;
        told
    }
}

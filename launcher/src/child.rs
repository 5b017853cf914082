//! One child process: started in a process group of its own, with pipes for its output, a death signal and, for the
//! router, the control channel. Owns how a child is started, signalled and waited for; decides nothing.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpid, getppid};
use text_generation_protocol::control::ControlMessage;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::StartError;
use crate::event::{Event, Role};
use crate::logs::record::Severity;
use crate::logs::tail::SharedTail;
use crate::logs::{Destination, Printer, relay};

/// How long the last lines of a child that ended may take to arrive.
const LAST_LINES_TIMEOUT: Duration = Duration::from_secs(1);

/// What to start.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// Its part.
    pub role: Role,
    /// The program file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables on top of the launcher's own.
    pub environment: Vec<(&'static str, String)>,
}

/// A child that runs, or has ended.
#[derive(Debug)]
pub struct RunningChild {
    /// Its part.
    pub role: Role,
    /// Its process group, which has its own number.
    pub group: Pid,
    /// Set by the supervisor when it hears that the child ended.
    pub ended: bool,
    tail: SharedTail,
    relays: JoinSet<()>,
    control: Option<UnboundedSender<ControlMessage>>,
}

/// Start a child. Its end is sent to `events`.
///
/// Must be called on the thread that called `main_from`, which lives as long as the process: the kernel sends the death
/// signal when the *thread* that started a child ends.
///
/// # Errors
/// The program cannot be started.
pub fn start(spec: &ChildSpec, printer: &Printer, events: &UnboundedSender<Event>) -> Result<RunningChild, StartError> {
    let mut process = spawn(spec).map_err(|error| cannot_start(spec, &error))?;
    let group = group_of(&process).ok_or_else(|| cannot_start(spec, &io::Error::other("it has no process id")))?;
    let tail = SharedTail::default();
    let to = Destination { role: spec.role, printer: printer.clone(), tail: tail.clone(), events: events.clone() };
    let mut relays = JoinSet::new();
    if let Some(pipe) = process.stdout.take() {
        relays.spawn(relay(pipe, to.clone()));
    }
    if let Some(pipe) = process.stderr.take() {
        relays.spawn(relay(pipe, to));
    }
    let control = process.stdin.take().map(control_channel);
    tokio::spawn(report_end(process, (spec.role, group), printer.clone(), events.clone()));
    Ok(RunningChild { role: spec.role, group, ended: false, tail, relays, control })
}

fn cannot_start(spec: &ChildSpec, error: &io::Error) -> StartError {
    StartError::new(
        format!("cannot start {} ({}): {error}", spec.role, spec.program.display()),
        "check that the file is a program for this machine, and the limits on processes and memory",
    )
}

fn group_of(process: &Child) -> Option<Pid> {
    process.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw)
}

#[allow(unsafe_code, reason = "the code between fork and exec makes two system calls and allocates nothing")]
fn spawn(spec: &ChildSpec) -> io::Result<Child> {
    let input = if spec.role == Role::Router { Stdio::piped() } else { Stdio::null() };
    let launcher = getpid();
    let mut command = Command::new(&spec.program);
    command.args(&spec.arguments).envs(spec.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // SAFETY: `prctl` and `getppid` are async-signal-safe, and the closure touches no memory of the parent.
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The launcher may have been killed before the line above.
            if getppid() == launcher { Ok(()) } else { Err(io::Error::from(Errno::ESRCH)) }
        });
    }
    command.spawn()
}

/// Lines for the router's standard input. It stays open until the sender is dropped: its end tells the router to end.
fn control_channel(mut input: ChildStdin) -> UnboundedSender<ControlMessage> {
    let (sender, mut messages): (_, UnboundedReceiver<ControlMessage>) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(message) = messages.recv().await {
            let Ok(mut line) = serde_json::to_vec(&message) else { continue };
            line.push(b'\n');
            if input.write_all(&line).await.is_err() {
                // The router has ended; its end is an event of its own.
                return;
            }
        }
    });
    sender
}

async fn report_end(mut process: Child, (role, group): (Role, Pid), printer: Printer, events: UnboundedSender<Event>) {
    match process.wait().await {
        Ok(status) => {
            // Whatever the child started itself must not outlive it, nor keep its pipes open.
            send_signal(group, Signal::SIGKILL, &printer);
            // The supervisor may have gone.
            let _unheard = events.send(Event::Ended(role, status));
        }
        Err(error) => printer.say(Severity::Error, &format!("cannot wait for {role}: {error}")),
    }
}

fn send_signal(group: Pid, signal: Signal, printer: &Printer) {
    match killpg(group, signal) {
        // No such process: it has ended by itself.
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => printer.say(Severity::Error, &format!("cannot send {signal} to process group {group}: {error}")),
    }
}

// === impl RunningChild ===

impl RunningChild {
    /// Send a signal to the child and everything it started.
    pub fn signal(&self, signal: Signal, printer: &Printer) {
        if !self.ended {
            send_signal(self.group, signal, printer);
        }
    }

    /// Send a line over the control channel, when this child has one.
    pub fn tell(&self, message: ControlMessage) {
        if let Some(control) = &self.control {
            // The router has ended; its end is an event of its own.
            let _unheard = control.send(message);
        }
    }

    /// Wait until everything that the ended child printed has been passed on, for a short time at most.
    pub async fn drain_output(&mut self) {
        // Too late or done: both end the waiting.
        let _late = timeout(LAST_LINES_TIMEOUT, async { while self.relays.join_next().await.is_some() {} }).await;
    }

    /// Why it ended, and the lines that it printed outside its log.
    pub fn last_words(&self) -> (Option<String>, Vec<String>) {
        let tail = self.tail.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (tail.cause(), tail.raw_lines())
    }
}

/// An exit status in words.
pub fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(9)) => "signal 9 (SIGKILL; often sent by the kernel when memory runs out)".to_owned(),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("signal {number} ({signal})"),
            Err(_) => format!("signal {number}"),
        },
        (None, None) => status.to_string(),
    }
}

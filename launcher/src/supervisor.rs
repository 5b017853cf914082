//! Starts the children in their order and watches them until the end. The first child that fails decides; a signal ends
//! everything in order. Owns the order and the waiting times; knows nothing of flags, files and how lines look.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use text_generation_protocol::control::ControlMessage;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, timeout_at};

use crate::child::{self, ChildSpec, RunningChild, describe};
use crate::error::StartError;
use crate::event::{Event, Role};
use crate::guard::Guard;
use crate::logs::Printer;
use crate::logs::record::Severity;
use crate::outcome::{Failure, Outcome};
use crate::plan::Plan;

/// After a failure: how long the router may take to answer its clients.
const FAREWELL: Duration = Duration::from_secs(5);

/// After a failure: how long all others may take. They have nothing to save.
const LETTING_GO: Duration = Duration::from_secs(2);

/// After the router has drained: how long shards may take to end.
const SHARD_GRACE: Duration = Duration::from_secs(5);

/// How long the preparation may take to end on a signal; a download resumes later.
const PREPARE_GRACE: Duration = Duration::from_secs(2);

/// The router ends within its grace time by itself; this much later it is killed.
const ROUTER_MARGIN: Duration = Duration::from_secs(5);

/// How long the kernel may take to end a killed process.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// All children and what they send.
#[derive(Debug)]
pub struct Supervisor {
    plan: Plan,
    children: Vec<RunningChild>,
    guard: Option<Guard>,
    printer: Printer,
    events: UnboundedReceiver<Event>,
    sender: UnboundedSender<Event>,
}

/// Why waiting for children ended.
enum Waited {
    /// They have all ended.
    Done,
    /// Time is up.
    Late,
    /// The first unexpected thing.
    Interrupted(Outcome),
}

// === impl Supervisor ===

impl Supervisor {
    /// Prepare to start the children of `plan`; `sender` feeds `events`.
    pub fn new(
        plan: Plan,
        printer: Printer,
        (sender, events): (UnboundedSender<Event>, UnboundedReceiver<Event>),
    ) -> Self {
        let guard = Guard::start()
            .map_err(|error| {
                let message = format!("no /bin/sh to clean up after a SIGKILL of the launcher: {error}");
                printer.say(Severity::Warn, &message);
            })
            .ok();
        Self { plan, children: Vec::new(), guard, printer, events, sender }
    }

    /// Start everything, watch it, and end it.
    pub async fn run(mut self) -> Outcome {
        let reason = match self.start_router_and_prepare() {
            Ok(()) => self.watch().await,
            Err(error) => Outcome::CannotStart(error),
        };
        let outcome = match reason {
            Outcome::Cut(signal) => self.wind_down(signal).await,
            failure => self.end_after(failure).await,
        };
        self.kill(|_| true).await;
        for child in &mut self.children {
            child.drain_output().await;
        }
        if let Some(Err(error)) = self.guard.take().map(Guard::dismiss) {
            self.printer.say(Severity::Warn, &format!("the clean-up shell ended early: {error}"));
        }
        outcome
    }

    fn start_router_and_prepare(&mut self) -> Result<(), StartError> {
        self.start(&self.plan.router()?)?;
        self.tell_router(ControlMessage::Status { reason: "preparing the model".to_owned() });
        self.start(&self.plan.prepare()?)
    }

    fn start_shards(&mut self) -> Result<(), StartError> {
        let model = self.plan.prepared_model()?;
        self.printer.say(Severity::Info, &format!("model {} is prepared, starting shards", model.model_id));
        for rank in 0..self.plan.config.shards.count {
            self.start(&self.plan.shard(rank, &model)?)?;
        }
        self.tell_router(ControlMessage::Model(model));
        Ok(())
    }

    fn start(&mut self, spec: &ChildSpec) -> Result<(), StartError> {
        let child = child::start(spec, &self.printer, &self.sender)?;
        self.printer.say(Severity::Info, &format!("started {} (process {})", child.role, child.group));
        self.children.push(child);
        self.update_guard();
        Ok(())
    }

    /// Wait for the first thing that ends the service: a signal (as `Cut`) or a failure.
    async fn watch(&mut self) -> Outcome {
        loop {
            match self.next_event().await {
                Event::Signal(signal) => return Outcome::Cut(signal),
                Event::Progress(reason) => self.tell_router(ControlMessage::Status { reason }),
                Event::Ended(Role::Prepare, status) if status.success() => {
                    if let Err(error) = self.start_shards() {
                        return Outcome::CannotStart(error);
                    }
                }
                Event::Ended(role, status) => return Outcome::Failed(self.failure(role, status).await),
            }
        }
    }

    /// End in order after a first signal: the preparation, then the router, then the shards.
    async fn wind_down(&mut self, signal: Signal) -> Outcome {
        let grace = self.plan.config.server.grace;
        let text = format!("received {signal}: running requests may take {} s more", grace.as_secs());
        self.printer.say(Severity::Info, &text);
        type Step = (fn(Role) -> bool, Duration);
        let steps: [Step; 3] = [
            (|role| role == Role::Prepare, PREPARE_GRACE),
            (|role| role == Role::Router, grace + ROUTER_MARGIN),
            (Role::is_shard, SHARD_GRACE),
        ];
        self.signal(|role| !role.is_shard(), Signal::SIGTERM);
        for (group, patience) in steps {
            self.signal(|role| role.is_shard() && group(role), Signal::SIGTERM);
            match self.wait_for(group, patience).await {
                Waited::Done => {}
                Waited::Late => {
                    let text = format!("killing what has not ended after {} s", patience.as_secs());
                    self.printer.say(Severity::Warn, &text);
                    self.kill(group).await;
                }
                Waited::Interrupted(outcome) => return outcome,
            }
        }
        Outcome::Ended
    }

    /// End everything after a failure. The router sees its shards go and answers its clients with errors.
    async fn end_after(&mut self, failure: Outcome) -> Outcome {
        if let Outcome::Failed(first) = &failure {
            let text = format!("{} ended with {}: ending everything", first.role, describe(first.status));
            self.printer.say(Severity::Error, &text);
        }
        self.signal(|_| true, Signal::SIGTERM);
        let begin = Instant::now();
        self.let_end(|role| role != Role::Router, begin + LETTING_GO).await;
        self.let_end(|role| role == Role::Router, begin + FAREWELL).await;
        failure
    }

    /// Let a group end by itself until the deadline, then kill it. A signal means that nobody wants to wait.
    async fn let_end(&mut self, group: fn(Role) -> bool, deadline: Instant) {
        while self.is_running(group) {
            match timeout_at(deadline, self.next_event()).await {
                // The first cause is known; what else ends now only follows it.
                Ok(Event::Ended(..) | Event::Progress(_)) => {}
                Ok(Event::Signal(_)) | Err(_) => return self.kill(group).await,
            }
        }
    }

    /// Wait until all children of a group have ended.
    async fn wait_for(&mut self, group: fn(Role) -> bool, patience: Duration) -> Waited {
        let deadline = Instant::now() + patience;
        while self.is_running(group) {
            match timeout_at(deadline, self.next_event()).await {
                Err(_) => return Waited::Late,
                Ok(Event::Signal(signal)) => return Waited::Interrupted(Outcome::Cut(signal)),
                Ok(Event::Progress(_)) => {}
                Ok(Event::Ended(role, status)) => {
                    if let Some(failure) = self.failure_while_ending(role, status, group(role)).await {
                        return Waited::Interrupted(Outcome::Failed(failure));
                    }
                }
            }
        }
        Waited::Done
    }

    /// A child that was not told to end may not. The router ends by itself with status 0, or by the very signal when it
    /// came before its handler.
    async fn failure_while_ending(&mut self, role: Role, status: ExitStatus, told: bool) -> Option<Failure> {
        let in_order = match role {
            Role::Router => status.success() || status.signal() == Some(Signal::SIGTERM as i32),
            Role::Prepare => true,
            Role::Shard(_) => told,
        };
        if in_order { None } else { Some(self.failure(role, status).await) }
    }

    async fn kill(&mut self, group: fn(Role) -> bool) {
        self.signal(group, Signal::SIGKILL);
        let deadline = Instant::now() + KILL_TIMEOUT;
        while self.is_running(group) {
            if timeout_at(deadline, self.next_event()).await.is_err() {
                self.printer.say(Severity::Error, "a killed process has not ended; the kernel still holds it");
                return;
            }
        }
    }

    async fn next_event(&mut self) -> Event {
        // We hold a sender ourselves, so the queue never closes.
        let Some(event) = self.events.recv().await else { return std::future::pending().await };
        if let Event::Ended(role, _) = event {
            for child in self.children.iter_mut().filter(|child| child.role == role) {
                child.ended = true;
            }
            self.update_guard();
        }
        event
    }

    async fn failure(&mut self, role: Role, status: ExitStatus) -> Failure {
        let mut failure = Failure { role, status, cause: None, last_lines: Vec::new() };
        for child in self.children.iter_mut().filter(|child| child.role == role) {
            child.drain_output().await;
            (failure.cause, failure.last_lines) = child.last_words();
        }
        failure
    }

    fn is_running(&self, group: fn(Role) -> bool) -> bool {
        self.children.iter().any(|child| !child.ended && group(child.role))
    }

    fn signal(&self, group: impl Fn(Role) -> bool, signal: Signal) {
        for child in self.children.iter().filter(|child| group(child.role)) {
            child.signal(signal, &self.printer);
        }
    }

    fn tell_router(&self, message: ControlMessage) {
        if let Some(router) = self.children.iter().find(|child| child.role == Role::Router) {
            router.tell(message);
        }
    }

    fn update_guard(&mut self) {
        let groups = self.children.iter().filter(|child| !child.ended).map(|child| child.group);
        if let Some(Err(error)) = self.guard.as_mut().map(|guard| guard.watch(groups)) {
            self.printer.say(Severity::Warn, &format!("the clean-up shell is gone: {error}"));
            self.guard = None;
        }
    }
}

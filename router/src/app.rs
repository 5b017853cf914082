//! The composition root: command line, logs, the port, the model, the shards, the engine, and the end of it all. Every
//! part is made here and handed to those that need it.

mod bring_up;
mod control;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use text_generation_protocol::config::RouterConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::cli::{Cli, Task};
use crate::drain::{self, Cause, Signals};
use crate::http::{self, HttpConfig, Readiness, Server};
use crate::telemetry;

/// Cores for each thread that serves connections.
const CORES_PER_WORKER: usize = 4;
/// Most threads that serve connections.
const MOST_WORKERS: usize = 8;
/// Exit code of a start that failed.
const FAILURE: i32 = 1;
/// How long answers may take to leave after the last request has ended.
const LAST_BYTES: Duration = Duration::from_secs(2);

/// Why the router cannot go on: what happened, and the way out, in a line each.
#[derive(Debug, thiserror::Error)]
#[error("{cause}\n{hint}")]
pub struct AppError {
    /// What happened.
    pub cause: String,
    /// What to do.
    pub hint: String,
}

// === impl AppError ===

impl AppError {
    fn new(cause: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { cause: cause.into(), hint: hint.into() }
    }
}

/// Runs the router with this command line (`argv[0]` is the program's name) and returns its exit code.
pub fn main_from(argv: Vec<String>) -> i32 {
    let task = match Cli::try_parse_from(argv) {
        Ok(cli) => cli.into_task(),
        Err(error) => {
            // Help and version are such "errors" too; clap knows the stream and the code.
            return if error.print().is_ok() { error.exit_code() } else { FAILURE };
        }
    };
    let outcome = match task {
        Ok(Task::PrintSchema) => print_schema(),
        Ok(Task::PrintParameters) => print_document(http::parameters_page().trim_end()),
        Ok(Task::Serve(config)) => serve(*config),
        Err(error) => Err(AppError::new(error.cause, error.hint)),
    };
    outcome.unwrap_or_else(|error| {
        report(&error);
        FAILURE
    })
}

/// The last words, on standard error whatever the log level is.
fn report(error: &AppError) {
    use std::io::Write;
    // When standard error is closed nobody can be told; the exit code still says it.
    if writeln!(std::io::stderr(), "Error: {error}").is_err() {
        tracing::error!(%error, "the router ends");
    }
}

fn print_schema() -> Result<i32, AppError> {
    let text = http::openapi_schema().and_then(|document| serde_json::to_string_pretty(&document));
    print_document(&text.map_err(|error| unprintable(&error))?)
}

fn print_document(text: &str) -> Result<i32, AppError> {
    use std::io::Write;
    writeln!(std::io::stdout(), "{text}").map_err(|error| unprintable(&error))?;
    Ok(0)
}

fn unprintable(error: &dyn std::error::Error) -> AppError {
    AppError::new(format!("cannot print the document: {error}"), "Try again.")
}

fn serve(config: RouterConfig) -> Result<i32, AppError> {
    telemetry::start_logging(&config.log).map_err(|error| {
        let cause = format!("the log level `{}` cannot be used: {error}", config.log.level);
        AppError::new(cause, "Use `error`, `warn`, `info`, `debug`, `trace` or a filter directive.")
    })?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(worker_threads()).enable_all().build().map_err(
            |error| AppError::new(format!("cannot start threads: {error}"), "Raise the limit on processes."),
        )?;
    let code = runtime.block_on(run(config));
    // What still runs is cut off: waiting for it was the drain's business.
    runtime.shutdown_background();
    code
}

/// Few threads: a worker can stream some 50,000 tokens a second, and tasks that move between cores cost more than they
/// gain. Tokenising has threads of its own, and the shards need the other cores.
fn worker_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / CORES_PER_WORKER).clamp(1, MOST_WORKERS)
}

async fn run(config: RouterConfig) -> Result<i32, AppError> {
    let mut signals = Signals::install()
        .map_err(|error| AppError::new(format!("cannot handle signals: {error}"), "Check the container's limits."))?;
    let listener = bind(&config).await?;
    let starting = Readiness::Starting("starting".into());
    let (readiness, observed) = watch::channel(starting);
    let router = http::router(Server::new(http_config(&config), observed))
        .map_err(|error| AppError::new(error.to_string(), "Correct the value, or leave the flag out."))?;
    let (stop, stopped) = watch::channel(false);
    let mut server = tokio::spawn(listen(listener, router, stopped));

    // The engine runs inside: it must go on while running requests finish.
    let mut work = std::pin::pin!(bring_up::bring_up(&config, &readiness));
    let cause = tokio::select! {
        signal = signals.next() => Cause::Signal(signal),
        cause = &mut work => cause?,
    };
    tracing::info!(?cause, "Shutting down");
    drain::stop_admitting(&readiness);
    let deadline = match cause {
        Cause::Signal(_) => Duration::from_secs(config.graceful_termination_timeout),
        Cause::LauncherGone => Duration::ZERO,
    };
    let finish = async {
        let finished = drain::finish_running(&readiness, deadline).await;
        stop.send_replace(true);
        if !finished || tokio::time::timeout(LAST_BYTES, &mut server).await.is_err() {
            tracing::warn!("some requests were cut off by the deadline");
        }
    };
    Ok(tokio::select! {
        signal = signals.next() => drain::killed_by(signal),
        _ = &mut work, if cause != Cause::LauncherGone => 0,
        () = finish => 0,
    })
}

async fn bind(config: &RouterConfig) -> Result<TcpListener, AppError> {
    let address = SocketAddr::new(config.hostname, config.port);
    TcpListener::bind(address).await.map_err(|error| {
        let hint = if error.kind() == std::io::ErrorKind::AddrInUse {
            format!(
                "Stop the program that listens there, or choose another port with `--port` ({} is taken).",
                config.port
            )
        } else {
            "Choose an address of this machine with `--hostname` and a free port with `--port`.".to_owned()
        };
        AppError::new(format!("cannot listen on {address}: {error}"), hint)
    })
}

fn http_config(config: &RouterConfig) -> HttpConfig {
    HttpConfig {
        api_key: config.api_key.clone(),
        cors_allow_origin: config.cors_allow_origin.clone(),
        payload_limit: config.limits.payload_limit,
        compute_type: config.compute_type.clone(),
        predict_route: config.aip_predict_route.clone(),
        health_route: config.aip_health_route.clone(),
    }
}

async fn listen(listener: TcpListener, router: axum::Router, mut stopped: watch::Receiver<bool>) {
    let stop = async move {
        // A closed channel means the same: the composition root is gone.
        if stopped.wait_for(|stop| *stop).await.is_err() {
            tracing::debug!("the server's owner is gone");
        }
    };
    if let Err(error) = axum::serve(http::FrameListener::new(listener), router).with_graceful_shutdown(stop).await {
        tracing::error!(%error, "the HTTP server ended");
    }
}

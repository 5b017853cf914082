//! The launcher: prepares the model, starts the router and the shards, and supervises them.
//!
//! `cli` → `config` (with `devices`) → `plan` (with `programs`) → `supervisor`, which starts each `child` under a
//! `guard`, hears `event`s (`signals` among them) and passes output to `logs`; `report` has the last word. The same
//! `main_from` is the ELF program and the wheel's command.

pub mod child;
pub mod cli;
pub mod config;
pub mod devices;
pub mod error;
pub mod event;
pub mod guard;
pub mod logs;
pub mod outcome;
pub mod plan;
pub mod programs;
pub mod report;
pub mod signals;
pub mod supervisor;
pub mod versions;

use tokio::sync::mpsc;

use cli::groups::Device;
use cli::{Action, Arguments, Surroundings};
use config::LauncherConfig;
use devices::{Gpus, query_names};
use error::StartError;
use logs::Printer;
use logs::record::Severity;
use outcome::Outcome;
use plan::Plan;
use programs::Programs;
use supervisor::Supervisor;

/// Run the launcher with this command line; returns the exit code. Call it on a thread that lives until the process
/// ends: children die with the thread that started them.
pub fn main_from(argv: Vec<String>) -> i32 {
    let (arguments, matches) = match cli::parse(&argv) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help, version or a wrong flag; nothing can be done when nobody listens.
            let _unheard = error.print();
            return error.exit_code();
        }
    };
    let own_name = argv.first().map(String::as_str).unwrap_or_default();
    let surroundings = Surroundings::read();
    match &arguments.action {
        Some(Action::Env) => report::print_result(&versions::report(own_name, &surroundings)),
        Some(Action::PrintFlags { markdown: true }) => {
            report::print_result(&cli::flags_page::markdown(&cli::command()))
        }
        Some(Action::PrintFlags { markdown: false }) => report::print_result(&cli::flags_page::names(&cli::command())),
        None => {
            let checked = cli::refuse_absent(&matches).and_then(|()| check(arguments, &surroundings));
            let outcome = checked.and_then(|config| serve(config, own_name, &surroundings));
            report::conclude(&outcome.unwrap_or_else(Outcome::CannotStart))
        }
    }
}

fn check(arguments: Arguments, surroundings: &Surroundings) -> Result<LauncherConfig, StartError> {
    let names = if arguments.shards.device == Device::Cpu { Vec::new() } else { query_names() };
    config::resolve(arguments, surroundings, &Gpus::new(names, surroundings))
}

fn serve(config: LauncherConfig, own_name: &str, surroundings: &Surroundings) -> Result<Outcome, StartError> {
    let programs = Programs::find(own_name, surroundings.path.as_deref())?;
    let (printer, end) = Printer::start(config.log.json, &config.log.level);
    let outcome = serve_with(config, programs, printer, (own_name, surroundings));
    end.flush();
    outcome
}

fn serve_with(
    config: LauncherConfig,
    programs: Programs,
    printer: Printer,
    (own_name, surroundings): (&str, &Surroundings),
) -> Result<Outcome, StartError> {
    config.warnings.iter().for_each(|warning| printer.say(Severity::Warn, warning));
    if config.print_env {
        printer.say(Severity::Info, &versions::report(own_name, surroundings));
    }
    let plan = Plan::new(config, programs)?;
    // One thread: it is the one that starts children, so their death signal is tied to the launcher's main thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_runtime)?;
    runtime.block_on(async {
        let (sender, events) = mpsc::unbounded_channel();
        signals::watch(&sender).map_err(no_runtime)?;
        Ok(Supervisor::new(plan, printer, (sender, events)).run().await)
    })
}

fn no_runtime(error: std::io::Error) -> StartError {
    StartError::new(
        format!("cannot set up signals and events: {error}"),
        "raise the limits on open files and processes (`ulimit -n`, `ulimit -u`)",
    )
}

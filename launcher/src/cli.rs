//! The command line and the environment of the launcher. Owns every flag, its variable and its default, and is the only
//! place of this crate that reads the environment. Knows nothing of what the values mean together: `config` does.

pub mod absent;
pub mod flags_page;
pub mod groups;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::StartError;
use groups::{LimitArguments, ModelArguments, ServerArguments, ShardArguments};

/// The command's name, whatever the file is called that was started.
pub const PROGRAM: &str = "text-generation-launcher";

/// The whole command line.
#[derive(Debug, Clone, Parser)]
#[command(
    name = PROGRAM,
    bin_name = PROGRAM,
    version,
    about = "Serve a large language model: prepare it, start its shards and the router, and keep watch over them",
    after_help = "Every flag can also be set by the variable shown next to it; the command line wins."
)]
pub struct Arguments {
    /// Which model, and where its files are.
    #[command(flatten)]
    pub model: ModelArguments,
    /// How the shards run it.
    #[command(flatten)]
    pub shards: ShardArguments,
    /// What clients may ask for.
    #[command(flatten)]
    pub limits: LimitArguments,
    /// The HTTP server, logs and the end.
    #[command(flatten)]
    pub server: ServerArguments,
    /// What to do instead of serving.
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What the launcher can do besides serving.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Action {
    /// Print the versions and devices of this machine, and exit
    Env,
    /// Print the reference of all flags, and exit
    #[command(hide = true)]
    PrintFlags {
        /// As the Markdown page `docs/flags.md`
        #[arg(long)]
        markdown: bool,
    },
}

/// The variables that are not flags but decide something here. `None` = not set.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `PATH`: where programs are looked for.
    pub path: Option<OsString>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`: where caches belong.
    pub xdg_cache_home: Option<PathBuf>,
    /// `CUDA_VISIBLE_DEVICES`: the GPUs that CUDA shows.
    pub cuda_visible_devices: Option<String>,
    /// `NVIDIA_VISIBLE_DEVICES`: the GPUs that the container was given.
    pub nvidia_visible_devices: Option<String>,
    /// `OMP_NUM_THREADS`: compute threads of one shard.
    pub omp_num_threads: Option<String>,
    /// `OMP_WAIT_POLICY`: whether idle compute threads spin.
    pub omp_wait_policy: Option<String>,
    /// `LOG_LEVEL`: a level or a filter directive.
    pub log_level: Option<String>,
    /// `COMPUTE_TYPE`: replaces the `x-compute-type` header.
    pub compute_type: Option<String>,
    /// `HF_TOKEN`: the Hub's token, read by `huggingface_hub` itself.
    pub hf_token: Option<String>,
    /// `HF_API_TOKEN`: its old name.
    pub hf_api_token: Option<String>,
}

/// The full command: the flags that work, and those that are only known by name.
pub fn command() -> Command {
    let command = Arguments::command().mut_args(|argument| argument.hide_env_values(true));
    command.args(absent::ABSENT.iter().map(absent::AbsentFlag::argument))
}

/// Parse a command line. The first item is the program's name.
///
/// # Errors
/// What `clap` has to say, help and version included; it knows its exit code.
pub fn parse(argv: &[String]) -> Result<(Arguments, ArgMatches), clap::Error> {
    let matches = command().try_get_matches_from(argv)?;
    let arguments = Arguments::from_arg_matches(&matches)?;
    Ok((arguments, matches))
}

/// Refuse flags whose feature does not exist yet.
///
/// # Errors
/// The first such flag that was given a value which would need the feature.
pub fn refuse_absent(matches: &ArgMatches) -> Result<(), StartError> {
    absent::ABSENT.iter().try_for_each(|flag| flag.check(matches))
}

// === impl Surroundings ===

impl Surroundings {
    /// Read them from the environment of this process.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub fn read() -> Self {
        let text = |name: &str| std::env::var(name).ok();
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            path: std::env::var_os("PATH"),
            home: path("HOME"),
            xdg_cache_home: path("XDG_CACHE_HOME"),
            cuda_visible_devices: text("CUDA_VISIBLE_DEVICES"),
            nvidia_visible_devices: text("NVIDIA_VISIBLE_DEVICES"),
            omp_num_threads: text("OMP_NUM_THREADS"),
            omp_wait_policy: text("OMP_WAIT_POLICY"),
            log_level: text("LOG_LEVEL"),
            compute_type: text("COMPUTE_TYPE"),
            hf_token: text("HF_TOKEN"),
            hf_api_token: text("HF_API_TOKEN"),
        }
    }
}

#[cfg(test)]
#[path = "cli/tests.rs"]
mod tests;

//! The fake shard as a process of its own: a command line around `text_generation_protocol::fake`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use text_generation_protocol::fake::{FakeShard, Fault, HashModel, Outcome};

/// A shard without a model: tokens are hashes of the tokens before them.
#[derive(Debug, Parser)]
#[command(name = "fake-shard", version)]
struct Arguments {
    /// The unix socket to listen on
    #[arg(long)]
    socket: PathBuf,
    /// Which rank this is
    #[arg(long, default_value_t = 0)]
    rank: u32,
    /// How many ranks there are
    #[arg(long, default_value_t = 1)]
    world_size: u32,
    /// How many token ids there are
    #[arg(long, default_value_t = 1000)]
    vocab_size: u32,
    /// The lowest id that is generated
    #[arg(long, default_value_t = 0)]
    lowest_token_id: u32,
    /// The end token
    #[arg(long)]
    eos_token_id: Option<u32>,
    /// The index of the generated token that is the end token
    #[arg(long, requires = "eos_token_id")]
    eos_after: Option<u32>,
    /// How likely each token is to be the end token
    #[arg(long, default_value_t = 0.0, requires = "eos_token_id")]
    eos_probability: f64,
    /// Tokens a block
    #[arg(long, default_value_t = 16)]
    block_size: u32,
    /// KV blocks
    #[arg(long, default_value_t = 8192)]
    blocks: u32,
    /// Most live rows
    #[arg(long, default_value_t = 256)]
    max_sequences: u32,
    /// Most tokens of one step
    #[arg(long, default_value_t = 8192)]
    max_step_tokens: u32,
    /// Most tokens of one row
    #[arg(long, default_value_t = 8192)]
    max_total_tokens: u32,
    /// Microseconds that a step takes
    #[arg(long, default_value_t = 0)]
    step_us: u64,
    /// Microseconds for each token of a step
    #[arg(long, default_value_t = 0)]
    token_us: u64,
    /// Milliseconds that loading takes
    #[arg(long, default_value_t = 0)]
    load_ms: u64,
    /// Die without a word at this step
    #[arg(long)]
    kill_at_step: Option<u64>,
    /// Never answer this step
    #[arg(long)]
    hang_at_step: Option<u64>,
    /// Run out of memory at this step
    #[arg(long)]
    out_of_memory_at_step: Option<u64>,
    /// Refuse to warm up
    #[arg(long)]
    refuse_warmup: bool,
    /// Fail while loading
    #[arg(long)]
    fail_loading: bool,
}

/// The exit code of a process that was killed by SIGKILL, as shells show it.
const KILLED: u8 = 137;

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let arguments = Arguments::parse();
    let socket = arguments.socket.clone();
    match FakeShard::from(arguments).serve(&socket).map(|handle| handle.wait()) {
        Ok(Outcome::Killed) => ExitCode::from(KILLED),
        Ok(Outcome::Failed(reason)) => {
            tracing::error!(reason, "the fake shard ended");
            ExitCode::FAILURE
        }
        Err(error) => {
            tracing::error!(%error, socket = %socket.display(), "the fake shard cannot listen");
            ExitCode::FAILURE
        }
    }
}

// === impl Arguments ===

impl Arguments {
    fn faults(&self) -> impl Iterator<Item = Fault> {
        [
            self.kill_at_step.map(Fault::KillAtStep),
            self.hang_at_step.map(Fault::HangAtStep),
            self.out_of_memory_at_step.map(Fault::OutOfMemoryAtStep),
            self.refuse_warmup.then_some(Fault::RefuseWarmup),
            self.fail_loading.then_some(Fault::FailLoading),
        ]
        .into_iter()
        .flatten()
    }
}

impl From<Arguments> for FakeShard {
    fn from(arguments: Arguments) -> Self {
        let model = HashModel {
            vocab_size: arguments.vocab_size,
            lowest_token_id: arguments.lowest_token_id,
            eos_token_id: arguments.eos_token_id,
            eos_after: arguments.eos_after,
            eos_probability: arguments.eos_probability,
        };
        let shard = Self::builder()
            .model(model)
            .rank(arguments.rank, arguments.world_size)
            .cache(arguments.blocks, arguments.block_size)
            .bounds(arguments.max_sequences, arguments.max_step_tokens, arguments.max_total_tokens)
            .latency(Duration::from_micros(arguments.step_us), Duration::from_micros(arguments.token_us))
            .load_time(Duration::from_millis(arguments.load_ms))
            .record(false);
        arguments.faults().fold(shard, Self::fault)
    }
}

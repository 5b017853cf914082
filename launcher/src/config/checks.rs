//! The checks of single values and of values beside each other. Each names the flag, the value and the way out.

use std::path::{Path, PathBuf};

use text_generation_protocol::config::{Limits, Watermark};
use tracing_subscriber::EnvFilter;

use crate::cli::Surroundings;
use crate::cli::groups::Device;
use crate::error::StartError;

/// Where ranks meet when only the host is given.
pub const MASTER_PORT: u16 = 29500;

/// Up to this many cores, compute threads that spin while they wait steal the time of those that work.
pub const FEW_CORES: usize = 16;

/// Longest path of a unix socket that Linux takes, in bytes.
pub const SOCKET_PATH_LIMIT: usize = 107;

const ATTENTIONS: [&str; 2] = ["sdpa", "triton"];

/// The filter of all processes, from `LOG_LEVEL`.
pub fn log_level(surroundings: &Surroundings) -> Result<String, StartError> {
    let level = surroundings.log_level.clone().unwrap_or_else(|| "info".to_owned());
    match EnvFilter::try_new(&level) {
        Ok(_) => Ok(level),
        Err(error) => Err(StartError::new(
            format!("variable `LOG_LEVEL` (`{level}`) is not a log filter: {error}"),
            "give one of error, warn, info, debug, trace",
        )),
    }
}

/// All limits on requests.
pub fn limits(limits: &Limits) -> Result<(), StartError> {
    let counts = [
        ("--max-concurrent-requests", Some(limits.max_concurrent_requests)),
        ("--max-best-of", Some(limits.max_best_of)),
        ("--max-batch-size", limits.max_batch_size),
        ("--max-client-batch-size", Some(limits.max_client_batch_size)),
        ("--payload-limit", Some(limits.payload_limit)),
        ("--validation-workers", Some(limits.validation_workers)),
        ("--max-input-tokens", limits.max_input_tokens),
        ("--max-batch-prefill-tokens", limits.max_batch_prefill_tokens),
    ];
    if let Some((flag, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
        return Err(StartError::new(format!("`{flag}` is 0"), "give 1 or more, or leave it out"));
    }
    // A prompt needs room for at least one new token.
    let input_room = limits.max_input_tokens.map(|tokens| tokens.saturating_add(1));
    at_most(("--max-input-tokens + 1", input_room), ("--max-total-tokens", limits.max_total_tokens))?;
    let cache = ("--max-batch-total-tokens", limits.max_batch_total_tokens);
    at_most(("--max-total-tokens", limits.max_total_tokens), cache)?;
    at_most(("--max-batch-prefill-tokens", limits.max_batch_prefill_tokens), cache)?;
    at_most(("--max-input-tokens + 1", input_room), cache)
}

/// The watermark, from its two parameters.
pub fn watermark(gamma: Option<f32>, delta: Option<f32>) -> Result<Watermark, StartError> {
    let usual = Watermark::default();
    let watermark = Watermark { gamma: gamma.unwrap_or(usual.gamma), delta: delta.unwrap_or(usual.delta) };
    watermark.check().map_err(|cause| StartError::new(cause, "leave the flag out for the usual value"))?;
    Ok(watermark)
}

fn at_most(small: (&str, Option<usize>), large: (&str, Option<usize>)) -> Result<(), StartError> {
    match (small, large) {
        ((small_flag, Some(less)), (large_flag, Some(more))) if less > more => Err(StartError::new(
            format!("`{small_flag}` is {less}, more than `{large_flag}`, which is {more}"),
            format!("lower the first, or raise `{large_flag}`"),
        )),
        _ => Ok(()),
    }
}

/// The attention back end, from two flags that must agree.
pub fn attention(given: Option<&str>, plain: bool, device: Device) -> Result<Option<String>, StartError> {
    if let Some(name) = given.filter(|name| !ATTENTIONS.contains(name)) {
        return Err(StartError::new(
            format!("attention `{name}` does not exist in this server"),
            format!("give one of {}, or leave it out", ATTENTIONS.join(", ")),
        ));
    }
    if plain && given == Some("triton") {
        return Err(StartError::new(
            "`--disable-custom-kernels` and `--attention triton` contradict each other",
            "give one of the two",
        ));
    }
    if given == Some("triton") && device == Device::Cpu {
        return Err(StartError::new("`--attention triton` needs a GPU", "give `--attention sdpa` or leave it out"));
    }
    Ok(if plain { Some("sdpa".to_owned()) } else { given.map(str::to_owned) })
}

/// The share of memory.
pub fn memory_fraction(fraction: f64) -> Result<(), StartError> {
    if fraction > 0.0 && fraction <= 1.0 {
        return Ok(());
    }
    Err(StartError::new(format!("`--cuda-memory-fraction` is {fraction}"), "give a number above 0, and at most 1"))
}

/// Compute threads of one shard.
pub fn threads(surroundings: &Surroundings, cores: usize, shards: usize) -> Result<usize, StartError> {
    match &surroundings.omp_num_threads {
        None => Ok((cores / shards).max(1)),
        Some(text) => text.trim().parse().ok().filter(|threads| *threads > 0).ok_or_else(|| {
            StartError::new(
                format!("variable `OMP_NUM_THREADS` (`{text}`) is not a number of threads"),
                "give a whole number of 1 or more, or leave it out",
            )
        }),
    }
}

/// A prefix of sockets whose folder exists.
pub fn socket_prefix(prefix: PathBuf) -> Result<PathBuf, StartError> {
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => Err(StartError::new(
            format!("the folder of `--shard-uds-path` ({}) does not exist", prefix.display()),
            "create it, or leave the flag out",
        )),
        _ => Ok(prefix),
    }
}

/// A model id that is clearly a path must exist; Hub ids are checked while the model is prepared.
pub fn model_path(model_id: Option<&str>) -> Result<(), StartError> {
    let Some(id) = model_id else { return Ok(()) };
    let path_like = id.starts_with(['/', '.', '~']) || is_gguf(id) || id.matches('/').count() > 1;
    if path_like && !Path::new(id).exists() {
        return Err(StartError::new(
            format!("there is no file or folder `{id}`"),
            "check the path, or give a Hub id such as `owner/name`",
        ));
    }
    Ok(())
}

/// Whether preparing this model writes a converted copy.
pub fn converts(model_id: Option<&str>) -> bool {
    model_id.is_none_or(is_gguf)
}

fn is_gguf(id: &str) -> bool {
    Path::new(id).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// A path that was given must exist, as the right kind of thing.
pub fn existing(flag: &str, path: Option<&Path>, kind: &str, is: fn(&Path) -> bool) -> Result<(), StartError> {
    match path {
        Some(path) if !is(path) => Err(StartError::new(
            format!("`{flag}`: there is no {kind} `{}`", path.display()),
            "check the path, or leave the flag out",
        )),
        _ => Ok(()),
    }
}

/// The cache must take a new file, or the conversion would fail minutes later.
pub fn writable(folder: &Path) -> Result<(), StartError> {
    let probe = std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    probe.map(drop).map_err(|error| {
        StartError::new(
            format!("cannot write to the cache folder `{}`: {error}", folder.display()),
            "give a writable one with `--cache-folder`",
        )
    })
}

//! Log output: text for people, or one JSON object a line. Knows nothing of what is logged.

use text_generation_protocol::config::LogConfig;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Levels that name only how much of this server's own is logged.
const PLAIN_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Starts logging to standard error. A second call in one process changes nothing.
///
/// # Errors
/// When the level is neither a plain level nor a filter directive.
pub fn start(config: &LogConfig) -> Result<(), ParseError> {
    let level = config.level.as_str();
    let directive =
        if PLAIN_LEVELS.contains(&level) { format!("text_generation_router={level}") } else { level.to_owned() };
    let filter = EnvFilter::builder().parse(directive)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = if config.json {
        builder.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init()
    } else {
        builder.with_ansi(false).with_target(false).try_init()
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
    Ok(())
}

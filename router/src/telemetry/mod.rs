//! What the router tells about itself: metrics under TGI's names, and logs.

mod logging;
mod metrics;

pub use logging::start as start_logging;
pub use metrics::Metrics;

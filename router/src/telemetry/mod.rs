//! What the router tells about itself: metrics under TGI's names, and logs.

mod batch;
mod logging;
mod metrics;

pub use batch::BatchMetrics;
pub use logging::start as start_logging;
pub use metrics::Metrics;

//! Metrics and logs. Every metric name is written down once, here.

//! The router's command line and environment, resolved into one `RouterConfig`. The only place that reads either.

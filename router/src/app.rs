//! The composition root: builds every part from the configuration and joins them. The only place that knows them all.

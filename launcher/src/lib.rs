//! Prepares the model, starts the shards and the router, and supervises them.

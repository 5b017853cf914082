//! What happens to every request before its route: a name for it, and the key.

pub mod auth;
pub mod id;

//! The routes, one folder an API.

pub mod generate;
pub mod openai;
pub mod server;
pub mod tokenize;

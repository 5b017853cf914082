//! The routes, one folder an API.

pub mod generate;
pub mod kserve;
pub mod openai;
pub mod sagemaker;
pub mod server;
pub mod tokenize;
pub mod vertex;

//! Text to tokens and back: the tokenizer and its thread pool, incremental detokenisation, stop strings. Knows nothing
//! of requests, HTTP or shards.

mod coverage;
mod detokenize;
mod encode;
#[cfg(test)]
pub(crate) mod fixtures;
mod pieces;
mod stop;
mod tokenizer;
mod window;

pub use detokenize::Detokenizer;
pub use encode::EncodePool;
pub use stop::StopMatcher;
pub use tokenizer::{TokenSpan, Tokenizer, TokenizerError};

/// Work on texts and bodies of more bytes than this leaves the threads that serve connections.
pub const LARGE_TEXT: usize = 64 << 10;

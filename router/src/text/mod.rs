//! Text to tokens and back: the tokenizer and its thread pool, incremental detokenisation, stop strings. Knows nothing
//! of requests, HTTP or shards.

mod detokenize;
mod encode;
mod stop;
mod tokenizer;

pub use detokenize::Detokenizer;
pub use encode::EncodePool;
pub use stop::StopMatcher;
pub use tokenizer::{Tokenizer, TokenizerError};

//! KV cache accounting: which blocks are free, in use or cached. Knows block ids only, never their content.

mod audit;
mod blocks;

pub use audit::{Imbalance, audit};
pub use blocks::{Allocation, BlockAllocator};

//! From a request to the engine: admission (a place, a prompt, token ids) and the entries that wait for a step.

mod entry;
mod waiting;

pub use entry::Entry;
pub use waiting::WaitingQueue;

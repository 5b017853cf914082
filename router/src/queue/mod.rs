//! From a request to the engine: admission (a place, a prompt, token ids) and the entries that wait for a step.

mod admission;
mod entry;
mod generation;
mod prompts;
mod waiting;

pub use admission::{Admission, Places};
pub use entry::Entry;
pub use generation::{Generation, reason_name};
pub use prompts::Prompts;
pub use waiting::WaitingQueue;

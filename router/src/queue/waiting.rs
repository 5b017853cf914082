//! The entries that wait for their first step, each under the turn at which it is served. Turns are given in order of
//! arrival; a fair queue gives others and leaves the rest as it is. Knows nothing of blocks or slots: the engine looks
//! at the first entry and decides whether it fits.

use std::collections::BTreeMap;

use super::Entry;

/// Entries in the order in which they will be served.
#[derive(Debug, Default)]
pub struct WaitingQueue {
    entries: BTreeMap<Turn, Entry>,
    next_turn: Turn,
}

/// When an entry is served: the lowest turn first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u64);

// === impl WaitingQueue ===

impl WaitingQueue {
    /// Adds an entry behind those that are waiting.
    pub fn push(&mut self, entry: Entry) {
        let turn = self.next_turn;
        self.next_turn = Turn(turn.0 + 1);
        self.entries.insert(turn, entry);
    }

    /// The entry whose turn is next.
    pub fn first(&self) -> Option<&Entry> {
        self.entries.first_key_value().map(|(_, entry)| entry)
    }

    /// Takes the entry whose turn is next.
    pub fn pop(&mut self) -> Option<Entry> {
        self.entries.pop_first().map(|(_, entry)| entry)
    }

    /// Removes the entries whose clients are gone; returns how many.
    pub fn remove_abandoned(&mut self) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, entry| !entry.events.is_closed());
        before - self.entries.len()
    }

    /// How many are waiting.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is waiting.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::sync::mpsc;

    use super::*;
    use crate::event::EventReceiver;
    use crate::request::SamplingParameters;

    fn entry(name: &str) -> (Entry, EventReceiver) {
        let (events, receiver) = mpsc::unbounded_channel();
        let entry = Entry {
            request_id: name.into(),
            prompt: vec![1],
            max_new_tokens: 1,
            stop: Vec::new(),
            stop_token_ids: Vec::new(),
            include_stop: false,
            ignore_eos: false,
            min_tokens: 0,
            skip_special_tokens: true,
            sampling: SamplingParameters::default(),
            top_n_tokens: 0,
            prompt_logprobs: None,
            events,
            received: Instant::now(),
            queued: Instant::now(),
        };
        (entry, receiver)
    }

    #[test]
    fn serves_in_order_of_arrival() {
        let mut queue = WaitingQueue::default();
        let mut receivers = Vec::new();
        for name in ["a", "b", "c"] {
            let (entry, receiver) = entry(name);
            queue.push(entry);
            receivers.push(receiver);
        }
        assert_eq!(queue.first().map(|entry| &*entry.request_id), Some("a"));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|entry| entry.request_id).collect();
        assert_eq!(order.iter().map(|name| &**name).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn forgets_clients_that_left() {
        let mut queue = WaitingQueue::default();
        let (first, gone) = entry("gone");
        let (second, _stays) = entry("stays");
        queue.push(first);
        queue.push(second);
        drop(gone);
        assert_eq!(queue.remove_abandoned(), 1);
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.pop().map(|entry| entry.request_id.to_string()), Some("stays".to_owned()));
    }
}

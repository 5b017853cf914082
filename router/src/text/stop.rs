//! Stop strings, matched on text: a possible beginning of one is withheld, a whole one ends the text before it.

use std::sync::Arc;

/// Watches the text of one sequence for its stop strings.
#[derive(Debug, Clone)]
pub struct StopMatcher {
    stops: Vec<Arc<str>>,
    withheld: String,
}

// === impl StopMatcher ===

impl StopMatcher {
    /// Watches for these strings; none = everything passes at once.
    pub fn new(stops: &[String]) -> Self {
        Self { stops: stops.iter().map(|stop| Arc::from(stop.as_str())).collect(), withheld: String::new() }
    }

    /// Takes more text. Returns the text that may be shown and, if one appeared, the stop string that ended it
    /// (the earliest in the text; of those, the longest).
    pub fn push(&mut self, text: &str) -> (String, Option<Arc<str>>) {
        self.withheld.push_str(text);
        let hit = self
            .stops
            .iter()
            .filter_map(|stop| self.withheld.find(&**stop).map(|at| (at, stop.clone())))
            .min_by_key(|(at, stop)| (*at, usize::MAX - stop.len()));
        if let Some((at, stop)) = hit {
            self.withheld.truncate(at);
            return (std::mem::take(&mut self.withheld), Some(stop));
        }
        let keep = self.possible_start();
        (self.withheld.drain(..keep).collect(), None)
    }

    /// The text that is still withheld, at the end of the sequence.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.withheld)
    }

    fn possible_start(&self) -> usize {
        let starts = self.withheld.char_indices().map(|(at, _)| at);
        starts
            .filter(|&at| self.stops.iter().any(|stop| stop.starts_with(&self.withheld[at..])))
            .min()
            .unwrap_or(self.withheld.len())
    }
}

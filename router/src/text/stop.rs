//! Stop strings, matched on text: a possible beginning of one is withheld, a whole one ends the text before it
//! (behind it where it is to be kept).
//!
//! The first stop string to be complete wins; of those that are complete at the same place, the longest. So the
//! result does not depend on how the text was cut into pieces, and no token is spent on waiting for a longer match.
//! The strings form one automaton (Aho and Corasick): each byte is looked at once, whatever the strings are.

use std::collections::VecDeque;
use std::sync::Arc;

/// Watches the text of one sequence for its stop strings.
#[derive(Debug, Clone)]
pub struct StopMatcher {
    automaton: Arc<Automaton>,
    state: usize,
    withheld: String,
    stopped: bool,
    keep: bool,
}

/// A tree of all beginnings of the stop strings.
#[derive(Debug)]
struct Automaton {
    nodes: Vec<Node>,
}

/// One beginning of a stop string.
#[derive(Debug, Default)]
struct Node {
    /// Longer beginnings by their next byte.
    next: Vec<(u8, usize)>,
    /// The longest other beginning that this one ends with.
    fallback: usize,
    /// Length in bytes.
    depth: usize,
    /// The longest stop string that this beginning ends with.
    stop: Option<Arc<str>>,
}

const ROOT: usize = 0;

// === impl StopMatcher ===

impl StopMatcher {
    /// Watches for these strings; none = everything passes at once. They are not empty: requests with empty stop
    /// strings are refused at admission (one would match everywhere; here it is left out).
    pub fn new(stops: &[String]) -> Self {
        let automaton = Arc::new(Automaton::new(stops));
        Self { automaton, state: ROOT, withheld: String::new(), stopped: false, keep: false }
    }

    /// Whether a stop string stays in the text that it ends.
    pub fn keeping(self, keep: bool) -> Self {
        Self { keep, ..self }
    }

    /// Takes more text in which no stop string may be complete. Returns the text that may be shown. A beginning at its
    /// end still counts: the string may be complete later.
    pub fn pass(&mut self, text: &Arc<str>) -> Arc<str> {
        if self.stopped || self.automaton.is_empty() {
            return self.push(text).0;
        }
        self.withheld.push_str(text);
        self.state = text.bytes().fold(self.state, |state, byte| self.automaton.step(state, byte));
        // A whole stop string that nothing continues needs no withholding: only what may follow it counts.
        while self.state != ROOT && self.automaton.nodes[self.state].next.is_empty() {
            self.state = self.automaton.nodes[self.state].fallback;
        }
        self.release()
    }

    /// Takes more text. Returns the text that may be shown and, if one appeared, the stop string that ended it.
    /// Nothing is shown after that.
    pub fn push(&mut self, text: &Arc<str>) -> (Arc<str>, Option<Arc<str>>) {
        if self.stopped {
            return (Arc::default(), None);
        }
        if self.automaton.is_empty() {
            return (text.clone(), None);
        }
        let before = self.withheld.len();
        self.withheld.push_str(text);
        for (index, byte) in text.bytes().enumerate() {
            self.state = self.automaton.step(self.state, byte);
            if let Some(stop) = &self.automaton.nodes[self.state].stop {
                let end = before + index + 1;
                self.withheld.truncate(if self.keep { end } else { end - stop.len() });
                self.stopped = true;
                return (std::mem::take(&mut self.withheld).into(), Some(stop.clone()));
            }
        }
        (self.release(), None)
    }

    /// The text that is no beginning of a stop string.
    fn release(&mut self) -> Arc<str> {
        let shown = self.withheld.len() - self.automaton.nodes[self.state].depth;
        self.withheld.drain(..shown).collect::<String>().into()
    }

    /// The text that is still withheld, at the end of the sequence.
    pub fn finish(&mut self) -> String {
        self.state = ROOT;
        std::mem::take(&mut self.withheld)
    }
}

// === impl Automaton ===

impl Automaton {
    fn new(stops: &[String]) -> Self {
        let mut automaton = Self { nodes: vec![Node::default()] };
        for stop in stops.iter().filter(|stop| !stop.is_empty()) {
            automaton.insert(stop);
        }
        automaton.link();
        automaton
    }

    /// Whether there is no string to find.
    fn is_empty(&self) -> bool {
        self.nodes[ROOT].next.is_empty()
    }

    fn insert(&mut self, stop: &str) {
        let mut at = ROOT;
        for byte in stop.bytes() {
            at = match self.child(at, byte) {
                Some(child) => child,
                None => {
                    let child = self.nodes.len();
                    let depth = self.nodes[at].depth + 1;
                    self.nodes.push(Node { depth, ..Node::default() });
                    self.nodes[at].next.push((byte, child));
                    child
                }
            };
        }
        self.nodes[at].stop = Some(Arc::from(stop));
    }

    /// Sets the fall-backs, shortest beginnings first, and the stop strings that are found through them.
    fn link(&mut self) {
        let mut queue = VecDeque::from([ROOT]);
        while let Some(at) = queue.pop_front() {
            for (byte, child) in self.nodes[at].next.clone() {
                let fallback = if at == ROOT { ROOT } else { self.step(self.nodes[at].fallback, byte) };
                let inherited = self.nodes[fallback].stop.clone();
                let node = &mut self.nodes[child];
                node.fallback = fallback;
                node.stop = node.stop.take().or(inherited);
                queue.push_back(child);
            }
        }
    }

    /// The longest beginning that a text ends with after one more byte.
    fn step(&self, mut at: usize, byte: u8) -> usize {
        loop {
            match self.child(at, byte) {
                Some(child) => return child,
                None if at == ROOT => return ROOT,
                None => at = self.nodes[at].fallback,
            }
        }
    }

    fn child(&self, at: usize, byte: u8) -> Option<usize> {
        self.nodes[at].next.iter().find(|(next, _)| *next == byte).map(|(_, child)| *child)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(stops: &[String], pieces: &[String]) -> (String, Option<Arc<str>>) {
        let mut matcher = StopMatcher::new(stops);
        let mut shown = String::new();
        for piece in pieces {
            let (text, stop) = matcher.push(&piece.as_str().into());
            shown.push_str(&text);
            if stop.is_some() {
                assert_eq!(matcher.push(&"more".into()), ("".into(), None));
                assert_eq!(matcher.finish(), "");
                return (shown, stop);
            }
            let withheld = &matcher.withheld;
            assert!(withheld.is_empty() || stops.iter().any(|stop| stop.starts_with(withheld.as_str())));
        }
        shown.push_str(&matcher.finish());
        (shown, None)
    }

    /// Looks at every end of the whole text, in order.
    fn naive(stops: &[String], text: &str) -> (String, Option<Arc<str>>) {
        for end in text.char_indices().map(|(at, c)| at + c.len_utf8()) {
            let hit = stops.iter().filter(|stop| text[..end].ends_with(stop.as_str())).max_by_key(|stop| stop.len());
            if let Some(stop) = hit {
                return (text[..end - stop.len()].to_owned(), Some(Arc::from(stop.as_str())));
            }
        }
        (text.to_owned(), None)
    }

    /// Each piece with whether stop strings count in it; the reference looks at every end of the whole text.
    fn gated(stops: &[String], pieces: &[(String, bool)], keep: bool) -> (String, Option<Arc<str>>) {
        let mut text = String::new();
        for (piece, counts) in pieces {
            let before = text.len();
            text.push_str(piece);
            let ends = piece.char_indices().map(|(at, c)| before + at + c.len_utf8());
            for end in ends.filter(|_| *counts) {
                let hits = stops.iter().filter(|stop| text[..end].ends_with(stop.as_str()));
                if let Some(stop) = hits.max_by_key(|stop| stop.len()) {
                    let end = if keep { end } else { end - stop.len() };
                    return (text[..end].to_owned(), Some(Arc::from(stop.as_str())));
                }
            }
        }
        (text, None)
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn overlapping_beginnings_are_found() {
        let (text, stop) = run(&owned(&["aab"]), &owned(&["xa", "a", "a", "by"]));
        assert_eq!((text.as_str(), stop.as_deref()), ("xa", Some("aab")));
    }

    #[test]
    fn a_beginning_that_does_not_go_on_is_shown() {
        assert_eq!(run(&owned(&["</s>", "\n\n"]), &owned(&["a</", "b\n", "c<"])), ("a</b\nc<".into(), None));
    }

    #[test]
    fn the_first_to_be_complete_wins_and_of_those_the_longest() {
        assert_eq!(run(&owned(&["abcd", "bc"]), &owned(&["abcd"])).1.as_deref(), Some("bc"));
        assert_eq!(run(&owned(&["c", "abc"]), &owned(&["xab", "c"])), ("x".into(), Some("abc".into())));
    }

    #[test]
    fn without_stop_strings_everything_passes_at_once() {
        assert_eq!(StopMatcher::new(&[]).push(&"any text".into()), ("any text".into(), None));
    }

    proptest! {
        #[test]
        fn kept_stop_strings_and_those_that_come_early_equal_a_search_too(
            stops in prop::collection::vec("[abé]{1,4}", 0..4),
            pieces in prop::collection::vec("[abcé]{0,5}", 0..12),
            early in 0..12_usize,
            keep in any::<bool>(),
        ) {
            let mut matcher = StopMatcher::new(&stops).keeping(keep);
            let mut shown = String::new();
            let mut found = None;
            for (at, piece) in pieces.iter().enumerate() {
                let piece: Arc<str> = piece.as_str().into();
                let (text, stop) = if at < early { (matcher.pass(&piece), None) } else { matcher.push(&piece) };
                shown.push_str(&text);
                found = found.or(stop);
            }
            shown.push_str(&matcher.finish());
            let pieces: Vec<_> = pieces.into_iter().enumerate().map(|(at, piece)| (piece, at >= early)).collect();
            prop_assert_eq!((shown, found), gated(&stops, &pieces, keep));
        }

        #[test]
        fn equals_a_search_in_the_whole_text(
            stops in prop::collection::vec("[abé]{1,4}", 0..4),
            pieces in prop::collection::vec("[abcé]{0,5}", 0..12),
        ) {
            prop_assert_eq!(run(&stops, &pieces), naive(&stops, &pieces.concat()));
        }
    }
}

//! The logprobs of a prompt's tokens and the candidates beside them, gathered from the steps that compute the prompt.
//! Knows token ids, no text.

use text_generation_protocol::v1::PromptLogprobs;

/// A token id and its logprob.
pub type Candidate = (u32, f32);

/// What the shards have told about a prompt. One place for each token but the first.
#[derive(Debug)]
pub struct PromptDescription {
    top_n: u32,
    places: Vec<Place>,
    filled: usize,
}

/// What is told about one token.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Its logprob.
    pub logprob: f32,
    /// The likeliest tokens in its place, best first.
    pub candidates: Vec<Candidate>,
}

// === impl PromptDescription ===

impl PromptDescription {
    /// For a prompt of so many tokens (at least one), with so many candidates beside each.
    pub fn new(prompt_length: usize, top_n: u32) -> Self {
        Self { top_n, places: vec![Place::default(); prompt_length - 1], filled: 0 }
    }

    /// How many candidates are asked for beside each token.
    pub fn top_n(&self) -> u32 {
        self.top_n
    }

    /// Takes what a step tells. `None` when it lies outside the prompt or has another number of candidates.
    pub fn accept(&mut self, told: &PromptLogprobs) -> Option<()> {
        let count = told.logprobs.len();
        let first = (told.position as usize).checked_sub(1)?;
        let places = self.places.get_mut(first..first.checked_add(count)?)?;
        let width = told.top_ids.len().checked_div(count)?;
        // Fewer than asked for only where the vocabulary is smaller.
        let fits = width * count == told.top_ids.len() && width <= self.top_n as usize;
        if !fits || told.top_logprobs.len() != told.top_ids.len() || (width == 0) != (self.top_n == 0) {
            return None;
        }
        for (at, (place, &logprob)) in places.iter_mut().zip(&told.logprobs).enumerate() {
            let mine = at * width..(at + 1) * width;
            let candidates = told.top_ids[mine.clone()].iter().copied().zip(told.top_logprobs[mine].iter().copied());
            *place = Place { logprob, candidates: candidates.collect() };
        }
        self.filled += count;
        Some(())
    }

    /// Whether every place was told.
    pub fn is_complete(&self) -> bool {
        self.filled == self.places.len()
    }

    /// What was told, from the prompt's second token on.
    pub fn places(&self) -> &[Place] {
        &self.places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(position: u32, count: usize, width: usize) -> PromptLogprobs {
        let ids: Vec<u32> = (0..(count * width) as u32).collect();
        let top_logprobs = ids.iter().map(|&id| -(id as f32)).collect();
        PromptLogprobs { slot: 0, position, logprobs: vec![-1.5; count], top_ids: ids, top_logprobs }
    }

    #[test]
    fn chunks_fill_the_places_in_any_size() {
        let mut description = PromptDescription::new(4, 2);
        assert_eq!(description.accept(&told(1, 1, 2)), Some(()));
        assert!(!description.is_complete());
        assert_eq!(description.accept(&told(2, 2, 2)), Some(()));
        assert!(description.is_complete());
        assert_eq!(description.places()[2].candidates, [(2, -2.0), (3, -3.0)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (position, count, width) in [(0, 1, 2), (3, 2, 2), (1, 1, 3), (1, 1, 0), (1, 0, 0)] {
            let mut description = PromptDescription::new(4, 2);
            assert_eq!(description.accept(&told(position, count, width)), None, "{position} {count} {width}");
        }
        let mut plain = PromptDescription::new(4, 0);
        assert_eq!(plain.accept(&told(1, 3, 1)), None);
        assert_eq!(plain.accept(&told(1, 3, 0)), Some(()));
    }
}

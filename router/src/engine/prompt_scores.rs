//! What the shards tell about the tokens of one prompt: a logprob each, and candidates if they were asked for. Filled
//! chunk by chunk; complete before the first generated token.

use text_generation_protocol::v1::PromptLogprobs;

/// The scores of one prompt. The first token has none: nothing comes before it.
#[derive(Debug)]
pub struct PromptScores {
    /// Candidates to report beside each token.
    top_n: u32,
    /// One place for each prompt token but the first.
    places: Vec<PromptScore>,
    /// How many places are filled.
    described: usize,
}

/// The score of one prompt token.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptScore {
    /// Natural log of its probability.
    pub logprob: f32,
    /// The likeliest tokens in its place with their logprobs, best first.
    pub candidates: Vec<(u32, f32)>,
}

// === impl PromptScores ===

impl PromptScores {
    /// Empty places for a prompt of so many tokens.
    pub fn new(prompt_length: usize, top_n: u32) -> Self {
        Self { top_n, places: vec![PromptScore::default(); prompt_length.saturating_sub(1)], described: 0 }
    }

    /// Candidates to report beside each token.
    pub fn top_n(&self) -> u32 {
        self.top_n
    }

    /// Takes what a step tells. `None` when it does not fit the prompt.
    pub fn accept(&mut self, told: &PromptLogprobs) -> Option<()> {
        let count = told.logprobs.len();
        let width = told.top_ids.len().checked_div(count).unwrap_or(0);
        let fits = told.top_ids.len() == width * count && told.top_logprobs.len() == told.top_ids.len();
        // A vocabulary smaller than `top_n` has fewer candidates.
        if !fits || width > self.top_n as usize || (width == 0 && self.top_n > 0 && count > 0) {
            return None;
        }
        let first = (told.position as usize).checked_sub(1)?;
        let places = self.places.get_mut(first..first.checked_add(count)?)?;
        let candidates: Vec<(u32, f32)> = told.top_ids.iter().copied().zip(told.top_logprobs.iter().copied()).collect();
        for (index, (place, &logprob)) in places.iter_mut().zip(&told.logprobs).enumerate() {
            *place = PromptScore { logprob, candidates: candidates[index * width..(index + 1) * width].to_vec() };
        }
        self.described += count;
        Some(())
    }

    /// Whether every place is filled.
    pub fn is_complete(&self) -> bool {
        self.described == self.places.len()
    }

    /// The score of each token of the prompt; `None` for the first.
    pub fn all(&self) -> impl Iterator<Item = Option<&PromptScore>> {
        std::iter::once(None).chain(self.places.iter().map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(position: u32, logprobs: &[f32], top: &[(u32, f32)]) -> PromptLogprobs {
        PromptLogprobs {
            slot: 0,
            position,
            logprobs: logprobs.to_vec(),
            top_ids: top.iter().map(|(id, _)| *id).collect(),
            top_logprobs: top.iter().map(|(_, logprob)| *logprob).collect(),
        }
    }

    #[test]
    fn chunks_fill_the_prompt() {
        let mut scores = PromptScores::new(4, 1);
        assert_eq!(scores.accept(&told(1, &[-1.0, -2.0], &[(7, -0.5), (8, -0.25)])), Some(()));
        assert!(!scores.is_complete());
        assert_eq!(scores.accept(&told(3, &[-3.0], &[(9, -0.125)])), Some(()));
        assert!(scores.is_complete());
        let all: Vec<_> = scores.all().collect();
        assert_eq!((all.len(), all[0]), (4, None));
        assert_eq!(all[3], Some(&PromptScore { logprob: -3.0, candidates: vec![(9, -0.125)] }));
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        let strange = [
            told(0, &[-1.0], &[(1, 0.0)]),
            told(3, &[-1.0], &[(1, 0.0)]),
            told(1, &[-1.0], &[]),
            told(1, &[-1.0], &[(1, 0.0), (2, 0.0)]),
            told(1, &[-1.0, -1.0], &[(1, 0.0)]),
        ];
        for told in strange {
            assert_eq!(PromptScores::new(3, 1).accept(&told), None, "{told:?}");
        }
    }
}

//! Admission: a request gets a place or is refused at once; then it is checked, its prompt rendered and tokenised, and
//! it is handed to the engine. Knows no wire format and nothing of scheduling.

use std::sync::Arc;
use std::time::Instant;

use text_generation_protocol::config::Limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use uuid::Uuid;

use super::{Entry, Generation, Prompts};
use crate::engine::{Engine, EngineLimits};
use crate::error::Error;
use crate::request::validate::{self, SMALLEST_TEMPERATURE};
use crate::request::{ChatInput, Request};
use crate::telemetry::Metrics;
use crate::text::TokenSpan;

/// The door of the server.
#[derive(Debug)]
pub struct Admission {
    places: Arc<Semaphore>,
    limits: Limits,
    prompts: Prompts,
    engine: Engine,
    metrics: Arc<Metrics>,
}

/// The places of one call.
#[derive(Debug)]
pub struct Places {
    permits: Vec<OwnedSemaphorePermit>,
    received: Instant,
}

// === impl Admission ===

impl Admission {
    /// A door in front of this engine.
    pub fn new(limits: Limits, prompts: Prompts, engine: Engine, metrics: Arc<Metrics>) -> Self {
        let places = Arc::new(Semaphore::new(limits.max_concurrent_requests));
        Self { places, limits, prompts, engine, metrics }
    }

    /// The configured limits on what clients may ask for.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the engine can hold.
    pub fn engine_limits(&self) -> EngineLimits {
        self.engine.limits()
    }

    /// Sequences in the server.
    pub fn running(&self) -> usize {
        self.limits.max_concurrent_requests - self.places.available_permits()
    }

    /// Waits until no sequence is in the server. Meant for the end of the service: it takes every place.
    pub async fn idle(&self) {
        let all = u32::try_from(self.limits.max_concurrent_requests).unwrap_or(u32::MAX);
        // The semaphore is never closed; if it were, nothing would be running.
        drop(self.places.acquire_many(all).await);
    }

    /// Takes the places of one call, before any work is done for it.
    ///
    /// # Errors
    /// `Overloaded` when fewer are free.
    pub fn enter(&self, sequences: usize) -> Result<Places, Error> {
        let received = Instant::now();
        self.metrics.request_count.inc_by(sequences as u64);
        let permits = (0..sequences).map(|_| self.place()).collect::<Result<Vec<_>, _>>();
        self.counted(permits).map(|permits| Places { permits, received })
    }

    /// Admits a single request.
    ///
    /// # Errors
    /// As `submit_all`.
    pub async fn submit(&self, request: Request) -> Result<Generation, Error> {
        let places = self.enter(1)?;
        let mut generations = self.submit_all(places, vec![request]).await?;
        generations.pop().ok_or(Error::Incomplete)
    }

    /// Admits all requests of one call or none of them, in the same order. Each holds one of the places until its
    /// `Generation` is dropped.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported` or `Template` for a request that cannot be served, `Shard` when the engine has ended;
    /// that of the first request that is refused.
    pub async fn submit_all(&self, places: Places, requests: Vec<Request>) -> Result<Vec<Generation>, Error> {
        let admitted = self.admit(places, requests).await;
        self.counted(admitted)
    }

    /// Counts a refusal.
    ///
    /// # Errors
    /// The one given.
    pub fn counted<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        outcome.inspect_err(|error| self.metrics.refused(error))
    }

    /// The prompt of a conversation, as the model's chat template writes it.
    ///
    /// # Errors
    /// `Template` when the model has no template, or when it refuses the conversation.
    pub async fn render(&self, chat: ChatInput) -> Result<String, Error> {
        self.prompts.render(chat).await
    }

    /// The tokens of a text and what each stands for, as `/tokenize` shows them.
    ///
    /// # Errors
    /// `Invalid` when the text cannot be tokenised.
    pub async fn tokens(&self, text: String, add_special_tokens: bool) -> Result<Vec<TokenSpan>, Error> {
        self.counted(self.prompts.spans(text, add_special_tokens).await)
    }

    /// The text of token ids; special tokens show their name.
    ///
    /// # Errors
    /// `Invalid`, naming `field`, for ids beyond the vocabulary.
    pub async fn decode(&self, tokens: Vec<u32>, field: &'static str) -> Result<String, Error> {
        self.counted(self.prompts.decode(tokens, field).await)
    }

    async fn admit(&self, places: Places, requests: Vec<Request>) -> Result<Vec<Generation>, Error> {
        let Places { permits, received } = places;
        if permits.len() != requests.len() {
            return Err(Error::Internal("a call took fewer places than it has sequences".into()));
        }
        let prepared = requests.into_iter().zip(permits).map(|(request, place)| self.prepare(request, place, received));
        let prepared = futures::future::try_join_all(prepared).await?;
        prepared.into_iter().map(|(entry, generation)| self.engine.submit(entry).map(|()| generation)).collect()
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        self.places.clone().try_acquire_owned().map_err(|_| Error::Overloaded)
    }

    async fn prepare(
        &self,
        mut request: Request,
        place: OwnedSemaphorePermit,
        received: Instant,
    ) -> Result<(Entry, Generation), Error> {
        let engine = self.engine.limits();
        validate::parameters(&request, &self.limits, &engine)?;
        validate::token_ids(&request, self.prompts.vocabulary_size())?;
        let prompt = self.prompts.of(&mut request, engine.max_input_tokens).await?;
        let max_new_tokens = validate::lengths(&request, prompt.tokens.len(), &engine)?;
        self.metrics.request_input_length.observe(prompt.tokens.len() as f64);
        self.metrics.request_max_new_tokens.observe(f64::from(max_new_tokens));

        let mut sampling = request.sampling;
        if sampling.temperature < SMALLEST_TEMPERATURE {
            sampling.temperature = 0.0;
        }
        sampling.seed = sampling.samples().then(|| sampling.seed.unwrap_or_else(random_seed));
        let (events, receiver) = mpsc::unbounded_channel();
        let queued = Instant::now();
        self.metrics.request_validation_duration.observe((queued - received).as_secs_f64());
        let generation = Generation::new(
            request.id.clone(),
            (prompt.tokens.len(), prompt.characters),
            receiver,
            place,
            self.metrics.clone(),
        );
        let entry = Entry {
            request_id: request.id,
            prompt: prompt.tokens,
            max_new_tokens,
            stop: request.stop,
            stop_token_ids: request.stop_token_ids,
            include_stop: request.include_stop,
            ignore_eos: request.ignore_eos,
            min_tokens: request.min_tokens,
            skip_special_tokens: request.skip_special_tokens,
            sampling,
            top_n_tokens: request.top_n_tokens,
            prompt_logprobs: request.prompt_logprobs,
            events,
            received,
            queued,
        };
        Ok((entry, generation))
    }
}

fn random_seed() -> u64 {
    Uuid::new_v4().as_u64_pair().1
}

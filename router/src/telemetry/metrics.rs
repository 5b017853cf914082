//! Every metric of the router, under TGI's names: dashboards made for TGI go on working. Each name is written once,
//! here. The engine feeds the `tgi_batch_*` family; admission and generations feed the rest.

use std::sync::Arc;

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use super::batch::BatchMetrics;
use crate::engine::EngineLimits;
use crate::error::Error;
use crate::event::Done;

/// Number of duration buckets.
const DURATION_BUCKETS: usize = 35;
/// Smallest duration bucket and the ratio of neighbours, in seconds: 0.00015 ... 145.6.
const DURATION_START: f64 = 0.000_15;
const DURATION_RATIO: f64 = 1.5;
/// Number of token-count buckets, spread evenly up to the largest count.
const LENGTH_BUCKETS: usize = 100;

/// The metrics of one router.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Sequences asked for.
    pub request_count: IntCounter,
    request_success: IntCounter,
    request_failure: IntCounterVec,
    request_duration: Histogram,
    /// Arrival to queued, in seconds.
    pub request_validation_duration: Histogram,
    request_queue_duration: Histogram,
    request_inference_duration: Histogram,
    request_mean_time_per_token_duration: Histogram,
    request_generated_tokens: Histogram,
    /// Tokens of each prompt.
    pub request_input_length: Histogram,
    /// Token budget of each sequence.
    pub request_max_new_tokens: Histogram,
    /// Steps and batches; the engine's observer.
    pub batch: Arc<BatchMetrics>,
}

/// Registers metrics, adding up what goes wrong.
pub(super) struct Builder {
    registry: Registry,
}

// === impl Builder ===

impl Builder {
    fn add<M: prometheus::core::Collector + Clone + 'static>(
        &self,
        metric: prometheus::Result<M>,
    ) -> prometheus::Result<M> {
        let metric = metric?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> prometheus::Result<IntCounter> {
        self.add(IntCounter::new(name, help))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> prometheus::Result<IntGauge> {
        self.add(IntGauge::new(name, help))
    }

    pub(super) fn counters(&self, name: &str, help: &str, label: &str) -> prometheus::Result<IntCounterVec> {
        self.add(IntCounterVec::new(Opts::new(name, help), &[label]))
    }

    fn duration(&self, name: &str, help: &str) -> prometheus::Result<Histogram> {
        self.histogram(name, help, duration_buckets()?)
    }

    /// Durations in seconds, one histogram for each value of the label.
    pub(super) fn durations(&self, name: &str, help: &str, label: &str) -> prometheus::Result<HistogramVec> {
        let help = format!("{help}, in seconds");
        self.add(HistogramVec::new(HistogramOpts::new(name, help).buckets(duration_buckets()?), &[label]))
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: Vec<f64>) -> prometheus::Result<Histogram> {
        self.add(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets)))
    }
}

// === impl Metrics ===

impl Metrics {
    /// Metrics whose length buckets end at these limits.
    ///
    /// # Errors
    /// Never in practice: only when two metrics share a name.
    pub fn new(limits: &EngineLimits) -> prometheus::Result<Self> {
        let build = Builder { registry: Registry::new() };
        let inputs = length_buckets(limits.max_input_tokens)?;
        let totals = length_buckets(limits.max_total_tokens)?;
        Ok(Self {
            request_count: build.counter("tgi_request_count", "Sequences asked for")?,
            request_success: build.counter("tgi_request_success", "Sequences that ended well")?,
            request_failure: build.counters("tgi_request_failure", "Failed sequences by cause", "err")?,
            request_duration: build.duration("tgi_request_duration", "Arrival to end, in seconds")?,
            request_validation_duration: build
                .duration("tgi_request_validation_duration", "Arrival to queued, in seconds")?,
            request_queue_duration: build.duration("tgi_request_queue_duration", "Queued to first step, in seconds")?,
            request_inference_duration: build
                .duration("tgi_request_inference_duration", "First step to end, in seconds")?,
            request_mean_time_per_token_duration: build
                .duration("tgi_request_mean_time_per_token_duration", "Inference time a token, in seconds")?,
            request_generated_tokens: build.histogram(
                "tgi_request_generated_tokens",
                "Tokens generated for a sequence",
                totals.clone(),
            )?,
            request_input_length: build.histogram("tgi_request_input_length", "Tokens of a prompt", inputs)?,
            request_max_new_tokens: build.histogram(
                "tgi_request_max_new_tokens",
                "Token budget of a sequence",
                totals,
            )?,
            batch: Arc::new(BatchMetrics::new(&build, limits)?),
            registry: build.registry,
        })
    }

    /// The metrics in Prometheus' text format.
    ///
    /// # Errors
    /// When a metric cannot be written.
    pub fn render(&self) -> prometheus::Result<Vec<u8>> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }

    /// Counts a sequence that ended well.
    pub fn finished(&self, done: &Done) {
        let timings = &done.timings;
        self.request_success.inc();
        self.request_duration.observe(timings.total().as_secs_f64());
        self.request_queue_duration.observe(timings.queue.as_secs_f64());
        self.request_inference_duration.observe(timings.inference.as_secs_f64());
        self.request_mean_time_per_token_duration.observe(timings.per_token(done.generated_tokens).as_secs_f64());
        self.request_generated_tokens.observe(done.generated_tokens as f64);
    }

    /// Counts a request that was refused or failed.
    pub fn refused(&self, error: &Error) {
        let cause = match error {
            Error::Overloaded => "overloaded",
            Error::Invalid { .. } | Error::Unsupported { .. } => "validation",
            Error::Template(_) => "template",
            Error::Incomplete => "incomplete",
            Error::NotReady(_) | Error::Shard(_) | Error::Internal(_) => "generation",
        };
        self.request_failure.with_label_values(&[cause]).inc();
    }

    /// Counts a sequence whose client went away.
    pub fn dropped(&self) {
        self.request_failure.with_label_values(&["dropped"]).inc();
    }
}

fn duration_buckets() -> prometheus::Result<Vec<f64>> {
    prometheus::exponential_buckets(DURATION_START, DURATION_RATIO, DURATION_BUCKETS)
}

fn length_buckets(most: usize) -> prometheus::Result<Vec<f64>> {
    let width = most.max(1) as f64 / LENGTH_BUCKETS as f64;
    prometheus::linear_buckets(width, width, LENGTH_BUCKETS)
}

//! The `tgi_queue_size` and `tgi_batch_*` families, fed by the engine's observer. TGI's filter and concat durations have
//! no counterpart: sequences join and leave inside the plan of a step.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGauge};

use super::metrics::Builder;
use crate::engine::{EngineLimits, Observer, StepKind, StepReport};

/// Buckets of batch sizes: 1, 2, 4, ... 1024.
const SIZE_BUCKETS: usize = 11;

/// Metrics of the engine's steps.
#[derive(Debug)]
pub struct BatchMetrics {
    queue_size: IntGauge,
    current_size: IntGauge,
    current_max_tokens: IntGauge,
    next_size: prometheus::Histogram,
    concat: IntCounterVec,
    inference_count: IntCounterVec,
    inference_success: IntCounterVec,
    inference_failure: IntCounterVec,
    inference_duration: HistogramVec,
    forward_duration: HistogramVec,
    decode_duration: HistogramVec,
    cache_imbalance: IntCounter,
}

// === impl BatchMetrics ===

impl BatchMetrics {
    pub(super) fn new(build: &Builder, limits: &EngineLimits) -> prometheus::Result<Self> {
        let sizes = prometheus::exponential_buckets(1.0, 2.0, SIZE_BUCKETS)?;
        let max_total = build.gauge("tgi_batch_max_total_tokens", "KV cache size, in tokens")?;
        max_total.set(i64::try_from(limits.max_batch_total_tokens).unwrap_or(i64::MAX));
        Ok(Self {
            queue_size: build.gauge("tgi_queue_size", "Sequences that wait for their first step")?,
            current_size: build.gauge("tgi_batch_current_size", "Sequences that run")?,
            current_max_tokens: build
                .gauge("tgi_batch_current_max_tokens", "Tokens that the running sequences may reach together")?,
            next_size: build.histogram("tgi_batch_next_size", "Sequences that began in one step", sizes)?,
            concat: build.counters("tgi_batch_concat", "Times that sequences joined running ones", "reason")?,
            inference_count: build.counters("tgi_batch_inference_count", "Steps sent", "method")?,
            inference_success: build.counters("tgi_batch_inference_success", "Steps finished", "method")?,
            inference_failure: build.counters("tgi_batch_inference_failure", "Steps failed", "method")?,
            inference_duration: build.durations(
                "tgi_batch_inference_duration",
                "A step from plan to result",
                "method",
            )?,
            forward_duration: build.durations("tgi_batch_forward_duration", "The forward pass of a step", "method")?,
            decode_duration: build.durations("tgi_batch_decode_duration", "Sampling in a step", "method")?,
            cache_imbalance: build
                .counter("tgi_cache_imbalance", "Times that the KV blocks did not balance when idle")?,
        })
    }
}

impl Observer for BatchMetrics {
    fn waiting(&self, entries: usize) {
        self.queue_size.set(signed(entries));
    }

    fn running(&self, sequences: usize, max_tokens: usize) {
        self.current_size.set(signed(sequences));
        self.current_max_tokens.set(signed(max_tokens));
    }

    fn joined(&self, new: usize, running: usize) {
        self.next_size.observe(new as f64);
        if running > 0 {
            self.concat.with_label_values(&["chunking"]).inc();
        }
    }

    fn step_sent(&self, kind: StepKind) {
        self.inference_count.with_label_values(&[method(kind)]).inc();
    }

    fn step_done(&self, report: &StepReport) {
        let method = &[method(report.kind)];
        let seconds = |microseconds| Duration::from_micros(microseconds).as_secs_f64();
        self.inference_success.with_label_values(method).inc();
        self.inference_duration.with_label_values(method).observe(report.total.as_secs_f64());
        self.forward_duration.with_label_values(method).observe(seconds(report.shard.forward_us));
        self.decode_duration.with_label_values(method).observe(seconds(report.shard.sample_us));
    }

    fn step_failed(&self, kind: StepKind) {
        self.inference_failure.with_label_values(&[method(kind)]).inc();
    }

    fn imbalance(&self) {
        self.cache_imbalance.inc();
    }
}

fn method(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Prefill => "prefill",
        StepKind::Decode => "decode",
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

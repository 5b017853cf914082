//! Tokenisation off the async workers: a small pool of threads, so that a long prompt never delays a stream. Prompts
//! come in two sizes, and with two workers or more one of them takes short prompts only, so that long prompts cannot
//! hold up all short ones. The queue has no bound of its own: each job belongs to a request that was admitted.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::tokenizer::TokenSpan;
use super::{Tokenizer, TokenizerError};

/// A prompt of at most so many bytes is short: a few milliseconds of work.
const SHORT_PROMPT_BYTES: usize = 16 * 1024;

/// Encodes prompts on its own threads, which end with the last handle.
#[derive(Debug, Clone)]
pub struct EncodePool {
    handle: Arc<Handle>,
}

/// Closes the queue when the last `EncodePool` is gone.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    tokenizer: Arc<Tokenizer>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    workers: usize,
    closed: bool,
}

struct Job {
    short: bool,
    work: Box<dyn FnOnce(&Tokenizer) + Send>,
}

// === impl EncodePool ===

impl EncodePool {
    /// A pool of `workers` threads, at least one. A thread that the system refuses is logged; without any, every prompt
    /// is refused.
    pub fn new(tokenizer: Arc<Tokenizer>, workers: usize) -> Self {
        let shared = Arc::new(Shared { tokenizer, queue: Mutex::default(), changed: Condvar::new() });
        for index in 0..workers.max(1) {
            let (worker, short_only) = (shared.clone(), index == 0 && workers > 1);
            let thread = std::thread::Builder::new().name(format!("encode-{index}"));
            match thread.spawn(move || worker.serve(short_only)) {
                Ok(_) => shared.lock().workers += 1,
                Err(error) => tracing::error!(%error, index, "cannot start a tokenisation thread"),
            }
        }
        Self { handle: Arc::new(Handle { shared }) }
    }

    /// The tokenizer of the pool.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.handle.shared.tokenizer
    }

    /// Token ids of a text. Dropping the future before its turn skips the work.
    ///
    /// # Errors
    /// As `Tokenizer::encode`.
    pub async fn encode(&self, text: String, add_special_tokens: bool) -> Result<Vec<u32>, TokenizerError> {
        self.run(text, move |tokenizer, text| tokenizer.encode(text, add_special_tokens)).await
    }

    /// The tokens of a text with the bytes that each covers.
    ///
    /// # Errors
    /// As `Tokenizer::encode_spans`.
    pub async fn encode_spans(&self, text: String, add_special_tokens: bool) -> Result<Vec<TokenSpan>, TokenizerError> {
        self.run(text, move |tokenizer, text| tokenizer.encode_spans(text, add_special_tokens)).await
    }

    async fn run<T, F>(&self, text: String, work: F) -> Result<T, TokenizerError>
    where
        T: Send + 'static,
        F: FnOnce(&Tokenizer, &str) -> Result<T, TokenizerError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let short = text.len() <= SHORT_PROMPT_BYTES;
        let work = Box::new(move |tokenizer: &Tokenizer| {
            if reply.is_closed() {
                return;
            }
            let result = catch_unwind(AssertUnwindSafe(|| work(tokenizer, &text)));
            // A receiver that is gone by now no longer wants the answer.
            let _gone = reply.send(result.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))));
        });
        self.handle.shared.submit(Job { short, work })?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

// === impl Shared ===

impl Shared {
    fn submit(&self, job: Job) -> Result<(), TokenizerError> {
        let mut queue = self.lock();
        if queue.workers == 0 {
            return Err(stopped());
        }
        queue.jobs.push_back(job);
        drop(queue);
        // All: the one that wakes up might not take long prompts.
        self.changed.notify_all();
        Ok(())
    }

    /// A worker's life: takes the oldest job that it may take until the pool is closed and empty.
    fn serve(&self, short_only: bool) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.take(short_only) {
                drop(queue);
                (job.work)(&self.tokenizer);
                queue = self.lock();
            } else if queue.closed {
                return;
            } else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// The queue. No code panics while it holds the lock, and a job list is whole at any moment.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Queue ===

impl Queue {
    fn take(&mut self, short_only: bool) -> Option<Job> {
        let index = self.jobs.iter().position(|job| job.short || !short_only)?;
        self.jobs.remove(index)
    }
}

// === impl Job ===

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("short", &self.short).finish_non_exhaustive()
    }
}

fn panicked(panic: &(dyn Any + Send)) -> TokenizerError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    TokenizerError::Encode(format!("the tokenizer failed on this text: {}", text.unwrap_or("no reason given")))
}

fn stopped() -> TokenizerError {
    TokenizerError::Encode("no tokenisation thread is running; restart the server".into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::text::fixtures;

    #[tokio::test]
    async fn encodes_as_the_tokenizer_does() {
        let tokenizer = fixtures::byte_level();
        for workers in [0, 1, 3] {
            let pool = EncodePool::new(tokenizer.clone(), workers);
            let ids = pool.encode("Hello world".into(), true).await.unwrap();
            assert_eq!(ids, tokenizer.encode("Hello world", true).unwrap());
            let spans = pool.encode_spans("Hello".into(), false).await.unwrap();
            assert_eq!(spans, tokenizer.encode_spans("Hello", false).unwrap());
        }
    }

    /// A job that waits for its gate to be dropped, then counts itself.
    async fn held(pool: EncodePool, bytes: usize, gate: mpsc::Receiver<()>, done: Arc<AtomicUsize>) {
        let work = move |_: &Tokenizer, _: &str| {
            gate.recv_timeout(Duration::from_secs(10)).ok();
            done.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        pool.run("x".repeat(bytes), work).await.unwrap();
    }

    #[tokio::test]
    async fn long_prompts_leave_a_worker_to_short_ones() {
        let pool = EncodePool::new(fixtures::byte_level(), 2);
        let done = Arc::new(AtomicUsize::new(0));
        let mut gates = Vec::new();
        let mut held_jobs = Vec::new();
        for _ in 0..3 {
            let (release, gate) = mpsc::channel();
            gates.push(release);
            held_jobs.push(tokio::spawn(held(pool.clone(), SHORT_PROMPT_BYTES + 1, gate, done.clone())));
        }
        tokio::task::yield_now().await;
        assert!(!pool.encode("short".into(), false).await.unwrap().is_empty());
        assert_eq!(done.load(Ordering::SeqCst), 0);
        drop(gates);
        for job in held_jobs {
            job.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_dropped_request_is_skipped_and_a_panic_hurts_no_other() {
        let pool = EncodePool::new(fixtures::byte_level(), 1);
        let done = Arc::new(AtomicUsize::new(0));
        let (release, gate) = mpsc::channel();
        let first = tokio::spawn(held(pool.clone(), 1, gate, done.clone()));
        tokio::task::yield_now().await;
        let (_open, never) = mpsc::channel();
        let second = tokio::spawn(held(pool.clone(), 1, never, done.clone()));
        tokio::task::yield_now().await;
        second.abort();
        assert!(second.await.unwrap_err().is_cancelled());
        drop(release);
        first.await.unwrap();
        let panic = pool.run::<(), _>(String::new(), |_, _| panic!("odd text")).await.unwrap_err();
        assert!(panic.to_string().contains("odd text"), "{panic}");
        assert!(pool.encode("x".into(), false).await.is_ok());
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }
}

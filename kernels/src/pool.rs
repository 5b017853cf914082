//! Threads that take chunks of one job after another. The caller works too and waits only for chunks that another thread
//! has begun, so a thread that wakes late costs nothing but its help.
//!
//! Between jobs a thread looks for the next one for a short time, because a decoder asks for a product every few dozen
//! microseconds and waking a sleeping thread takes about as long; then it sleeps until it is woken.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long an idle thread looks for work before it sleeps: longer than a decoder's pauses between products, and short
/// against the work of a step, so that an idle server sleeps.
const LOOK_FOR_WORK: Duration = Duration::from_micros(150);
/// Looks between two readings of the clock; after each, other processes may have the core.
const LOOKS: u32 = 64;
const CHUNK_BITS: u32 = 32;
const CHUNK_MASK: u64 = (1 << CHUNK_BITS) - 1;

/// A fixed number of threads, the caller included.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    turn: Mutex<()>,
}

type Work<'a> = &'a (dyn Fn(usize) + Sync);

struct Shared {
    /// Number of the job, and below it the chunks that nobody has taken yet.
    ticket: AtomicU64,
    /// A `Work` on the caller's stack; valid for whoever holds a chunk.
    work: AtomicPtr<Work<'static>>,
    /// Chunks not yet finished.
    unfinished: AtomicU32,
    sleeping: AtomicUsize,
    closed: AtomicBool,
}

/// Ends the process when work panics: the other threads still use what the unwinding would free.
struct AbortOnPanic;

// === impl Pool ===

impl Pool {
    /// `threads` threads, at least one: the caller's.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn new(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            ticket: AtomicU64::new(0),
            work: AtomicPtr::new(ptr::null_mut()),
            unfinished: AtomicU32::new(0),
            sleeping: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        });
        let mut pool = Self { shared, workers: Vec::new(), turn: Mutex::new(()) };
        for index in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let builder = thread::Builder::new().name(format!("product-{index}"));
            pool.workers.push(builder.spawn(move || shared.serve())?);
        }
        Ok(pool)
    }

    /// Threads, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Call `work` for each of `chunks` chunks, on any thread, and return when all are finished.
    pub(crate) fn run(&self, chunks: usize, work: Work<'_>) {
        if self.workers.is_empty() || chunks <= 1 {
            (0..chunks).for_each(work);
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        let count = chunks as u32;
        // SAFETY: only the lifetime changes. Threads call it while they hold a chunk, and this function waits for those.
        let work: Work<'static> = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(work) };
        shared.work.store((&raw const work).cast_mut(), Ordering::Relaxed);
        shared.unfinished.store(count, Ordering::Relaxed);
        let job = (shared.ticket.load(Ordering::Relaxed) >> CHUNK_BITS).wrapping_add(1);
        shared.ticket.store(job << CHUNK_BITS | u64::from(count), Ordering::SeqCst);
        if shared.sleeping.load(Ordering::SeqCst) > 0 {
            self.workers.iter().for_each(|worker| worker.thread().unpark());
        }
        shared.help();
        let mut looks = 0_u32;
        while shared.unfinished.load(Ordering::Acquire) > 0 {
            looks = looks.wrapping_add(1);
            // The thread that holds the last chunk may be waiting for this very core.
            if looks.is_multiple_of(LOOKS) { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker cannot panic: that would have ended the process.
            let _ = worker.join();
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Take chunks until none is left.
    fn help(&self) {
        let _guard = AbortOnPanic;
        let mut ticket = self.ticket.load(Ordering::Acquire);
        while ticket & CHUNK_MASK != 0 {
            match self.ticket.compare_exchange_weak(ticket, ticket - 1, Ordering::AcqRel, Ordering::Acquire) {
                Err(newer) => ticket = newer,
                Ok(_) => {
                    let chunk = (ticket & CHUNK_MASK) as usize - 1;
                    // SAFETY: this thread holds a chunk, so the caller of `run` waits and its work is alive.
                    let work = unsafe { *self.work.load(Ordering::Relaxed) };
                    work(chunk);
                    self.unfinished.fetch_sub(1, Ordering::Release);
                    ticket = self.ticket.load(Ordering::Acquire);
                }
            }
        }
    }

    /// The life of a worker.
    fn serve(&self) {
        while !self.closed.load(Ordering::SeqCst) {
            if self.find_work() {
                self.help();
                continue;
            }
            self.sleeping.fetch_add(1, Ordering::SeqCst);
            // Whoever publishes a job later sees that this thread sleeps.
            if !self.has_work() && !self.closed.load(Ordering::SeqCst) {
                thread::park();
            }
            self.sleeping.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn has_work(&self) -> bool {
        self.ticket.load(Ordering::SeqCst) & CHUNK_MASK != 0
    }

    /// Look for work for a while.
    fn find_work(&self) -> bool {
        let began = Instant::now();
        while began.elapsed() < LOOK_FOR_WORK {
            for _ in 0..LOOKS {
                if self.has_work() {
                    return true;
                }
                std::hint::spin_loop();
            }
            thread::yield_now();
        }
        false
    }
}

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

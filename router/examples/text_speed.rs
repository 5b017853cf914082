//! Measures tokenisation and detokenisation with the tokenizer of a model folder, and checks on random ids that the
//! incremental text equals a whole decode:
//! `cargo run --release -p text-generation-router --example text_speed -- MODEL_FOLDER`

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use text_generation_router::text::{Detokenizer, Tokenizer};

const PARAGRAPH: &str =
    "The engine takes a step, streams 42 tokens, and goes on; naïve café owners (über-keen) say: \"日本語 😀 ok?\"\n";
const REPEATS: usize = 200;
const RANDOM_SEQUENCES: u32 = 2_000;
const RANDOM_LENGTH: u32 = 24;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("give the folder of a model")?;
    let mut out = std::io::stdout().lock();
    let (load, tokenizer) = timed(|| Tokenizer::load(&folder));
    let tokenizer = tokenizer?;
    writeln!(out, "load                {:>8.0} ms", load.as_secs_f64() * 1e3)?;

    let text = PARAGRAPH.repeat(REPEATS);
    let (encode, ids) = timed(|| tokenizer.encode(&text, false));
    let ids = ids?;
    report(&mut out, "encode", encode, ids.len())?;
    let (spans, _) = timed(|| tokenizer.encode_spans(&text, false));
    report(&mut out, "encode with spans", spans, ids.len())?;

    let (push, shown) = timed(|| {
        let mut detokenizer = Detokenizer::new(tokenizer.clone(), &[]);
        ids.iter().map(|&id| detokenizer.push(id)).collect::<String>()
    });
    report(&mut out, "detokenise", push, ids.len())?;
    writeln!(out, "text comes back     {}", shown == text)?;
    writeln!(out, "random ids that differ from a whole decode: {}", count_differences(&tokenizer))?;
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

fn report(out: &mut impl Write, name: &str, time: Duration, tokens: usize) -> std::io::Result<()> {
    writeln!(out, "{name:<20}{:>8.3} us a token ({tokens} tokens)", time.as_secs_f64() * 1e6 / tokens as f64)
}

/// How many sequences of random ids come out other than a whole decode shows them.
fn count_differences(tokenizer: &Arc<Tokenizer>) -> usize {
    let vocabulary = tokenizer.vocabulary_size() as u64;
    let mut state = 1_u64;
    let mut draw = || {
        // Knuth's linear congruential generator; the high bits are random enough here.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % vocabulary) as u32
    };
    let mut differ = 0;
    for _ in 0..RANDOM_SEQUENCES {
        let ids: Vec<u32> = (0..RANDOM_LENGTH).map(|_| draw()).collect();
        let mut detokenizer = Detokenizer::new(tokenizer.clone(), &[]);
        let mut text: String = ids.iter().map(|&id| detokenizer.push(id)).collect();
        text.push_str(&detokenizer.finish());
        differ += usize::from(text != tokenizer.decode(&ids));
    }
    differ
}

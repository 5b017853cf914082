//! Random arrivals, limits and departures: every sequence gets what it would have got alone, and nothing is lost.

use proptest::prelude::*;

use super::fixture::{Bench, Case, Sizes, collect, letter, prompt, tokenizer};
use crate::event::EventReceiver;

/// A request and what its client does.
#[derive(Debug, Clone)]
struct Client {
    case: Case,
    /// Turns of the scheduler before it comes.
    arrives: usize,
    /// Leaves after so many events.
    leaves: Option<usize>,
}

fn sizes() -> impl Strategy<Value = Sizes> {
    (2..14_u32, 1..6_usize, 1..6_usize, 1..14_usize, 0..9_usize).prop_map(
        |(blocks, block_size, slots, prefill, more)| Sizes { blocks, block_size, slots, prefill, step: slots + more },
    )
}

fn clients() -> impl Strategy<Value = Vec<Client>> {
    let stop = prop::collection::vec(prop::collection::vec(1..6_u32, 1..3), 0..3);
    let flags = (any::<bool>(), any::<bool>(), 0..3_u32);
    let ends = (prop::collection::vec(0..6_u32, 0..3), any::<bool>(), any::<bool>(), 0..12_u32);
    let behaviour = (0..60_usize, prop::option::weighted(0.3, 0..9_usize));
    let client = (1..40_usize, any::<u16>(), 1..30_u32, stop, flags, ends, behaviour);
    let client = client.prop_map(|(length, seed, max_new_tokens, stop, flags, ends, then)| {
        let (ignore_eos, prompt_logprobs, top_n) = flags;
        let (stop_token_ids, include_stop, keep_special_tokens, min_tokens) = ends;
        let stop = stop.into_iter().map(|ids| ids.into_iter().map(letter).collect()).collect();
        let prompt = prompt(length, seed.into());
        let case = Case {
            prompt,
            max_new_tokens,
            stop,
            ignore_eos,
            top_n,
            prompt_logprobs,
            prompt_top_n: top_n,
            stop_token_ids,
            include_stop,
            keep_special_tokens,
            min_tokens,
        };
        Client { case, arrives: then.0, leaves: then.1 }
    });
    prop::collection::vec(client, 1..12)
}

/// Cuts a request to what the cache can hold: admission does so in the server.
fn fit(mut client: Client, total: usize) -> Client {
    client.case.prompt.truncate(total - 1);
    let room = (total - client.case.prompt.len()) as u32;
    client.case.max_new_tokens = client.case.max_new_tokens.min(room);
    client.case.min_tokens = client.case.min_tokens.min(client.case.max_new_tokens);
    client
}

async fn serve(client: Client, engine: crate::engine::Engine) {
    for _ in 0..client.arrives {
        tokio::task::yield_now().await;
    }
    let (entry, events) = client.case.entry();
    engine.submit(entry).expect("the engine lives");
    match client.leaves {
        Some(after) => leave(events, after).await,
        None => client.case.check(collect(events).await),
    }
}

async fn leave(mut events: EventReceiver, after: usize) {
    for _ in 0..after {
        if events.recv().await.is_none() {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_sequence_gets_what_it_would_get_alone(sizes in sizes(), clients in clients()) {
        thread_local!(static TOKENIZER: std::sync::Arc<crate::text::Tokenizer> = tokenizer());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async move {
            let bench = Bench::new(sizes, TOKENIZER.with(Clone::clone));
            let total = sizes.blocks as usize * sizes.block_size;
            let tasks: Vec<_> = clients
                .into_iter()
                .map(|client| tokio::spawn(serve(fit(client, total), bench.engine.clone())))
                .collect();
            for task in tasks {
                let run = tokio::time::timeout(std::time::Duration::from_secs(20), task);
                run.await.expect("nothing starves").expect("as the reference");
            }
            bench.finish().await;
        });
    }
}

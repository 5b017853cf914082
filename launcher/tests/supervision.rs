//! The launcher as a process, in good order: what starts when, what signals do, and what is left behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::time::{Duration, Instant};

use common::{Stand, is_alive};
use nix::sys::signal::Signal;
use serde_json::Value;

/// A router that takes a while to end.
const DRAIN: (&str, &str) = ("ROUTER_TERM", "sleep 0.2; echo router drained; exit 0");

#[test]
fn children_start_in_order_and_end_in_order() {
    let stand = Stand::new();
    let variables = [("PORT", "8123"), ("HOSTNAME", "3f2a91c0ffee"), ("API_KEY", "secret"), DRAIN];
    let mut launcher = stand.launch(&variables, &["--model-id", "owner/x", "--num-shard", "2"]);
    launcher.wait_for("serving", 2);
    launcher.wait_for("\"type\":\"model\"", 1);
    launcher.signal(Signal::SIGTERM);
    let ended = launcher.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.complaint);
    assert_eq!(ended.complaint, "");
    assert!(ended.position("3f2a91c0ffee") < ended.position("started router"));
    assert!(ended.position("started router") < ended.position("started prepare"));
    assert!(ended.position("prepare: prepare started") < ended.position("started shard 0"));
    assert!(ended.position("router drained") < ended.position("shard 0: told to end"));
    assert!(ended.position("router drained") < ended.position("shard 1: told to end"));
    ended.position("mode of config 600");
    ended.position("mode of folder 700");
    assert_eq!(stand.leftovers(), 0);

    let router: Value = serde_json::from_str(&stand.read("router.json")).unwrap();
    assert_eq!((&router["port"], &router["hostname"]), (&8123.into(), &"0.0.0.0".into()));
    assert_eq!((&router["api_key"], &router["control_channel"]), (&"secret".into(), &true.into()));
    let shard: Value = serde_json::from_str(&stand.read("shard-1.json")).unwrap();
    assert_eq!((&shard["rank"], &shard["world_size"]), (&1.into(), &2.into()));
    assert_eq!(shard["socket"], router["shard_sockets"][1]);
    assert_eq!(shard["model_folder"], "/models/x");
    let control = ended.control();
    assert!(control[0].contains("status"), "{control:?}");
    assert!(control.last().unwrap().contains(r#""model_id":"owner/x""#), "{control:?}");
}

#[test]
fn the_served_name_and_progress_reach_the_router() {
    let stand = Stand::new();
    let progress = r#"echo '{"level":"INFO","message":"downloading, 34 %"}' >&2"#;
    let variables = [("PREPARE", progress), ("JSON_OUTPUT", "1")];
    let mut launcher = stand.launch(&variables, &["--served-model-name", "mine", "--graceful-termination-timeout=1"]);
    launcher.wait_for("/models/x", 1);
    launcher.signal(Signal::SIGINT);
    let ended = launcher.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.complaint);
    let control = ended.control().join("\n");
    assert!(control.contains(r#"{"type":"status","reason":"downloading, 34 %"}"#), "{control}");
    assert!(control.contains(r#""model_id":"mine""#), "{control}");
    let line = &ended.output[ended.position("\"source\":\"prepare\"")];
    assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
}

#[test]
fn a_second_signal_ends_everything_at_once() {
    let stand = Stand::new();
    let mut launcher = stand.launch(&[("ROUTER_TERM", ":"), ("SHARD", "echo $$ > $STAND/pid")], &[]);
    launcher.wait_for("serving", 1);
    launcher.signal(Signal::SIGTERM);
    launcher.wait_for("router told to end", 1);
    let begin = Instant::now();
    launcher.signal(Signal::SIGINT);
    let ended = launcher.end();
    assert_eq!(ended.status.code(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(!is_alive(stand.read("pid").trim()));
    assert_eq!(stand.leftovers(), 0);
}

#[test]
fn a_signal_while_the_model_is_prepared_ends_promptly() {
    let stand = Stand::new();
    let mut launcher = stand.launch(&[("PREPARE", "sleep 100 & wait $!")], &[]);
    launcher.wait_for("prepare started", 1);
    let begin = Instant::now();
    launcher.signal(if hangups_are_ignored() { Signal::SIGTERM } else { Signal::SIGHUP });
    let ended = launcher.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.complaint);
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(!ended.output.iter().any(|line| line.contains("started shard")));
}

/// Whether these tests run under `nohup`: the launcher then ignores hang-ups too.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0
}

#[test]
fn nothing_outlives_a_killed_launcher() {
    let stand = Stand::new();
    let shard = "sleep 300 & echo $$ $! > $STAND/pids; echo ready";
    let mut launcher = stand.launch(&[("SHARD", shard)], &[]);
    launcher.wait_for("ready", 1);
    launcher.signal(Signal::SIGKILL);
    let begin = Instant::now();
    let pids = stand.read("pids");
    assert_eq!(pids.split_whitespace().count(), 2);
    while pids.split_whitespace().any(is_alive) {
        assert!(begin.elapsed() < Duration::from_secs(3), "still there: {pids}");
        std::thread::sleep(Duration::from_millis(10));
    }
    launcher.process.wait().unwrap();
}

#[test]
fn the_env_command_works_without_a_gpu() {
    let stand = Stand::new();
    let output = stand.command(&[], &["env"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    assert!(text.contains("launcher: ") && text.contains("gpus: "), "{text}");
    assert!(text.contains("server.torch: 2.11.0") && text.contains("server.triton: not found"), "{text}");
}

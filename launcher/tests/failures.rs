//! The launcher as a process, when something fails: the first cause is the last line, and nothing is left behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use common::{Ended, Stand, is_alive};

fn fails(variables: &[(&str, &str)], arguments: &[&str]) -> (Stand, Ended) {
    let stand = Stand::new();
    let ended = stand.launch(variables, arguments).end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.complaint);
    assert_eq!(stand.leftovers(), 0);
    (stand, ended)
}

#[test]
fn the_first_shard_that_fails_is_named_with_its_cause() {
    let shard = r#"
        echo $$ > $STAND/pid-$rank
        if [ $rank = 1 ]; then
            until [ -s $STAND/pid-0 ]; do sleep 0.01; done
            printf '%s\n' '{"level":"ERROR","message":"out of memory","exception":"Traceback\nOutOfMemoryError: 3 GB"}' >&2
            exit 3
        fi"#;
    let farewell = ("ROUTER_TERM", "sleep 0.2; echo clients answered; exit 0");
    let (stand, ended) = fails(&[("SHARD", shard), farewell], &["--num-shard", "2"]);
    let expected = "Error: shard 1 ended with exit status 3: out of memory; OutOfMemoryError: 3 GB";
    assert_eq!(ended.last_line(), expected);
    ended.position("clients answered");
    ended.position("shard 0: told to end");
    assert!(!is_alive(stand.read("pid-0").trim()));
}

#[test]
fn a_traceback_and_a_signal_are_reported() {
    let shard = "printf 'Traceback:\\n  File x\\nValueError: bad shape\\n' >&2; exit 1";
    let (_, ended) = fails(&[("SHARD", shard)], &[]);
    assert_eq!(ended.last_line(), "Error: shard 0 ended with exit status 1: ValueError: bad shape");
    assert!(ended.complaint.contains("  Traceback:"), "{}", ended.complaint);
    let (_, ended) = fails(&[("SHARD", "kill -KILL $$")], &[]);
    assert!(ended.last_line().starts_with("Error: shard 0 ended with signal 9"), "{}", ended.complaint);
}

#[test]
fn a_port_in_use_is_the_routers_message() {
    let router = "echo 'Error: port 3000 is in use' >&2; echo 'Give another --port.' >&2; exit 1";
    let (_, ended) = fails(&[("ROUTER_START", router), ("PREPARE", "sleep 100 & wait $!")], &[]);
    ended.position("Error: port 3000 is in use");
    let expected = "Error: router ended with exit status 1: port 3000 is in use; Give another --port.";
    assert_eq!(ended.complaint.trim_end(), expected);
}

#[test]
fn a_router_that_ends_by_itself_is_a_failure() {
    let (_, ended) = fails(&[("ROUTER_START", "exit 0")], &[]);
    assert!(ended.last_line().starts_with("Error: router ended with exit status 0"), "{}", ended.complaint);
}

#[test]
fn a_failed_preparation_ends_with_its_cause() {
    let prepare = "echo 'Error: no model owner/y' >&2; echo 'Check the id.' >&2; exit 1";
    let (_, ended) = fails(&[("PREPARE", prepare)], &["--model-id", "owner/y"]);
    let expected = "Error: prepare ended with exit status 1: no model owner/y; Check the id.";
    assert_eq!(ended.complaint.trim_end(), expected);
    assert!(!ended.output.iter().any(|line| line.contains("started shard")));
}

#[test]
fn wrong_configurations_end_with_two_lines_before_anything_starts() {
    type Case = (&'static [(&'static str, &'static str)], &'static [&'static str], &'static str);
    let cases: [Case; 7] = [
        (&[("TMPDIR", "/dev/null/tmp")], &[], "/dev/null/tmp"),
        (&[], &["--cache-folder", "/dev/null/cache"], "/dev/null/cache"),
        (&[("QUANTIZE", "awq")], &[], "variable `QUANTIZE` (`awq`) is not available yet"),
        (&[], &["--quantization", "fp8"], "`--quantize` (`fp8`) is not available yet"),
        (&[("ATTENTION", "flashinfer")], &[], "attention `flashinfer`"),
        (&[("MAX_INPUT_LENGTH", "5")], &["--max-input-tokens", "5"], "--max-input-length"),
        (&[], &["--model-id", "/no/such/model"], "/no/such/model"),
    ];
    for (variables, arguments, expected) in cases {
        let (_, ended) = fails(variables, arguments);
        let lines: Vec<_> = ended.complaint.lines().collect();
        assert_eq!(lines.len(), 2, "{}", ended.complaint);
        assert!(lines[0].starts_with("Error: ") && lines[0].contains(expected), "{}", ended.complaint);
        assert!(lines[1].starts_with("Hint: "), "{}", ended.complaint);
        assert!(!ended.output.iter().any(|line| line.contains("started")));
    }
}

#[test]
fn a_missing_program_is_named() {
    let stand = Stand::new();
    std::fs::remove_file(stand.path().join("text-generation-server")).unwrap();
    let ended = stand.launch(&[], &[]).end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.complaint.contains("`text-generation-server`"), "{}", ended.complaint);
}

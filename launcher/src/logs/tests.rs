use super::record::{Record, Severity};
use super::tail::{KEPT_LINES, Tail};
use super::*;

const LINE: &str =
    r#"{"timestamp":"2026-01-02T03:04:05Z","level":"warning","message":"slow disk","target":"weights","gib":7}"#;

fn printer(json: bool) -> (Printer, mpsc::Receiver<String>) {
    let (lines, printed) = mpsc::channel(WAITING_LINES);
    (Printer { lines, json, threshold: Severity::Info }, printed)
}

async fn relayed(role: Role, json: bool, pieces: &[&[u8]]) -> (Vec<String>, Vec<String>, Option<String>) {
    use tokio::io::AsyncWriteExt as _;
    let (printer, mut printed) = printer(json);
    let (events, mut heard) = mpsc::unbounded_channel();
    let tail = SharedTail::default();
    let (mut writer, reader) = tokio::io::duplex(64);
    let task = tokio::spawn(relay(reader, Destination { role, printer, tail: tail.clone(), events }));
    for piece in pieces {
        writer.write_all(piece).await.unwrap();
        writer.flush().await.unwrap();
    }
    drop(writer);
    task.await.unwrap();
    let mut lines = Vec::new();
    while let Some(line) = printed.recv().await {
        lines.push(line);
    }
    let mut progress = Vec::new();
    while let Some(Event::Progress(text)) = heard.recv().await {
        progress.push(text);
    }
    let cause = tail.lock().unwrap().cause();
    (lines, progress, cause)
}

#[test]
fn a_record_is_rendered_as_text_and_as_json() {
    let text = Record::parse(LINE).unwrap().render(Some(Role::Shard(1)), false);
    assert_eq!(text, "2026-01-02T03:04:05Z  WARN shard 1: slow disk gib=7\n");
    let json = Record::parse(LINE).unwrap().render(Some(Role::Prepare), true);
    let expected = r#"{"timestamp":"2026-01-02T03:04:05Z","level":"WARN","message":"slow disk","target":"weights","source":"prepare","gib":7}"#;
    assert_eq!(json.trim_end(), expected);
    let trace = r#"{"timestamp":"T","level":"ERROR","message":"m","exception":"a\nb\n"}"#;
    let text = Record::parse(trace).unwrap().render(Some(Role::Shard(0)), false);
    assert_eq!(text, "T ERROR shard 0: m\na\nb\n");
    let own = Record::own(Severity::Info, "hello").render(None, false);
    assert!(own.ends_with("Z  INFO hello\n") && own.starts_with("20"), "{own}");
}

#[test]
fn what_is_not_a_record_is_no_record() {
    for line in ["Traceback (most recent call last):", "{broken", "{}", r#"{"level":"INFO"}"#, "[1]"] {
        assert_eq!(Record::parse(line), None, "{line}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn lines_survive_chunk_borders_any_length_and_bytes_that_are_no_text() {
    let (head, rest) = LINE.as_bytes().split_at(40);
    let long = vec![b'x'; 300_000];
    let (lines, _, _) = relayed(Role::Shard(0), false, &[head, rest, b"\n", &long, b"\n\xff\xfe end"]).await;
    assert_eq!(lines.len(), 3);
    assert!(lines[0].contains("slow disk gib=7"));
    assert!(lines[1].len() > 300_000 && lines[1].contains("INFO shard 0: xxx"));
    assert!(lines[2].contains("\u{fffd}\u{fffd} end"));
}

#[tokio::test(flavor = "current_thread")]
async fn a_line_longer_than_memory_allows_comes_in_pieces() {
    let endless = vec![b'y'; usize::try_from(MAX_LINE_BYTES).unwrap() + 10];
    let (lines, _, _) = relayed(Role::Router, false, &[&endless]).await;
    assert_eq!(lines.len(), 2);
    assert_eq!(lines.concat().matches('y').count(), endless.len());
}

#[tokio::test(flavor = "current_thread")]
async fn the_router_is_passed_through_and_the_preparation_reports_progress() {
    let printed: [&[u8]; 2] = [LINE.as_bytes(), b"\nError: no port\n"];
    let (lines, progress, _) = relayed(Role::Router, false, &printed).await;
    assert_eq!(lines, [format!("{LINE}\n"), "Error: no port\n".to_owned()]);
    assert!(progress.is_empty());
    let (lines, _, cause) = relayed(Role::Router, true, &printed).await;
    assert_eq!(lines[0], format!("{LINE}\n"));
    let record: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!((&record["level"], &record["message"]), (&"ERROR".into(), &"Error: no port".into()));
    assert_eq!(cause.as_deref(), Some("Error: no port"));
    let info = LINE.replace("warning", "INFO");
    let (_, progress, _) = relayed(Role::Prepare, false, &[info.as_bytes(), b"\nplain\n", LINE.as_bytes()]).await;
    assert_eq!(progress, ["slow disk"]);
}

#[tokio::test(flavor = "current_thread")]
async fn the_cause_is_the_last_error_that_a_child_printed() {
    let error = br#"{"level":"ERROR","message":"no space left","exception":"Traceback\n  x\nOSError: 28\n"}"#;
    let (_, _, cause) = relayed(Role::Prepare, false, &[error, b"\nbye\n"]).await;
    assert_eq!(cause.as_deref(), Some("no space left; OSError: 28"));
    let traceback = b"Traceback:\n  File x\nValueError: bad shape\nbye\n";
    let (_, _, cause) = relayed(Role::Shard(0), false, &[traceback]).await;
    assert_eq!(cause.as_deref(), Some("ValueError: bad shape"));
    let (_, _, cause) = relayed(Role::Router, false, &[b"INFO x\n\x1b[31mError: port\x1b[0m\nTake another.\n"]).await;
    assert_eq!(cause.as_deref(), Some("Error: port; Take another."));
    let (_, _, cause) = relayed(Role::Shard(0), false, &[]).await;
    assert_eq!(cause, None);
}

#[test]
fn only_the_last_lines_are_kept() {
    let mut tail = Tail::default();
    let error = Record::own(Severity::Error, "long ago");
    tail.push("", Some(&error));
    (0..KEPT_LINES).for_each(|number| tail.push(&number.to_string(), None));
    assert_eq!(tail.raw_lines().len(), KEPT_LINES);
    assert_eq!(tail.cause().as_deref(), Some((KEPT_LINES - 1).to_string().as_str()));
}

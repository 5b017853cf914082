//! The router as a process: how it starts on the word of a launcher, and every way in which it ends. A fake shard stands
//! in for the model.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use text_generation_protocol::config::{Limits, LogConfig, RouterConfig, Watermark};
use text_generation_protocol::fake::{FakeShard, FakeShardHandle, HashModel};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// No wait of a test may last longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A router with a fake shard, in a folder of its own.
struct Stand {
    router: Child,
    control: Option<ChildStdin>,
    port: u16,
    folder: tempfile::TempDir,
    _shard: FakeShardHandle,
}

// === impl Stand ===

impl Stand {
    /// Starts both; a step takes so long, and drains may take `grace` seconds.
    fn start(step: Duration, grace: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_model(folder.path());
        let socket = folder.path().join("shard-0");
        let model = HashModel { vocab_size: 256, ..HashModel::default() };
        let shard = FakeShard::builder().model(model).latency(step, Duration::ZERO).serve(&socket).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = RouterConfig {
            hostname: [127, 0, 0, 1].into(),
            port,
            model: None,
            model_id: "demo".into(),
            shard_sockets: vec![socket],
            tokenizer_config_path: None,
            chat_template: None,
            limits: Limits::default(),
            api_key: None,
            cors_allow_origin: Vec::new(),
            graceful_termination_timeout: grace,
            compute_type: "cpu".into(),
            aip_predict_route: None,
            aip_health_route: None,
            control_channel: true,
            watermark: Watermark::default(),
            log: LogConfig { level: "info".into(), json: true },
        };
        let file = folder.path().join("router.json");
        std::fs::write(&file, serde_json::to_string(&config).unwrap()).unwrap();
        let mut router = Command::new(env!("CARGO_BIN_EXE_text-generation-router"))
            .arg("--config")
            .arg(file)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let control = router.stdin.take();
        Self { router, control, port, folder, _shard: shard }
    }

    /// Starts both and waits until the model is served.
    fn ready(step: Duration, grace: u64) -> Self {
        let mut stand = Self::start(step, grace);
        let folder = stand.folder.path().display().to_string();
        stand.tell(&json!({"type": "model", "folder": folder, "model_id": "demo"}).to_string());
        stand.wait_for_health("HTTP/1.1 200", "");
        stand
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.control.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits until `/health` answers like this.
    fn wait_for_health(&self, status: &str, text: &str) {
        let end = Instant::now() + PATIENCE;
        let mut answer = String::new();
        while Instant::now() < end {
            if let Ok(mut connection) = self.send("GET /health HTTP/1.1", "") {
                answer.clear();
                connection.read_to_string(&mut answer).unwrap();
                if answer.starts_with(status) && answer.contains(text) {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the last answer of /health was: {answer}");
    }

    fn send(&self, head: &str, body: &str) -> std::io::Result<TcpStream> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        let length = body.len();
        write!(
            connection,
            "{head}\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )?;
        Ok(connection)
    }

    /// Begins a stream of so many tokens, and waits for its first one.
    fn stream(&self, tokens: u32) -> BufReader<TcpStream> {
        let body = json!({"inputs": "ab", "parameters": {"max_new_tokens": tokens}}).to_string();
        let mut stream = BufReader::new(self.send("POST /generate_stream HTTP/1.1", &body).unwrap());
        let mut line = String::new();
        while !line.starts_with("data:") {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended without a token");
        }
        stream
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.router.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.router.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the router goes on");
    }

    /// All that the router logged; it must have ended.
    fn log(&mut self) -> String {
        let mut text = String::new();
        self.router.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        // Ended already, in a test that passes.
        self.router.kill().ok();
        self.router.wait().ok();
    }
}

/// A byte-level tokenizer and the least of a configuration.
fn write_model(folder: &Path) {
    let alphabet = ByteLevel::alphabet().into_iter().collect::<std::collections::BTreeSet<char>>();
    let vocabulary: BTreeMap<String, usize> =
        alphabet.iter().enumerate().map(|(id, character)| (character.to_string(), id)).collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({"model_type": "demo", "eos_token_id": 999, "max_position_embeddings": 4096});
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

#[test]
fn the_port_answers_with_the_launchers_reasons() {
    let mut stand = Stand::start(Duration::ZERO, 1);
    stand.wait_for_health("HTTP/1.1 503", "starting");
    stand.tell(&json!({"type": "status", "reason": "downloading, 34 %"}).to_string());
    stand.wait_for_health("HTTP/1.1 503", "downloading, 34 %");
    stand.control = None;
    assert_eq!(stand.ended().code(), Some(0), "the launcher is gone");
}

#[test]
fn the_end_of_the_launcher_is_the_end_of_the_router_whatever_runs() {
    let mut stand = Stand::ready(Duration::from_millis(50), 60);
    let _stream = stand.stream(4000);
    let began = Instant::now();
    stand.control = None;
    assert_eq!(stand.ended().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_signal_lets_streams_finish() {
    let mut stand = Stand::ready(Duration::from_millis(10), 60);
    let mut stream = stand.stream(60);
    stand.signal("-TERM");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.matches("data:").count(), 59, "{rest}");
    assert_eq!(stand.ended().code(), Some(0));
    for line in stand.log().lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(record["level"].is_string() && record["timestamp"].is_string(), "{line}");
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut stand = Stand::ready(Duration::from_millis(50), 60);
    let _stream = stand.stream(4000);
    stand.signal("-TERM");
    stand.wait_for_health("HTTP/1.1 503", "");
    let began = Instant::now();
    stand.signal("-INT");
    assert_eq!(stand.ended().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn the_deadline_cuts_streams_off() {
    let mut stand = Stand::ready(Duration::from_millis(50), 1);
    let _stream = stand.stream(4000);
    stand.signal("-TERM");
    assert_eq!(stand.ended().code(), Some(0));
    assert!(stand.log().contains("cut off by the deadline"));
}

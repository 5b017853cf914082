//! A launcher with stand-ins for its children: shell scripts beside a link to the real binary. What a stand-in does is
//! set test by test through variables that hold shell code. Everything they print comes out of the launcher.

#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "test code, shared by several test programs")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Far more than anything here takes, also on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

const ROUTER: &str = r#"#!/bin/sh
trap 'echo "router told to end"; eval "${ROUTER_TERM:-exit 0}"' TERM
cp "$2" "$STAND/router.json"
stat -c "mode of config %a" "$2"
stat -c "mode of folder %a" "$(dirname "$2")"
echo "router started"
eval "${ROUTER_START:-:}"
exec 3<&0
cat <&3 &
while :; do sleep 100 & wait $!; done
"#;

const SERVER: &str = r#"#!/bin/sh
case $1 in
env) echo '{"torch": "2.11.0", "triton": null}'; exit 0 ;;
prepare)
  trap 'echo "prepare told to end"; exit 143' TERM
  echo "prepare started"
  eval "${PREPARE:-:}"
  output=$(sed -n 's/.*"output": "\(.*\)".*/\1/p' "$3")
  echo '{"folder": "/models/x", "model_id": "owner/x"}' > "$output" ;;
serve)
  rank=$(sed -n 's/.*"rank": \([0-9]*\),/\1/p' "$3")
  trap 'echo "told to end"; exit 0' TERM
  cp "$3" "$STAND/shard-$rank.json"
  echo "threads $OMP_NUM_THREADS policy $OMP_WAIT_POLICY"
  echo "serving"
  eval "${SHARD:-:}"
  while :; do sleep 100 & wait $!; done ;;
esac
"#;

/// A folder with the link and the stand-ins.
pub struct Stand {
    pub folder: TempDir,
}

/// A launcher that runs.
pub struct Launcher {
    pub process: Child,
    lines: Receiver<String>,
    pub seen: Vec<String>,
}

/// How it ended.
pub struct Ended {
    pub status: ExitStatus,
    pub output: Vec<String>,
    pub complaint: String,
}

impl Stand {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        let binary = env!("CARGO_BIN_EXE_text-generation-launcher");
        std::os::unix::fs::symlink(binary, folder.path().join("text-generation-launcher")).unwrap();
        let stand = Self { folder };
        stand.script("text-generation-router", ROUTER);
        stand.script("text-generation-server", SERVER);
        stand
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn script(&self, name: &str, text: &str) {
        let file = self.path().join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    pub fn command(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path().join("text-generation-launcher"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path()).env("STAND", self.path());
        command.env("TMPDIR", self.path().join("tmp")).envs(variables.iter().copied());
        command.args(["--device", "cpu"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn launch(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Launcher {
        let mut process = self.command(variables, arguments).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Launcher { process, lines, seen: Vec::new() }
    }

    /// Nothing of a run is left in the temporary folder.
    pub fn leftovers(&self) -> usize {
        std::fs::read_dir(self.path().join("tmp")).unwrap().count()
    }
}

impl Launcher {
    /// Wait until `count` lines that contain `text` have come out.
    pub fn wait_for(&mut self, text: &str, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.seen.iter().filter(|line| line.contains(text)).count() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(_) => panic!("`{text}` did not come {count} times; there is: {:#?}", self.seen),
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.process.id()).unwrap()), signal).unwrap();
    }

    pub fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.seen.push(line);
        }
        let status = self.process.wait().unwrap();
        let mut complaint = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        Ended { status, output: self.seen, complaint }
    }
}

impl Ended {
    /// The position of the first line of the output that contains `text`.
    pub fn position(&self, text: &str) -> usize {
        let found = self.output.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("no `{text}` in {:#?}", self.output))
    }

    /// What the router read from the control channel, which its stand-in prints.
    /// The control messages that the stand-in router printed; where JSON was asked for, they are messages of records.
    pub fn control(&self) -> Vec<String> {
        let message = |line: &String| {
            let record: Option<serde_json::Value> = serde_json::from_str(line).ok();
            record.and_then(|record| record["message"].as_str().map(str::to_owned)).unwrap_or_else(|| line.clone())
        };
        self.output.iter().map(message).filter(|line| line.starts_with(r#"{"type":"#)).collect()
    }

    pub fn last_line(&self) -> &str {
        self.complaint.lines().last().unwrap_or_default()
    }
}

/// Whether a process still runs; one that only waits to be collected does not.
pub fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

//! What this machine has, for bug reports: versions, processor, memory and GPUs. The Python side speaks for itself
//! through `text-generation-server env --json`. Needs neither a GPU nor the Python side to say what it knows.

use std::process::Command;

use serde_json::Value;

use crate::cli::Surroundings;
use crate::devices::query_names;
use crate::programs::{SERVER, find};

/// The report, as `name: value` lines. `own_name` is `argv[0]`.
pub fn report(own_name: &str, surroundings: &Surroundings) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = proc_value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let memory = proc_value("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown".to_owned());
    let gpus = query_names();
    let gpus = if gpus.is_empty() { "none found".to_owned() } else { gpus.join(", ") };
    let protocol = text_generation_protocol::PROTOCOL_VERSION;
    let mut text = format!(
        "launcher: {} (shard protocol {protocol})\nprocessor: {processor}, {cores} usable cores\nmemory: {memory}\n\
         gpus: {gpus}\n",
        env!("CARGO_PKG_VERSION")
    );
    match server_report(own_name, surroundings) {
        Ok(value) => flatten("server", &value, &mut text),
        Err(why) => text.push_str(&format!("server: {why}\n")),
    }
    text
}

fn proc_value(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

fn server_report(own_name: &str, surroundings: &Surroundings) -> Result<Value, String> {
    let program = find(SERVER, own_name, surroundings.path.as_deref())
        .ok_or_else(|| format!("the program `{SERVER}` is neither beside the launcher nor on PATH"))?;
    let output = Command::new(&program).args(["env", "--json"]).output();
    let output = output.map_err(|error| format!("cannot start `{}`: {error}", program.display()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or("no reason given").to_owned();
        return Err(format!("`{SERVER} env --json` failed: {last}"));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("`{SERVER} env --json` gave no JSON: {error}"))
}

fn flatten(name: &str, value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| flatten(&format!("{name}.{key}"), member, text));
        }
        Value::Array(items) if items.is_empty() => text.push_str(&format!("{name}: none\n")),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| flatten(&format!("{name}.{index}"), item, text));
        }
        Value::String(line) => text.push_str(&format!("{name}: {line}\n")),
        Value::Null => text.push_str(&format!("{name}: not found\n")),
        other => text.push_str(&format!("{name}: {other}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_reports_become_lines() {
        let mut text = String::new();
        let value = serde_json::json!({"torch": "2.11.0", "triton": null, "devices": [{"memory": 7}], "x": []});
        flatten("server", &value, &mut text);
        let expected = "server.torch: 2.11.0\nserver.triton: not found\nserver.devices.0.memory: 7\n";
        assert_eq!(text, format!("{expected}server.x: none\n"));
    }
}

//! Fields of OpenAI's API (and of TGI's reading of it) whose features do not exist here. A client may send them with a
//! value that asks for nothing.

use serde_json::Value;

use crate::http::extract::Unsupported;

/// Fields of a request.
pub static REQUEST: [Unsupported; 22] = [
    Unsupported { name: "tools", neutral: is_empty },
    Unsupported { name: "tool_choice", neutral: |value| value == "none" || value == "auto" },
    Unsupported { name: "tool_prompt", neutral: is_empty },
    Unsupported { name: "parallel_tool_calls", neutral: Value::is_boolean },
    Unsupported { name: "functions", neutral: is_empty },
    Unsupported { name: "function_call", neutral: |value| value == "none" || value == "auto" },
    Unsupported { name: "response_format", neutral: |value| value.get("type").is_some_and(|kind| kind == "text") },
    Unsupported { name: "grammar", neutral: |_| false },
    Unsupported { name: "logit_bias", neutral: is_empty },
    Unsupported { name: "modalities", neutral: |value| *value == serde_json::json!(["text"]) },
    Unsupported { name: "audio", neutral: |_| false },
    Unsupported { name: "prediction", neutral: |_| false },
    Unsupported { name: "reasoning_effort", neutral: |value| value == "none" },
    Unsupported { name: "verbosity", neutral: |_| false },
    Unsupported { name: "web_search_options", neutral: |_| false },
    Unsupported { name: "store", neutral: is_false },
    Unsupported { name: "suffix", neutral: is_empty },
    Unsupported { name: "echo", neutral: is_false },
    Unsupported { name: "best_of", neutral: |value| *value == 1 },
    Unsupported { name: "watermark", neutral: is_false },
    Unsupported { name: "adapter_id", neutral: |_| false },
    Unsupported { name: "min_p", neutral: |value| value.as_f64() == Some(0.0) },
];

/// Fields of a message. Clients send back what a server once answered.
pub static MESSAGE: [Unsupported; 4] = [
    Unsupported { name: "refusal", neutral: |_| false },
    Unsupported { name: "audio", neutral: |_| false },
    Unsupported { name: "function_call", neutral: |_| false },
    Unsupported { name: "annotations", neutral: is_empty },
];

fn is_false(value: &Value) -> bool {
    *value == Value::Bool(false)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

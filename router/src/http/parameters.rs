//! The reference page of every field that a request may carry, made from the structures that parse bodies and from the
//! lists of fields that do nothing. So it cannot say what the server does not do.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::routes::generate::types as generate;
use super::routes::openai::chat::types::ChatFields;
use super::routes::openai::completions::types::CompletionFields;
use super::routes::openai::fields::RouteFields;
use super::routes::openai::fields::answer::{AnswerFields, StreamOptions};
use super::routes::openai::fields::length::LengthFields;
use super::routes::openai::fields::prompt::PromptFields;
use super::routes::openai::fields::sampling::SamplingFields;
use super::routes::openai::{chat, unsupported};
use super::routes::tokenize::types::{DetokenizeRequest, TokenizePrompt};
use super::screen::{self, Neutral, Unsupported};

const HEAD: &str = "\
# Parameters of requests

Made by `text-generation-router print-parameters`; do not edit. Every field is here: it works, it is accepted without
effect, or it is refused by a message that names it. Anything else is an unknown field, and refused. `null` means the
same as leaving a field out. The limits named like flags are the server's: see [flags.md](flags.md).
";

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const TYPES: &str = "| Field | Type | Meaning and bound |\n|---|---|---|\n";
const REFUSED: &str =
    "\nRefused, unless the value asks for nothing:\n\n| Field | Accepted values | Answer otherwise |\n|---|---|---|\n";

/// The fields of one object of a body.
pub struct Section {
    /// Heading.
    pub title: &'static str,
    /// The routes whose bodies hold these fields at the top.
    pub paths: &'static [&'static str],
    /// What belongs here that no field says.
    pub note: &'static str,
    /// The structures whose fields are taken.
    pub parts: Vec<Value>,
    /// Fields that are refused.
    pub refused: Vec<&'static Unsupported>,
}

/// The whole page in Markdown.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for section in sections() {
        section.write(&mut page);
    }
    page.push_str(
        "\n## On every route\n\nAccepted without effect; each is logged once:\n\n| Field | Why |\n|---|---|\n",
    );
    for (name, reason) in screen::ignored() {
        push_row(&mut page, &[&format!("`{name}`"), reason]);
    }
    page
}

/// Every object that a body may hold.
pub fn sections() -> Vec<Section> {
    let mut sections = tgi_sections();
    sections.extend(openai_sections());
    sections.extend([
        Section {
            note: "What OpenAI's routes refuse is refused here too.",
            ..section("`POST /tokenize` with `prompt`", schema::<TokenizePrompt>(), &[])
        },
        section("`POST /detokenize`", schema::<DetokenizeRequest>(), &[]),
    ]);
    sections
}

fn tgi_sections() -> Vec<Section> {
    vec![
        Section {
            note: "`/tokenize` takes the same body; only `inputs` counts there.",
            ..section("`POST /generate`, `/generate_stream`, `/`", schema::<generate::GenerateRequest>(), &[])
        },
        section("`parameters` there", schema::<generate::GenerateParameters>(), &generate::UNSUPPORTED),
    ]
}

fn openai_sections() -> Vec<Section> {
    vec![
        Section {
            paths: &[CHAT],
            note: "These, and those of chat and completions below. `/chat_tokenize`, and `/tokenize` with `messages`, take the same body; \
                   only the prompt counts there.",
            ..section("Chat", schema::<ChatFields>(), ChatFields::UNSUPPORTED)
        },
        section("`messages[]` of chat", schema::<chat::Message>(), &unsupported::MESSAGE),
        Section {
            paths: &[COMPLETIONS],
            note: "These, and those of chat and completions below.",
            ..section("Completions", schema::<CompletionFields>(), CompletionFields::UNSUPPORTED)
        },
        Section {
            paths: &[CHAT, COMPLETIONS],
            parts: vec![
                schema::<AnswerFields>(),
                schema::<SamplingFields>(),
                schema::<LengthFields>(),
                schema::<PromptFields>(),
            ],
            ..section("Chat and completions", Value::Null, &unsupported::REQUEST)
        },
        section("`stream_options` of chat and completions", schema::<StreamOptions>(), &unsupported::STREAM_OPTIONS),
    ]
}

fn section(title: &'static str, part: Value, refused: &'static [Unsupported]) -> Section {
    Section { title, paths: &[], note: "", parts: vec![part], refused: refused.iter().collect() }
}

/// The schema of a structure, with those that its fields refer to.
fn schema<T: ToSchema>() -> Value {
    let mut others = Vec::new();
    T::schemas(&mut others);
    let others: Map<String, Value> = others.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    let mut schema = json!(T::schema());
    schema["others"] = others.into();
    schema
}

// === impl Section ===

impl Section {
    /// Name and schema of every field that works.
    pub fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.parts.iter().filter_map(|part| part["properties"].as_object()).flatten()
    }

    /// A schema that a field refers to.
    fn referred(&self, reference: &Value) -> Option<&Value> {
        let name = reference.as_str()?.rsplit('/').next()?;
        self.parts.iter().find_map(|part| part["others"].get(name))
    }

    /// What JSON a schema describes, in a few words.
    fn type_name(&self, schema: &Value) -> String {
        if let Some(options) = schema["oneOf"].as_array() {
            return joined(options.iter().map(|option| self.type_name(option)));
        }
        match &schema["type"] {
            Value::String(name) if name == "array" => format!("list of {}", self.type_name(&schema["items"])),
            Value::String(name) => name.clone(),
            Value::Array(names) => {
                joined(names.iter().map(|name| self.type_name(&json!({"type": name, "items": schema["items"]}))))
            }
            _ => self.referred(&schema["$ref"]).map_or_else(|| "object".into(), |schema| self.type_name(schema)),
        }
    }

    fn write(&self, page: &mut String) {
        // Writing to a String cannot fail.
        let _infallible = write!(page, "\n## {}\n\n", self.title);
        if !self.paths.is_empty() {
            let paths: Vec<String> = self.paths.iter().map(|path| format!("`POST {path}`")).collect();
            let _infallible = write!(page, "{}\n\n", paths.join(", "));
        }
        if !self.note.is_empty() {
            let _infallible = write!(page, "{}\n\n", self.note);
        }
        page.push_str(TYPES);
        let required: Vec<&Value> =
            self.parts.iter().filter_map(|part| part["required"].as_array()).flatten().collect();
        for (name, field) in self.fields() {
            let needed = if required.iter().any(|required| *required == name) { ", required" } else { "" };
            push_row(page, &[&format!("`{name}`"), &format!("{}{needed}", self.type_name(field)), meaning(field)]);
        }
        if !self.refused.is_empty() {
            page.push_str(REFUSED);
        }
        for field in &self.refused {
            let message = format!("`{}` is not supported; {}", field.name, field.hint);
            push_row(page, &[&format!("`{}`", field.name), &neutral(field.neutral), &message]);
        }
    }
}

fn push_row(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('\n', " ").replace('|', "\\|")).collect();
    let _infallible = writeln!(page, "| {} |", cells.join(" | "));
}

fn neutral(neutral: Neutral) -> String {
    match neutral {
        Neutral::Null => "none".into(),
        Neutral::Empty => "an empty one".into(),
        Neutral::Values(values) => values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "),
    }
}

/// Alternatives in words; null is no alternative, since every field may be left out.
fn joined(names: impl Iterator<Item = String>) -> String {
    names.filter(|name| name != "null").collect::<Vec<_>>().join(" or ")
}

/// What a field is for; where it may be null and refers to another schema, that stands beside the reference.
fn meaning(field: &Value) -> &str {
    let alternatives = field["oneOf"].as_array().into_iter().flatten();
    let texts = std::iter::once(field).chain(alternatives).filter_map(|schema| schema["description"].as_str());
    texts.into_iter().next().unwrap_or_default()
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;

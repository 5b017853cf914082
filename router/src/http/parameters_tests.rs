//! The page of parameters: complete, current, and true.

use serde::de::DeserializeOwned;

use super::*;
use crate::http::introspect::field_names;
use crate::http::tests::harness::{Harness, Script, scripted};

#[test]
fn the_committed_page_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/parameters.md");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    let hint = "write it anew: text-generation-router print-parameters > docs/parameters.md";
    assert!(committed == page(), "{hint}");
}

/// The page is made from schemas, bodies are read by serde: both know the same names.
#[test]
fn schemas_and_parsers_agree() {
    fn check<T: DeserializeOwned + ToSchema>() {
        let mut parsed: Vec<String> = field_names::<T>().iter().map(|name| (*name).to_owned()).collect();
        let schema = schema::<T>();
        let mut shown: Vec<String> =
            schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
        parsed.sort();
        shown.sort();
        assert_eq!(parsed, shown);
        assert!(!parsed.is_empty());
    }
    check::<AnswerFields>();
    check::<SamplingFields>();
    check::<LengthFields>();
    check::<PromptFields>();
    check::<StreamOptions>();
    check::<ChatFields>();
    check::<CompletionFields>();
    check::<chat::Message>();
    check::<TokenizePrompt>();
    check::<DetokenizeRequest>();
    check::<generate::GenerateRequest>();
    check::<generate::GenerateParameters>();
}

#[test]
fn no_field_is_declared_twice() {
    for section in sections() {
        let refused = section.refused.iter().map(|field| field.name);
        let ignored = screen::ignored().map(|(name, _)| name);
        let mut names: Vec<&str> =
            section.fields().map(|(name, _)| name.as_str()).chain(refused).chain(ignored).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before, "{}", section.title);
    }
}

/// A chat or completion call with one field more.
async fn call(harness: &Harness, path: &str, name: &str, value: Value) -> (u16, String) {
    let mut body = json!({"max_tokens": 1});
    match path {
        "/v1/completions" => body["prompt"] = json!("hi"),
        _ => body["messages"] = json!([{"role": "user", "content": "hi"}]),
    }
    body[name] = value;
    let reply = harness.post(path, body).await;
    (reply.status.as_u16(), reply.body)
}

#[tokio::test]
async fn what_the_page_says_is_true() {
    let harness = scripted(Script::Words);
    for section in openai_sections() {
        for path in section.paths {
            check(&harness, path, &section).await;
        }
    }
}

async fn check(harness: &Harness, path: &str, section: &Section) {
    for (name, _) in section.fields() {
        // No field takes a list of a list of a text.
        let (status, body) = call(harness, path, name, json!([["x"]])).await;
        assert_eq!(status, 400, "{path} {name}: {body}");
        assert!(body.contains(name), "{path} {name}: {body}");
    }
    for field in &section.refused {
        let (status, body) = call(harness, path, field.name, json!({"asks": "for something"})).await;
        assert_eq!(status, 400, "{path} {}: {body}", field.name);
        assert!(body.contains(&format!("`{}` is not supported; {}", field.name, field.hint)), "{body}");
        let accepted = match field.neutral {
            Neutral::Null => vec![json!(null)],
            Neutral::Empty => vec![json!(""), json!([]), json!({})],
            Neutral::Values(values) => values.iter().map(|value| serde_json::from_str(value).unwrap()).collect(),
        };
        for value in accepted {
            let (status, body) = call(harness, path, field.name, value).await;
            assert_eq!(status, 200, "{path} {}: {body}", field.name);
        }
    }
    for (name, _) in screen::ignored() {
        let (status, body) = call(harness, path, name, json!({"any": "value"})).await;
        assert_eq!(status, 200, "{path} {name}: {body}");
    }
}

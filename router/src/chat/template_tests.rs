//! The corpus against the renders of `transformers`, where templates come from, which is chosen, and what is refused.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::*;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/chat_corpus")
}

/// The moment at which the corpus was rendered.
fn fixed_clock() -> NaiveDateTime {
    let date = chrono::NaiveDate::from_ymd_opt(2026, 7, 4).unwrap();
    date.and_hms_micro_opt(9, 5, 3, 12).unwrap()
}

fn compiled(templates: &[(&str, &str)]) -> ChatTemplate {
    let templates = templates.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let tokens = json!({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"});
    let sources = Sources { templates, special_tokens: tokens.as_object().unwrap().clone() };
    ChatTemplate::compile(sources, fixed_clock).unwrap()
}

fn one(template: &str) -> ChatTemplate {
    compiled(&[(DEFAULT, template)])
}

fn replaced(tokenizer_config: Option<&Path>) -> Replacement {
    Replacement { tokenizer_config: tokenizer_config.map(Path::to_path_buf), template: None }
}

fn hello() -> ChatInput {
    ChatInput { messages: vec![json!({"role": "user", "content": "Hello"})], ..ChatInput::default() }
}

fn refusal(template: &ChatTemplate, input: &ChatInput) -> String {
    template.render(input).unwrap_err().to_string()
}

/// The input of a case of the corpus.
fn input_of(fixture: &Json, case: &Json) -> ChatInput {
    let conversation = case["conversation"].as_str().unwrap();
    let with_tools = fixture["with_tools"].as_array().unwrap().contains(&case["conversation"]);
    let mut variables = case["options"].as_object().unwrap().clone();
    let mut flag = |name: &str| variables.shift_remove(name).is_some_and(|value| value == true);
    let (add_generation_prompt, continue_final_message) =
        (flag("add_generation_prompt"), flag("continue_final_message"));
    ChatInput {
        messages: fixture["conversations"][conversation].as_array().unwrap().clone(),
        tools: with_tools.then(|| fixture["tools"].clone()),
        add_generation_prompt,
        continue_final_message,
        variables,
    }
}

#[test]
fn the_corpus_renders_as_transformers_does() {
    let fixture: Json =
        serde_json::from_str(&std::fs::read_to_string(corpus().join("expected.json")).unwrap()).unwrap();
    let mut templates = std::collections::HashMap::new();
    let mut wrong = Vec::new();
    let cases = fixture["cases"].as_array().unwrap();
    for case in cases {
        let name = case["template"].as_str().unwrap();
        let template = templates.entry(name).or_insert_with(|| {
            one(&std::fs::read_to_string(corpus().join(format!("templates/{name}.jinja"))).unwrap())
        });
        let result = template.render(&input_of(&fixture, case));
        let right = match (&result, &case["text"], &case["raised"]) {
            (Ok(text), Json::String(expected), _) => text == expected,
            (Err(error), _, Json::String(expected)) => error.to_string() == *expected,
            (Err(_), Json::Null, Json::Null) => true,
            _ => false,
        };
        if !right {
            wrong
                .push(format!("{name} {} {}\n  ours {result:?}\n  case {case}", case["conversation"], case["options"]));
        }
    }
    assert!(cases.len() > 500);
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_model_without_templates_has_none() {
    let folder = tempfile::tempdir().unwrap();
    assert!(ChatTemplate::load(folder.path(), &Replacement::default()).unwrap().is_none());
    std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"chat_template": null}"#).unwrap();
    assert!(ChatTemplate::load(folder.path(), &Replacement::default()).unwrap().is_none());
}

#[test]
fn sources_are_believed_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, contents: &str| std::fs::write(folder.path().join(name), contents).unwrap();
    let render = |replacement: Option<&Path>| {
        ChatTemplate::load(folder.path(), &replaced(replacement)).unwrap().unwrap().render(&hello()).unwrap()
    };
    write("special_tokens_map.json", r#"{"bos_token": "<old>", "eos_token": "<map>"}"#);
    write(
        "tokenizer_config.json",
        r#"{"bos_token": {"content": "<b>"}, "chat_template": "config{{ bos_token }}{{ eos_token }}"}"#,
    );
    assert_eq!(render(None), "config<b><map>");
    write("chat_template.json", r#"{"chat_template": "json{{ bos_token }}"}"#);
    assert_eq!(render(None), "json<b>");
    write("chat_template.jinja", "jinja{{ bos_token }}");
    assert_eq!(render(None), "jinja<b>");
    let replacement = folder.path().join("mine.json");
    std::fs::write(&replacement, r#"{"bos_token": "<m>"}"#).unwrap();
    assert_eq!(render(Some(&replacement)), "jinja<m>");
    std::fs::write(&replacement, r#"{"chat_template": [{"name": "default", "template": "mine"}]}"#).unwrap();
    assert_eq!(render(Some(&replacement)), "mine");
}

#[test]
fn a_template_that_was_given_replaces_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path.to_str().unwrap().to_owned()
    };
    write("tokenizer_config.json", r#"{"bos_token": "<b>", "chat_template": "config"}"#);
    std::fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    write("additional_chat_templates/tool_use.jinja", "old tools");
    let load = |template: &str| {
        let template = Some(template.to_owned());
        ChatTemplate::load(folder.path(), &Replacement { tokenizer_config: None, template })
    };
    let with_tools = ChatInput { tools: Some(json!([])), ..hello() };
    let render = |template: &str, input: &ChatInput| load(template).unwrap().unwrap().render(input).unwrap();
    assert_eq!(render("{{ bos_token }}text", &with_tools), "<b>text");
    assert_eq!(render(&write("mine.jinja", "file{{ bos_token }}"), &hello()), "file<b>");
    assert_eq!(render(&write("plain.txt", "no tags"), &hello()), "no tags");
    let list = r#"{"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]}"#;
    let list = write("list.json", list);
    assert_eq!((render(&list, &hello()), render(&list, &with_tools)), ("d".to_owned(), "t".to_owned()));
    assert!(load("nowhere.jinja").unwrap_err().to_string().contains("nowhere.jinja"));
    assert!(load(&write("empty.json", "{}")).unwrap_err().to_string().contains("no `chat_template`"));
}

#[test]
fn tokens_of_this_model_only_are_variables_too() {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "bos_token": null, "add_bos_token": true, "tokenizer_class": "T", "image_token": {"content": "<i>"},
        "extra_special_tokens": {"audio": "<a>"},
        "chat_template": "{{ bos_token is defined }}{{ add_bos_token is defined }}{{ image_token }}{{ audio }}",
    });
    std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    let template = ChatTemplate::load(folder.path(), &Replacement::default()).unwrap().unwrap();
    assert_eq!(template.render(&hello()).unwrap(), "FalseFalse<i><a>");
}

#[test]
fn tools_choose_the_template_for_tools() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("chat_template.jinja"), "plain").unwrap();
    std::fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    std::fs::write(folder.path().join("additional_chat_templates/tool_use.jinja"), "tools").unwrap();
    let template = ChatTemplate::load(folder.path(), &Replacement::default()).unwrap().unwrap();
    assert_eq!(template.render(&hello()).unwrap(), "plain");
    let with_tools = ChatInput { tools: Some(json!([])), ..hello() };
    assert_eq!(template.render(&with_tools).unwrap(), "tools");
    assert_eq!(one("plain").render(&with_tools).unwrap(), "plain");
    assert!(refusal(&compiled(&[("rag", "x"), ("tool_use", "y")]), &hello()).contains("`rag`, `tool_use`"));
}

#[test]
fn broken_files_and_templates_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let load = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        let error = ChatTemplate::load(folder.path(), &Replacement::default()).unwrap_err().to_string();
        std::fs::remove_file(path).unwrap();
        error
    };
    assert!(load("tokenizer_config.json", "{\"a\": }").contains("line 1 column 7"));
    assert!(load("tokenizer_config.json", r#"{"chat_template": 5}"#).contains("`chat_template` must be"));
    assert!(load("tokenizer_config.json", r#"{"bos_token": 5}"#).contains("`bos_token` must be"));
    assert!(load("chat_template.jinja", "{% if %}").contains("`default` does not compile"));
    let missing =
        ChatTemplate::load(folder.path(), &replaced(Some(Path::new("/nowhere.json")))).unwrap_err().to_string();
    assert!(missing.contains("/nowhere.json"), "{missing}");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let template = one("{{ messages[0].content }}");
    assert!(refusal(&template, &ChatInput::default()).contains("at least one message"));
    let both = ChatInput { add_generation_prompt: true, continue_final_message: true, ..hello() };
    assert!(refusal(&template, &both).contains("exclude each other"));
    let mut reserved = hello();
    reserved.variables.insert("messages".into(), json!([]));
    assert!(refusal(&template, &reserved).contains("`messages` cannot be"));
}

#[test]
fn a_template_that_calls_itself_without_end_is_refused() {
    let endless = one("{% macro f(x) %}{{ f(x + [x]|length) }}{% endmacro %}{{ f(1) }}");
    assert!(!refusal(&endless, &hello()).is_empty());
    let nested = one(
        "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{% for i in [1] %}{{ f(x) }}{% endfor %}{% endmacro %}{{ f(1) }}",
    );
    assert!(refusal(&nested, &hello()).contains("recursion"));
}

#[test]
fn a_raised_exception_keeps_its_own_words_from_anywhere() {
    let inside = one(
        "{% macro f() %}{{ raise_exception('No <b> & é: ' ~ [1.0]) }}{% endmacro %}{% for m in messages %}{{ f() }}{% endfor %}",
    );
    assert_eq!(refusal(&inside, &hello()), "No <b> & é: [1.0]");
    assert!(refusal(&one("\n{{ messages[0].nothing.more }}"), &hello()).contains("default:2"));
    assert!(refusal(&one("{{ strftime_now('%Q') }}"), &hello()).contains("%Q"));
}

#[test]
fn filters_refuse_what_they_do_not_understand() {
    for (expression, reason) in [
        ("'hello' | truncate(2)", "no room for its end `...`"),
        ("'hello world' | truncate(-1)", "convert"),
        ("5 | truncate", "expected a text, not number"),
        ("range(20) | list | truncate(5)", "expected a text"),
        ("'hello' | truncate(4, wrong=1)", "wrong"),
        ("'hello' | truncate(9, length=9)", "length"),
        ("'hello' | truncate(9, false, '', 0, 5)", "at most 4"),
        ("[''] | map('default', 'x', wrong=1) | list", "wrong"),
        ("messages | pprint", "filter pprint is unknown"),
    ] {
        let refusal = refusal(&one(&format!("{{{{ {expression} }}}}")), &hello());
        assert!(refusal.contains(reason), "{expression}: {refusal}");
    }
}

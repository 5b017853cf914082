//! Configurations of models, whole and broken.

use super::*;

fn load(files: &[(&str, &str)]) -> Result<ModelConfig, ModelConfigError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        std::fs::write(folder.path().join(name), contents).unwrap();
    }
    ModelConfig::load(folder.path())
}

fn refusal(files: &[(&str, &str)]) -> String {
    load(files).unwrap_err().to_string()
}

#[test]
fn end_tokens_come_from_the_first_file_that_names_them() {
    let config = ("config.json", r#"{"eos_token_id": 2}"#);
    assert_eq!(
        load(&[config, ("generation_config.json", r#"{"eos_token_id": [7, 8]}"#)]).unwrap().eos_token_ids,
        [7, 8]
    );
    assert_eq!(load(&[config, ("generation_config.json", r#"{"eos_token_id": 5}"#)]).unwrap().eos_token_ids, [5]);
    assert_eq!(load(&[config, ("generation_config.json", r#"{"eos_token_id": null}"#)]).unwrap().eos_token_ids, [2]);
    let nested = ("config.json", r#"{"text_config": {"eos_token_id": [3], "max_position_embeddings": 64}}"#);
    let nested = load(&[nested]).unwrap();
    assert_eq!((nested.eos_token_ids.as_slice(), nested.max_positions), ([3].as_slice(), Some(64)));
}

#[test]
fn the_last_resort_is_the_tokenizers_end_token() {
    let tokenizer = ("tokenizer.json", r#"{"added_tokens": [{"id": 9, "content": "<end>"}]}"#);
    let as_text = ("tokenizer_config.json", r#"{"eos_token": "<end>"}"#);
    let as_object = ("tokenizer_config.json", r#"{"eos_token": {"content": "<end>"}}"#);
    assert_eq!(load(&[("config.json", "{}"), tokenizer, as_text]).unwrap().eos_token_ids, [9]);
    assert_eq!(load(&[("config.json", "{}"), tokenizer, as_object]).unwrap().eos_token_ids, [9]);
    assert_eq!(load(&[("config.json", "{}"), as_text]).unwrap(), ModelConfig::default());
}

#[test]
fn the_models_length_counts_before_the_tokenizers() {
    for field in POSITION_FIELDS {
        let config = format!(r#"{{"{field}": 2048}}"#);
        assert_eq!(load(&[("config.json", &config)]).unwrap().max_positions, Some(2048));
    }
    let config = ("config.json", r#"{"max_position_embeddings": 2048}"#);
    let shorter = ("tokenizer_config.json", r#"{"model_max_length": 512}"#);
    assert_eq!(load(&[config, shorter]).unwrap().max_positions, Some(2048));
    assert_eq!(load(&[("config.json", "{}"), shorter]).unwrap().max_positions, Some(512));
    let endless = ("tokenizer_config.json", r#"{"model_max_length": 1000000000000000019884624838656}"#);
    assert_eq!(load(&[("config.json", "{}"), endless]).unwrap().max_positions, None);
}

#[test]
fn sampling_defaults_are_read_and_checked() {
    let generation = r#"{"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 1, "typical_p": 0.9,
                         "repetition_penalty": 1.1, "unknown": "x"}"#;
    let sampling = load(&[("config.json", "{}"), ("generation_config.json", generation)]).unwrap().sampling;
    let expected = SamplingDefaults {
        do_sample: Some(true),
        temperature: Some(0.6),
        top_k: Some(20),
        top_p: Some(1.0),
        typical_p: Some(0.9),
        repetition_penalty: Some(1.1),
    };
    assert_eq!(sampling, expected);
    for (field, value) in [
        ("temperature", "-1"),
        ("temperature", "1e39"),
        ("top_p", "0"),
        ("top_p", "1.5"),
        ("top_k", "2.5"),
        ("typical_p", "\"a\""),
        ("repetition_penalty", "0"),
        ("do_sample", "1"),
        ("eos_token_id", "-2"),
        ("eos_token_id", "[1, \"a\"]"),
    ] {
        let text = refusal(&[("config.json", "{}"), ("generation_config.json", &format!("{{\"{field}\": {value}}}"))]);
        assert!(text.contains("generation_config.json") && text.contains(field), "{text}");
    }
}

#[test]
fn broken_files_are_named_with_the_place() {
    assert!(refusal(&[]).contains("config.json"));
    let text = refusal(&[("config.json", "{\n  \"a\": 1,\n}")]);
    assert!(text.contains("config.json") && text.contains("line 3 column 1"), "{text}");
    assert!(refusal(&[("config.json", "[]")]).contains("JSON object"));
    assert!(refusal(&[("config.json", r#"{"text_config": 1}"#)]).contains("text_config"));
    assert!(refusal(&[("config.json", r#"{"max_position_embeddings": 0}"#)]).contains("max_position_embeddings"));
}

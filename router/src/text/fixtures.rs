//! Small tokenizers for tests, written out in code: one of each kind that detokenisation treats differently.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::Tokenizer;

/// A byte-level vocabulary: 256 bytes, some merges (whole words, halves of characters), special and added tokens.
pub(crate) fn byte_level() -> Arc<Tokenizer> {
    let mut letters: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    letters.sort_unstable();
    let mut tokens: Vec<String> = letters.iter().map(char::to_string).collect();
    let merges = [("H", "e"), ("l", "l"), ("He", "ll"), ("Hell", "o"), ("Ġ", "w"), ("ð", "Ł"), ("ðŁ", "ĺ"), ("Ã", "©")];
    tokens.extend(merges.iter().map(|(left, right)| format!("{left}{right}")));
    let added = added_tokens(tokens.len(), &[("<|im_start|>", true), ("<|im_end|>", true), ("<tool> 日本", false)]);
    build(json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "!"},
        "added_tokens": added,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": vocabulary(&tokens), "merges": merges},
    }))
}

/// The decoder of SentencePiece vocabularies; `strip` drops the space that opens a text.
pub(crate) fn sentence_piece_decoder(strip: bool) -> Value {
    let mut steps = vec![
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if strip {
        steps.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    json!({"type": "Sequence", "decoders": steps})
}

/// A SentencePiece-like vocabulary with 256 byte tokens and the given decoder.
pub(crate) fn sentence_piece(decoder: Value) -> Arc<Tokenizer> {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(String::from).to_vec();
    tokens.extend((0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>")));
    tokens.extend(["▁", "H", "i", "▁H", "▁Hi", "▁▁", "é", "日", "a▁b", "\u{FFFD}", "<0xZZ>"].map(String::from));
    build(json!({
        "version": "1.0",
        "added_tokens": added_tokens(0, &[("<unk>", true), ("<s>", true), ("</s>", true)]),
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": decoder,
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
                  "vocab": vocabulary(&tokens), "merges": [["▁", "H"], ["▁H", "i"], ["▁", "▁"]]},
    }))
}

fn vocabulary(tokens: &[String]) -> Map<String, Value> {
    tokens.iter().enumerate().map(|(id, token)| (token.clone(), json!(id))).collect()
}

fn added_tokens(first: usize, tokens: &[(&str, bool)]) -> Vec<Value> {
    let entry = |(index, (content, special)): (usize, &(&str, bool))| {
        json!({"id": first + index, "content": content, "special": special, "single_word": false,
               "lstrip": false, "rstrip": false, "normalized": false})
    };
    tokens.iter().enumerate().map(entry).collect()
}

fn build(file: Value) -> Arc<Tokenizer> {
    Tokenizer::from_bytes(file.to_string().as_bytes()).unwrap()
}

//! Facts about vocabularies, spans, and the bound on tokens.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::text::fixtures::{byte_level, sentence_piece, sentence_piece_decoder};

#[test]
fn truncation_and_padding_of_the_file_are_off() {
    assert_eq!(byte_level().encode("abcdef", false).unwrap().len(), 6);
    assert_eq!(byte_level().encode("ab", false).unwrap().len(), 2);
}

#[test]
fn special_tokens_are_those_flagged() {
    let tokenizer = byte_level();
    let special: Vec<u32> = (0..300).filter(|&id| tokenizer.is_special(id)).collect();
    assert_eq!(special, [264, 265]);
    assert_eq!(tokenizer.vocabulary_size(), 267);
}

#[test]
fn spans_are_byte_offsets_and_added_tokens_are_empty() {
    let tokenizer = sentence_piece(sentence_piece_decoder(true));
    let spans = tokenizer.encode_spans("Hi é日", true).unwrap();
    let shown: Vec<_> = spans.iter().map(|span| (span.text.as_str(), span.start, span.stop)).collect();
    assert_eq!(shown, [("", 0, 0), ("Hi", 0, 2), (" ", 2, 3), ("é", 3, 5), ("日", 5, 8)]);
    let ids: Vec<u32> = spans.iter().map(|span| span.id).collect();
    assert_eq!(ids, tokenizer.encode("Hi é日", true).unwrap());
    assert_eq!(tokenizer.encode_spans("", false).unwrap(), []);
}

#[test]
fn tokens_of_a_split_character_each_carry_it() {
    let spans = byte_level().encode_spans("a😀", false).unwrap();
    assert!(spans.len() > 2);
    assert!(spans[1..].iter().all(|span| (span.text.as_str(), span.start, span.stop) == ("😀", 1, 5)));
}

#[test]
fn the_text_of_a_token_keeps_its_space() {
    let tokenizer = sentence_piece(sentence_piece_decoder(true));
    let id = |token: &str| tokenizer.inner().token_to_id(token).unwrap();
    assert_eq!(tokenizer.token_text(id("▁Hi")), " Hi");
    assert_eq!(tokenizer.token_text(id("<0x41>")), "A");
    assert_eq!(tokenizer.token_text(id("<0xE2>")), "\u{FFFD}");
    assert_eq!(tokenizer.token_text(1), "<s>");
    assert_eq!(tokenizer.token_text(9999), "");
}

#[test]
fn a_missing_or_broken_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = Tokenizer::load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("tokenizer.json") && error.contains("does not exist"), "{error}");
    std::fs::write(folder.path().join("tokenizer.json"), "{\"model\": 1,}").unwrap();
    let error = Tokenizer::load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("tokenizer.json") && error.contains("line 1 column"), "{error}");
}

#[test]
fn the_bound_is_silent_where_text_may_vanish() {
    for pre_tokenizer in [json!(null), json!({"type": "Whitespace"})] {
        let words = json!({"version": "1.0", "pre_tokenizer": pre_tokenizer,
            "model": {"type": "WordLevel", "vocab": {"a": 0, "<unk>": 1}, "unk_token": "<unk>"}});
        let tokenizer = Tokenizer::from_bytes(words.to_string().as_bytes()).unwrap();
        assert_eq!(tokenizer.min_tokens(&"x".repeat(1000)), 0);
    }
    assert!(byte_level().min_tokens(&"x".repeat(1000)) > 50);
}

/// Published vocabularies lack the letters of bytes that no text of their training had.
#[test]
fn bytes_without_a_token_are_not_counted() {
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    let model = json!({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]});
    let few = json!({"version": "1.0", "pre_tokenizer": level, "decoder": level, "model": model});
    let tokenizer = Tokenizer::from_bytes(few.to_string().as_bytes()).unwrap();
    for (text, least) in [("x".repeat(1000), 0), ("ab".repeat(500), 500), ("axb".repeat(100), 100)] {
        assert_eq!(tokenizer.min_tokens(&text), least);
        assert!(least <= tokenizer.encode(&text, false).unwrap().len());
    }
}

proptest! {
    #[test]
    fn the_bound_never_exceeds_the_truth(text in "(Hello|<tool> 日本|<\\|im_end\\|>|[ -~é😀日]){0,30}", which in 0..2_usize) {
        let tokenizer = [byte_level(), sentence_piece(sentence_piece_decoder(true))][which].clone();
        prop_assert!(tokenizer.min_tokens(&text) <= tokenizer.encode(&text, false).unwrap().len());
    }
}

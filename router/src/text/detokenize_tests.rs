//! Incremental text against whole decodes, on random ids of every kind of vocabulary.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::text::fixtures::{byte_level, sentence_piece, sentence_piece_decoder};

fn generate(tokenizer: &Arc<Tokenizer>, prompt: &[u32], ids: &[u32]) -> (Vec<String>, String) {
    let mut detokenizer = Detokenizer::new(tokenizer.clone(), prompt);
    let pushed = ids.iter().map(|&id| detokenizer.push(id)).collect();
    (pushed, detokenizer.finish())
}

fn whole(tokenizer: &Arc<Tokenizer>, prompt: &[u32], ids: &[u32]) -> String {
    let (pushed, rest) = generate(tokenizer, prompt, ids);
    pushed.concat() + &rest
}

fn ids_of(tokenizer: &Tokenizer, tokens: &[&str]) -> Vec<u32> {
    tokens.iter().map(|token| tokenizer.inner().token_to_id(token).unwrap()).collect()
}

/// The byte tokens of a text.
fn byte_tokens(tokenizer: &Tokenizer, bytes: &[u8]) -> Vec<u32> {
    bytes.iter().map(|byte| tokenizer.inner().token_to_id(&format!("<0x{byte:02X}>")).unwrap()).collect()
}

/// Every tokenizer that has a piece table.
fn quick_tokenizers() -> Vec<Arc<Tokenizer>> {
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    let nested =
        json!({"type": "Sequence", "decoders": [{"type": "Sequence", "decoders": [metaspace]}, {"type": "Fuse"}]});
    let decoders = [sentence_piece_decoder(true), sentence_piece_decoder(false), metaspace, nested, json!(null)];
    let mut all: Vec<_> = decoders.into_iter().map(sentence_piece).collect();
    all.push(byte_level());
    assert!(all.iter().all(|tokenizer| tokenizer.pieces().is_some()));
    all
}

/// Whether a run of byte tokens breaks after a complete character: the documented exception.
fn breaks_late(tokenizer: &Tokenizer, ids: &[u32]) -> bool {
    let Some(table) = tokenizer.pieces() else { return false };
    let mut run = Vec::new();
    let mut late = false;
    for piece in ids.iter().map(|&id| table.piece(id)).chain([Piece::Text(b"")]) {
        match piece {
            Piece::Missing => {}
            Piece::Byte(byte) => run.push(byte),
            Piece::Text(_) => {
                late |= std::str::from_utf8(&run).is_err_and(|error| error.valid_up_to() > 0);
                run.clear();
            }
        }
    }
    late
}

#[test]
fn a_split_character_appears_with_its_last_byte() {
    let tokenizer = byte_level();
    let ids = tokenizer.encode("é😀!", false).unwrap();
    let (pushed, rest) = generate(&tokenizer, &[], &ids);
    assert!(pushed.len() > 3 && rest.is_empty());
    assert_eq!(pushed.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>(), ["é", "😀", "!"]);
}

#[test]
fn an_unfinished_character_is_flushed_at_the_end() {
    let tokenizer = byte_level();
    let ids = ids_of(&tokenizer, &["H", "ðŁ"]);
    assert_eq!(generate(&tokenizer, &[], &ids), (vec!["H".into(), String::new()], "\u{FFFD}".into()));
    let tokenizer = sentence_piece(sentence_piece_decoder(true));
    let ids = byte_tokens(&tokenizer, &[0xF0, 0x9F]);
    assert_eq!(whole(&tokenizer, &[1], &ids), "\u{FFFD}\u{FFFD}");
}

#[test]
fn the_opening_space_belongs_to_the_text_only_behind_a_prompt() {
    let tokenizer = sentence_piece(sentence_piece_decoder(true));
    let ids = ids_of(&tokenizer, &["▁Hi", "▁Hi"]);
    assert_eq!(whole(&tokenizer, &[], &ids), "Hi Hi");
    assert_eq!(whole(&tokenizer, &[1], &ids), " Hi Hi");
}

#[test]
fn special_tokens_show_their_name() {
    let tokenizer = byte_level();
    let ids = ids_of(&tokenizer, &["Hello", "<|im_end|>", "<tool> 日本"]);
    assert_eq!(generate(&tokenizer, &[], &ids).0, ["Hello", "<|im_end|>", "<tool> 日本"]);
}

#[test]
fn a_character_that_the_prompt_began_appears_whole() {
    let tokenizer = byte_level();
    let ids = tokenizer.encode("😀", false).unwrap();
    for split in 1..ids.len() {
        assert_eq!(whole(&tokenizer, &ids[..split], &ids[split..]), "😀");
    }
    let tokenizer = sentence_piece(sentence_piece_decoder(false));
    let ids = byte_tokens(&tokenizer, "😀".as_bytes());
    assert_eq!(whole(&tokenizer, &ids[..3], &ids[3..]), "😀");
}

#[test]
fn characters_before_a_bad_byte_stay() {
    let tokenizer = sentence_piece(sentence_piece_decoder(true));
    let ids = byte_tokens(&tokenizer, &[b'a', 0xC3, 0xC3, b'b']);
    assert!(breaks_late(&tokenizer, &ids));
    assert_eq!(whole(&tokenizer, &[1], &ids), "a\u{FFFD}\u{FFFD}\u{FFFD}");
}

#[test]
fn a_decoder_that_looks_at_neighbours_takes_the_slow_path() {
    let tokenizer = sentence_piece(json!({"type": "WordPiece", "prefix": "##", "cleanup": true}));
    assert!(tokenizer.pieces().is_none());
    let ids = ids_of(&tokenizer, &["H", "i", "é"]);
    assert_eq!(generate(&tokenizer, &[1], &ids), ([" H", " i", " é"].map(String::from).to_vec(), String::new()));
}

proptest! {
    #[test]
    fn pushes_add_up_to_the_whole_decode(
        which in 0..6_usize,
        prompt in prop::collection::vec(0..290_u32, 0..8),
        ids in prop::collection::vec(0..290_u32, 0..40),
    ) {
        let tokenizer = quick_tokenizers().swap_remove(which);
        let before = tokenizer.decode(&prompt);
        let all = [prompt.clone(), ids.clone()].concat();
        prop_assume!(!before.ends_with(char::REPLACEMENT_CHARACTER) && !breaks_late(&tokenizer, &all));
        prop_assert_eq!(before + &whole(&tokenizer, &prompt, &ids), tokenizer.decode(&all));
    }

    #[test]
    fn any_bytes_come_out_as_a_whole_decode_shows_them(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        let tokenizer = byte_level();
        let ids: Vec<u32> = bytes.iter().map(|&byte| u32::from(byte)).collect();
        prop_assert_eq!(whole(&tokenizer, &[], &ids), tokenizer.decode(&ids));
    }

    #[test]
    fn the_quick_path_shows_what_the_slow_one_shows(text in "[aHi é😀日]{0,20}", which in 0..2_usize) {
        let tokenizer = [byte_level(), sentence_piece(sentence_piece_decoder(true))][which].clone();
        let ids = tokenizer.encode(&text, false).unwrap();
        let mut window = Window::after(&[1]);
        let mut quick = Detokenizer::new(tokenizer.clone(), &[1]);
        for &id in &ids {
            prop_assert_eq!(quick.push(id), window.push(&tokenizer, id));
        }
        prop_assert_eq!(quick.finish(), window.finish(&tokenizer));
    }
}

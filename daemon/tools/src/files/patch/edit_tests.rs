//! Tests of edits on bytes; the rungs have their cases in `cases/`.

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn edit<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
    Edit { old, new, everywhere: false }
}

fn changed(content: &[u8], edit: Edit<'_>) -> Vec<u8> {
    match apply(content, edit) {
        Edited::Changed { content, .. } => content,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_place_is_replaced() {
    assert_eq!(changed(b"a\nb\nc\n", edit("b\n", "x\ny\n")), b"a\nx\ny\nc\n");
    assert_eq!(changed(b"a\xffb", edit("b", "c")), b"a\xffc");
    assert_eq!(changed(b"abc", edit("b", "")), b"ac");
}

#[test]
fn several_places_are_named_or_all_replaced() {
    let text = b"x = 1\ny\nx = 1\n";
    assert_eq!(
        apply(text, edit("x = 1", "x = 2")),
        Edited::Ambiguous { lines: vec![1, 3], strategy: ladder::Strategy::Exact }
    );
    let all = Edit { everywhere: true, ..edit("x = 1", "x = 2") };
    assert_eq!(
        apply(text, all),
        Edited::Changed {
            content: b"x = 2\ny\nx = 2\n".to_vec(),
            lines: vec![1, 3],
            strategy: ladder::Strategy::Exact,
        }
    );
}

#[test]
fn carriage_returns_stay() {
    let text = b"one\r\ntwo\r\nthree\r\n";
    assert_eq!(changed(text, edit("one\ntwo", "1\n2\n2b")), b"1\r\n2\r\n2b\r\nthree\r\n");
    assert_eq!(changed(text, edit("two\n", "")), b"one\r\nthree\r\n");
    assert_eq!(changed(text, edit("\ntwo", "")), b"one\r\nthree\r\n");
    assert_eq!(changed(text, edit("two\r\n", "2\r\n")), b"one\r\n2\r\nthree\r\n");
    // Mixed endings: what is written has the ending of most lines.
    assert_eq!(changed(b"a\r\nb\nc\r\n", edit("a\nb\nc", "a\nc")), b"a\r\nc\r\n");
}

#[test]
fn a_patch_that_was_sent_twice_does_not_double_its_text() {
    let add = edit("use std::fmt;\n", "use std::fmt;\nuse std::io;\n");
    let once = changed(b"use std::fmt;\nfn main() {}\n", add);
    assert_eq!(apply(&once, add), Edited::AlreadyApplied { line: 1 });
    let rename = edit("fn old_name(value: u32)", "fn new_name(value: u32)");
    let once = changed(b"// x\nfn old_name(value: u32) {}\n", rename);
    assert_eq!(apply(&once, rename), Edited::AlreadyApplied { line: 2 });
}

#[test]
fn a_short_text_elsewhere_proves_nothing() {
    assert_eq!(apply(b"a\n}\n", edit("missing", "}")), Edited::NotFound { new_at: Some(2) });
    assert_eq!(apply(b"a\n", edit("missing", "")), Edited::NotFound { new_at: None });
    let twice = "the very same long line\nthe very same long line\n";
    assert_eq!(
        apply(twice.as_bytes(), edit("missing", "the very same long line")),
        Edited::NotFound { new_at: None },
    );
}

#[test]
fn replacing_everywhere_leaves_what_is_done_alone() {
    let all = Edit { everywhere: true, ..edit("a", "ab") };
    assert_eq!(changed(b"a ab a", all), b"ab ab ab");
}

proptest! {
    // Away from the place of the edit every byte stays, whatever the line endings.
    #[test]
    fn only_the_place_changes(
        before in proptest::collection::vec(prop_oneof!["[a-z]{0,4}\n", "[a-z]{0,4}\r\n"], 0..8),
        after in proptest::collection::vec(prop_oneof!["[a-z]{0,4}\n", "[a-z]{0,4}\r\n"], 0..8),
    ) {
        let (before, after) = (before.concat(), after.concat());
        let content = format!("{before}OLD{after}");
        let got = changed(content.as_bytes(), edit("OLD", "NEW"));
        prop_assert_eq!(got, format!("{before}NEW{after}").into_bytes());
    }
}

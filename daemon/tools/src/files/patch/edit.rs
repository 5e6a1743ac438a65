//! Where an edit belongs and what it makes of the file: pure, on the file's bytes.
//!
//! Matching is exact but for line endings: the model never sees carriage returns, so CR LF and LF
//! compare equal, and what is written has the file's own ending.

use super::super::text::LineEnding;

/// One edit of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) everywhere: bool,
}

/// What an edit comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    /// The new content, and the lines at which it differs.
    Changed { content: Vec<u8>, lines: Vec<usize> },
    /// The file already is as the edit would make it.
    AlreadyApplied { line: usize },
    /// `old` is there more than once.
    Ambiguous { lines: Vec<usize> },
    /// `old` is not there; the line of the only place where `new` is, if there is one.
    NotFound { new_at: Option<usize> },
}

/// Non-blank characters from which a text is long enough that finding it proves something.
const PROOF_CHARS: usize = 16;

/// Applies `edit` to `content`. `old` is not empty and differs from `new`.
pub(crate) fn apply(content: &[u8], edit: Edit<'_>) -> Edited {
    let flat = Flat::of(content);
    let old = edit.old.replace("\r\n", "\n");
    let new = edit.new.replace("\r\n", "\n");
    let places = find_all(&flat.bytes, old.as_bytes());
    if places.is_empty() {
        let there = find_all(&flat.bytes, new.as_bytes());
        let only = match there.as_slice() {
            [only] => Some(flat.line_at(*only)),
            _ => None,
        };
        return match only {
            Some(line) if proves(&new) => Edited::AlreadyApplied { line },
            new_at => Edited::NotFound { new_at },
        };
    }
    if places.len() > 1 && !edit.everywhere {
        return Edited::Ambiguous { lines: places.iter().map(|at| flat.line_at(*at)).collect() };
    }
    // An insertion that keeps `old` and was sent twice: `old` stands inside `new` already.
    let open: Vec<usize> =
        places.iter().copied().filter(|at| !stands_inside(&flat.bytes, *at, &old, &new)).collect();
    let Some(_) = open.first() else {
        return Edited::AlreadyApplied { line: places.first().map_or(1, |at| flat.line_at(*at)) };
    };
    let replacement =
        if flat.dropped.is_empty() { edit.new.to_owned() } else { LineEnding::of(content).apply(&new) };
    let mut out = Vec::with_capacity(content.len() + replacement.len());
    let mut copied = 0;
    for at in &open {
        let (from, to) = (flat.original(*at), flat.original(at + old.len()));
        out.extend_from_slice(content.get(copied..from).unwrap_or_default());
        out.extend_from_slice(replacement.as_bytes());
        copied = to;
    }
    out.extend_from_slice(content.get(copied..).unwrap_or_default());
    Edited::Changed { content: out, lines: open.iter().map(|at| flat.line_at(*at)).collect() }
}

fn proves(text: &str) -> bool {
    text.chars().filter(|c| !c.is_whitespace()).count() >= PROOF_CHARS
}

/// Places of `needle`, not overlapping.
fn find_all(haystack: &[u8], needle: &[u8]) -> Vec<usize> {
    if needle.is_empty() {
        return Vec::new();
    }
    memchr::memmem::find_iter(haystack, needle).collect()
}

/// Whether the `old` at `at` is the part of a `new` that already stands around it.
fn stands_inside(content: &[u8], at: usize, old: &str, new: &str) -> bool {
    if new.len() <= old.len() {
        return false;
    }
    find_all(new.as_bytes(), old.as_bytes()).into_iter().any(|within| {
        at.checked_sub(within)
            .and_then(|start| content.get(start..start + new.len()))
            .is_some_and(|around| around == new.as_bytes())
    })
}

/// The content with LF line ends, and the way back.
struct Flat<'a> {
    bytes: std::borrow::Cow<'a, [u8]>,
    /// Offsets in `bytes` of line feeds that had a carriage return before them.
    dropped: Vec<usize>,
}

impl<'a> Flat<'a> {
    fn of(content: &'a [u8]) -> Self {
        let mut bytes = Vec::new();
        let mut dropped = Vec::new();
        let mut copied = 0;
        for at in memchr::memmem::find_iter(content, b"\r\n") {
            bytes.extend_from_slice(content.get(copied..at).unwrap_or_default());
            dropped.push(bytes.len());
            copied = at + 1;
        }
        if dropped.is_empty() {
            return Self { bytes: content.into(), dropped };
        }
        bytes.extend_from_slice(content.get(copied..).unwrap_or_default());
        Self { bytes: bytes.into(), dropped }
    }

    /// Offset in the original of the byte at `at`. A line end begins at its carriage return, so that a match
    /// that ends before one leaves all of it.
    fn original(&self, at: usize) -> usize {
        at + self.dropped.partition_point(|drop| *drop < at)
    }

    fn line_at(&self, at: usize) -> usize {
        let before = self.bytes.get(..at).unwrap_or_default();
        memchr::memchr_iter(b'\n', before).count() + 1
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(apply(text, edit("x = 1", "x = 2")), Edited::Ambiguous { lines: vec![1, 3] });
        let all = Edit { everywhere: true, ..edit("x = 1", "x = 2") };
        assert_eq!(
            apply(text, all),
            Edited::Changed { content: b"x = 2\ny\nx = 2\n".to_vec(), lines: vec![1, 3] }
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
}

//! The rungs that find a text in spite of differences that do not count (spec 40 §5.4, rungs 1 to 7): the
//! first rung that finds anything decides.

use super::flat::Flat;
use super::fold::{self, Folded, indent_len};

/// How a place was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    Exact,
    LineTrimmed,
    Whitespace,
    Indentation,
    Escape,
    TrimmedBoundary,
    Unicode,
    BlockAnchor,
    Context,
}

impl Strategy {
    /// As results name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "line_trimmed",
            Self::Whitespace => "whitespace",
            Self::Indentation => "indentation",
            Self::Escape => "escape",
            Self::TrimmedBoundary => "trimmed_boundary",
            Self::Unicode => "unicode",
            Self::BlockAnchor => "block_anchor",
            Self::Context => "context",
        }
    }
}

/// What is looked for, and what will stand there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// Only whole lines count; `old` ends with a line feed.
    pub(crate) whole_lines: bool,
}

/// A part of the flat text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Where a rung found the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) strategy: Strategy,
    /// In order, not overlapping, at least one. Two that overlap are both here when there is no other.
    pub(crate) places: Vec<Place>,
    /// Both texts as the rung took them.
    pub(crate) old: String,
    pub(crate) new: String,
}

/// The exact rung.
pub(crate) fn exact(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<Matched> {
    matched(Strategy::Exact, substrings(flat, wanted.old, wanted.whole_lines), wanted)
}

/// The rungs 2 to 7.
pub(crate) fn tolerant(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<Matched> {
    // Blanks alone are found exactly or not at all.
    if wanted.old.trim().is_empty() {
        return None;
    }
    line_trimmed(flat, wanted)
        .or_else(|| whitespace(flat, wanted))
        .or_else(|| indentation(flat, wanted))
        .or_else(|| escape(flat, wanted))
        .or_else(|| trimmed_boundary(flat, wanted))
        .or_else(|| unicode(flat, wanted))
}

fn matched(strategy: Strategy, places: Vec<Place>, wanted: Wanted<'_>) -> Option<Matched> {
    (!places.is_empty()).then(|| Matched {
        strategy,
        places,
        old: wanted.old.to_owned(),
        new: wanted.new.to_owned(),
    })
}

fn line_trimmed(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<Matched> {
    let places = trimmed_places(flat, wanted.old, &fold::trim_lines(&flat.bytes));
    matched(Strategy::LineTrimmed, places, wanted)
}

/// Whole lines that are equal when trimmed, in a text whose lines are.
fn trimmed_places(flat: &Flat<'_>, old: &str, content: &Folded) -> Vec<Place> {
    let old = fold::trim_lines(old.as_bytes()).bytes;
    let ends_with_line = old.ends_with(b"\n");
    let at_line_start = |at: usize| at == 0 || content.bytes.get(at - 1) == Some(&b'\n');
    let at_line_end = |at: usize| ends_with_line || content.bytes.get(at).is_none_or(|next| *next == b'\n');
    found(&content.bytes, &old, |from, to| {
        if !at_line_start(from) || !at_line_end(to) {
            return None;
        }
        let (start, end) = (content.source_start(from)?, content.source_end(to)?);
        // The blanks at both ends belong to the lines.
        Some(Place {
            from: flat.line_start(start),
            to: if ends_with_line { end } else { flat.line_end(end) },
        })
    })
}

fn whitespace(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<Matched> {
    let old = fold::join_blanks(wanted.old.as_bytes()).bytes;
    let content = fold::join_blanks(&flat.bytes);
    let places = found(&content.bytes, &old, |from, to| {
        whole(flat, wanted, Place { from: content.source_start(from)?, to: content.source_end(to)? })
    });
    matched(Strategy::Whitespace, places, wanted)
}

fn indentation(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<Matched> {
    let indented = indent_len(wanted.old.as_bytes()) > 0;
    let old = fold::drop_indents(wanted.old.as_bytes()).bytes;
    let content = fold::drop_indents(&flat.bytes);
    let places = found(&content.bytes, &old, |from, to| {
        let (start, to) = (content.source_start(from)?, content.source_end(to)?);
        let line = flat.line_start(start);
        let first_on_its_line = flat.get(line, start).iter().all(|byte| fold::is_blank(*byte));
        match (first_on_its_line, indented) {
            (true, _) => whole(flat, wanted, Place { from: line, to }),
            // It began a line, and does not here.
            (false, true) => None,
            (false, false) => whole(flat, wanted, Place { from: start, to }),
        }
    });
    matched(Strategy::Indentation, places, wanted)
}

fn escape(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<Matched> {
    let old = unescaped(wanted.old);
    if old == wanted.old {
        return None;
    }
    let places = substrings(flat, &old, wanted.whole_lines);
    let mut new = wanted.new.to_owned();
    // What stood for a line break in the one text does so in the other, unless there are real ones beside.
    let one_line = |text: &str| !text.trim_end_matches('\n').contains('\n');
    if wanted.old.contains("\\n") && one_line(wanted.old) && one_line(wanted.new) {
        new = new.replace("\\r\\n", "\n").replace("\\n", "\n");
    }
    for (written, character) in [("\\t", "\t"), ("\\r", "\r")] {
        if wanted.old.contains(written) {
            new = new.replace(written, character);
        }
    }
    matched(Strategy::Escape, places, wanted).map(|matched| Matched { old, new, ..matched })
}

/// With `\r\n`, `\n`, `\t` and `\r` as the characters that they stand for.
fn unescaped(text: &str) -> String {
    text.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r")
}

fn trimmed_boundary(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<Matched> {
    let core = wanted.old.trim();
    if wanted.whole_lines || core.len() == wanted.old.len() {
        return None;
    }
    let (lead, tail) = wanted.old.split_once(core)?;
    let new = wanted.new.strip_prefix(lead).unwrap_or(wanted.new);
    let new = new.strip_suffix(tail).unwrap_or(new);
    let word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let places = found(&flat.bytes, core.as_bytes(), |from, to| {
        // Blanks were there: it is not the end, or the beginning, of a longer word.
        let cut_in = !lead.is_empty()
            && word(core.as_bytes().first())
            && word(from.checked_sub(1).and_then(|before| flat.bytes.get(before)));
        let cut_off = !tail.is_empty() && word(core.as_bytes().last()) && word(flat.bytes.get(to));
        (!cut_in && !cut_off).then_some(Place { from, to })
    });
    matched(Strategy::TrimmedBoundary, places, wanted).map(|matched| Matched {
        old: core.to_owned(),
        new: new.to_owned(),
        ..matched
    })
}

fn unicode(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<Matched> {
    if wanted.old.is_ascii() && flat.bytes.is_ascii() {
        return None;
    }
    let old = fold::plain_characters(wanted.old.as_bytes()).bytes;
    let content = fold::plain_characters(&flat.bytes);
    let mut places = found(&content.bytes, &old, |from, to| {
        whole(flat, wanted, Place { from: content.source_start(from)?, to: content.source_end(to)? })
    });
    if places.is_empty() {
        places = plain_trimmed(flat, &old, &content);
    }
    matched(Strategy::Unicode, places, wanted)
}

/// Folded in both ways: plain characters, and lines trimmed.
fn plain_trimmed(flat: &Flat<'_>, old: &[u8], content: &Folded) -> Vec<Place> {
    let Ok(old) = std::str::from_utf8(old) else { return Vec::new() };
    let plain = Flat::of(&content.bytes);
    trimmed_places(&plain, old, &fold::trim_lines(&plain.bytes))
        .into_iter()
        .filter_map(|place| {
            let from = content.source_start(place.from)?;
            let to = content.source_end(place.to)?;
            Some(Place { from: flat.line_start(from), to })
        })
        .collect()
}

/// Places of `needle` in the flat text itself.
fn substrings(flat: &Flat<'_>, needle: &str, whole_lines: bool) -> Vec<Place> {
    found(&flat.bytes, needle.as_bytes(), |from, to| {
        (!whole_lines || stands_alone(flat, from, to)).then_some(Place { from, to })
    })
}

fn whole(flat: &Flat<'_>, wanted: Wanted<'_>, place: Place) -> Option<Place> {
    (!wanted.whole_lines || stands_alone(flat, place.from, place.to)).then_some(place)
}

/// Whether the part consists of whole lines.
fn stands_alone(flat: &Flat<'_>, from: usize, to: usize) -> bool {
    flat.line_start(from) == from && (to == flat.bytes.len() || flat.line_start(to) == to)
}

/// Places of `needle` that `place` accepts, not overlapping; two when the only one can also be read shifted.
pub(crate) fn found(
    haystack: &[u8],
    needle: &[u8],
    place: impl Fn(usize, usize) -> Option<Place>,
) -> Vec<Place> {
    let mut places = Vec::new();
    if needle.is_empty() {
        return places;
    }
    let finder = memchr::memmem::Finder::new(needle);
    let next = |from: usize| {
        let rest = haystack.get(from..)?;
        Some(from + finder.find(rest)?)
    };
    let mut from = 0;
    let mut only = None;
    while let Some(at) = next(from) {
        from = at + 1;
        if let Some(accepted) = place(at, at + needle.len()) {
            places.push(accepted);
            only = Some(at);
            from = at + needle.len();
        }
    }
    if let ([_], Some(at)) = (places.as_slice(), only) {
        let mut from = at + 1;
        while let Some(shifted) = next(from).filter(|shifted| *shifted < at + needle.len()) {
            if let Some(accepted) = place(shifted, shifted + needle.len()) {
                places.push(accepted);
                break;
            }
            from = shifted + 1;
        }
    }
    places
}

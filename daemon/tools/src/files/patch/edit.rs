//! Where an edit belongs and what it makes of the file: pure, on the file's bytes.

use super::super::text::LineEnding;
use super::adapt::{self, Region};
use super::flat::Flat;
use super::guess::{Guess, guess};
use super::ladder::{self, Matched, Place, Strategy, Wanted};

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
    /// The new content, the lines at which it differs, and how they were found.
    Changed { content: Vec<u8>, lines: Vec<usize>, strategy: Strategy },
    /// The file already is as the edit would make it.
    AlreadyApplied { line: usize },
    /// `old` is there more than once.
    Ambiguous { lines: Vec<usize>, strategy: Strategy },
    /// `old` has quotes behind backslashes that the file does not have.
    EscapeDrift { line: usize },
    /// Something alike begins at `line`, but the lines `differ` are not what the edit takes them for.
    Unproved { line: usize, differ: Vec<usize> },
    /// Several places are equally alike.
    AlikeInSeveral { lines: Vec<usize> },
    /// `old` is not there; the line of the only place where `new` is, if there is one.
    NotFound { new_at: Option<usize> },
}

/// Non-blank characters from which a text is long enough that finding it proves something.
const PROOF_CHARS: usize = 16;

/// Quotes behind backslashes, as they appear when a text was escaped once too often.
pub(crate) const ESCAPED_QUOTES: [&str; 2] = ["\\'", "\\\""];

/// Applies `edit` to `content`. `old` is not empty and differs from `new`.
pub(crate) fn apply(content: &[u8], edit: Edit<'_>) -> Edited {
    let flat = Flat::of(content);
    let (old, new) = (edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n"));
    let wanted = Wanted { old: &old, new: &new, whole_lines: false };
    if let Some(matched) = ladder::exact(&flat, wanted) {
        return put(content, &flat, &matched, edit.everywhere);
    }
    // The text that was to come stands there, and the old one is gone: sent twice. A tolerant rung must not
    // find the old one somewhere else now.
    let new_at = only_line(&flat, ladder::exact(&flat, wanted.reversed()));
    if let Some(line) = new_at.filter(|_| proves(&new)) {
        return Edited::AlreadyApplied { line };
    }
    if let Some(matched) = ladder::tolerant(&flat, wanted) {
        return put(content, &flat, &matched, edit.everywhere);
    }
    if let Some(line) = drifted(&flat, wanted) {
        return Edited::EscapeDrift { line };
    }
    let again = ladder::tolerant(&flat, wanted.reversed());
    let new_tolerant = only_line(&flat, again.filter(|matched| matched.strategy == Strategy::LineTrimmed));
    if let Some(line) = new_tolerant.filter(|_| proves(&new)) {
        return Edited::AlreadyApplied { line };
    }
    if edit.everywhere {
        return Edited::NotFound { new_at };
    }
    match guess(&flat, wanted) {
        Guess::Nothing => Edited::NotFound { new_at },
        Guess::Proved(matched) => put(content, &flat, &matched, false),
        Guess::Unproved { line, differ } => Edited::Unproved { line, differ },
        Guess::Several { lines } => Edited::AlikeInSeveral { lines },
    }
}

impl Wanted<'_> {
    /// The question whether the edit was made already.
    pub(crate) fn reversed(self) -> Self {
        Self { old: self.new, new: self.old, ..self }
    }
}

fn only_line(flat: &Flat<'_>, matched: Option<Matched>) -> Option<usize> {
    match matched?.places.as_slice() {
        [only] => Some(flat.line_at(only.from)),
        _ => None,
    }
}

/// Whether a text is long enough that finding it proves something.
pub(crate) fn proves(text: &str) -> bool {
    text.chars().filter(|c| !c.is_whitespace()).count() >= PROOF_CHARS
}

/// Where the text would stand if its quotes had no backslashes.
pub(crate) fn drifted(flat: &Flat<'_>, wanted: Wanted<'_>) -> Option<usize> {
    let plain = wanted.old.replace("\\'", "'").replace("\\\"", "\"");
    if plain == wanted.old {
        return None;
    }
    let wanted = Wanted { old: &plain, ..wanted };
    let matched = ladder::exact(flat, wanted).or_else(|| ladder::tolerant(flat, wanted))?;
    matched.places.first().map(|place| flat.line_at(place.from))
}

/// Whether quotes behind backslashes are in both texts and not in the file.
pub(crate) fn has_drifted(matched: &Matched, region: &[u8]) -> bool {
    ESCAPED_QUOTES.iter().any(|quote| {
        matched.old.contains(quote)
            && matched.new.contains(quote)
            && memchr::memmem::find(region, quote.as_bytes()).is_none()
    })
}

/// What stands in place of `place`, with LF line ends.
pub(crate) fn fitted(content: &[u8], flat: &Flat<'_>, matched: &Matched, place: Place) -> Vec<u8> {
    let own = content.get(flat.original(place.from)..flat.original(place.to)).unwrap_or_default();
    let region = Region {
        text: flat.get(place.from, place.to),
        whole_first_line: flat.line_start(place.from) == place.from,
        has_returns: own.contains(&b'\r'),
    };
    adapt::replacement(matched, region)
}

fn put(content: &[u8], flat: &Flat<'_>, matched: &Matched, everywhere: bool) -> Edited {
    let line_of = |place: &Place| flat.line_at(place.from);
    if matched.places.len() > 1 && !everywhere {
        let lines = matched.places.iter().map(line_of).collect();
        return Edited::Ambiguous { lines, strategy: matched.strategy };
    }
    let first = matched.places.first().map_or(1, line_of);
    let mut out = Vec::with_capacity(content.len() + matched.new.len());
    let mut copied = 0;
    let mut lines = Vec::new();
    let mut passed = 0;
    for place in &matched.places {
        let region = flat.get(place.from, place.to);
        if matched.strategy != Strategy::Exact && has_drifted(matched, region) {
            return Edited::EscapeDrift { line: line_of(place) };
        }
        let replacement = fitted(content, flat, matched, *place);
        let overlaps = place.from < passed;
        // An insertion that keeps `old` and was sent twice: `old` stands inside `new` already.
        if overlaps || replacement == region || stands_inside(&flat.bytes, *place, region, &replacement) {
            continue;
        }
        passed = place.to;
        let (from, to) = (flat.original(place.from), flat.original(place.to));
        out.extend_from_slice(content.get(copied..from).unwrap_or_default());
        out.extend_from_slice(&in_the_files_way(content, flat, replacement));
        copied = to;
        lines.push(line_of(place));
    }
    if lines.is_empty() {
        return Edited::AlreadyApplied { line: first };
    }
    out.extend_from_slice(content.get(copied..).unwrap_or_default());
    Edited::Changed { content: out, lines, strategy: matched.strategy }
}

/// With the line ends of most lines of the file.
pub(crate) fn in_the_files_way(content: &[u8], flat: &Flat<'_>, text: Vec<u8>) -> Vec<u8> {
    if flat.is_plain() || LineEnding::of(content) == LineEnding::Lf {
        return text;
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(body) => {
                out.extend_from_slice(body);
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// Whether the part at `place` is already a part of `replacement`, which stands around it.
pub(crate) fn stands_inside(content: &[u8], place: Place, region: &[u8], replacement: &[u8]) -> bool {
    if region.is_empty() || replacement.len() <= region.len() {
        return false;
    }
    memchr::memmem::find_iter(replacement, region).any(|within| {
        place
            .from
            .checked_sub(within)
            .and_then(|start| content.get(start..start + replacement.len()))
            .is_some_and(|around| around == replacement)
    })
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;

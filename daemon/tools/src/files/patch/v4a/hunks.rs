//! Hunks of one file, applied in their order to its text in memory.

use hermes_runtime::Redactor;

use super::super::edit::{drifted, fitted, has_drifted, in_the_files_way, proves, stands_inside};
use super::super::flat::Flat;
use super::super::fold::{indent_len, trimmed};
use super::super::guess::{Guess, guess};
use super::super::ladder::{self, Matched, Place, Strategy, Wanted};
use super::super::markers::{self, MarkProblem};
use super::super::replace::lines_listed;
use super::parse::Hunk;

/// What the hunks made of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) content: Vec<u8>,
    /// How and at which line of the file, as it was when the hunk came, a hunk was found that was not exact.
    pub(super) roughly: Vec<(Strategy, usize)>,
}

/// A hunk that has no place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) problem: String,
    /// The text that was looked for, to show what is like it.
    pub(super) wanted: Option<String>,
}

impl Misfit {
    fn new(hunk: &Hunk, problem: impl std::fmt::Display) -> Self {
        Self { problem: format!("the hunk at line {} of the patch: {problem}", hunk.at), wanted: None }
    }
}

/// Applies hunks in order. A file without a line end at its end stays so.
pub(super) fn apply(redactor: &Redactor, content: &[u8], hunks: &[Hunk]) -> Result<Applied, Vec<Misfit>> {
    let open_ended = !content.is_empty() && !content.ends_with(b"\n");
    let mut text = content.to_vec();
    if open_ended {
        let end = in_the_files_way(content, &Flat::of(content), b"\n".to_vec());
        text.extend(end);
    }
    let mut roughly = Vec::new();
    let mut misfits = Vec::new();
    let mut cursor = 0;
    for hunk in hunks {
        match apply_one(redactor, &text, hunk, cursor) {
            Ok(done) => {
                cursor = done.cursor;
                roughly.extend(done.roughly);
                text = done.content;
            }
            Err(misfit) => misfits.push(misfit),
        }
    }
    if !misfits.is_empty() {
        return Err(misfits);
    }
    if open_ended && text.ends_with(b"\n") {
        text.pop();
        if text.ends_with(b"\r") && !content.ends_with(b"\r") {
            text.pop();
        }
    }
    Ok(Applied { content: text, roughly })
}

struct Done {
    content: Vec<u8>,
    /// Behind the change, in the flat text.
    cursor: usize,
    roughly: Option<(Strategy, usize)>,
}

fn apply_one(redactor: &Redactor, content: &[u8], hunk: &Hunk, cursor: usize) -> Result<Done, Misfit> {
    let flat = Flat::of(content);
    if hunk.old(hunk.soft_tail).is_empty() {
        return insert(content, &flat, hunk);
    }
    // An empty line at the end may be context, or only stand between this hunk and what follows.
    let mut tails: Vec<usize> = vec![0, hunk.soft_tail];
    tails.dedup();
    let mut last = Misfit::new(hunk, "it has no lines");
    for tail in tails {
        match replace(redactor, content, &flat, hunk, tail, cursor) {
            Ok(done) => return Ok(done),
            Err(misfit) => last = misfit,
        }
    }
    Err(last)
}

fn replace(
    redactor: &Redactor,
    content: &[u8],
    flat: &Flat<'_>,
    hunk: &Hunk,
    tail: usize,
    cursor: usize,
) -> Result<Done, Misfit> {
    let (mut old, mut new) = (hunk.old(tail), hunk.new_text(tail));
    if Redactor::contains_marker(&old) || Redactor::contains_marker(&new) {
        let text = String::from_utf8_lossy(&flat.bytes);
        (old, new) = markers::with_real_values(redactor, &text, &old, &new).map_err(|problem| {
            Misfit::new(
                hunk,
                match problem {
                    MarkProblem::NotKept => {
                        "a «redacted:…» mark stands for a secret that you cannot see; it may \
                                         only be in context lines"
                            .to_owned()
                    }
                    MarkProblem::NotFound => "its lines are not in the file".to_owned(),
                    MarkProblem::Ambiguous { lines } => {
                        format!(
                            "its lines are {} times in the file, at {}",
                            lines.len(),
                            lines_listed(&lines)
                        )
                    }
                },
            )
        })?;
    }
    let wanted = Wanted { old: &old, new: &new, whole_lines: true };
    let matched = locate(flat, hunk, wanted)?;
    let place = choose(flat, hunk, &matched, cursor)?;
    let region = flat.get(place.from, place.to);
    let line = flat.line_at(place.from);
    if matched.strategy != Strategy::Exact && has_drifted(&matched, region) {
        return Err(drift(hunk, line));
    }
    let replacement = fitted(content, flat, &matched, place);
    if hunk.changes() && (replacement == region || stands_inside(&flat.bytes, place, region, &replacement)) {
        return Err(Misfit::new(hunk, format!("its change is already made, at line {line}")));
    }
    let cursor = place.from + replacement.len();
    Ok(Done {
        content: spliced(content, flat, place, replacement),
        cursor,
        roughly: (matched.strategy != Strategy::Exact).then_some((matched.strategy, line)),
    })
}

fn drift(hunk: &Hunk, line: usize) -> Misfit {
    Misfit::new(
        hunk,
        format!(
            "it writes quotes behind backslashes, and the file has them plain at line {line}; leave them out"
        ),
    )
}

fn spliced(content: &[u8], flat: &Flat<'_>, place: Place, replacement: Vec<u8>) -> Vec<u8> {
    let (from, to) = (flat.original(place.from), flat.original(place.to));
    let mut out = content.get(..from).unwrap_or_default().to_vec();
    out.extend(in_the_files_way(content, flat, replacement));
    out.extend_from_slice(content.get(to..).unwrap_or_default());
    out
}

fn locate(flat: &Flat<'_>, hunk: &Hunk, wanted: Wanted<'_>) -> Result<Matched, Misfit> {
    if let Some(matched) = ladder::exact(flat, wanted) {
        return Ok(matched);
    }
    let missing =
        |problem: String| Misfit { wanted: Some(wanted.old.to_owned()), ..Misfit::new(hunk, problem) };
    if proves(wanted.new)
        && let Some(matched) = ladder::exact(flat, wanted.reversed())
        && let [only] = matched.places.as_slice()
    {
        let line = flat.line_at(only.from);
        return Err(Misfit::new(hunk, format!("its change is already made, at line {line}")));
    }
    if let Some(matched) = ladder::tolerant(flat, wanted) {
        return Ok(matched);
    }
    if let Some(line) = drifted(flat, wanted) {
        return Err(drift(hunk, line));
    }
    match guess(flat, wanted) {
        Guess::Proved(matched) => Ok(matched),
        Guess::Nothing => Err(missing("its lines are not in the file".to_owned())),
        Guess::Unproved { line, differ } => Err(missing(format!(
            "its lines are not in the file; line {line} begins something alike, but {} differ from what the hunk \
             changes",
            lines_listed(&differ)
        ))),
        Guess::Several { lines } => Err(missing(format!(
            "its lines are not in the file, and several places are equally alike, from {}",
            lines_listed(&lines)
        ))),
    }
}

/// The one place that is meant, of all where the lines stand.
fn choose(flat: &Flat<'_>, hunk: &Hunk, matched: &Matched, cursor: usize) -> Result<Place, Misfit> {
    let places = matched.places.as_slice();
    let only = |places: Vec<Place>| match places.as_slice() {
        [only] => Some(*only),
        _ => None,
    };
    if let [only] = places {
        return Ok(*only);
    }
    let chosen = if hunk.at_end {
        only(places.iter().copied().filter(|place| place.to == flat.bytes.len()).collect())
    } else if hunk.hints.is_empty() {
        // Hunks come in the order of the file.
        only(places.iter().copied().filter(|place| place.from >= cursor).collect())
    } else {
        let line = hint_line(flat, hunk)?;
        let (from, to) = (flat.start_of(line), block_end(flat, line));
        only(places.iter().copied().filter(|place| place.from >= from && place.to <= to).collect())
            .or_else(|| only(places.iter().copied().filter(|place| place.from >= from).collect()))
    };
    chosen.ok_or_else(|| {
        let lines: Vec<usize> = places.iter().map(|place| flat.line_at(place.from)).collect();
        Misfit::new(
            hunk,
            format!(
                "its lines are {} times in the file, at {}; add context lines or a hint (`@@ line before it`)",
                lines.len(),
                lines_listed(&lines)
            ),
        )
    })
}

/// The line, from 0, that the hints lead to: each stands behind the one before, the last only once.
fn hint_line(flat: &Flat<'_>, hunk: &Hunk) -> Result<usize, Misfit> {
    let lines = flat.lines();
    let mut from = 0;
    let mut found = Err(Misfit::new(hunk, "it has no hint"));
    for (index, hint) in hunk.hints.iter().enumerate() {
        let hint = hint.trim().as_bytes();
        let within = |accepts: &dyn Fn(&[u8]) -> bool| -> Vec<usize> {
            let rest = lines.iter().enumerate().skip(from);
            rest.filter(|(_, line)| accepts(trimmed(line))).map(|(at, _)| at).collect()
        };
        let mut at = within(&|line| line == hint);
        if at.is_empty() {
            at = within(&|line| memchr::memmem::find(line, hint).is_some());
        }
        let last = index + 1 == hunk.hints.len();
        let shown = String::from_utf8_lossy(hint);
        match at.as_slice() {
            [] => return Err(Misfit::new(hunk, format!("no line holds its hint `{shown}`"))),
            [_, _, ..] if last => {
                let numbers: Vec<usize> = at.iter().map(|at| at + 1).collect();
                return Err(Misfit::new(
                    hunk,
                    format!("its hint `{shown}` is in several lines: {}", lines_listed(&numbers)),
                ));
            }
            [first, ..] => {
                found = Ok(*first);
                from = first + 1;
            }
        }
    }
    found
}

/// Where the block that line `index` opens ends: at the next line that is indented no deeper.
fn block_end(flat: &Flat<'_>, index: usize) -> usize {
    let lines = flat.lines();
    let Some(own) = lines.get(index).map(|line| indent_len(line)) else { return flat.bytes.len() };
    let next = lines
        .iter()
        .enumerate()
        .skip(index + 1)
        .find(|(_, line)| !trimmed(line).is_empty() && indent_len(line) <= own)
        .map_or(lines.len(), |(at, _)| at);
    flat.start_of(next)
}

/// A hunk that only adds: behind the line of its hint, or at the end of the file.
fn insert(content: &[u8], flat: &Flat<'_>, hunk: &Hunk) -> Result<Done, Misfit> {
    let new = hunk.new_text(hunk.soft_tail);
    if Redactor::contains_marker(&new) {
        return Err(Misfit::new(
            hunk,
            "the text holds a «redacted:…» mark, which stands for a secret that you cannot see",
        ));
    }
    let at = if hunk.hints.is_empty() { flat.bytes.len() } else { flat.start_of(hint_line(flat, hunk)? + 1) };
    let there = if hunk.hints.is_empty() {
        flat.bytes.ends_with(new.as_bytes())
    } else {
        flat.bytes.get(at..).is_some_and(|rest| rest.starts_with(new.as_bytes()))
    };
    if there && proves(&new) {
        return Err(Misfit::new(
            hunk,
            format!("its lines already stand there, at line {}", flat.line_at(at)),
        ));
    }
    let cursor = at + new.len();
    let place = Place { from: at, to: at };
    Ok(Done { content: spliced(content, flat, place, new.into_bytes()), cursor, roughly: None })
}

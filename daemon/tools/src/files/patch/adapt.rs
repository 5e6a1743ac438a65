//! Makes a replacement fit the place that it was found for: the file's own lines where nothing changes, and
//! the file's way of indenting where something does (spec 40 §5.4).

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::fold::{self, indent_len, is_blank, trimmed};
use super::ladder::{Matched, Strategy};

/// Columns of a tab where nothing tells better.
const TAB_WIDTH: usize = 4;

/// The part of the file that is replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region<'a> {
    /// As the flat text has it.
    pub(crate) text: &'a [u8],
    /// It begins where a line begins.
    pub(crate) whole_first_line: bool,
    /// The file's own bytes hold carriage returns here.
    pub(crate) has_returns: bool,
}

/// What stands in place of `region`.
pub(crate) fn replacement(matched: &Matched, region: Region<'_>) -> Vec<u8> {
    if matches!(matched.strategy, Strategy::Exact | Strategy::Escape) {
        return matched.new.clone().into_bytes();
    }
    let own: Vec<&[u8]> = region.text.split(|byte| *byte == b'\n').collect();
    let old: Vec<&str> = matched.old.split('\n').collect();
    let new: Vec<&str> = matched.new.split('\n').collect();
    if own.len() != old.len() {
        return matched.new.clone().into_bytes();
    }
    let fit = Fit { own: &own, old: &old, region, indents: indents(&own, &old, region.whole_first_line) };
    let mut out: Vec<Vec<u8>> = Vec::with_capacity(new.len());
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                out.extend(own.iter().skip(old_index).take(len).map(|line| line.to_vec()));
            }
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { old_index, new_index, new_len } => {
                let lines = new.iter().skip(new_index).take(new_len);
                let near = fit.beside(old_index);
                out.extend(lines.enumerate().map(|(at, line)| fit.line(line, near, new_index + at)));
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                for at in 0..new_len {
                    let Some(line) = new.get(new_index + at) else { continue };
                    let near = old_index + at.min(old_len.saturating_sub(1));
                    let fitted = fit.line(line, near, new_index + at);
                    let kept = (matched.strategy == Strategy::Unicode && at < old_len)
                        .then(|| fit.keep_characters(line, near))
                        .flatten();
                    out.push(match kept {
                        Some(core) => {
                            let mut line = fitted.get(..indent_len(&fitted)).unwrap_or_default().to_vec();
                            line.extend_from_slice(&core);
                            line
                        }
                        None => fitted,
                    });
                }
            }
        }
    }
    out.join(&b'\n')
}

/// How a line of `old` is indented there, and in the file.
#[derive(Debug, Clone, Copy)]
struct Indent<'a> {
    line: usize,
    old: &'a [u8],
    own: &'a [u8],
}

fn indents<'a>(own: &[&'a [u8]], old: &[&'a str], whole_first_line: bool) -> Vec<Indent<'a>> {
    own.iter()
        .zip(old)
        .enumerate()
        .skip(usize::from(!whole_first_line))
        .filter(|(_, (own, old))| !trimmed(own).is_empty() && !old.trim().is_empty())
        .map(|(line, (own, old))| Indent { line, old: indent_of(old.as_bytes()), own: indent_of(own) })
        .collect()
}

fn indent_of(line: &[u8]) -> &[u8] {
    line.get(..indent_len(line)).unwrap_or_default()
}

struct Fit<'a> {
    own: &'a [&'a [u8]],
    old: &'a [&'a str],
    region: Region<'a>,
    indents: Vec<Indent<'a>>,
}

impl Fit<'_> {
    /// A new line as the file would write it. `near` is the line of the region that it comes to stand at.
    fn line(&self, line: &str, near: usize, index: usize) -> Vec<u8> {
        let mut line = line.to_owned();
        if self.region.has_returns
            && let Some(body) = line.strip_suffix("\\r")
        {
            line.truncate(body.len());
        }
        if self.region.text.contains(&b'\t') {
            line = tabs_in_front(&line);
        }
        // It goes on where the region begins, behind what stands before it on the line.
        if index == 0 && !self.region.whole_first_line {
            return self.with_first_blanks(&line);
        }
        if line.trim().is_empty() {
            return line.into_bytes();
        }
        let bytes = line.as_bytes();
        let (indent, rest) = bytes.split_at(indent_len(bytes));
        let mut out = self.indent(indent, near);
        out.extend_from_slice(rest);
        out
    }

    /// A line with the file's blanks in front where the edit has the same as before.
    fn with_first_blanks(&self, line: &str) -> Vec<u8> {
        let (indent, rest) = line.as_bytes().split_at(indent_len(line.as_bytes()));
        let same = self.old.first().is_some_and(|old| indent_of(old.as_bytes()) == indent);
        let own = self.own.first().filter(|_| same).map_or(indent, |own| indent_of(own));
        [own, rest].concat()
    }

    /// Which line a line that is inserted before `index` is like: the one before, unless that opens a block.
    fn beside(&self, index: usize) -> usize {
        let Some(before) = index.checked_sub(1) else { return index };
        let opens = self.old.get(before).is_some_and(|line| line.trim_end().ends_with(['{', '(', '[', ':']));
        if opens { index } else { before }
    }

    /// The file's indentation for one of the edit's.
    fn indent(&self, indent: &[u8], near: usize) -> Vec<u8> {
        if self.indents.iter().all(|known| known.old == known.own) {
            return indent.to_vec();
        }
        let nearest = |wanted: &dyn Fn(&Indent<'_>) -> bool| {
            self.indents
                .iter()
                .filter(|known| wanted(known))
                .min_by_key(|known| known.line.abs_diff(near))
                .copied()
        };
        if let Some(known) = nearest(&|known| known.old == indent) {
            return known.own.to_vec();
        }
        // Deeper than a known one: that one, and the rest in the file's manner.
        let longest = self
            .indents
            .iter()
            .filter(|known| indent.starts_with(known.old))
            .map(|known| known.old.len())
            .max();
        let base =
            longest.and_then(|len| nearest(&|known| known.old.len() == len && indent.starts_with(known.old)));
        if let Some(known) = base {
            let mut out = known.own.to_vec();
            out.extend(self.manner(indent.get(known.old.len()..).unwrap_or_default()));
            return out;
        }
        // Less deep than all known ones.
        let Some(known) = nearest(&|_| true) else { return indent.to_vec() };
        let less = self.manner(known.old).len().saturating_sub(self.manner(indent).len());
        known.own.get(..known.own.len().saturating_sub(less)).unwrap_or_default().to_vec()
    }

    /// Blanks of the edit's as the file has them: tabs for spaces, or spaces for tabs.
    fn manner(&self, blanks: &[u8]) -> Vec<u8> {
        let own_tabs = self.indents.iter().any(|known| known.own.contains(&b'\t'));
        let own_spaces = self.indents.iter().any(|known| known.own.contains(&b' '));
        if own_tabs && !own_spaces && !blanks.contains(&b'\t') {
            let width = self.columns_of_a_tab(|known| (known.old, known.own));
            let mut out = vec![b'\t'; blanks.len() / width];
            out.extend(vec![b' '; blanks.len() % width]);
            return out;
        }
        if own_spaces && !own_tabs && blanks.contains(&b'\t') {
            let width = self.columns_of_a_tab(|known| (known.own, known.old));
            return blanks
                .iter()
                .flat_map(|byte| vec![b' '; if *byte == b'\t' { width } else { 1 }])
                .collect();
        }
        blanks.to_vec()
    }

    /// How many spaces of the one side stand for a tab of the other.
    fn columns_of_a_tab<'s>(&'s self, sides: impl Fn(&'s Indent<'s>) -> (&'s [u8], &'s [u8])) -> usize {
        self.indents
            .iter()
            .map(sides)
            .filter(|(spaces, tabs)| {
                !tabs.is_empty()
                    && tabs.iter().all(|byte| *byte == b'\t')
                    && spaces.iter().all(|byte| *byte == b' ')
            })
            .map(|(spaces, tabs)| spaces.len() / tabs.len())
            .find(|width| *width > 0)
            .unwrap_or(TAB_WIDTH)
    }

    /// The new line without its indentation, with the file's own characters where old and new are the same.
    fn keep_characters(&self, new: &str, at: usize) -> Option<Vec<u8>> {
        let own = std::str::from_utf8(trimmed(self.own.get(at)?)).ok()?;
        let (old, new) = (self.old.get(at)?.trim_matches(blank), new.trim_matches(blank));
        let (old_chars, new_chars): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
        let (old_ends, own_ends) = (plain_ends(old), plain_ends(own));
        let own_bytes: Vec<usize> =
            own.char_indices().map(|(at, _)| at).chain(std::iter::once(own.len())).collect();
        // Where in the file's line a place of `old` is.
        let place = |old_at: usize| {
            let plain = old_ends.get(old_at)?;
            own_bytes.get(own_ends.binary_search(plain).ok()?).copied()
        };
        let mut out = Vec::new();
        for op in capture_diff_slices(Algorithm::Myers, &old_chars, &new_chars) {
            let (from, to) = (op.new_range().start, op.new_range().end);
            let same = match op {
                DiffOp::Equal { old_index, len, .. } => place(old_index).zip(place(old_index + len)),
                _ => None,
            };
            match same {
                Some((start, end)) => out.extend_from_slice(own.get(start..end)?.as_bytes()),
                None => out.extend(new_chars.get(from..to)?.iter().collect::<String>().into_bytes()),
            }
        }
        Some(out)
    }
}

fn blank(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_blank)
}

/// For each character, and for the end, how long the plain text before it is.
fn plain_ends(text: &str) -> Vec<usize> {
    let mut ends = vec![0];
    let mut total = 0;
    for c in text.chars() {
        total += fold::plain(c).map_or(c.len_utf8(), str::len);
        ends.push(total);
    }
    ends
}

/// A line whose indentation is written as `\t` with real tabs.
fn tabs_in_front(line: &str) -> String {
    let mut rest = line;
    let mut tabs = 0;
    while let Some(next) = rest.strip_prefix("\\t") {
        tabs += 1;
        rest = next;
    }
    if tabs == 0 { line.to_owned() } else { format!("{}{rest}", "\t".repeat(tabs)) }
}

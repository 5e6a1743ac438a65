//! Two lossless repairs of JSON text: raw control characters inside strings are escaped, and a
//! comma between a value and a closing bracket is dropped.

/// `text` with both repairs applied, and where each byte of it came from.
pub(super) struct Repaired {
    pub(super) text: String,
    /// (offset in the repaired text, offset in the original), one entry at each place of repair.
    shifts: Vec<(usize, usize)>,
}

impl Repaired {
    /// The offset in the original text that corresponds to `offset` in the repaired one.
    pub(super) fn original_offset(&self, offset: usize) -> usize {
        let before = self.shifts.partition_point(|(repaired, _)| *repaired <= offset);
        match before.checked_sub(1).and_then(|last| self.shifts.get(last)) {
            Some((repaired, original)) => original + (offset - repaired),
            None => offset,
        }
    }
}

/// Repairs `text`; `None` when there is nothing to repair.
pub(super) fn repair(text: &str) -> Option<Repaired> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut shifts = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    // The last character outside strings that is not white space: a comma is trailing only behind a value.
    let mut last_token = None;
    for (at, c) in text.char_indices() {
        let next = at + c.len_utf8();
        if in_string {
            // A backslash before a raw line break could mean a line continuation or nothing at all:
            // that is a guess, so it stays and does not parse.
            if c < ' ' && !escaped {
                push_escape(&mut out, c);
                shifts.push((out.len(), next));
                continue;
            }
            out.push(c);
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == '"' {
                in_string = false;
                last_token = Some('"');
            }
            continue;
        }
        if c == ',' && closes_next(text, next) && last_token.is_some_and(ends_a_value) {
            shifts.push((out.len(), next));
            last_token = Some(',');
            continue;
        }
        in_string = c == '"';
        if !c.is_whitespace() {
            last_token = Some(c);
        }
        out.push(c);
    }
    (!shifts.is_empty()).then_some(Repaired { text: out, shifts })
}

fn closes_next(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.trim_start().chars().next()).is_some_and(|c| matches!(c, '}' | ']'))
}

fn ends_a_value(c: char) -> bool {
    matches!(c, '"' | '}' | ']') || c.is_alphanumeric()
}

fn push_escape(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        other => {
            use std::fmt::Write as _;
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(other));
        }
    }
}

//! Texts in which differences that do not count are gone, with the way back to the places of the original.

/// A folded text.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) bytes: Vec<u8>,
    segments: Vec<Segment>,
}

/// A part of the folded text and where it came from.
#[derive(Debug, Clone, Copy)]
struct Segment {
    folded: usize,
    folded_len: usize,
    source: usize,
    source_len: usize,
    /// Byte for byte the same; otherwise it stands for the source as a whole.
    same: bool,
}

impl Folded {
    fn keep(&mut self, source: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(last) = self.segments.last_mut()
            && last.same
            && last.source + last.source_len == source
        {
            last.folded_len += bytes.len();
            last.source_len += bytes.len();
        } else {
            self.segments.push(Segment {
                folded: self.bytes.len(),
                folded_len: bytes.len(),
                source,
                source_len: bytes.len(),
                same: true,
            });
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn put(&mut self, source: usize, source_len: usize, with: &[u8]) {
        self.segments.push(Segment {
            folded: self.bytes.len(),
            folded_len: with.len(),
            source,
            source_len,
            same: false,
        });
        self.bytes.extend_from_slice(with);
    }

    fn segment_of(&self, at: usize) -> Option<&Segment> {
        self.segments.get(self.segments.partition_point(|segment| segment.folded <= at).checked_sub(1)?)
    }

    /// Where in the source a match begins that begins at `at`; `None` in the middle of something that was
    /// folded as a whole.
    pub(crate) fn source_start(&self, at: usize) -> Option<usize> {
        let segment = self.segment_of(at)?;
        match at - segment.folded {
            0 => Some(segment.source),
            within => segment.same.then_some(segment.source + within),
        }
    }

    /// Where in the source a match ends that ends before `at`.
    pub(crate) fn source_end(&self, at: usize) -> Option<usize> {
        let segment = self.segment_of(at.checked_sub(1)?)?;
        match at - segment.folded {
            all if all == segment.folded_len => Some(segment.source + segment.source_len),
            within => segment.same.then_some(segment.source + within),
        }
    }
}

/// What stands between words on one line.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// The line without blanks at its ends.
pub(crate) fn trimmed(line: &[u8]) -> &[u8] {
    let start = indent_len(line);
    let end = line.iter().rposition(|byte| !is_blank(*byte)).map_or(start, |last| last + 1);
    line.get(start..end).unwrap_or_default()
}

/// Bytes of blanks at the start of the line.
pub(crate) fn indent_len(line: &[u8]) -> usize {
    line.iter().position(|byte| !is_blank(*byte)).unwrap_or(line.len())
}

/// Each line without blanks at both ends.
pub(crate) fn trim_lines(text: &[u8]) -> Folded {
    by_lines(text, |folded, at, line| {
        let kept = trimmed(line);
        folded.keep(at + indent_len(line), kept);
    })
}

/// Each line without the blanks at its start.
pub(crate) fn drop_indents(text: &[u8]) -> Folded {
    by_lines(text, |folded, at, line| {
        let indent = indent_len(line);
        folded.keep(at + indent, line.get(indent..).unwrap_or_default());
    })
}

fn by_lines(text: &[u8], mut line_of: impl FnMut(&mut Folded, usize, &[u8])) -> Folded {
    let mut folded = Folded::default();
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        line_of(&mut folded, at, body);
        if body.len() < line.len() {
            folded.keep(at + body.len(), b"\n");
        }
        at += line.len();
    }
    folded
}

/// Runs of spaces and tabs as one space.
pub(crate) fn join_blanks(text: &[u8]) -> Folded {
    let mut folded = Folded::default();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let blanks = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
        if blanks > 0 {
            folded.put(at, blanks, b" ");
            at += blanks;
            continue;
        }
        let words = memchr::memchr2(b' ', b'\t', rest).unwrap_or(rest.len());
        folded.keep(at, rest.get(..words).unwrap_or_default());
        at += words;
    }
    folded
}

/// Typographic characters as the plain ones that are typed for them.
pub(crate) fn plain_characters(text: &[u8]) -> Folded {
    let mut folded = Folded::default();
    let mut kept = 0;
    // All of them are beyond ASCII: only lead bytes need a look.
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let Some((len, plain)) = (*byte >= 0xC2).then(|| plain_at(text, at)).flatten() else {
            at += 1;
            continue;
        };
        folded.keep(kept, text.get(kept..at).unwrap_or_default());
        folded.put(at, len, plain.as_bytes());
        at += len;
        kept = at;
    }
    folded.keep(kept, text.get(kept..).unwrap_or_default());
    folded
}

/// The typographic character that begins at `at`: its bytes, and the plain text for it.
fn plain_at(text: &[u8], at: usize) -> Option<(usize, &'static str)> {
    let len = match text.get(at)? {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => return None,
    };
    let c = std::str::from_utf8(text.get(at..at + len)?).ok()?.chars().next()?;
    Some((len, plain(c)?))
}

/// What is typed for a typographic character.
pub(crate) fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => "\"",
        '\u{2014}' => "--",
        '\u{2010}' | '\u{2011}' | '\u{2012}' | '\u{2013}' | '\u{2212}' => "-",
        '\u{2026}' => "...",
        '\u{a0}' | '\u{2002}' | '\u{2003}' | '\u{2007}' | '\u{2009}' | '\u{200a}' | '\u{202f}'
        | '\u{3000}' => " ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn folded_places_lead_back() {
        let text = "a — b\u{a0}c…".as_bytes();
        let folded = plain_characters(text);
        assert_eq!(folded.bytes, b"a -- b c...");
        assert_eq!((folded.source_start(2), folded.source_end(4)), (Some(2), Some(5)));
        assert_eq!((folded.source_start(3), folded.source_end(3)), (None, None));
        assert_eq!(folded.source_end(11), Some(text.len()));

        let folded = drop_indents(b"  a\n\tb\n");
        assert_eq!(folded.bytes, b"a\nb\n");
        // An end before an indentation does not swallow it.
        assert_eq!((folded.source_start(2), folded.source_end(2)), (Some(5), Some(4)));

        let folded = join_blanks(b"a \t b");
        assert_eq!(folded.bytes, b"a b");
        assert_eq!(
            (folded.source_start(1), folded.source_end(2), folded.source_start(2)),
            (Some(1), Some(4), Some(4))
        );
        assert_eq!(trim_lines(b" a \n\n  b").bytes, b"a\n\nb");
    }

    proptest! {
        #[test]
        fn what_is_kept_stands_in_the_source(text in "[ab \t\n—“é]{0,40}") {
            for folded in [
                trim_lines(text.as_bytes()), drop_indents(text.as_bytes()), join_blanks(text.as_bytes()),
                plain_characters(text.as_bytes()),
            ] {
                for segment in &folded.segments {
                    let source = &text.as_bytes()[segment.source..segment.source + segment.source_len];
                    let out = &folded.bytes[segment.folded..segment.folded + segment.folded_len];
                    prop_assert!(!segment.same || source == out);
                }
            }
        }
    }
}

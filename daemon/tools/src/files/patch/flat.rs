//! A file's text as the model sees it: no byte order mark, LF line ends; and the way back to its bytes.

use std::borrow::Cow;

use super::super::text::BOM;

/// The content without its byte order mark and with LF line ends.
#[derive(Debug)]
pub(crate) struct Flat<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Bytes of the byte order mark in front.
    mark: usize,
    /// Offsets in `bytes` of line feeds that had a carriage return before them.
    dropped: Vec<usize>,
    /// Offsets in `bytes` at which lines begin.
    starts: Vec<usize>,
}

impl<'a> Flat<'a> {
    pub(crate) fn of(content: &'a [u8]) -> Self {
        let body = content.strip_prefix(BOM).unwrap_or(content);
        let mark = content.len() - body.len();
        let mut bytes = Vec::new();
        let mut dropped = Vec::new();
        let mut copied = 0;
        for at in memchr::memmem::find_iter(body, b"\r\n") {
            bytes.extend_from_slice(body.get(copied..at).unwrap_or_default());
            dropped.push(bytes.len());
            copied = at + 1;
        }
        let bytes: Cow<'_, [u8]> = if dropped.is_empty() {
            body.into()
        } else {
            bytes.extend_from_slice(body.get(copied..).unwrap_or_default());
            bytes.into()
        };
        let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', &bytes).map(|at| at + 1)).collect();
        Self { bytes, mark, dropped, starts }
    }

    /// No line ended in CR LF.
    pub(crate) fn is_plain(&self) -> bool {
        self.dropped.is_empty()
    }

    /// Offset in the file of the byte at `at`. A line end begins at its carriage return, so that a match that
    /// ends before one leaves all of it.
    pub(crate) fn original(&self, at: usize) -> usize {
        self.mark + at + self.dropped.partition_point(|drop| *drop < at)
    }

    /// Number, from 1, of the line that holds the byte at `at`.
    pub(crate) fn line_at(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Where the line that holds the byte at `at` begins.
    pub(crate) fn line_start(&self, at: usize) -> usize {
        self.starts.get(self.line_at(at).saturating_sub(1)).copied().unwrap_or(0)
    }

    /// Where the line that holds the byte at `at` ends, its line feed not included.
    pub(crate) fn line_end(&self, at: usize) -> usize {
        self.starts.get(self.line_at(at)).map_or(self.bytes.len(), |next| next - 1)
    }

    /// Where line `index`, from 0, begins; the end of the text when there is no such line.
    pub(crate) fn start_of(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or(self.bytes.len())
    }

    /// All lines without their line feeds. A line feed at the end opens no line of its own.
    pub(crate) fn lines(&self) -> Vec<&[u8]> {
        let mut lines: Vec<&[u8]> = self.bytes.split(|byte| *byte == b'\n').collect();
        if self.bytes.is_empty() || self.bytes.ends_with(b"\n") {
            lines.pop();
        }
        lines
    }

    pub(crate) fn get(&self, from: usize, to: usize) -> &[u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn marks_and_carriage_returns_are_passed_over_both_ways() {
        let flat = Flat::of(b"\xEF\xBB\xBFa\r\nb\nc\r\n");
        assert_eq!(&*flat.bytes, b"a\nb\nc\n");
        let originals: Vec<usize> = (0..=6).map(|at| flat.original(at)).collect();
        assert_eq!(originals, [3, 4, 6, 7, 8, 9, 11]);
        assert_eq!(flat.lines(), [b"a", b"b", b"c"]);
        assert_eq!((flat.line_at(0), flat.line_at(1), flat.line_at(2), flat.line_at(6)), (1, 1, 2, 4));
        assert_eq!((flat.line_start(3), flat.line_end(2), flat.start_of(9)), (2, 3, 6));
        assert!(!flat.is_plain() && Flat::of(b"a\rb\n").is_plain());
        assert_eq!(Flat::of(b"").lines(), [b""; 0]);
    }
}

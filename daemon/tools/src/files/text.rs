//! Bytes of a text file: marks at its start, line endings, and whether it is text at all.

/// The UTF-8 byte order mark.
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Characters that decide whether a file is text (spec 40 §5.2).
const SAMPLE_CHARS: usize = 1000;

/// Bytes that surely hold the sample.
const SAMPLE_BYTES: usize = SAMPLE_CHARS * 4;

/// How a file ends its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnding {
    Lf,
    CrLf,
}

impl LineEnding {
    /// The ending that most lines of `bytes` have; no line at all counts as LF.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut lines = 0_usize;
        let mut with_return = 0_usize;
        for at in memchr::memchr_iter(b'\n', bytes) {
            lines += 1;
            with_return += usize::from(at > 0 && bytes.get(at - 1) == Some(&b'\r'));
        }
        if with_return * 2 > lines { Self::CrLf } else { Self::Lf }
    }

    /// `text` with this ending, whatever it had.
    pub(crate) fn apply(self, text: &str) -> String {
        let plain = text.replace("\r\n", "\n");
        match self {
            Self::Lf => plain,
            Self::CrLf => plain.replace('\n', "\r\n"),
        }
    }
}

/// Whether the beginning of a file is not text in UTF-8 or near it: a NUL, or more than 30 % that nothing prints.
pub(crate) fn looks_binary(head: &[u8]) -> bool {
    let sample = head.get(..SAMPLE_BYTES).unwrap_or(head);
    let text = String::from_utf8_lossy(sample);
    let mut chars = 0_usize;
    let mut odd = 0_usize;
    for c in text.chars().take(SAMPLE_CHARS) {
        match c {
            '\0' => return true,
            '\t' | '\n' | '\r' | '\u{8}' | '\u{b}' | '\u{c}' | '\u{1b}' => {}
            '\u{fffd}' => odd += 1,
            c if c.is_control() => odd += 1,
            _ => {}
        }
        chars += 1;
    }
    odd * 10 > chars * 3
}

/// Names the encoding when the file says it at its start.
pub(crate) fn marked_encoding(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => Some("UTF-32"),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Some("UTF-16"),
        _ => None,
    }
}

/// The text of `bytes` without a byte order mark, lossily.
pub(crate) fn decode(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix(BOM).unwrap_or(bytes))
}

/// The first `max` characters, and whether that is not all.
pub(crate) fn first_chars(text: &str, max: usize) -> (&str, bool) {
    match text.char_indices().nth(max) {
        Some((end, _)) => (text.get(..end).unwrap_or(text), true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_data() {
        for text in ["", "plain\n", "tabs\tand\x1b[31mcolour", "日本語のテキスト", "caf\u{e9} naïve"]
        {
            assert!(!looks_binary(text.as_bytes()), "{text}");
        }
        // Latin-1 prose has few bytes that are no UTF-8.
        assert!(!looks_binary(b"d\xe9j\xe0 vu, tr\xe8s bien, merci beaucoup"));
        for data in [&b"a\0b"[..], b"\x89PNG\r\n\x1a\n\0\0", &[0x80; 50], b"\xFF\xFEa\0b\0"] {
            assert!(looks_binary(data), "{data:?}");
        }
        assert_eq!(marked_encoding(b"\xFF\xFEa\0"), Some("UTF-16"));
    }

    #[test]
    fn the_ending_of_most_lines_wins() {
        assert_eq!(LineEnding::of(b"a\r\nb\r\nc\n"), LineEnding::CrLf);
        assert_eq!(LineEnding::of(b"a\nb\r\n"), LineEnding::Lf);
        assert_eq!(LineEnding::of(b""), LineEnding::Lf);
        assert_eq!(LineEnding::CrLf.apply("a\nb\r\nc"), "a\r\nb\r\nc");
        assert_eq!(LineEnding::Lf.apply("a\r\nb"), "a\nb");
    }
}

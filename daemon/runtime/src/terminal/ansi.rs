//! Removes terminal escape sequences and control characters from a stream of bytes.
//!
//! Own code because the ready-made strippers either drop tabs and carriage returns, or buffer an
//! unterminated sequence without bound. Works across any split of the input.

/// An operating-system command, device control string or the like that is longer than this was no escape
/// sequence: what follows is text again. Real ones (titles, links, images in small) end far earlier.
const MAX_STRING_BYTES: usize = 4096;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte (`ESC ( B`).
    EscapeIntermediate,
    /// After `ESC [`.
    Control,
    /// Inside OSC, DCS, SOS, PM or APC; holds how many bytes were swallowed.
    String(usize),
    /// An ESC inside such a string: `\` ends it.
    StringEscape(usize),
}

/// The stripper. Feed it in order; it keeps a few bytes of state and no text.
#[derive(Debug, Default)]
pub(crate) struct AnsiStripper {
    state: State,
}

impl AnsiStripper {
    /// Appends the visible part of `input` to `out`. Tabs, line feeds and carriage returns stay; all other
    /// control characters go. Bytes above 0x7f are left alone.
    pub(crate) fn strip(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let mut rest = input;
        while !rest.is_empty() {
            if self.state == State::Text {
                let run = rest.iter().position(|byte| !is_text(*byte)).unwrap_or(rest.len());
                let (text, tail) = rest.split_at(run);
                out.extend_from_slice(text);
                rest = tail;
                if let Some((&byte, tail)) = rest.split_first() {
                    rest = tail;
                    if byte == ESC {
                        self.state = State::Escape;
                    }
                }
            } else if let Some((&byte, tail)) = rest.split_first() {
                let (next, consumed) = step(self.state, byte);
                self.state = next;
                if consumed {
                    rest = tail;
                }
            }
        }
    }
}

/// Whether a byte passes as it is.
fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..)
}

/// The state after `byte`, and whether the byte belongs to the sequence (otherwise it is looked at again).
fn step(state: State, byte: u8) -> (State, bool) {
    match (state, byte) {
        (State::Text, _) => (State::Text, false),
        (State::String(_) | State::StringEscape(_), CAN | SUB) => (State::Text, true),
        (State::String(_), BEL) => (State::Text, true),
        (State::String(seen), ESC) => (State::StringEscape(seen), true),
        (State::String(seen), _) if seen >= MAX_STRING_BYTES => (State::Text, false),
        (State::String(seen), _) => (State::String(seen + 1), true),
        (State::StringEscape(_), b'\\') => (State::Text, true),
        // An ESC that does not end the string begins a new sequence.
        (State::StringEscape(_), _) => (State::Escape, false),
        (_, ESC) => (State::Escape, true),
        (_, CAN | SUB) => (State::Text, true),
        (State::Escape, b'[') => (State::Control, true),
        (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => (State::String(0), true),
        (State::Escape | State::EscapeIntermediate, 0x20..=0x2f) => (State::EscapeIntermediate, true),
        (State::Escape | State::EscapeIntermediate, 0x30..=0x7e) => (State::Text, true),
        (State::Control, 0x20..=0x3f) => (State::Control, true),
        (State::Control, 0x40..=0x7e) => (State::Text, true),
        // A control or foreign byte breaks the sequence off and counts as text.
        (State::Escape | State::EscapeIntermediate | State::Control, _) => (State::Text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strip(chunks: &[&[u8]]) -> String {
        let (mut stripper, mut out) = (AnsiStripper::default(), Vec::new());
        for chunk in chunks {
            stripper.strip(chunk, &mut out);
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn sequences_go_and_text_stays() {
        for (input, expected) in [
            ("plain\ttext\r\n", "plain\ttext\r\n"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b[38:2::1:2:3mx\x1b[?25l", "x"),
            ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\", "ab"),
            ("\x1bP1$r0m\x1b\\x", "x"),
            ("\x1b(Ba\x1b=b\x1b7c", "abc"),
            ("a\x00b\x07c\x7fd", "abcd"),
            ("\x1b[12", ""),
            ("\x1b[1\nx", "\nx"),
            ("\x1b[1\x1b[2mx", "x"),
            ("grün \x1b[1mfett\x1b[m 漢字", "grün fett 漢字"),
        ] {
            assert_eq!(strip(&[input.as_bytes()]), expected, "{input:?}");
        }
    }

    #[test]
    fn an_unterminated_string_does_not_swallow_the_rest() {
        let flood = format!("\x1b]0;{}END", "x".repeat(MAX_STRING_BYTES + 100));
        assert!(strip(&[flood.as_bytes()]).ends_with("END"));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_text(input in "(\\PC|\x1b\\[[0-9;]{0,4}m|\x1b\\]0;[a-z]{0,5}\x07|[\x00-\x1f]){0,40}", at in 0usize..200) {
            let bytes = input.as_bytes();
            let (a, b) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(strip(&[bytes]), strip(&[a, b]));
        }

        #[test]
        fn text_without_controls_is_untouched(input in "[^\\p{Cc}]{0,80}") {
            prop_assert_eq!(strip(&[input.as_bytes()]), input);
        }
    }
}

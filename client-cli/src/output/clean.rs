//! Untrusted text for a terminal: control characters become visible signs. Each character is judged
//! alone, so a sequence that is cut between two pieces of a stream is as harmless as a whole one.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Makes control characters visible; line feeds and tabs stay, carriage returns go.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| *c != '\r').map(|c| if is_unsafe(c) { sign(c) } else { c }).collect())
}

/// One line of it: line feeds and tabs become blanks too.
pub(crate) fn one_line(text: &str) -> String {
    let flat: String = text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }).collect();
    visible(flat.trim()).into_owned()
}

/// Cuts a line to `columns` of a terminal, with an ellipsis when something was cut.
pub(crate) fn fit(line: &str, columns: usize) -> Cow<'_, str> {
    if line.width() <= columns {
        return Cow::Borrowed(line);
    }
    let room = columns.saturating_sub(1);
    let mut used = 0;
    let mut kept: String = line
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect();
    kept.push('…');
    Cow::Owned(kept)
}

/// How many columns a line takes.
pub(crate) fn width(line: &str) -> usize {
    line.width()
}

fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Overrides of the writing direction can make a command read as another one.
        '\u{202d}' | '\u{202e}' => true,
        c => c.is_control(),
    }
}

fn sign(c: char) -> char {
    match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_survives() {
        let all: String = (0_u32..0xa0).filter_map(char::from_u32).collect();
        let shown = visible(&all).into_owned();
        assert!(shown.chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()), "{shown:?}");
        assert_eq!(visible("\u{9b}31m \u{202e}x"), "\u{fffd}31m \u{fffd}x");
        assert_eq!(visible("a\r\nb"), "a\nb");
    }

    #[test]
    fn plain_text_is_left_alone() {
        for text in ["grüße 👋 日本", "a\n\tb", "\u{2067}עברית\u{2069}"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn lines_are_cut_by_columns_not_by_characters() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(width("日本"), 4);
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\n\tb\u{1b}[2J \n"), "a  b␛[2J");
    }
}

//! Untrusted text for a terminal: control characters become visible signs. Each character is judged
//! alone, so a sequence that is cut between two pieces of a stream is as harmless as a whole one.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Makes control characters visible; line feeds and tabs stay, carriage returns go.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| *c != '\r').map(|c| if is_unsafe(c) { sign(c) } else { c }).collect())
}

/// A text that a person judges by what it shows: nothing in it stays unseen or moves what stands around it. Line
/// feeds stay, tabs become blanks, control characters become signs, and characters without a shape are named.
pub(crate) fn exposed(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push(c),
            '\t' => shown.push_str("    "),
            c if c.is_control() => shown.push(sign(c)),
            c if is_shapeless(c) => {
                let _ = write!(shown, "⟨U+{:04X}⟩", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Characters that take no room or turn the direction of what follows.
fn is_shapeless(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// A line in pieces that each fit into `columns`, cut behind blanks where there are some; nothing of it is left out.
/// Without `columns` it stays whole.
pub(crate) fn wrapped(line: &str, columns: Option<usize>) -> Vec<String> {
    let Some(columns) = columns.map(|columns| columns.max(2)) else { return vec![line.to_owned()] };
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        let width = c.width().unwrap_or(0);
        if used + width > columns {
            let rest = pieces.last_mut().and_then(|piece| {
                let cut = piece.rfind(' ').filter(|at| at * 2 > piece.len())?;
                Some(piece.split_off(cut + 1))
            });
            let rest = rest.unwrap_or_default();
            used = rest.width();
            pieces.push(rest);
        }
        used += width;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
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
    fn nothing_in_an_exposed_text_is_unseen() {
        assert_eq!(exposed("a\tb\r\u{1b}[1A\u{202e}c\u{200b}\nd"), "a    b␍␛[1A⟨U+202E⟩c⟨U+200B⟩\nd");
        for text in ["grüße 👋 日本", "rm -rf ./x"] {
            assert_eq!(exposed(text), text);
        }
    }

    #[test]
    fn a_wrapped_line_loses_nothing() {
        assert_eq!(wrapped("abcdef", Some(4)), ["abcd", "ef"]);
        assert_eq!(wrapped("日本語", Some(4)), ["日本", "語"]);
        assert_eq!(wrapped("", Some(4)), [""]);
        assert_eq!(wrapped("all of it fits", Some(8)), ["all of ", "it fits"]);
        assert_eq!(wrapped("abcdef", None), ["abcdef"]);
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\n\tb\u{1b}[2J \n"), "a  b␛[2J");
    }
}

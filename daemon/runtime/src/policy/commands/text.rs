//! A command's text before it is read: what cannot be seen, and what only looks alike (spec 40 §8.4).

use unicode_normalization::{UnicodeNormalization as _, is_nfkc};

use super::report::Report;

/// Characters of one command.
const MAX_CHARS: usize = 128_000;
/// Characters of one unquoted word.
const MAX_WORD: usize = 4_096;

/// The text as it runs, and other readings that a person might see or a program might make of it.
///
/// All are judged: a reading may show a command that another hides behind a quote or a comment sign.
pub(super) fn readings(command: &str, report: &mut Report) -> Vec<String> {
    if command.chars().nth(MAX_CHARS).is_some() {
        report.unreadable("syntax.limits", "is longer than 128000 characters");
        return Vec::new();
    }
    let longest = command
        .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '&' | '|'))
        .map(str::len)
        .max();
    if longest.unwrap_or(0) > MAX_WORD {
        report.ask("syntax.limits", "contains a word of more than 4096 characters", command);
    }
    // A shell cannot be given these; in our own texts they have a meaning.
    let plain: String = command.chars().filter(|c| !matches!(c, '\0' | '\u{1}' | '\u{2}')).collect();
    if let Some(hidden) = first_hidden(command) {
        let code = u32::from(hidden);
        report.ask(
            "text.hidden",
            format!("contains a character that cannot be seen (U+{code:04X})"),
            command,
        );
    }
    let mut readings = vec![plain.clone()];
    let mut add = |text: String| {
        if !readings.contains(&text) {
            readings.push(text);
        }
    };
    // To the shell a carriage return is a letter; to a person, and to some programs, it is a space or a line's end.
    if plain.contains('\r') {
        add(plain.replace("\r\n", "\n"));
        add(plain.replace('\r', " "));
        add(plain.replace('\r', "\n"));
    }
    if plain.contains('\u{1b}') {
        add(without_escapes(&plain));
    }
    if !plain.is_ascii() && !is_nfkc(&plain) {
        add(plain.nfkc().collect());
    }
    if first_hidden(&plain).is_some() {
        add(plain.chars().filter(|c| !is_hidden(*c, None)).collect());
    }
    readings
}

fn first_hidden(text: &str) -> Option<char> {
    let mut before = None;
    for c in text.chars() {
        if is_hidden(c, before) {
            return Some(c);
        }
        before = Some(c);
    }
    None
}

/// Control, direction and zero-width characters. A joiner between pictures is a part of them.
fn is_hidden(c: char, before: Option<char>) -> bool {
    match c {
        '\t' | '\n' => false,
        '\r' => false,
        '\u{200d}' => before.is_none_or(|before| before.is_ascii() || before.is_alphanumeric()),
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{3164}'
        | '\u{ffa0}' => true,
        c => c.is_control(),
    }
}

/// Without the sequences that colour or move text on a terminal.
fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(c) = chars.next() {
                    if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    out
}

//! A settings file as it may be shown: its own text, comments included, with the secrets masked.
//!
//! It works on lines and not on the parsed tree, since the file that a user asks to see is often the one that
//! cannot be parsed. In doubt it masks too much.

use crate::mask::{MASK, is_secret_key, without_url_password};

/// The text of a `config.yaml` with the values of secret keys, and the passwords of URLs, masked.
pub fn mask_yaml_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut open = Open::Nothing;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let content = body.trim_start();
        let (indent, end) = (body.len() - content.len(), line.get(body.len()..).unwrap_or_default());
        if content.is_empty() {
            shown.push_str(line);
            continue;
        }
        if let Some(next) = open.takes(indent, content) {
            open = next;
            shown.extend(std::iter::repeat_n(' ', indent));
            shown.push_str(if is_item(content) { "- " } else { "" });
            shown.push_str(MASK);
        } else {
            let (masked, next) = masked_line(body);
            shown.push_str(&without_url_password(&masked));
            if !content.starts_with('#') {
                open = next;
            }
        }
        shown.push_str(end);
    }
    shown
}

/// What of a secret value the next lines may still hold.
enum Open {
    Nothing,
    /// Nothing came yet after a secret key in this column: a value, a list, or the keys of a section.
    Value(usize),
    /// The value goes on in lines that are indented deeper than this.
    Deeper(usize),
    /// The items of a list whose dashes stand in this column.
    Items(usize),
    /// A text in these quotes.
    Quote(char),
}

impl Open {
    /// What is open after a line that belongs to the secret; `None` for a line that does not.
    fn takes(&self, indent: usize, content: &str) -> Option<Self> {
        match *self {
            Self::Nothing => None,
            Self::Value(column) if indent >= column && is_item(content) => Some(Self::Items(indent)),
            // The keys of a section speak for themselves.
            Self::Value(column) => {
                (indent > column && !content.starts_with('#') && keys(content).next().is_none())
                    .then(|| opened_by(content, column))
            }
            Self::Deeper(column) => (indent > column).then_some(Self::Deeper(column)),
            Self::Items(column) => {
                (indent > column || (indent == column && is_item(content))).then_some(Self::Items(column))
            }
            Self::Quote(quote) => Some(match quote_end(content, quote) {
                Some(_) => Self::Nothing,
                None => Self::Quote(quote),
            }),
        }
    }
}

fn is_item(content: &str) -> bool {
    content.strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// What a value that begins with this text, after a key in this column, leaves open.
fn opened_by(value: &str, column: usize) -> Open {
    let mut chars = value.chars();
    match chars.next() {
        None | Some('#') => Open::Value(column),
        Some(quote @ ('"' | '\'')) if quote_end(chars.as_str(), quote).is_none() => Open::Quote(quote),
        Some(_) => Open::Deeper(column),
    }
}

/// Where the text after a quote ends, past the closing one.
fn quote_end(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some(at + 1);
        }
        if c == '\\' && quote == '"' {
            chars.next();
        }
    }
    None
}

fn masked_line(line: &str) -> (String, Open) {
    let mut shown = String::with_capacity(line.len());
    let mut copied = 0;
    let mut open = Open::Nothing;
    for key in keys(line).filter(|key| is_secret_key(key.name)) {
        let after = line.get(key.colon + 1..).unwrap_or_default();
        let value = after.trim_start();
        // A key inside a value that is masked already.
        if key.colon < copied {
            continue;
        }
        open = opened_by(value, key.column);
        if matches!(open, Open::Value(_)) {
            continue;
        }
        let length = if key.in_braces { flow_value(value) } else { value.len() };
        let begin = line.len() - value.len();
        shown.push_str(line.get(copied..=key.colon).unwrap_or_default());
        shown.push(' ');
        shown.push_str(MASK);
        copied = begin + length;
    }
    shown.push_str(line.get(copied..).unwrap_or_default());
    (shown, open)
}

/// The length of a value inside braces: up to the comma or bracket that ends it.
fn flow_value(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    let mut before = ' ';
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match c {
            '"' | '\'' if opens_quote(before) => {
                let rest = text.get(at + 1..).unwrap_or_default();
                at += quote_end(rest, c).unwrap_or(rest.len());
            }
            '{' | '[' => depth += 1,
            '}' | ']' | ',' if depth == 0 => break,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        before = c;
        at += c.len_utf8();
    }
    at
}

/// An apostrophe inside a word opens nothing.
fn opens_quote(before: char) -> bool {
    before.is_whitespace() || matches!(before, '{' | '[' | ',' | ':' | '(')
}

struct Key<'a> {
    name: &'a str,
    column: usize,
    colon: usize,
    in_braces: bool,
}

/// All that may be a key in a line, from left to right.
fn keys(line: &str) -> impl Iterator<Item = Key<'_>> {
    let mut begin = 0;
    let mut in_braces = false;
    let mut at = 0;
    let mut before = ' ';
    std::iter::from_fn(move || {
        while let Some(c) = line.get(at..).and_then(|rest| rest.chars().next()) {
            let here = at;
            at += c.len_utf8();
            let previous = std::mem::replace(&mut before, c);
            let rest = line.get(at..).unwrap_or_default();
            match c {
                '"' | '\'' if opens_quote(previous) => at += quote_end(rest, c).unwrap_or(0),
                '{' | '[' | ',' => {
                    in_braces = in_braces || c != ',';
                    begin = at;
                }
                ':' if rest.is_empty()
                    || rest.starts_with([' ', '\t', '"', '\''])
                    || matches!(line.get(..here).and_then(|key| key.chars().last()), Some('"' | '\'')) =>
                {
                    let written = line.get(begin..here).unwrap_or_default();
                    let marks = |c: char| c.is_whitespace() || matches!(c, '-' | '#' | '?');
                    let column = here - written.trim_start_matches(marks).len();
                    let name = written.trim_matches(|c: char| marks(c) || matches!(c, '"' | '\''));
                    begin = at;
                    return Some(Key { name, column, colon: here, in_braces });
                }
                _ => {}
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_file_is_shown_without_its_secrets() {
        let table = [
            ("model:\n  default: m\n", "model:\n  default: m\n"),
            ("  api_key: sk-123\n", "  api_key: ***\n"),
            ("api_key: sk-123\r\nb: 1\r\n", "api_key: ***\r\nb: 1\r\n"),
            ("  - token: \"x\"", "  - token: ***"),
            ("  # api_key: old\n", "  # api_key: ***\n"),
            ("  max_tokens: 5\n", "  max_tokens: 5\n"),
            ("# a comment: with a colon", "# a comment: with a colon"),
            ("password: 123456 # mine", "password: ***"),
            // A map on one line.
            ("model: {api_key: sk-1, default: m}", "model: {api_key: ***, default: m}"),
            ("m: {\"api_key\":\"a,b}\", d: 'it: x'}", "m: {\"api_key\": ***, d: 'it: x'}"),
            ("m: {token: [a, {b: c}], d: e}", "m: {token: ***, d: e}"),
            ("m: {token: 'a", "m: {token: ***"),
            // A value on several lines.
            ("api_key: |\n  sk-1\n\n  sk-2\nb: 1\n", "api_key: ***\n  ***\n\n  ***\nb: 1\n"),
            ("- password: one\n    two: three\n  b: c", "- password: ***\n    ***\n  b: c"),
            ("token: \"one\ntwo: x\nthree\"\nb: c", "token: ***\n***\n***\nb: c"),
            ("token:\n  # mine\n  sk-1\n  sk-2\nb: c", "token:\n  # mine\n  ***\n  ***\nb: c"),
            ("tokens:\n- a\n- b: c\n  d\ne: f", "tokens:\n- ***\n- ***\n  ***\ne: f"),
            ("tokens: [a,\n  b]\nc: d", "tokens: ***\n  ***\nc: d"),
            // A section with a secret-looking name.
            ("secrets: # all\n  vault: me\n  pin: 1\n", "secrets: # all\n  vault: me\n  pin: 1\n"),
            ("secrets:\n  api_key: x\n", "secrets:\n  api_key: ***\n"),
            // URLs.
            ("a: http://u:p@h/x, b: s://v:q@i", "a: http://u:***@h/x, b: s://v:***@i"),
        ];
        for (text, shown) in table {
            assert_eq!(mask_yaml_text(text), shown, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_keeps_its_lines(text in "[a-z:{},\\[\\]\"'#|\\- \n\\\\é]{0,80}(api_key: \"?é)?") {
            let shown = mask_yaml_text(&text);
            proptest::prop_assert_eq!(shown.lines().count(), text.lines().count());
        }
    }
}

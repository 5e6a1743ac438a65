//! Broken argument JSON in stored calls (spec 10 §22.3).
//!
//! This is for the outgoing copy of history alone. A live call is never run with arguments that were completed here:
//! `rm -rf /tmp/a` must not come from a cut string.

use std::borrow::Cow;

/// Most brackets that are closed or dropped.
const MAX_BRACKET_STEPS: usize = 50;

/// Arguments as they may be sent: always the text of one JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Arguments {
    Intact,
    Repaired(String),
    /// Nothing could be made of them; `{}` is sent, and the result says so.
    Corrupted,
}

/// Judges the stored `arguments`.
pub(super) fn repair(arguments: &str) -> Arguments {
    if is_object(arguments) {
        return Arguments::Intact;
    }
    if matches!(arguments.trim(), "" | "None" | "null") {
        return Arguments::Repaired("{}".to_owned());
    }
    let mut text: Cow<'_, str> = arguments.into();
    for pass in [escape_controls, drop_trailing_commas, balance_brackets] {
        text = pass(&text).into();
        if is_object(&text) {
            return Arguments::Repaired(text.into_owned());
        }
    }
    Arguments::Corrupted
}

/// Whether `text` is the text of one JSON object.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Walks over JSON-like text and tells for each character whether it stands inside a string.
fn walk(text: &str, mut visit: impl FnMut(char, bool)) -> State {
    let mut state = State { in_string: false, escaped: false };
    for c in text.chars() {
        let inside = state.in_string;
        state.step(c);
        visit(c, inside && state.in_string);
    }
    state
}

struct State {
    in_string: bool,
    escaped: bool,
}

impl State {
    fn step(&mut self, c: char) {
        if self.escaped {
            self.escaped = false;
        } else if self.in_string && c == '\\' {
            self.escaped = true;
        } else if c == '"' {
            self.in_string = !self.in_string;
        }
    }
}

/// Escapes raw control characters inside strings.
fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    walk(text, |c, in_string| match c {
        '\n' if in_string => out.push_str("\\n"),
        '\r' if in_string => out.push_str("\\r"),
        '\t' if in_string => out.push_str("\\t"),
        // The escape that JSON itself would write, without its quotes.
        c if in_string && u32::from(c) < 0x20 => {
            let escaped = serde_json::Value::from(c.to_string()).to_string();
            out.push_str(escaped.trim_matches('"'));
        }
        c => out.push(c),
    });
    out
}

/// Drops commas in front of a closing bracket, and at the end.
fn drop_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // A comma outside a string, with the white space behind it, waits for what follows.
    let mut held = String::new();
    walk(text, |c, in_string| {
        if !held.is_empty() {
            if c.is_whitespace() {
                held.push(c);
                return;
            }
            if matches!(c, '}' | ']') {
                held.remove(0);
            }
            out.push_str(&held);
            held.clear();
        }
        if c == ',' && !in_string {
            held.push(c);
        } else {
            out.push(c);
        }
    });
    out
}

/// Closes what is open at the end and drops closing brackets that nothing opened.
fn balance_brackets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<char> = Vec::new();
    let mut steps = 0;
    let end = walk(text, |c, in_string| {
        match c {
            '{' if !in_string => open.push('}'),
            '[' if !in_string => open.push(']'),
            '}' | ']' if !in_string => {
                if open.last() == Some(&c) {
                    open.pop();
                } else {
                    steps += 1;
                    return;
                }
            }
            _ => {}
        }
        out.push(c);
    });
    if end.escaped {
        out.pop();
    }
    if end.in_string {
        out.push('"');
    }
    let kept = out.trim_end().trim_end_matches(',').len();
    out.truncate(kept);
    if out.ends_with(':') {
        out.push_str("null");
    }
    if steps + open.len() > MAX_BRACKET_STEPS {
        return text.to_owned();
    }
    out.extend(open.into_iter().rev());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_can_be_read_is_kept() {
        for (given, wanted) in [
            ("", "{}"),
            ("  ", "{}"),
            ("None", "{}"),
            ("null", "{}"),
            ("{\"a\":\"x\ny\tz\"}", r#"{"a":"x\ny\tz"}"#),
            (r#"{"a":1,}"#, r#"{"a":1}"#),
            (r#"{"a":[1,2, ],}"#, r#"{"a":[1,2 ]}"#),
            (r#"{"a":"x, }"#, r#"{"a":"x, }"}"#),
            (r#"{"a":{"b":[1,2"#, r#"{"a":{"b":[1,2]}}"#),
            (r#"{"a":"cut\"#, r#"{"a":"cut"}"#),
            (r#"{"a":"#, r#"{"a":null}"#),
            (r#"{"a":1,"#, r#"{"a":1}"#),
            (r#"{"a":1}}"#, r#"{"a":1}"#),
            (r#"{"a":1]}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(repair(given), Arguments::Repaired(wanted.into()), "{given:?}");
        }
    }

    #[test]
    fn objects_are_left_alone_and_the_rest_is_corrupted() {
        for intact in ["{}", " {\"a\" : 1} ", r#"{"a":"\ud800"}"#] {
            assert_eq!(repair(intact), Arguments::Intact, "{intact:?}");
        }
        let deep = format!("{{\"a\":{}", "[".repeat(60));
        for corrupted in ["[1]", "\"x\"", "3", "rm -rf /", "{a:1}", r#"{"a" 1}"#, deep.as_str()] {
            assert_eq!(repair(corrupted), Arguments::Corrupted, "{corrupted:?}");
        }
    }

    proptest! {
        #[test]
        fn a_repair_is_always_an_object_and_never_needs_another(text in r#"[{}\[\]",:\\ \n\ta1é]{0,40}"#) {
            if let Arguments::Repaired(repaired) = repair(&text) {
                prop_assert!(is_object(&repaired), "{repaired}");
                prop_assert_eq!(repair(&repaired), Arguments::Intact);
            }
        }

        #[test]
        fn cutting_an_object_never_breaks_the_repair(text in ".{0,12}", at in 0_usize..40) {
            let whole = serde_json::json!({ "command": text, "n": [1, { "x": null }] }).to_string();
            let cut: String = whole.chars().take(at).collect();
            match repair(&cut) {
                Arguments::Repaired(repaired) => prop_assert!(is_object(&repaired)),
                Arguments::Intact => prop_assert!(is_object(&cut)),
                Arguments::Corrupted => {}
            }
        }
    }
}

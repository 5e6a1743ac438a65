//! Reads the argument text of a live call, with lossless repair only.

use hermes_core::scrub_surrogates;
use serde_json::{Map, Value};

use super::lenient;

/// Characters of the text that an error shows.
const SHOWN_CHARS: usize = 80;

/// Argument text that is not one JSON value, even after lossless repair. The call must not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments are not valid JSON ({reason}, at character {position}); they begin with: {prefix}")]
pub struct ArgumentError {
    /// The first 80 characters of the text.
    pub prefix: String,
    /// Where reading stopped, in characters from the start of the text as the model wrote it.
    pub position: usize,
    /// The text ends in the middle of a value: probably the answer was cut off.
    pub looks_cut_off: bool,
    /// What the parser met.
    pub reason: String,
}

impl ArgumentError {
    /// What the model should do about it.
    pub fn hint(&self) -> &'static str {
        if self.looks_cut_off {
            "The call was cut off and did not run. Send it again in full, with shorter arguments if need be."
        } else {
            "The call did not run. Send it again with arguments that are one valid JSON object."
        }
    }
}

/// Reads argument text. Empty text and `None` mean `{}`; raw control characters inside strings, lone
/// surrogate escapes and trailing commas are repaired; brackets are never closed or dropped.
///
/// The value may be other than an object: the caller refuses that.
///
/// # Errors
/// When the text is not one JSON value after these repairs.
pub fn parse_arguments(text: &str) -> Result<Value, ArgumentError> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "None" {
        return Ok(Value::Object(Map::new()));
    }
    if let Ok(value) = serde_json::from_str(trimmed) {
        return Ok(value);
    }
    let scrubbed = scrub_surrogates(trimmed);
    let repaired = lenient::repair(&scrubbed);
    let attempt = repaired.as_ref().map_or(&*scrubbed, |repaired| repaired.text.as_str());
    serde_json::from_str(attempt).map_err(|error| {
        let offset = byte_offset(attempt, error.line(), error.column());
        let offset = repaired.as_ref().map_or(offset, |repaired| repaired.original_offset(offset));
        // Scrubbing swaps escapes of equal length, so offsets hold in the original text too.
        let leading = text.len() - text.trim_start().len();
        ArgumentError {
            prefix: trimmed.chars().take(SHOWN_CHARS).collect(),
            position: chars_before(text, leading + offset),
            looks_cut_off: error.is_eof(),
            reason: plain_reason(&error),
        }
    })
}

/// The parser's message without its own position, which counts in the repaired text.
fn plain_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// `serde_json` counts lines and columns from 1, columns in bytes.
fn byte_offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len())
}

fn chars_before(text: &str, byte_offset: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < byte_offset).count()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn blank_and_none_are_an_empty_object() {
        for text in ["", "  \n", "None", " None "] {
            assert_eq!(parse_arguments(text).unwrap(), json!({}), "{text:?}");
        }
    }

    #[test]
    fn lossless_repairs_keep_every_character() {
        for (text, want) in [
            ("{\"a\": \"x\ny\"}", json!({"a": "x\ny"})),
            ("{\"a\": \"x\ty\u{1}\"}", json!({"a": "x\ty\u{1}"})),
            ("{\"a\": [1, 2,],}", json!({"a": [1, 2]})),
            ("{\"a\": 1,\n}", json!({"a": 1})),
            ("{\"a\": \"1,}\",}", json!({"a": "1,}"})),
            ("{\"a\": \"\\ud800\"}", json!({"a": "\u{fffd}"})),
            ("{\"a\": true,}", json!({"a": true})),
        ] {
            assert_eq!(parse_arguments(text).unwrap(), want, "{text:?}");
        }
    }

    #[test]
    fn nothing_is_closed_trimmed_or_guessed() {
        for text in [
            "{\"a\": \"rm -rf /tmp/a",
            "{\"a\": 1",
            "{\"a\": 1}}",
            "{,}",
            "[,]",
            "{\"a\":,}",
            "{'a': 1}",
            "{a: 1}",
            "{\"a\": \"x \\\ny\"}",
        ] {
            assert!(parse_arguments(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_error_names_place_and_beginning_and_whether_it_was_cut() {
        let error = parse_arguments("  {\"command\": \"rm -rf /tmp\nx").unwrap_err();
        assert_eq!(error.prefix, "{\"command\": \"rm -rf /tmp\nx");
        assert!(error.looks_cut_off);
        assert_eq!(error.position, 27);
        let error = parse_arguments("{\"é\": tru}").unwrap_err();
        assert!(!error.looks_cut_off);
        assert_eq!(error.position, 9);
        let error = parse_arguments(&"x".repeat(500)).unwrap_err();
        assert_eq!(error.prefix.chars().count(), 80);
    }

    proptest! {
        #[test]
        fn valid_json_is_read_as_it_is(keys in proptest::collection::vec("\\PC{0,6}", 0..5), text in ".{0,40}") {
            let value = json!({ "list": keys, "text": text });
            prop_assert_eq!(parse_arguments(&value.to_string()).unwrap(), value);
        }

        // Every proper prefix of an object lacks its closing bracket: none may ever be accepted.
        #[test]
        fn a_cut_object_is_never_accepted(key in "[a-z]{1,6}", text in ".{0,30}", cut in 1_usize..60) {
            let whole = json!({ key: text, "n": [1, 2] }).to_string();
            let chars: Vec<char> = whole.chars().collect();
            prop_assume!(cut < chars.len());
            let prefix: String = chars.iter().take(cut).collect();
            prop_assert!(parse_arguments(&prefix).is_err());
        }

        #[test]
        fn reading_never_panics(text in "[\\{\\}\\[\\],:\"\\\\a-c\n\t\u{0}-\u{1f}é ]{0,60}") {
            let _ = parse_arguments(&text);
        }
    }
}

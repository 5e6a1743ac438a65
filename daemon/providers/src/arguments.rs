//! Tool-call arguments as text: lossless repair of a live call, and the one canonical form that
//! goes on the wire.
//!
//! Repair never closes or trims a bracket: a cut string must not become a command
//! (spec 30 §3, design §4). The canonical form is compact with sorted keys, so that the same call
//! has the same bytes in every request and after every reload of the history.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hermes_core::scrub_surrogates;
use serde_json::value::RawValue;

/// Whether `text` is one JSON value.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// What became of the arguments of a live call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Checked {
    /// One JSON value, as written or after lossless repair.
    Valid(String),
    /// Does not end like an object or a list: the call was cut off.
    Truncated(String),
    /// Whole to the eye, but not JSON; the intake asks the model again.
    Broken(String),
}

/// Checks the arguments of a live call.
pub(crate) fn check(text: String) -> Checked {
    let text = match scrub_surrogates(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(scrubbed) => scrubbed,
    };
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "None" {
        return Checked::Valid("{}".to_owned());
    }
    if is_json(&text) {
        return Checked::Valid(text);
    }
    let repaired = repair(&text);
    if is_json(&repaired) {
        return Checked::Valid(repaired);
    }
    // Prose in place of arguments was not cut off: the model has to be told.
    let cut_off = trimmed.starts_with(['{', '[']) && !trimmed.ends_with(['}', ']']);
    if cut_off { Checked::Truncated(text) } else { Checked::Broken(text) }
}

/// Escapes control characters inside strings and drops trailing commas.
fn repair(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut in_string = false;
    let mut escaped = false;
    for character in text.chars() {
        if in_string {
            if escaped {
                escaped = false;
                out.push(character);
            } else if character == '\\' {
                escaped = true;
                out.push(character);
            } else if character == '"' {
                in_string = false;
                out.push(character);
            } else if character < ' ' {
                push_escaped_control(&mut out, character);
            } else {
                out.push(character);
            }
            continue;
        }
        match character {
            '"' => in_string = true,
            '}' | ']' => drop_trailing_comma(&mut out),
            _ => {}
        }
        out.push(character);
    }
    out
}

fn push_escaped_control(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        other => {
            const HEX: [char; 16] =
                ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
            let code = other as usize;
            out.push_str("\\u00");
            out.extend([
                HEX.get(code / 16).copied().unwrap_or('0'),
                HEX.get(code % 16).copied().unwrap_or('0'),
            ]);
        }
    }
}

fn drop_trailing_comma(out: &mut String) {
    let kept = out.trim_end().len();
    if out.trim_end().ends_with(',') {
        out.truncate(kept - 1);
    }
}

/// The canonical form of `text`: compact, keys sorted, numbers exactly as written. Text that is not
/// JSON comes back unchanged.
///
/// Applying it twice gives the same text.
pub(crate) fn canonical_arguments(text: &str) -> Cow<'_, str> {
    let scrubbed = scrub_surrogates(text);
    let mut out = String::with_capacity(scrubbed.len());
    match write_canonical(&scrubbed, 0, &mut out) {
        Ok(()) if out == text => Cow::Borrowed(text),
        Ok(()) => Cow::Owned(out),
        Err(_) => Cow::Borrowed(text),
    }
}

/// Deepest nesting that is put in canonical form; deeper text is left as it is.
const MAX_DEPTH: usize = 128;

/// Works on raw pieces instead of a value tree, because a tree would round large numbers.
fn write_canonical(json: &str, depth: usize, out: &mut String) -> Result<(), serde_json::Error> {
    // Raw values are skipped over without recursion, so the parser's own limit does not hold here.
    if depth > MAX_DEPTH {
        return Err(serde::de::Error::custom("nested too deeply"));
    }
    let json = json.trim();
    match json.as_bytes().first() {
        Some(b'{') => {
            // A repeated key keeps its last value, as every JSON reader does.
            let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json)?;
            out.push('{');
            for (position, (key, value)) in fields.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(key)?);
                out.push(':');
                write_canonical(value.get(), depth + 1, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json)?;
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_canonical(item.get(), depth + 1, out)?;
            }
            out.push(']');
        }
        Some(b'"') => {
            let string: Cow<'_, str> = serde_json::from_str(json)?;
            out.push_str(&serde_json::to_string(&string)?);
        }
        _ => {
            let scalar: &RawValue = serde_json::from_str(json)?;
            out.push_str(scalar.get());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn repair_is_lossless_or_does_not_happen() {
        let valid = |text: &str| Checked::Valid(text.to_owned());
        let cases = [
            ("", valid("{}")),
            ("  ", valid("{}")),
            ("None", valid("{}")),
            (r#"{"a":1}"#, valid(r#"{"a":1}"#)),
            (r#"{"a":1,}"#, valid(r#"{"a":1}"#)),
            (r#"{"a":[1,2, ] ,}"#, valid(r#"{"a":[1,2] }"#)),
            ("{\"a\":\"x\ny\u{1}\"}", valid(r#"{"a":"x\ny\u0001"}"#)),
            (r#"{"a":"\ud800"}"#, valid(r#"{"a":"\ufffd"}"#)),
            (r#"{"a":",}"}"#, valid(r#"{"a":",}"}"#)),
            (r#"{"cmd":"rm -rf /tmp/a"#, Checked::Truncated(r#"{"cmd":"rm -rf /tmp/a"#.into())),
            (r#"{"a":"#, Checked::Truncated(r#"{"a":"#.into())),
            (r#"{"a":1"#, Checked::Truncated(r#"{"a":1"#.into())),
            (r"{a:1}", Checked::Broken("{a:1}".into())),
            (r#"{"a":1}}"#, Checked::Broken(r#"{"a":1}}"#.into())),
        ];
        for (text, expected) in cases {
            assert_eq!(check(text.to_owned()), expected, "{text}");
        }
    }

    #[test]
    fn canonical_text_is_compact_sorted_and_keeps_numbers() {
        let text = " { \"b\" : [ 1.0 , 12345678901234567890123 , 1e400 ], \"a\" : { \"z\":null, \"y\" : \"\\u00e4\\/\" } } ";
        assert_eq!(
            canonical_arguments(text),
            r#"{"a":{"y":"ä/","z":null},"b":[1.0,12345678901234567890123,1e400]}"#
        );
        assert_eq!(canonical_arguments(r#"{"a":1,"a":2}"#), r#"{"a":2}"#);
        assert_eq!(canonical_arguments("{broken"), "{broken");
        assert!(matches!(canonical_arguments(r#"{"a":1}"#), Cow::Borrowed(_)));
        let deep = "[ ".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(canonical_arguments(&deep), deep);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_a_fixed_point_with_the_same_meaning(value in json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let once = canonical_arguments(&pretty).into_owned();
            prop_assert_eq!(canonical_arguments(&once), once.as_str());
            let compact = value.to_string();
            prop_assert_eq!(canonical_arguments(&compact), once.as_str());
            prop_assert_eq!(serde_json::from_str::<Value>(&once).unwrap(), value);
        }

        #[test]
        fn repair_never_makes_a_cut_object_whole(value in json(), cut in any::<prop::sample::Index>()) {
            let text = serde_json::json!({ "argument": value }).to_string();
            let cut: String = text.chars().take(cut.index(text.chars().count())).collect();
            let is_empty = cut.trim().is_empty();
            prop_assert!(is_empty || !matches!(check(cut), Checked::Valid(_)));
        }
    }
}

//! The canonical form of tool-call arguments: compact, keys sorted, the same bytes every time (spec 20 §4.1).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Deepest nesting that is re-ordered; deeper arguments are sent as they are.
const MAX_DEPTH: usize = 100;

/// Rewrites JSON `arguments` with sorted keys and without spaces.
///
/// Numbers keep their exact text. Text that is not JSON, or nested deeper than 100 levels, is returned
/// as it is. Of a repeated key the last value counts, as in most parsers.
pub fn canonical_arguments(arguments: &str) -> Cow<'_, str> {
    let Ok(root) = serde_json::from_str::<&RawValue>(arguments) else {
        return Cow::Borrowed(arguments);
    };
    let mut out = String::with_capacity(arguments.len());
    match write_value(root.get(), 0, &mut out) {
        Some(()) if out != arguments => Cow::Owned(out),
        _ => Cow::Borrowed(arguments),
    }
}

/// Appends the canonical form of `json`; `None` when it is too deep or holds text that is not Unicode.
fn write_value(json: &str, depth: usize, out: &mut String) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match json.bytes().next()? {
        b'{' => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
            out.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(&key).ok()?);
                out.push(':');
                write_value(value.get(), depth + 1, out)?;
            }
            out.push('}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            out.push('[');
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item.get(), depth + 1, out)?;
            }
            out.push(']');
        }
        b'"' => out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(json).ok()?).ok()?),
        _ => out.push_str(json),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_sorted_and_spaces_go() {
        for (given, wanted) in [
            (r#"{"b": 1, "a": [ {"z":null, "y":true} ]}"#, r#"{"a":[{"y":true,"z":null}],"b":1}"#),
            (
                r#"{"n": 12345678901234567890123, "f": 1.0, "e": 1e5}"#,
                r#"{"e":1e5,"f":1.0,"n":12345678901234567890123}"#,
            ),
            (r#"{"s":"\u00e9\/"}"#, r#"{"s":"é/"}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (" {} ", "{}"),
            ("{broken", "{broken"),
            ("", ""),
        ] {
            assert_eq!(canonical_arguments(given), wanted, "{given}");
        }
    }

    #[test]
    fn canonical_text_is_borrowed_and_deep_text_is_left_alone() {
        assert!(matches!(canonical_arguments(r#"{"a":1}"#), Cow::Borrowed(_)));
        let deep = format!("{{\"b\":{}{} , \"a\":1}}", "[".repeat(50_000), "]".repeat(50_000));
        assert_eq!(canonical_arguments(&deep), deep);
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            ".{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                proptest::collection::vec((".{0,4}", inner), 0..4)
                    .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_meaning_stays_and_a_second_pass_changes_nothing(value in json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let once = canonical_arguments(&pretty).into_owned();
            prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&once).unwrap(), &value);
            prop_assert_eq!(canonical_arguments(&once).into_owned(), once.clone());
            prop_assert_eq!(canonical_arguments(&value.to_string()).into_owned(), once);
        }
    }
}

//! A value as somebody types it at a command line: JSON, or YAML on one line.

use serde_json::Value;

use crate::tree::Source;
use crate::yaml;

/// Reads a typed value: what is JSON is JSON, what begins with `[` or `{` is a YAML list or map, and anything else a
/// YAML scalar. A text that is none, such as one with `: ` in it, is taken as it is: it is what somebody meant.
///
/// # Errors
/// A list or map that does not parse, with what is wrong.
pub fn typed_value(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::from(""));
    }
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let trimmed = text.trim();
    let parsed = yaml::parse(&format!("value: {trimmed}"), &Source::Flag);
    if trimmed.starts_with(['[', '{']) {
        let node = parsed.map_err(|fault| fault.reason)?;
        return Ok(node.to_value().get("value").cloned().unwrap_or_default());
    }
    let scalar = parsed.ok().and_then(|node| node.to_value().get("value").cloned());
    // A comment would be cut off, and a second line is no scalar.
    let plain = trimmed.contains(" #") || trimmed.contains('\n');
    Ok(match scalar {
        Some(value) if !plain && !value.is_array() && !value.is_object() => value,
        _ => Value::from(text),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_they_are_meant() {
        for (text, value) in [
            ("true", json!(true)),
            ("off", json!("off")),
            ("12", json!(12)),
            ("-3", json!(-3)),
            ("1.5", json!(1.5)),
            ("null", json!(null)),
            ("~", json!(null)),
            ("", json!("")),
            ("\"12\"", json!("12")),
            ("'12'", json!("12")),
            ("gpt-x", json!("gpt-x")),
            ("[a, b]", json!(["a", "b"])),
            ("[\"a\", 1]", json!(["a", 1])),
            ("{a: 1}", json!({"a": 1})),
            ("be brief: no lists", json!("be brief: no lists")),
            ("colour #1", json!("colour #1")),
            ("two\nlines", json!("two\nlines")),
            ("*", json!("*")),
            ("rm -rf *", json!("rm -rf *")),
            ("- a", json!("- a")),
        ] {
            assert_eq!(typed_value(text), Ok(value), "{text:?}");
        }
        assert!(typed_value("[a, b").is_err());
    }
}

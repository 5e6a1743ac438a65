//! What makes two calls the same call: the tool, and its arguments whatever the order they were written in.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Hex digits of the hash that are shown.
const SHOWN_DIGITS: usize = 16;

/// A tool's name and the SHA-256 of its canonical arguments: sorted, compact JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Signature {
    pub(super) tool: String,
    arguments: [u8; 32],
}

impl Signature {
    pub(super) fn of(tool: &str, arguments: &Value) -> Self {
        let mut canonical = String::new();
        write_canonical(arguments, &mut canonical);
        Self { tool: tool.to_owned(), arguments: Sha256::digest(canonical.as_bytes()).into() }
    }

    /// The signature as results and logs name it.
    pub(super) fn shown(&self) -> String {
        let mut out = format!("{}:", self.tool);
        for byte in self.arguments.iter().take(SHOWN_DIGITS / 2) {
            let _ = write!(out, "{byte:02x}");
        }
        out
    }
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (at, (name, field)) in fields.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}:", Value::String(name.clone()));
                write_canonical(field, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_does_not_make_another_call() {
        let one = Signature::of("t", &serde_json::from_str(r#"{"a":1,"b":{"x":[1,2],"y":"é"}}"#).unwrap());
        let same =
            Signature::of("t", &serde_json::from_str(r#"{"b":{"y":"\u00e9","x":[1,2]},"a":1}"#).unwrap());
        assert_eq!(one, same);
        assert_ne!(one, Signature::of("t", &json!({ "a": 1, "b": { "x": [2, 1], "y": "é" } })));
        assert_ne!(one, Signature::of("u", &json!({ "a": 1, "b": { "x": [1, 2], "y": "é" } })));
        assert!(one.shown().starts_with("t:") && one.shown().len() == 2 + SHOWN_DIGITS);
    }
}

//! Values as they are written into a line.

use serde_json::Value;

use crate::render::to_yaml;

/// A value on one line.
pub(super) fn inline(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => scalar(text, false),
        Value::Array(_) | Value::Object(_) => flow(value),
    }
}

/// A value inside `[…]` or `{…}`.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text, true),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(name, value)| format!("{}: {}", key(name), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => inline(other),
    }
}

/// A key.
pub(super) fn key(name: &str) -> String {
    scalar(name, true)
}

fn scalar(text: &str, in_flow: bool) -> String {
    let written = to_yaml(&Value::from(text));
    let line = written.trim_end_matches('\n');
    let quoted = line.starts_with('"');
    let delicate = in_flow && !quoted && line.contains([',', '[', ']', '{', '}', ':', '#', '\'']);
    if line.is_empty() || line.contains('\n') || delicate {
        // JSON's quoting is YAML's.
        return Value::from(text).to_string();
    }
    line.to_owned()
}

//! Takes fitted arguments apart. What the schema requires is there; a value that is not counts as absent.

use serde_json::Value;

/// A text, empty when absent.
pub(crate) fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A count, if given; negative numbers count as 0.
pub(crate) fn count(arguments: &Value, name: &str) -> Option<usize> {
    let number = arguments.get(name)?.as_i64()?;
    Some(usize::try_from(number).unwrap_or(0))
}

/// A switch, off when absent.
pub(crate) fn flag(arguments: &Value, name: &str) -> bool {
    arguments.get(name).and_then(Value::as_bool).unwrap_or(false)
}

//! Stage 1: the call's text becomes arguments, with lossless repair only (spec 40 §3.1).

use hermes_core::ToolCall;
use serde_json::Value;

use super::refusal::Refusal;
use crate::arguments::parse_arguments;

/// A call whose arguments are a JSON object.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) name: String,
    pub(super) arguments: Value,
}

pub(super) fn run(call: &ToolCall) -> Result<Parsed, Refusal> {
    let arguments = object(&call.arguments)?;
    Ok(Parsed { name: call.name.clone(), arguments })
}

/// Reads argument text that must be an object.
pub(super) fn object(text: &str) -> Result<Value, Refusal> {
    let arguments = parse_arguments(text)
        .map_err(|error| Refusal::wrong("invalid_arguments", format!("{error}. {}", error.hint())))?;
    if !arguments.is_object() {
        return Err(Refusal::wrong(
            "invalid_arguments",
            format!("the arguments must be a JSON object, not {}", kind(&arguments)),
        ));
    }
    Ok(arguments)
}

/// How an error names a value's type.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

//! Stage 2: a call through the bridge becomes the call that it carries (spec 40 §4).
//!
//! Only a session whose authority list names the bridge has one; elsewhere `tool_call` is a name like
//! any other, and unknown.

use serde_json::Value;

use super::parse::{self, Parsed};
use super::refusal::Refusal;
use crate::registry::{BRIDGE, SessionTools};

const CALL: &str = "tool_call";

/// A call of the tool that is really meant.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) name: String,
    pub(super) arguments: Value,
}

pub(super) fn run(parsed: Parsed, tools: &SessionTools) -> Result<Direct, Refusal> {
    let Parsed { name, mut arguments } = parsed;
    if name != CALL || !tools.allows(CALL) {
        return Ok(Direct { name, arguments });
    }
    let wrong = |message: String| Refusal::wrong("invalid_arguments", message);
    let inner = match arguments.get("name").and_then(Value::as_str).map(str::trim) {
        Some(inner) if !inner.is_empty() => inner.to_owned(),
        _ => return Err(wrong("missing required parameter `name`: the tool to call".to_owned())),
    };
    if BRIDGE.contains(&inner.as_str()) {
        return Err(wrong(format!("`{inner}` is called directly, not through {CALL}")));
    }
    let arguments = match arguments.get_mut("arguments").map(Value::take) {
        None => parse::object("")?,
        Some(Value::String(text)) => parse::object(&text)?,
        Some(value) if value.is_object() => value,
        Some(other) => {
            return Err(wrong(format!("`arguments` must be a JSON object, not {}", parse::kind(&other))));
        }
    };
    Ok(Direct { name: inner, arguments })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn unwrapped(names: &[&str], arguments: Value) -> Result<(String, Value), Value> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let tools = SessionTools::restore(names, "[]").unwrap();
        run(Parsed { name: CALL.to_owned(), arguments }, &tools)
            .map(|direct| (direct.name, direct.arguments))
            .map_err(|refusal| refusal.content["error"].clone())
    }

    #[test]
    fn a_bridge_call_is_the_call_that_it_carries() {
        let bridge = ["tool_call"];
        for (arguments, want) in [
            (json!({ "name": "x", "arguments": { "a": 1 } }), Ok(("x".to_owned(), json!({ "a": 1 })))),
            (json!({ "name": "x", "arguments": "{\"a\": 1}" }), Ok(("x".to_owned(), json!({ "a": 1 })))),
            (json!({ "name": "x" }), Ok(("x".to_owned(), json!({})))),
            (json!({}), Err(json!("missing required parameter `name`: the tool to call"))),
            (
                json!({ "name": "tool_call" }),
                Err(json!("`tool_call` is called directly, not through tool_call")),
            ),
            (
                json!({ "name": "x", "arguments": [1] }),
                Err(json!("`arguments` must be a JSON object, not an array")),
            ),
        ] {
            assert_eq!(unwrapped(&bridge, arguments.clone()), want, "{arguments}");
        }
    }

    #[test]
    fn without_a_bridge_the_name_is_just_a_name() {
        assert_eq!(unwrapped(&[], json!({ "name": "x" })), Ok((CALL.to_owned(), json!({ "name": "x" }))));
    }
}

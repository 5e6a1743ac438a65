//! Checks arguments against the schema that the model saw, and says which parameter is wrong.

use serde_json::Value;

use super::schema_type::{Branches, accepts, branches, describe};

/// Characters of a wrong value that an error shows.
const SHOWN_CHARS: usize = 60;

/// The first thing wrong with `arguments`, in words for the model: a missing required parameter, a
/// value of the wrong type, or one outside an enum. Parameters that the schema does not know pass.
pub(crate) fn validate(arguments: &Value, schema: &Value) -> Result<(), String> {
    check(arguments, schema, "")
}

fn check(value: &Value, schema: &Value, path: &str) -> Result<(), String> {
    if !accepts(value, schema) {
        return Err(format!("parameter `{path}` must be {}, not {}", describe(schema), shown(value)));
    }
    if let Branches::Nodes(nodes) = branches(schema) {
        // The value fits at least one branch; it is right when it is right in any of those.
        let mut problems =
            nodes.iter().filter(|node| accepts(value, node)).map(|node| check(value, node, path));
        return match problems.next() {
            Some(Err(first)) if !problems.any(|problem| problem.is_ok()) => Err(first),
            _ => Ok(()),
        };
    }
    match value {
        Value::Object(members) => {
            for name in required(schema) {
                if !members.contains_key(name) {
                    return Err(format!("missing required parameter `{}`", joined(path, name)));
                }
            }
            let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
            members.iter().try_for_each(|(name, member)| match properties.get(name) {
                Some(property) => check(member, property, &joined(path, name)),
                None => Ok(()),
            })
        }
        Value::Array(items) => match schema.get("items") {
            Some(item_schema) => items
                .iter()
                .enumerate()
                .try_for_each(|(at, item)| check(item, item_schema, &format!("{path}[{at}]"))),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN_CHARS {
        return text;
    }
    let mut cut: String = text.chars().take(SHOWN_CHARS).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "mode": { "type": "string", "enum": ["content", "files"] },
                "items": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } },
            },
            "required": ["path"],
        })
    }

    #[test]
    fn errors_name_the_parameter_and_what_is_allowed() {
        for (arguments, want) in [
            (json!({}), "missing required parameter `path`"),
            (json!({ "path": 3 }), "parameter `path` must be a string, not 3"),
            (
                json!({ "path": "a", "mode": "lines" }),
                "parameter `mode` must be one of \"content\", \"files\", not \"lines\"",
            ),
            (json!({ "path": "a", "items": [{}] }), "missing required parameter `items[0].n`"),
            (
                json!({ "path": "a", "items": [{ "n": "x" }] }),
                "parameter `items[0].n` must be an integer, not \"x\"",
            ),
        ] {
            assert_eq!(validate(&arguments, &schema()), Err(want.to_owned()));
        }
    }

    #[test]
    fn what_the_schema_does_not_know_passes() {
        assert_eq!(validate(&json!({ "path": "a", "extra": 1 }), &schema()), Ok(()));
    }
}

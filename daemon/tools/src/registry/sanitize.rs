//! Makes a parameter schema one that every provider takes, on a copy (spec 40 §1.5).

use serde_json::{Map, Value, json};

/// Keywords whose value is data, never a schema.
const DATA_KEYS: [&str; 4] = ["required", "enum", "examples", "default"];

/// Keywords that a union's one real branch inherits from the union.
const CARRIED: [&str; 4] = ["title", "description", "default", "examples"];

/// The sanitised copy of a tool's parameter schema.
pub(crate) fn sanitize(parameters: &Value) -> Value {
    let Value::Object(_) = parameters else { return json!({ "type": "object", "properties": {} }) };
    let mut schema = node(parameters);
    if let Value::Object(root) = &mut schema {
        for key in ["allOf", "anyOf", "oneOf", "enum", "not"] {
            root.remove(key);
        }
        root.entry("type").or_insert_with(|| "object".into());
        root.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

fn node(schema: &Value) -> Value {
    match schema {
        // `"string"` where a schema belongs.
        Value::String(name) => {
            object_gets_properties(Map::from_iter([("type".to_owned(), name.clone().into())]))
        }
        Value::Object(members) => {
            Value::Object(members.clone()).pipe(collapse_union).pipe(split_types).pipe(recurse)
        }
        other => other.clone(),
    }
}

/// Lets the passes over a node read in their order.
trait Pipe: Sized {
    fn pipe(self, pass: impl FnOnce(Self) -> Self) -> Self {
        pass(self)
    }
}

impl Pipe for Value {}

/// `anyOf: [X, null]` is X that may be null.
fn collapse_union(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = members.get(key) else { continue };
        let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
        let nullable = branches.iter().any(|branch| is_null(&branch));
        let mut real = branches.iter().filter(|branch| !is_null(branch));
        let (Some(Value::Object(only)), None) = (real.next(), real.next()) else { continue };
        let mut merged = only.clone();
        for name in CARRIED {
            if let Some(carried) = members.get(name) {
                merged.insert(name.to_owned(), carried.clone());
            }
        }
        if nullable {
            merged.insert("nullable".to_owned(), true.into());
        }
        members = merged;
        // The branch may be a union itself.
        return collapse_union(Value::Object(members));
    }
    Value::Object(members)
}

/// `type: [X, "null"]` is nullable X; several real types become `anyOf`.
fn split_types(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    if let Some(Value::Array(types)) = members.get("type").cloned() {
        let real: Vec<Value> = types.iter().filter(|name| name.as_str() != Some("null")).cloned().collect();
        if real.len() < types.len() {
            members.insert("nullable".to_owned(), true.into());
        }
        match real.as_slice() {
            [] => {
                members.remove("type");
            }
            [only] => {
                members.insert("type".to_owned(), only.clone());
            }
            several => {
                members.remove("type");
                let branches = several.iter().map(|name| json!({ "type": name })).collect::<Vec<_>>();
                members.insert("anyOf".to_owned(), branches.into());
            }
        }
    }
    if members.contains_key("$ref") {
        members.remove("default");
    }
    object_gets_properties(members)
}

fn object_gets_properties(mut members: Map<String, Value>) -> Value {
    if members.get("type").and_then(Value::as_str) == Some("object") {
        members.entry("properties").or_insert_with(|| json!({}));
    }
    Value::Object(members)
}

fn recurse(schema: Value) -> Value {
    let Value::Object(members) = schema else { return schema };
    let visited = members.into_iter().map(|(key, value)| {
        let value = match (key.as_str(), value) {
            (key, value) if DATA_KEYS.contains(&key) => value,
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
                Value::Object(named.into_iter().map(|(name, child)| (name, node(&child))).collect())
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(branches)) => {
                branches.iter().map(node).collect::<Vec<_>>().into()
            }
            ("items" | "additionalProperties" | "not", value) => node(&value),
            (_, value) => value,
        };
        (key, value)
    });
    Value::Object(visited.collect())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_documented_shapes_are_made_plain() {
        for (given, want) in [
            (json!(null), json!({ "type": "object", "properties": {} })),
            (json!({ "type": "object" }), json!({ "type": "object", "properties": {} })),
            (
                json!({ "type": "object", "properties": { "a": "object", "b": { "type": ["integer", "null"] } } }),
                json!({ "type": "object", "properties": {
                    "a": { "type": "object", "properties": {} },
                    "b": { "type": "integer", "nullable": true },
                } }),
            ),
            (
                json!({ "type": "object", "properties": { "a": { "type": ["integer", "string"] } } }),
                json!({ "type": "object", "properties": {
                    "a": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                } }),
            ),
            (
                json!({ "type": "object", "properties": { "a": {
                    "description": "d", "anyOf": [{ "type": "string" }, { "type": "null" }],
                } } }),
                json!({ "type": "object", "properties": { "a": {
                    "type": "string", "description": "d", "nullable": true,
                } } }),
            ),
            (
                json!({ "type": "object", "properties": { "a": { "$ref": "#/x", "default": 1 } }, "oneOf": [] }),
                json!({ "type": "object", "properties": { "a": { "$ref": "#/x" } } }),
            ),
        ] {
            assert_eq!(sanitize(&given), want);
        }
    }

    #[test]
    fn data_that_looks_like_a_schema_stays() {
        let given = json!({ "type": "object", "properties": {
            "enum": { "type": "string", "enum": ["object", "string"], "examples": ["object"] },
        }, "required": ["enum"] });
        assert_eq!(sanitize(&given), given);
    }

    #[test]
    fn sanitising_twice_changes_nothing() {
        let given = json!({ "properties": { "a": { "anyOf": [{ "type": ["object", "null"] }, { "type": "null" }] } } });
        let once = sanitize(&given);
        assert_eq!(sanitize(&once), once);
    }
}

//! What a schema node accepts, as far as arguments need it: types, unions, enums.

use serde_json::Value;

/// The branches of a node: its union members, or its type list spelt as one branch each, or itself.
pub(super) enum Branches<'a> {
    /// One node with at most one type.
    One(Option<&'a str>),
    /// `type: [..]`: the same node under several types.
    Types(Vec<&'a str>),
    /// `anyOf` or `oneOf`.
    Nodes(&'a [Value]),
}

pub(super) fn branches(schema: &Value) -> Branches<'_> {
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(nodes)) = schema.get(key) {
            return Branches::Nodes(nodes);
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => Branches::One(Some(name)),
        Some(Value::Array(names)) => Branches::Types(names.iter().filter_map(Value::as_str).collect()),
        _ => Branches::One(None),
    }
}

/// Whether `value` has the JSON type that a schema calls `name`. Unknown names accept everything.
pub(super) fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// Whether the value is acceptable to the node itself, not looking into its members.
pub(super) fn accepts(value: &Value, schema: &Value) -> bool {
    if value.is_null() && allows_null(schema) {
        return true;
    }
    let typed = match branches(schema) {
        Branches::One(name) => name.is_none_or(|name| has_type(value, name)),
        Branches::Types(names) => names.iter().any(|name| has_type(value, name)),
        Branches::Nodes(nodes) => nodes.iter().any(|node| accepts(value, node)),
    };
    typed && allowed_values(schema).is_none_or(|allowed| allowed.contains(value))
}

/// Whether `null` is a value of this node.
pub(super) fn allows_null(schema: &Value) -> bool {
    if schema.get("nullable").and_then(Value::as_bool) == Some(true) {
        return true;
    }
    match branches(schema) {
        Branches::One(name) => name == Some("null"),
        Branches::Types(names) => names.contains(&"null"),
        Branches::Nodes(nodes) => nodes.iter().any(allows_null),
    }
}

/// The values of an `enum`.
pub(super) fn allowed_values(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("enum").and_then(Value::as_array)
}

/// How an error names what is expected.
pub(super) fn describe(schema: &Value) -> String {
    if let Some(allowed) = allowed_values(schema) {
        let listed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return format!("one of {}", listed.join(", "));
    }
    match branches(schema) {
        Branches::One(Some(name)) => with_article(name),
        Branches::One(None) => "another value".to_owned(),
        Branches::Types(names) => names.join(" or "),
        Branches::Nodes(nodes) => nodes.iter().map(describe).collect::<Vec<_>>().join(" or "),
    }
}

fn with_article(name: &str) -> String {
    let article = if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {name}")
}

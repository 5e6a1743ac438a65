//! Fits arguments to their schema where a model wrote the right value in the wrong JSON type.
//!
//! A value changes only when it does not fit and when exactly the same information fits in the
//! type that is asked for; otherwise it stays and validation reports it.

use serde_json::{Map, Number, Value};

use super::schema_type::{Branches, accepts, allows_null, branches, has_type};

/// Fits `value` to `schema`, recursively. Never fails: what cannot be fitted stays as it is.
pub(crate) fn coerce(value: &mut Value, schema: &Value) {
    if !accepts(value, schema)
        && let Some(fitted) = fit(value, schema)
    {
        *value = fitted;
    }
    match branches(schema) {
        Branches::Nodes(nodes) => {
            if let Some(node) = nodes.iter().find(|node| accepts(value, node)) {
                coerce(value, node);
            }
        }
        Branches::One(_) | Branches::Types(_) => coerce_members(value, schema),
    }
}

fn coerce_members(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => coerce_properties(members, schema),
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for item in items {
                    coerce(item, item_schema);
                }
            }
        }
        _ => {}
    }
}

fn coerce_properties(members: &mut Map<String, Value>, schema: &Value) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|required| required.as_str() == Some(name)))
    };
    members.retain(|name, value| match properties.get(name) {
        // `null` for an optional parameter is how many models say "not given".
        Some(property) => !(value.is_null() && !allows_null(property) && !required(name)),
        None => true,
    });
    for (name, value) in members {
        if let Some(property) = properties.get(name) {
            coerce(value, property);
        }
    }
}

/// The same value in a type that the node accepts, or `None`.
fn fit(value: &Value, schema: &Value) -> Option<Value> {
    let fitted = match branches(schema) {
        Branches::Nodes(nodes) => return nodes.iter().find_map(|node| fit(value, node)),
        Branches::Types(names) => names.iter().find_map(|name| fit_type(value, name)),
        Branches::One(name) => name.and_then(|name| fit_type(value, name)),
    }
    .or_else(|| (value.as_str() == Some("null") && allows_null(schema)).then_some(Value::Null))?;
    accepts(&fitted, schema).then_some(fitted)
}

fn fit_type(value: &Value, name: &str) -> Option<Value> {
    match (name, value) {
        ("integer", Value::String(text)) => integer(text),
        ("integer", Value::Number(number)) => number.as_f64().and_then(whole),
        ("number", Value::String(text)) => number(text),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        ("null", Value::String(text)) if text == "null" => Some(Value::Null),
        ("array" | "object", Value::String(text)) => container(text, name),
        ("array", Value::Number(_) | Value::Bool(_)) => Some(Value::Array(vec![value.clone()])),
        _ => None,
    }
}

fn integer(text: &str) -> Option<Value> {
    if let Ok(signed) = text.parse::<i64>() {
        return Some(signed.into());
    }
    if let Ok(unsigned) = text.parse::<u64>() {
        return Some(unsigned.into());
    }
    text.parse::<f64>().ok().and_then(whole)
}

/// A whole number, as long as every digit of it is exact in a double.
fn whole(number: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked in the same expression")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then(|| Value::from(number as i64))
}

fn number(text: &str) -> Option<Value> {
    if let Ok(signed) = text.parse::<i64>() {
        return Some(signed.into());
    }
    // `parse` also reads `inf` and `nan`, which JSON has no numbers for.
    let parsed = text.parse::<f64>().ok()?;
    whole(parsed).or_else(|| Number::from_f64(parsed).map(Value::Number))
}

fn container(text: &str, name: &str) -> Option<Value> {
    let trimmed = text.trim_start();
    if let Ok(parsed) = serde_json::from_str::<Value>(text)
        && has_type(&parsed, name)
    {
        return Some(parsed);
    }
    // Text that starts like a list but is not one is a broken list, not a list of one text.
    (name == "array" && !trimmed.starts_with(['[', '{'])).then(|| Value::Array(vec![text.into()]))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn coerced(mut value: Value, schema: &Value) -> Value {
        coerce(&mut value, schema);
        value
    }

    #[test]
    fn scalars_in_text_become_what_the_schema_asks_for() {
        for (text, kind, want) in [
            ("42", "integer", json!(42)),
            ("3.0", "integer", json!(3)),
            ("3.5", "integer", json!("3.5")),
            ("3.5", "number", json!(3.5)),
            ("3.0", "number", json!(3)),
            ("nan", "number", json!("nan")),
            ("inf", "number", json!("inf")),
            ("1e400", "number", json!("1e400")),
            ("99999999999999999999", "integer", json!("99999999999999999999")),
            ("TRUE", "boolean", json!(true)),
            ("yes", "boolean", json!("yes")),
            ("null", "string", json!("null")),
            ("7", "string", json!("7")),
        ] {
            assert_eq!(coerced(json!(text), &json!({ "type": kind })), want, "{text} as {kind}");
        }
        assert_eq!(coerced(json!(3.0), &json!({ "type": "integer" })), json!(3));
        assert_eq!(coerced(json!(3.5), &json!({ "type": "integer" })), json!(3.5));
    }

    #[test]
    fn json_in_text_is_opened_to_any_depth() {
        let schema = json!({
            "type": "object",
            "properties": { "list": { "type": "array", "items": { "type": "integer" } } },
        });
        assert_eq!(coerced(json!({ "list": "[\"1\", 2]" }), &schema), json!({ "list": [1, 2] }));
        assert_eq!(coerced(json!("{\"list\": \"3\"}"), &schema), json!({ "list": [3] }));
        assert_eq!(coerced(json!({ "list": "[1, 2" }), &schema), json!({ "list": "[1, 2" }));
    }

    #[test]
    fn one_scalar_where_a_list_is_asked_for_becomes_a_list_of_one() {
        let schema = json!({ "type": "array", "items": { "type": "string" } });
        assert_eq!(coerced(json!("a"), &schema), json!(["a"]));
        assert_eq!(coerced(json!({ "a": 1 }), &schema), json!({ "a": 1 }));
    }

    #[test]
    fn null_in_text_and_null_for_an_optional_parameter() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": "integer", "nullable": true },
                "b": { "type": "integer" },
                "c": { "type": "integer" },
            },
            "required": ["c"],
        });
        assert_eq!(
            coerced(json!({ "a": "null", "b": null, "c": null }), &schema),
            json!({ "a": null, "c": null }),
        );
    }

    #[test]
    fn unions_take_the_first_type_that_fits() {
        let schema = json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }] });
        assert_eq!(coerced(json!("5"), &schema), json!(5));
        assert_eq!(coerced(json!("false"), &schema), json!(false));
        assert_eq!(coerced(json!("x"), &schema), json!("x"));
        let listed = json!({ "type": ["string", "null"] });
        assert_eq!(coerced(json!("null"), &listed), json!("null"));
    }

    fn leaf() -> impl Strategy<Value = Value> {
        prop_oneof![
            "[ -~é]{0,12}".prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
        ]
    }

    proptest! {
        // What comes out is what went in: the same text when printed, or one element around it.
        #[test]
        fn coercion_never_invents(value in leaf(), kind in prop_oneof!["string", "integer", "number", "boolean", "array", "object"]) {
            let out = coerced(value.clone(), &json!({ "type": kind }));
            let plain = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
            let same = match (&value, &out) {
                (before, after) if before == after => true,
                (before, Value::Array(items)) if items.len() == 1 => {
                    items.first() == Some(before) || serde_json::from_str(&plain(before)).ok() == Some(out.clone())
                }
                (Value::String(text), Value::Bool(flag)) => text.eq_ignore_ascii_case(&flag.to_string()),
                (before, Value::Number(number)) => {
                    number.as_f64() == plain(before).parse::<f64>().ok()
                }
                (Value::String(text), after) => serde_json::from_str::<Value>(text).ok().as_ref() == Some(after),
                _ => false,
            };
            prop_assert!(same, "{value} became {out} for {kind}");
        }

        #[test]
        fn what_fits_is_left_alone(value in leaf()) {
            let kind = match &value {
                Value::String(_) => "string",
                Value::Bool(_) => "boolean",
                Value::Null => "null",
                Value::Number(_) => "number",
                _ => "object",
            };
            prop_assert_eq!(coerced(value.clone(), &json!({ "type": kind })), value);
        }
    }
}

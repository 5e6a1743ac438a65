//! The `tool_calls` column: a JSON list in the shape of chat completions, as the original wrote it.
//!
//! A call's arguments are a JSON string and survive byte for byte, broken or not. What only the
//! provider understands stands as raw JSON under `provider_data`; the original put such fields
//! (`call_id`, `response_item_id`, `extra_content`) beside `id`, which is read too.

use hermes_core::{Json, ToolCall, ToolCallId, scrub_surrogates};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[derive(Serialize)]
struct StoredCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: StoredFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_data: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct StoredFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The column's value; NULL when there are no calls.
pub(super) fn encode(calls: &[ToolCall]) -> Option<String> {
    if calls.is_empty() {
        return None;
    }
    let raw: Vec<Option<&RawValue>> = calls
        .iter()
        .map(|call| call.provider_data.as_ref().and_then(|data| serde_json::from_str(data.as_str()).ok()))
        .collect();
    let stored: Vec<StoredCall<'_>> = calls
        .iter()
        .zip(raw)
        .map(|(call, provider_data)| StoredCall {
            id: call.id.as_str(),
            r#type: "function",
            function: StoredFunction { name: &call.name, arguments: &call.arguments },
            provider_data,
        })
        .collect();
    serde_json::to_string(&stored).ok()
}

/// Reads the column's value. A list that cannot be read counts as empty: its results are then
/// dropped from the next request by the repair of orphans, which is better than no transcript.
pub(super) fn decode(stored: &str) -> Vec<ToolCall> {
    let scrubbed = scrub_surrogates(stored);
    let list: Vec<Box<RawValue>> = match serde_json::from_str(&scrubbed) {
        Ok(list) => list,
        Err(error) => {
            if !matches!(stored, "" | "null") {
                tracing::warn!(%error, "a stored list of tool calls cannot be read");
            }
            return Vec::new();
        }
    };
    list.iter().filter_map(|call| decode_call(call.get())).collect()
}

fn decode_call(call_text: &str) -> Option<ToolCall> {
    // RawValue does not pass through serde's flatten, so the raw field is read by itself.
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow, default)]
        provider_data: Option<&'a RawValue>,
    }
    let mut fields: Map<String, Value> = serde_json::from_str(call_text).ok()?;
    let provider_data = match fields.remove("provider_data") {
        None | Some(Value::Null) => None,
        Some(_) => serde_json::from_str::<Raw<'_>>(call_text).ok()?.provider_data.map(RawValue::get),
    };
    let function = match fields.remove("function") {
        Some(Value::Object(function)) => function,
        _ => Map::new(),
    };
    let id = as_text(fields.remove("id"));
    let name = as_text(function.get("name").cloned());
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    fields.retain(|key, value| key != "type" && key != "index" && !value.is_null());
    let provider_data = match provider_data {
        Some(raw) => Json::parse(raw).ok(),
        None if fields.is_empty() => None,
        None => Some(Json::from(Value::Object(fields))),
    };
    Some(ToolCall { id: ToolCallId::new(id), name, arguments, provider_data })
}

fn as_text(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    fn any_call() -> impl Strategy<Value = ToolCall> {
        let data = prop_oneof![
            Just(None),
            Just(Some(Json::parse("{\"call_id\": \"c\", \"n\": 1.50}").unwrap())),
            Just(Some(Json::parse("[1e2, null]").unwrap())),
        ];
        (any::<String>(), any::<String>(), any::<String>(), data).prop_map(
            |(id, name, arguments, provider_data)| ToolCall {
                id: ToolCallId::new(id),
                name,
                arguments,
                provider_data,
            },
        )
    }

    proptest! {
        #[test]
        fn calls_round_trip_byte_for_byte(calls in proptest::collection::vec(any_call(), 1..4)) {
            let stored = encode(&calls).unwrap();
            prop_assert_eq!(decode(&stored), calls);
        }

        #[test]
        fn any_stored_text_can_be_read(stored in any::<String>()) {
            let _ = decode(&stored);
        }
    }

    #[test]
    fn no_calls_are_null() {
        assert_eq!(encode(&[]), None);
    }

    #[test]
    fn the_originals_calls_are_read() {
        let stored = r#"[{"id": "call_1", "type": "function", "call_id": "fc_9",
            "function": {"name": "read_file", "arguments": "{\"path\": \"a\"}"}},
            {"function": {"name": "x", "arguments": {"a": 1}}}, 7]"#;
        assert_eq!(
            decode(stored),
            [
                ToolCall {
                    id: ToolCallId::new("call_1"),
                    name: "read_file".into(),
                    arguments: "{\"path\": \"a\"}".into(),
                    provider_data: Some(Json::parse("{\"call_id\":\"fc_9\"}").unwrap()),
                },
                ToolCall {
                    id: ToolCallId::new(""),
                    name: "x".into(),
                    arguments: "{\"a\":1}".into(),
                    provider_data: None
                },
            ]
        );
    }
}

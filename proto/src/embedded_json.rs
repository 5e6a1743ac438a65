//! Serde of [`crate::v1::Json`]: a JSON string on gRPC, the value itself in JSON encodings.

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
use serde_json::value::RawValue;

pub(crate) fn serialize<S: Serializer>(raw: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_str::<&RawValue>(raw) {
        Ok(value) => value.serialize(serializer),
        Err(_) => raw.serialize(serializer),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(serde_json::Value::deserialize(deserializer)?.to_string())
}

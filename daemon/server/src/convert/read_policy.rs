//! Contract → core: edits that are accepted, and settings that are written.

use hermes_proto::v1 as wire;
use serde_json::Value;

use super::field::{InvalidField, name};
use crate::policy_desk::WaitingEdit;

/// Edits as they were shown.
pub(crate) fn edits(request: wire::AcceptEditsRequest) -> Result<Vec<WaitingEdit>, InvalidField> {
    request
        .edits
        .into_iter()
        .map(|edit| {
            Ok(WaitingEdit {
                key: name("edits.key", &edit.key)?,
                in_force: json("edits.in_force", edit.in_force)?,
                in_file: json("edits.in_file", edit.in_file)?,
            })
        })
        .collect()
}

/// A key and its value; no value takes the key out.
pub(crate) fn setting(request: wire::SetConfigRequest) -> Result<(String, Option<Value>), InvalidField> {
    Ok((name("key", &request.key)?, json("value", request.value)?))
}

fn json(field: &'static str, value: Option<wire::Json>) -> Result<Option<Value>, InvalidField> {
    value
        .map(|json| serde_json::from_str(&json.raw))
        .transpose()
        .map_err(|error| InvalidField::new(field, format!("is no JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_json_and_its_absence_is_no_null() {
        let ask = |raw: Option<&str>| {
            setting(wire::SetConfigRequest {
                key: "a.b".into(),
                value: raw.map(|raw| wire::Json { raw: raw.into() }),
            })
        };
        assert_eq!(ask(Some("[1]")).unwrap(), ("a.b".into(), Some(json!([1]))));
        assert_eq!(ask(Some("null")).unwrap().1, Some(Value::Null));
        assert_eq!(ask(None).unwrap().1, None);
        assert_eq!(ask(Some("{")).unwrap_err().field, "value");
        assert_eq!(setting(wire::SetConfigRequest::default()).unwrap_err().field, "key");
    }
}

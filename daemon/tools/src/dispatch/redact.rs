//! Secrets are masked in every text of a result, before anybody sees it (spec 40 §10.3).

use std::borrow::Cow;

use hermes_runtime::Redactor;
use serde_json::Value;

/// Masks secrets in all strings of `value`. Works on the texts themselves, not on their JSON spelling:
/// a rule that looks at line starts or quotes would not hold there.
pub(super) fn run(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(masked) = redactor.redact(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| run(item, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|field| run(field, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

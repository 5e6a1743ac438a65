//! Free JSON that travels as text.

use std::fmt;

use serde_json::Value;

/// One valid JSON value, kept as its text so that nothing on the way re-orders or re-formats it.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

/// Text that is not one JSON value.
#[derive(Debug, thiserror::Error)]
#[error("not valid JSON: {0}")]
pub struct InvalidJson(#[from] serde_json::Error);

impl Json {
    /// Checks `text` and keeps it as it is.
    pub fn parse(text: impl Into<Box<str>>) -> Result<Self, InvalidJson> {
        let text = text.into();
        serde_json::from_str::<serde::de::IgnoredAny>(&text)?;
        Ok(Self(text))
    }

    /// The value's JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value as a tree.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

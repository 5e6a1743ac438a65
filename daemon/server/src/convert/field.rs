//! Checks that all readers share, and the error that names the field.

use hermes_core::{PromptId, SessionId, TurnId};
use tonic::Status;

use crate::error::shorten;

/// Longest free-form name (a platform, a source, a toolset, a model) in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Longest reason: it may repeat what the caller sent.
const MAX_REASON_BYTES: usize = 300;

/// A wire field that does not hold what the contract asks for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub(crate) struct InvalidField {
    pub(crate) field: &'static str,
    pub(crate) reason: String,
}

impl InvalidField {
    pub(crate) fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, reason: shorten(&reason.into(), MAX_REASON_BYTES).into_owned() }
    }
}

impl From<InvalidField> for Status {
    fn from(error: InvalidField) -> Self {
        Self::invalid_argument(error.to_string())
    }
}

pub(crate) fn session_id(text: &str) -> Result<SessionId, InvalidField> {
    SessionId::parse(text).map_err(|error| InvalidField::new("session_id", error.to_string()))
}

pub(crate) fn turn_id(text: &str) -> Result<TurnId, InvalidField> {
    TurnId::parse(text).map_err(|error| InvalidField::new("turn_id", error.to_string()))
}

pub(crate) fn request_id(text: &str) -> Result<PromptId, InvalidField> {
    PromptId::parse(text).map_err(|error| InvalidField::new("request_id", error.to_string()))
}

/// Text that says something.
pub(crate) fn not_blank(field: &'static str, text: String) -> Result<String, InvalidField> {
    if text.trim().is_empty() {
        return Err(InvalidField::new(field, "is empty"));
    }
    Ok(text)
}

/// A short name without control characters; trimmed.
pub(crate) fn name(field: &'static str, text: &str) -> Result<String, InvalidField> {
    let text = text.trim();
    if text.is_empty() {
        return Err(InvalidField::new(field, "is empty"));
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(InvalidField::new(
            field,
            format!("has {} bytes, at most {MAX_NAME_BYTES} are allowed", text.len()),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(InvalidField::new(field, "holds a control character"));
    }
    Ok(text.to_owned())
}

/// [`name`], or nothing.
pub(crate) fn optional_name(
    field: &'static str,
    text: Option<String>,
) -> Result<Option<String>, InvalidField> {
    text.map(|text| name(field, &text)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_visible_text() {
        assert_eq!(name("model", " gpt-x ").unwrap(), "gpt-x");
        for bad in ["", "  ", "a\nb", "a\0", &"x".repeat(201)] {
            assert_eq!(name("model", bad).unwrap_err().field, "model", "{bad:?}");
        }
    }

    #[test]
    fn the_error_names_the_field() {
        let status = Status::from(session_id("a b").unwrap_err());
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert_eq!(status.message(), "session_id: `a b` is not a valid session id");
    }
}

//! Engine and storage errors as gRPC statuses: the code for programs, the text and what to do for people.

use std::borrow::Cow;

use hermes_core::Json;
use hermes_engine::EngineError;
use hermes_runtime::SnapshotError;
use hermes_state::StateError;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::{Code, Status};

/// Metadata with the hint alone, for clients that show it apart from the message.
const HINT: &str = "hermes-hint-bin";

/// Most bytes of a message and of a hint. Both travel in headers, which the other side bounds to 16 KiB, and
/// the message may take three bytes for one.
const MESSAGE_BYTES: usize = 2_000;
const HINT_BYTES: usize = 1_000;

/// The beginning of a text that may be of any length, since it repeats what a caller sent.
pub(crate) fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let kept = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    format!("{kept}…").into()
}

/// A status whose message ends with what the user can do.
pub(crate) fn with_hint(code: Code, what: &str, hint: &str) -> Status {
    let (what, hint) = (shorten(what, MESSAGE_BYTES), shorten(hint, HINT_BYTES));
    if hint.is_empty() {
        return Status::new(code, what);
    }
    let mut metadata = MetadataMap::new();
    metadata.insert_bin(HINT, BinaryMetadataValue::from_bytes(hint.as_bytes()));
    Status::with_metadata(code, format!("{what}; {hint}"), metadata)
}

/// The engine's refusal of a call.
pub(crate) fn engine(error: &EngineError) -> Status {
    let code = match error {
        EngineError::NotFound { .. } => Code::NotFound,
        EngineError::Ambiguous { .. } => Code::FailedPrecondition,
        EngineError::Invalid { .. } => Code::InvalidArgument,
        EngineError::QueueFull { .. } => Code::ResourceExhausted,
        EngineError::ShuttingDown => Code::Unavailable,
        EngineError::Model(_) => Code::FailedPrecondition,
        EngineError::Storage(error) => storage_code(error),
        _ => Code::Internal,
    };
    log(code, error);
    with_hint(code, &chain(error), &error.hint())
}

/// A failed read of the database.
pub(crate) fn storage(error: &StateError) -> Status {
    let code = storage_code(error);
    log(code, error);
    with_hint(code, &error.to_string(), "")
}

/// Snapshots that cannot be used.
pub(crate) fn snapshots(error: &SnapshotError) -> Status {
    let code = match error {
        SnapshotError::Nothing | SnapshotError::Ambiguous { .. } => Code::FailedPrecondition,
        SnapshotError::BadId(_) => Code::InvalidArgument,
        SnapshotError::Unknown(_) | SnapshotError::NoSuchFile { .. } => Code::NotFound,
        _ => Code::Internal,
    };
    log(code, error);
    with_hint(code, &chain(error), error.hint())
}

fn storage_code(error: &StateError) -> Code {
    match error {
        StateError::UnknownSession(_) => Code::NotFound,
        StateError::SessionExists(_) => Code::AlreadyExists,
        StateError::ReadOnly { .. } => Code::FailedPrecondition,
        StateError::StaleGeneration { .. } => Code::Aborted,
        StateError::Busy { .. } | StateError::Closed => Code::Unavailable,
        StateError::Full => Code::ResourceExhausted,
        StateError::Corrupt { .. } => Code::DataLoss,
        _ => Code::Internal,
    }
}

/// Faults of ours and of the disk are logged here, once; mistakes of a caller are told to the caller.
fn log(code: Code, error: &dyn std::error::Error) {
    match code {
        Code::Internal | Code::DataLoss | Code::ResourceExhausted => tracing::error!(%error, "call failed"),
        _ => tracing::debug!(?code, %error, "call refused"),
    }
}

/// The error with its causes, each level once. A level that repeats its cause (as `{0}` in a text does)
/// is not followed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let level = error.to_string();
        if !text.contains(&level) {
            text.push_str(": ");
            text.push_str(&level);
        }
        cause = error.source();
    }
    text
}

/// Settings values travel as JSON.
pub(crate) fn json(value: &serde_json::Value) -> hermes_proto::v1::Json {
    hermes_proto::v1::Json { raw: Json::from(value).as_str().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_found() -> EngineError {
        EngineError::NotFound { what: "there is no session `x`".into(), hint: "list them".into() }
    }

    #[test]
    fn a_status_says_what_happened_and_what_to_do() {
        let status = engine(&not_found());
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), "there is no session `x`; list them");
        let hint = status.metadata().get_bin(HINT).unwrap().to_bytes().unwrap();
        assert_eq!(hint, b"list them".as_slice());
    }

    #[test]
    fn a_status_fits_into_headers_whatever_a_caller_sent() {
        let error = EngineError::NotFound { what: "é".repeat(1_000_000), hint: "x".repeat(1_000_000) };
        let status = engine(&error);
        assert!(status.message().len() < 3_100 && status.message().starts_with("éé"));
        assert_eq!(shorten("éé", 3), "é…");
    }

    #[test]
    fn each_kind_of_error_has_its_code() {
        let cases = [
            (EngineError::Ambiguous { reference: "a".into(), matches: vec![] }, Code::FailedPrecondition),
            (EngineError::Invalid { field: "text", reason: "is empty".into() }, Code::InvalidArgument),
            (EngineError::QueueFull { queued: 9 }, Code::ResourceExhausted),
            (EngineError::ShuttingDown, Code::Unavailable),
            (EngineError::Storage(StateError::Full), Code::ResourceExhausted),
            (EngineError::Storage(StateError::ReadOnly { reason: "newer".into() }), Code::FailedPrecondition),
        ];
        for (error, code) in cases {
            assert_eq!(engine(&error).code(), code, "{error}");
        }
    }

    #[test]
    fn a_cause_that_the_text_repeats_is_told_once() {
        let status = engine(&EngineError::Storage(StateError::Full));
        assert_eq!(status.message().matches("the disk is full").count(), 1, "{status}");
    }
}

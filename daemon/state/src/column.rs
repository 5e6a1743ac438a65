//! Reading columns of rows that other programs wrote: a value of an unexpected type is converted,
//! never an error, because one odd row must not hide a whole transcript.

use hermes_core::{CostStatus, Instant, Json, SessionId, Usage};
use rusqlite::types::ValueRef;
use rusqlite::{Row, RowIndex};

/// Text, with invalid UTF-8 replaced. NULL is `None`.
pub(crate) fn text(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Real(value) => Some(value.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    })
}

/// Text that is present and not empty.
pub(crate) fn filled(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<Option<String>> {
    Ok(text(row, at)?.filter(|value| !value.is_empty()))
}

/// A whole number; anything else counts as 0.
pub(crate) fn integer(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<i64> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(value) => value,
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a saturating cast is what a foreign value deserves"
        )]
        ValueRef::Real(value) => value as i64,
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0)
        }
        ValueRef::Null | ValueRef::Blob(_) => 0,
    })
}

/// A count: negative values count as 0.
pub(crate) fn count(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<u64> {
    Ok(u64::try_from(integer(row, at)?).unwrap_or(0))
}

/// A flag stored as 0 or 1.
pub(crate) fn flag(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<bool> {
    Ok(integer(row, at)? != 0)
}

/// A number with a fraction.
pub(crate) fn real(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<Option<f64>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Real(value) => Some(value),
        #[expect(clippy::cast_precision_loss, reason = "seconds and prices are far below 2^53")]
        ValueRef::Integer(value) => Some(value as f64),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(|t| t.trim().parse().ok()),
        ValueRef::Null | ValueRef::Blob(_) => None,
    })
}

/// An instant.
pub(crate) fn instant(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<Option<Instant>> {
    Ok(real(row, at)?.map(Instant))
}

/// A session's id; `None` for NULL and for an id that could not be passed on.
pub(crate) fn session_id(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<Option<SessionId>> {
    Ok(text(row, at)?.and_then(|id| SessionId::parse(&id).ok()))
}

/// Free JSON; text that is none is dropped.
pub(crate) fn json(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<Option<Json>> {
    Ok(filled(row, at)?.and_then(|value| Json::parse(value).ok()))
}

/// The five token columns that `sessions` and `session_model_usage` share.
pub(crate) fn usage(row: &Row<'_>) -> rusqlite::Result<Usage> {
    Ok(Usage {
        input: count(row, "input_tokens")?,
        output: count(row, "output_tokens")?,
        cache_read: count(row, "cache_read_tokens")?,
        cache_write: count(row, "cache_write_tokens")?,
        reasoning: count(row, "reasoning_tokens")?,
    })
}

/// Where a cost comes from; names that we do not know count as unknown.
pub(crate) fn cost_status(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<CostStatus> {
    Ok(text(row, at)?.as_deref().and_then(CostStatus::parse).unwrap_or_default())
}

/// A count as SQLite stores it.
pub(crate) fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

//! Identity: one type per kind of id, so that two ids can never be swapped.
//!
//! Forms are those of contract §1. Session ids are text, message ids are row numbers, turn and
//! prompt ids are UUIDv7.

use std::fmt;
use std::sync::Arc;

use crate::clock::Instant;

/// An id that does not have the form its kind requires.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not a valid {kind}")]
pub struct InvalidId {
    kind: &'static str,
    value: String,
}

/// Longest session id that is accepted; the original's free-form ids stay well below it.
const MAX_SESSION_ID_BYTES: usize = 200;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A session's id, live and stored alike: `YYYYMMDD_HHMMSS_<8 hex>`. Older free-form ids are read too.
    SessionId
}
text_id! {
    /// A turn's id: a UUIDv7.
    TurnId
}
text_id! {
    /// The id of a question to a person (approval, clarify, sudo, secret): a UUIDv7.
    PromptId
}
text_id! {
    /// The daemon's boot id. Event sequence numbers count within one epoch.
    Epoch
}
text_id! {
    /// The id of one tool call, as the model's provider gave it (or as derived from the call when it gave none).
    ToolCallId
}

impl SessionId {
    /// Mints an id for a session that starts at local time `stamp` (`YYYYMMDD_HHMMSS`).
    pub fn mint(stamp: &str) -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let (head, _) = random.split_at(8);
        Self(format!("{stamp}_{head}").into())
    }

    /// Reads an id from outside: non-empty, at most 200 bytes, no white space, control or path characters.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let legal = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '/' | '\\');
        if text.is_empty() || text.len() > MAX_SESSION_ID_BYTES || !text.chars().all(legal) {
            return Err(InvalidId { kind: "session id", value: text.chars().take(80).collect() });
        }
        Ok(Self(text.into()))
    }
}

impl TurnId {
    /// Mints a new, time-ordered id.
    pub fn mint() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }

    /// Reads an id from outside.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        parse_uuid("turn id", text).map(Self)
    }
}

impl PromptId {
    /// Mints a new, time-ordered id.
    pub fn mint() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }

    /// Reads an id from outside.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        parse_uuid("prompt request id", text).map(Self)
    }
}

impl Epoch {
    /// Mints the boot id of a daemon that starts now.
    pub fn mint() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }

    /// Takes an epoch that a client sends back; any text is accepted, an unknown one merely never matches.
    pub fn from_wire(text: &str) -> Self {
        Self(text.into())
    }
}

impl ToolCallId {
    /// Takes a provider's id as it is.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
}

fn parse_uuid(kind: &'static str, text: &str) -> Result<Arc<str>, InvalidId> {
    match uuid::Uuid::parse_str(text) {
        Ok(id) => Ok(id.to_string().into()),
        Err(_) => Err(InvalidId { kind, value: text.chars().take(80).collect() }),
    }
}

/// A message row's id: the order of truth within the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub i64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Writes `at` as `YYYYMMDD_HHMMSS` in UTC, for callers that have no time zone at hand.
pub fn utc_stamp(at: Instant) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970 fit an i64")]
    let seconds = at.unix_seconds() as i64;
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days to civil date: Howard Hinnant's `civil_from_days`.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}_{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_have_the_documented_form() {
        let id = SessionId::mint("20260102_030405");
        assert_eq!(id.as_str().len(), "20260102_030405_".len() + 8);
        assert_eq!(SessionId::parse(id.as_str()).unwrap(), id);
    }

    #[test]
    fn ids_that_could_leave_a_folder_are_refused() {
        for bad in ["", "a/b", "..\\x", "a b", "a\nb", &"x".repeat(201)] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn stamps_are_civil_dates() {
        assert_eq!(utc_stamp(Instant(0.0)), "19700101_000000");
        assert_eq!(utc_stamp(Instant(1_709_210_096.5)), "20240229_123456");
    }
}

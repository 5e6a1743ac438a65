//! The trailer: when the session began, and what it runs on (spec 20 §2.3, V6).

use hermes_core::Instant;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The key of the trailer's line that names the model.
pub(super) const MODEL: &str = "Model:";
/// The key of the line that names the provider.
pub(super) const PROVIDER: &str = "Provider:";

/// A calendar date in the user's zone. There is no time of day in it, so that a prompt built twice on one day is the
/// same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDate {
    /// For instance `Monday, November 30, 2026`.
    pub date: String,
    /// The zone's name, for instance `Europe/Berlin`; empty when it has none.
    pub zone: String,
    /// The zone's offset on that day, for instance `+01:00`.
    pub offset: String,
}

impl LocalDate {
    /// The date of `at` in `zone`.
    pub fn at(at: Instant, zone: &TimeZone) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970 fit an i64")]
        let seconds = at.unix_seconds() as i64;
        let zoned = Timestamp::from_second(seconds).unwrap_or_default().to_zoned_datetime(zone.clone());
        Self {
            date: zoned.strftime("%A, %B %-d, %Y").to_string(),
            zone: zone.iana_name().unwrap_or_default().to_owned(),
            offset: zoned.strftime("%:z").to_string(),
        }
    }
}

/// Renders the trailer.
pub(super) fn trailer(
    now: &LocalDate,
    session_id: Option<&str>,
    model: &str,
    provider: &str,
    platform: &str,
) -> String {
    let LocalDate { date, zone, offset } = now;
    let zone = if zone.is_empty() { String::new() } else { format!("{zone}, ") };
    let mut out = format!("Session started: {date} ({zone}UTC{offset})");
    if let Some(id) = session_id {
        out.push_str("\nSession ID: ");
        out.push_str(id);
    }
    format!("{out}\n{MODEL} {}\n{PROVIDER} {}\nPlatform: {platform}", model.trim(), provider.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_no_time_of_day() {
        let morning = LocalDate::at(Instant(1_796_022_000.0), &TimeZone::UTC);
        assert_eq!(morning, LocalDate::at(Instant(1_796_022_000.0 + 36_000.0), &TimeZone::UTC));
        assert_eq!(morning.date, "Monday, November 30, 2026");
        assert_eq!((morning.zone.as_str(), morning.offset.as_str()), ("UTC", "+00:00"));
        let fixed = LocalDate::at(Instant(0.0), &TimeZone::fixed(jiff::tz::offset(-5)));
        assert_eq!((fixed.date.as_str(), fixed.offset.as_str()), ("Wednesday, December 31, 1969", "-05:00"));
        assert_eq!(fixed.zone, "");
    }
}

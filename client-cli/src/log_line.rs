//! Which lines of a log the user wants to see. A line of the daemon begins with its time and its level:
//! `2026-01-01T00:00:00.123Z  INFO hermes_engine::turn: message`. A line that does not begin so belongs to
//! the one above it.

use hermes_core::Instant;

use crate::args::{Component, LogLevel, TailFlags};

/// What to take.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    level: Option<LogLevel>,
    session: Option<String>,
    /// Unix seconds.
    since: Option<f64>,
    component: Option<Component>,
}

impl Filter {
    pub(crate) fn new(tail: &TailFlags, now: Instant) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "ages are far below 2^52 seconds")]
        let since = tail.since.map(|age| now.unix_seconds() - age as f64);
        Self { level: tail.level, session: tail.session.clone(), since, component: tail.component }
    }

    /// Judges lines in their order.
    pub(crate) fn judge(&self) -> Judge<'_> {
        Judge { filter: self, last: true }
    }

    fn takes(&self, head: &Head<'_>, line: &str) -> bool {
        self.level.is_none_or(|least| head.level >= least)
            && self.since.is_none_or(|since| head.time >= since)
            && self.session.as_deref().is_none_or(|session| line.contains(session))
            && self.component.is_none_or(|part| is_of(part, head.rest))
    }
}

/// Judges line by line; a continuation follows the verdict on its first line.
#[derive(Debug)]
pub(crate) struct Judge<'a> {
    filter: &'a Filter,
    last: bool,
}

impl Judge<'_> {
    pub(crate) fn takes(&mut self, line: &str) -> bool {
        if let Some(head) = Head::read(line) {
            self.last = self.filter.takes(&head, line);
        }
        self.last
    }
}

struct Head<'a> {
    time: f64,
    level: LogLevel,
    rest: &'a str,
}

impl<'a> Head<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (time, rest) = line.split_once(' ')?;
        let (level, rest) = rest.trim_start().split_once(' ')?;
        let level = match level {
            "TRACE" => LogLevel::Trace,
            "DEBUG" => LogLevel::Debug,
            "INFO" => LogLevel::Info,
            "WARN" | "WARNING" => LogLevel::Warn,
            "ERROR" | "CRITICAL" => LogLevel::Error,
            _ => return None,
        };
        Some(Self { time: unix_seconds(time)?, level, rest })
    }
}

/// Whether a line's target, which stands in front of its message and behind its spans, is of this part.
fn is_of(part: Component, rest: &str) -> bool {
    let crates: &[&str] = match part {
        Component::Agent => &["hermes_engine", "hermes_context", "hermes_providers", "hermes_learning"],
        Component::Tools => &["hermes_tools", "hermes_runtime", "hermes_extensions"],
        Component::Gateway => &["hermes_server", "hermes_gateway", "hermesd"],
        Component::Cron => &["hermes_automation"],
    };
    crates.iter().any(|name| rest.contains(name))
}

/// Reads `2026-01-01T00:00:00.123Z` (UTC only).
fn unix_seconds(text: &str) -> Option<f64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut time = time.split(':');
    let (hour, minute) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let second = time.next()?.parse::<f64>().ok()?;
    // Civil date to days: Howard Hinnant's `days_from_civil`.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    #[expect(clippy::cast_precision_loss, reason = "dates of logs are far below 2^52 seconds")]
    let whole = (days * 86_400 + hour * 3_600 + minute * 60) as f64;
    Some(whole + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail() -> TailFlags {
        TailFlags { lines: 50, follow: false, level: None, session: None, since: None, component: None }
    }

    fn taken(tail: &TailFlags, now: f64, lines: &[&str]) -> Vec<bool> {
        let filter = Filter::new(tail, Instant(now));
        let mut judge = filter.judge();
        lines.iter().map(|line| judge.takes(line)).collect()
    }

    const LINES: [&str; 4] = [
        "2026-01-01T00:00:00.5Z  INFO session{id=20260101_000000_0a0b0c0d}: hermes_engine::turn: began",
        "2026-01-01T00:00:10Z  WARN hermes_tools::dispatch: slow",
        "  caused by: a full disk",
        "2026-01-01T01:00:00Z DEBUG hermes_server: rpc",
    ];

    #[test]
    fn each_filter_judges_by_its_own_part_of_the_line() {
        let midnight = unix_seconds("2026-01-01T00:00:00Z").unwrap();
        let table = [
            (tail(), [true, true, true, true]),
            (TailFlags { level: Some(LogLevel::Warn), ..tail() }, [false, true, true, false]),
            (TailFlags { session: Some("0a0b0c0d".into()), ..tail() }, [true, false, false, false]),
            (TailFlags { component: Some(Component::Tools), ..tail() }, [false, true, true, false]),
            (TailFlags { since: Some(1_800), ..tail() }, [false, false, false, true]),
        ];
        for (flags, expected) in table {
            assert_eq!(taken(&flags, midnight + 3_700.0, &LINES), expected, "{flags:?}");
        }
    }

    #[test]
    fn times_are_read_as_utc() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(unix_seconds("2024-02-29T12:34:56Z"), Some(1_709_210_096.0));
        assert_eq!(unix_seconds("yesterday"), None);
    }
}

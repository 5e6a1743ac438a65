//! How long a server asks to wait: `Retry-After` and its relatives (spec 30 §14).

use std::time::{Duration, UNIX_EPOCH};

use hermes_core::Instant;
use reqwest::header::HeaderMap;

/// Longest wait that a server can ask for (spec 30 §14).
pub(crate) const MAX_WAIT: Duration = Duration::from_mins(10);

/// Reads the wait out of a response's headers, capped at 600 s. A time that has passed is no wait.
pub(crate) fn parse(headers: &HeaderMap, now: Instant) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return seconds(milliseconds / 1000.0);
    }
    if let Some(value) = text("retry-after") {
        if let Some(wait) = value.parse::<f64>().ok().and_then(seconds) {
            return Some(wait);
        }
        if let Ok(date) = httpdate::parse_http_date(value) {
            let at = date.duration_since(UNIX_EPOCH).unwrap_or_default();
            return seconds(at.as_secs_f64() - now.unix_seconds());
        }
    }
    // Several buckets may be reported: the one that frees last is the one that blocks.
    ["x-ratelimit-reset", "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"]
        .into_iter()
        .filter_map(|name| text(name).and_then(|value| reset(value, now)))
        .max()
}

/// A reset is given in seconds from now, as `1m30.5s`, or as a point in time in (milli)seconds.
fn reset(value: &str, now: Instant) -> Option<Duration> {
    /// Beyond this a number is a point in time: no wait is a decade long.
    const EARLIEST_EPOCH: f64 = 1e9;
    const EARLIEST_EPOCH_MS: f64 = 1e12;
    if let Ok(number) = value.parse::<f64>() {
        return match number {
            at if at >= EARLIEST_EPOCH_MS => seconds(at / 1000.0 - now.unix_seconds()),
            at if at >= EARLIEST_EPOCH => seconds(at - now.unix_seconds()),
            from_now => seconds(from_now),
        };
    }
    let mut total = 0.0;
    let mut rest = value;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let number: f64 = number.parse().ok()?;
        let unit_end = tail.find(|character: char| character.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(unit_end)?;
        total += match unit {
            "ms" => number / 1000.0,
            "s" => number,
            "m" => number * 60.0,
            "h" => number * 3600.0,
            "d" => number * 86_400.0,
            _ => return None,
        };
        rest = tail;
    }
    seconds(total)
}

fn seconds(value: f64) -> Option<Duration> {
    value.is_finite().then(|| Duration::from_secs_f64(value.clamp(0.0, MAX_WAIT.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn wait(pairs: &[(&'static str, &str)]) -> Option<f64> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        // 2026-01-01 00:00:00 UTC
        parse(&headers, Instant(1_767_225_600.0)).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn every_documented_form_is_read() {
        type Headers = &'static [(&'static str, &'static str)];
        let cases: [(Headers, Option<f64>); 15] = [
            (&[("retry-after", "7")], Some(7.0)),
            (&[("retry-after", " 1.5 ")], Some(1.5)),
            (&[("retry-after", "-3")], Some(0.0)),
            (&[("retry-after", "86400")], Some(600.0)),
            (&[("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")], Some(30.0)),
            (&[("retry-after", "Wed, 31 Dec 2025 23:00:00 GMT")], Some(0.0)),
            (&[("retry-after", "soon")], None),
            (&[("retry-after-ms", "250"), ("retry-after", "7")], Some(0.25)),
            (&[("x-ratelimit-reset", "12")], Some(12.0)),
            (&[("x-ratelimit-reset", "1767225660")], Some(60.0)),
            (&[("x-ratelimit-reset", "1767225660000")], Some(60.0)),
            (&[("x-ratelimit-reset-requests", "1s"), ("x-ratelimit-reset-tokens", "1m2.5s")], Some(62.5)),
            (&[("x-ratelimit-reset-tokens", "120ms")], Some(0.12)),
            (&[("x-ratelimit-reset", "a while")], None),
            (&[], None),
        ];
        for (headers, expected) in cases {
            assert_eq!(wait(headers), expected, "{headers:?}");
        }
    }
}

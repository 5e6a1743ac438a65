//! Times and durations for people.

use hermes_core::Instant;

/// `0.2s`, `12.3s`, `2m05s`, `1h02m`.
pub(crate) fn duration(seconds: f64) -> String {
    if !(0.0..1e9).contains(&seconds) {
        return "?".into();
    }
    if seconds < 59.95 {
        return format!("{seconds:.1}s");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    let whole = seconds.round() as u64;
    match (whole / 3_600, whole / 60 % 60, whole % 60) {
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// How long ago something was: `now`, `5m ago`, `3h ago`, `12d ago`.
pub(crate) fn ago(then: f64, now: Instant) -> String {
    let seconds = now.unix_seconds() - then;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a range that fits"
    )]
    let minutes = (seconds / 60.0).clamp(0.0, 1e12) as u64;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes}m ago"),
        60..1_440 => format!("{}h ago", minutes / 60),
        _ => format!("{}d ago", minutes / 1_440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let table = [
            (0.04, "0.0s"),
            (0.25, "0.2s"),
            (59.94, "59.9s"),
            (60.0, "1m00s"),
            (125.4, "2m05s"),
            (3_720.0, "1h02m"),
            (-1.0, "?"),
            (f64::NAN, "?"),
        ];
        for (seconds, text) in table {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn ages_are_rounded_down() {
        let now = Instant(1_000_000.0);
        let table =
            [(0.0, "now"), (-5.0, "now"), (61.0, "1m ago"), (7_300.0, "2h ago"), (90_000.0, "1d ago")];
        for (back, text) in table {
            assert_eq!(ago(now.unix_seconds() - back, now), text);
        }
    }
}

//! Whether to try a failed call again, and when (spec 30 §14). Pure: the caller waits.

use std::time::Duration;

use crate::failure::retry_after::MAX_WAIT;
use crate::failure::{CallError, FailureClass};

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Wait(Duration),
    GiveUp,
}

/// Decides after attempt number `attempt` (from 1) of at most `max` failed with `error`.
///
/// `jitter` is a random number from 0 to 1. A compression, a fallback or another key is not decided
/// here: such failures are not retryable as they stand. Nor are the quick retries of a stream that
/// broke before it showed anything (spec 10 §7.2): those come before this, and cost no attempt.
pub fn next(attempt: u32, max: u32, error: &CallError, jitter: f64) -> Retry {
    if !error.retryable() {
        return Retry::GiveUp;
    }
    let attempt = attempt.max(1);
    if attempt >= max {
        return Retry::GiveUp;
    }
    if error.class == FailureClass::StreamingUnsupported {
        // The next attempt asks without a stream: nothing to wait for.
        return Retry::Wait(Duration::ZERO);
    }
    let asked = error.retry_after.filter(|_| {
        matches!(error.class, FailureClass::RateLimit | FailureClass::Overloaded)
            || matches!(error.status, Some(429 | 503 | 529))
    });
    if let Some(wait) = asked {
        return Retry::Wait(wait.min(MAX_WAIT));
    }
    let (base, cap) = match error.class {
        FailureClass::InvalidResponse => (5.0, 120.0),
        _ => (2.0, 60.0),
    };
    Retry::Wait(backoff(attempt, base, cap, jitter))
}

/// `min(base · 2^(attempt − 1), cap)` and up to half of that on top.
fn backoff(attempt: u32, base: f64, cap: f64, jitter: f64) -> Duration {
    let doublings = i32::try_from(attempt.saturating_sub(1).min(16)).unwrap_or(16);
    let wait: f64 = (base * 2f64.powi(doublings)).min(cap);
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
    Duration::from_secs_f64(wait * (1.0 + 0.5 * jitter))
}

#[cfg(test)]
mod tests {
    use hermes_runtime::{Redactor, SecretScope};

    use super::*;
    use crate::route::Route;

    fn error(class: FailureClass) -> CallError {
        CallError::new(class, "x", &Route::offline(), &Redactor::new(true, &SecretScope::empty()))
    }

    fn wait(seconds: f64) -> Retry {
        Retry::Wait(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn the_wait_doubles_up_to_a_minute() {
        let failed = error(FailureClass::ServerError);
        for (attempt, seconds) in [(0, 2.0), (1, 2.0), (2, 4.0), (3, 8.0), (6, 60.0), (40, 60.0)] {
            assert_eq!(next(attempt, 100, &failed, 0.0), wait(seconds), "attempt {attempt}");
        }
        assert_eq!(next(1, 3, &failed, 1.0), wait(3.0));
        assert_eq!(next(1, 3, &failed, f64::NAN), wait(2.0));
        assert_eq!(next(3, 3, &failed, 0.0), Retry::GiveUp);
        assert_eq!(next(1, 1, &failed, 0.0), Retry::GiveUp);
    }

    #[test]
    fn an_answer_that_is_none_is_waited_for_longer() {
        let failed = error(FailureClass::InvalidResponse);
        assert_eq!(next(1, 9, &failed, 0.0), wait(5.0));
        assert_eq!(next(8, 9, &failed, 0.0), wait(120.0));
    }

    #[test]
    fn what_the_server_asks_for_wins_where_it_means_waiting() {
        let asked = |class, status, seconds| CallError {
            retry_after: Some(Duration::from_secs(seconds)),
            status,
            ..error(class)
        };
        assert_eq!(next(1, 3, &asked(FailureClass::RateLimit, Some(429), 7), 0.9), wait(7.0));
        assert_eq!(next(1, 3, &asked(FailureClass::RateLimit, Some(429), 0), 0.9), wait(0.0));
        assert_eq!(next(1, 3, &asked(FailureClass::Overloaded, Some(503), 9000), 0.0), wait(600.0));
        assert_eq!(next(1, 3, &asked(FailureClass::ServerError, Some(500), 7), 0.0), wait(2.0));
        assert_eq!(next(3, 3, &asked(FailureClass::RateLimit, Some(429), 7), 0.0), Retry::GiveUp);
    }

    #[test]
    fn a_server_that_does_not_stream_is_asked_again_at_once() {
        assert_eq!(next(1, 3, &error(FailureClass::StreamingUnsupported), 1.0), wait(0.0));
        assert_eq!(next(3, 3, &error(FailureClass::StreamingUnsupported), 1.0), Retry::GiveUp);
    }

    #[test]
    fn what_will_fail_again_is_not_tried_again() {
        for class in [
            FailureClass::Auth,
            FailureClass::Billing,
            FailureClass::Cancelled,
            FailureClass::ContextOverflow,
        ] {
            assert_eq!(next(1, 3, &error(class), 0.0), Retry::GiveUp, "{class}");
        }
    }
}

//! Time as an argument: nothing below `main` reads the system clock by itself.

use std::fmt;

/// A point in time: Unix seconds with a fraction, as stored in every table.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Instant(pub f64);

impl Instant {
    /// Seconds since the Unix epoch.
    pub fn unix_seconds(self) -> f64 {
        self.0
    }

    /// Seconds from `earlier` to `self`; negative when the clock stepped back.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        self.0 - earlier.0
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}s", self.0)
    }
}

/// Tells the time. Tests pass a clock of their own.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The current wall-clock time.
    fn now(&self) -> Instant;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system clock")]
    fn now(&self) -> Instant {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Instant(since_epoch.as_secs_f64())
    }
}

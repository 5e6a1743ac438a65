//! Waiting for a database that another process has locked: told by result code, never by text.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::ffi::ErrorCode;

/// How long a write waits for the lock before its caller hears of it (spec 70 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Opening the database.
    pub open: Duration,
    /// Rows of a conversation: losing one would end a turn.
    pub transcript: Duration,
    /// Titles, ends, queue entries.
    pub routine: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            open: Duration::from_secs(5),
            transcript: Duration::from_mins(1),
            routine: Duration::from_secs(20),
        }
    }
}

/// What kind of write a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Transcript,
    Routine,
}

impl Patience {
    pub(crate) fn of(self, kind: Kind) -> Duration {
        match kind {
            Kind::Transcript => self.transcript,
            Kind::Routine => self.routine,
        }
    }
}

/// Whether the error means that someone else holds the lock.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Tries until the lock is free, the patience is used up, or another error comes.
pub(crate) fn retry<T>(
    patience: Duration,
    mut attempt: impl FnMut() -> rusqlite::Result<T>,
) -> Result<T, (rusqlite::Error, Duration)> {
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) => {
                let waited = started.elapsed();
                if !is_busy(&error) || waited >= patience {
                    return Err((error, waited));
                }
                pause(waited, patience.saturating_sub(waited));
            }
        }
    }
}

/// Waits before the next try: 20–150 ms during the first two seconds, then 250 ms–1 s, at random
/// so that two waiting processes do not keep step, and never beyond `at_most`.
pub(crate) fn pause(waited: Duration, at_most: Duration) {
    let (low, high) = if waited < Duration::from_secs(2) { (20, 150) } else { (250, 1000) };
    let length = Duration::from_millis(low + random() % (high - low)).min(at_most);
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let until = Instant::now() + length;
    let mut guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        guard = condvar.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn random() -> u64 {
    // A fresh hasher state is seeded from the system; jitter needs no better source.
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_errors_are_not_retried() {
        let mut attempts = 0;
        let result = retry(Duration::from_mins(1), || {
            attempts += 1;
            Err::<(), _>(rusqlite::Error::QueryReturnedNoRows)
        });
        assert!(result.is_err());
        assert_eq!(attempts, 1);
    }

    #[test]
    fn patience_ends() {
        let busy =
            || rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None);
        let result = retry(Duration::from_millis(30), || Err::<(), _>(busy()));
        let (error, waited) = result.unwrap_err();
        assert!(is_busy(&error));
        assert!(waited >= Duration::from_millis(30) && waited < Duration::from_secs(5));
    }
}

//! What all sessions of this process share about files: one writer at a time per path, and who wrote
//! last (spec 40 §5.9).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_core::SessionId;
use tokio::sync::OwnedMutexGuard;

use super::bounded::BoundedMap;

/// Paths whose last writer is remembered (spec 40 §5.9).
const WRITERS: usize = 4096;

/// Locks beyond which those that nobody holds are dropped.
const IDLE_LOCKS: usize = 256;

/// Locks and last writers of all paths. One for the process.
#[derive(Debug)]
pub struct FileLedger {
    // Short sections without `.await`: std locks.
    locks: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
    writers: Mutex<Writers>,
}

#[derive(Debug)]
struct Writers {
    /// Counts all writes, so that a session can tell whether one came after its own look.
    count: u64,
    last: BoundedMap<PathBuf, (SessionId, u64)>,
}

impl Default for FileLedger {
    fn default() -> Self {
        Self {
            locks: Mutex::default(),
            writers: Mutex::new(Writers { count: 0, last: BoundedMap::new(WRITERS) }),
        }
    }
}

impl FileLedger {
    /// Waits until nobody else changes `path`. The guard may move into blocking work, so that the path
    /// stays locked until that really ends.
    pub(crate) async fn lock(&self, path: &Path) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            if locks.len() > IDLE_LOCKS {
                locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            }
            Arc::clone(locks.entry(path.to_owned()).or_default())
        };
        lock.lock_owned().await
    }

    /// Counts a write by `session`. Gives the count for the session's own note.
    pub(crate) fn note_write(&self, path: &Path, session: &SessionId) -> u64 {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.count += 1;
        let count = writers.count;
        writers.last.insert(path.to_owned(), (session.clone(), count));
        count
    }

    /// How many writes there were so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Whether another session wrote the file after the count was `since`.
    pub(crate) fn written_by_another(&self, path: &Path, session: &SessionId, since: u64) -> bool {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.last.get(path).is_some_and(|(writer, at)| writer != session && *at > since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_path_has_one_writer_at_a_time() {
        let ledger = FileLedger::default();
        let held = ledger.lock(Path::new("/a")).await;
        let other = ledger.lock(Path::new("/b")).await;
        let mut waiting = Box::pin(ledger.lock(Path::new("/a")));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(held);
        assert!(futures_util::poll!(&mut waiting).is_ready());
        drop(other);
    }

    #[test]
    fn a_later_write_of_another_session_is_seen() {
        let ledger = FileLedger::default();
        let (mine, theirs) = (SessionId::parse("mine").unwrap(), SessionId::parse("theirs").unwrap());
        let path = Path::new("/a");
        ledger.note_write(path, &theirs);
        let looked = ledger.writes();
        assert!(!ledger.written_by_another(path, &mine, looked));
        ledger.note_write(path, &theirs);
        assert!(ledger.written_by_another(path, &mine, looked));
        assert!(!ledger.written_by_another(path, &theirs, looked));
    }
}

//! What all parts of the snapshots share: the place, the contents, the indexes and the locks.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_core::Clock;
use tokio::sync::watch;

use super::blobs::{Blobs, Pin};
use super::index::{Index, Shelf};
use super::look::{Look, State};
use super::prune::Upkeep;
use super::settings::CheckpointSettings;
use super::walk::StampCache;
use crate::{PathPolicy, Redactor};

/// Sessions whose locks are remembered beyond those in use.
const IDLE_LOCKS: usize = 256;

/// One store for the profile.
#[derive(Debug)]
pub(super) struct Store {
    /// The folder of all snapshots.
    pub(super) root: PathBuf,
    pub(super) blobs: Blobs,
    pub(super) shelf: Shelf,
    pub(super) paths: PathPolicy,
    pub(super) redactor: Redactor,
    pub(super) user_home: PathBuf,
    settings: watch::Receiver<Arc<CheckpointSettings>>,
    clock: Arc<dyn Clock>,
    /// One piece of work at a time per session: its indexes are read, changed and written.
    sessions: Mutex<HashMap<String, SessionLock>>,
    /// Names of the walks whose commands still run.
    pub(super) walks: Mutex<BTreeSet<String>>,
    pub(super) stamps: Mutex<StampCache>,
    pub(super) upkeep: Mutex<Upkeep>,
}

/// The lock of one session.
pub(super) type SessionLock = Arc<Mutex<()>>;

impl Store {
    pub(super) fn new(input: super::SnapshotsInput) -> Self {
        Self {
            blobs: Blobs::new(input.dir.join("blobs")),
            shelf: Shelf::new(input.dir.join("sessions")),
            root: input.dir,
            paths: input.paths,
            redactor: input.redactor,
            user_home: input.user_home,
            settings: input.settings,
            clock: input.clock,
            sessions: Mutex::default(),
            walks: Mutex::default(),
            stamps: Mutex::default(),
            upkeep: Mutex::default(),
        }
    }

    /// The settings as they are now.
    pub(super) fn settings(&self) -> Arc<CheckpointSettings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Unix seconds.
    pub(super) fn now(&self) -> f64 {
        self.clock.now().unix_seconds()
    }

    pub(super) fn session_lock(&self, session: &str) -> SessionLock {
        let mut sessions = Self::lock(&self.sessions);
        if sessions.len() > IDLE_LOCKS {
            sessions.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        Arc::clone(sessions.entry(session.to_owned()).or_default())
    }

    /// Takes a lock whatever happened to its last holder: what it guards is on disk, and whole.
    pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the content of a look, if it has one.
    pub(super) fn put(&self, look: &Look, pin: &mut Pin<'_>) -> io::Result<()> {
        if let State::File { hash, .. } = &look.state {
            let grown = self.blobs.put(hash, &look.bytes, pin)?;
            Self::lock(&self.upkeep).size += grown;
        }
        Ok(())
    }

    /// Writes an index without the files that are as they were; removes it when none is left.
    pub(super) fn save_or_remove(&self, index: &mut Index) -> io::Result<()> {
        index.files.retain(|entry| !entry.is_unchanged());
        if index.files.is_empty() {
            self.shelf.remove(&index.session, &index.id);
            return Ok(());
        }
        self.shelf.save(index)
    }
}

//! Snapshots of the files that a turn touches, so that it can be undone (spec 40 §5.10).
//!
//! Before a call changes a file for the first time in a turn its content is kept; after the call the hash of what
//! the agent left is written down. A restore puts back what the agent changed and nobody else did since, and is
//! itself a snapshot first. Nothing here ever stops or fails a call: what cannot be kept is told in the log.
//!
//! On disk, below one folder that only the owner can read: `blobs/` (contents by their hash), `sessions/` (one
//! JSON file per snapshot), `trash/` (files that a restore took away). Every file is written whole and renamed into
//! place. The number of snapshots is bounded per session, their size over the profile.

mod blobs;
mod diff;
mod index;
mod keep;
mod look;
mod prune;
mod restore;
mod settings;
mod store;
mod walk;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Clock, Instant, SessionId, TurnId};
use tokio::sync::watch;

pub use diff::SnapshotDiff;
pub use restore::{RestoreRequest, Restored};
pub use settings::CheckpointSettings;

use crate::{PathPolicy, Redactor, Tasks};
use index::{Entry, Index};
use look::{State, look};
use store::Store;

/// Most characters of a snapshot's reason.
const REASON_CHARS: usize = 200;

/// What [`Snapshots`] are built from.
#[derive(Debug)]
pub struct SnapshotsInput {
    /// Absolute folder for all that is kept; made when there is something.
    pub dir: PathBuf,
    pub user_home: PathBuf,
    pub settings: watch::Receiver<Arc<CheckpointSettings>>,
    /// Judges again where a restore writes.
    pub paths: PathPolicy,
    /// Masks secrets in diffs.
    pub redactor: Redactor,
    pub clock: Arc<dyn Clock>,
    pub tasks: Tasks,
}

/// Snapshots of a profile. Cheap to clone. The default keeps nothing.
#[derive(Debug, Clone, Default)]
pub struct Snapshots(Option<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    store: Arc<Store>,
    tasks: Tasks,
}

/// A call that is about to change something.
#[derive(Debug, Clone)]
pub struct SnapshotCall {
    pub session: SessionId,
    pub turn: TurnId,
    /// The root of the session's workspace.
    pub workspace: PathBuf,
    /// What the call is, for people: redacted.
    pub reason: String,
}

/// What a call may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touch {
    Write {
        path: PathBuf,
        /// The path is another profile's, and the call says so.
        cross_profile: bool,
    },
    Command {
        command: String,
        cwd: PathBuf,
    },
}

/// A call between [`Snapshots::before`] and [`Snapshots::after`]. When it is dropped instead, the state is written
/// down as it is then.
#[derive(Debug)]
#[must_use = "hand it to `after` when the call has ended"]
pub struct Keeping {
    inner: Inner,
    kept: Option<keep::Kept>,
}

/// A snapshot, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// 16 hexadecimal digits; a beginning of at least four that only it has will do.
    pub id: String,
    pub session: String,
    /// `None` for one that a restore made.
    pub turn: Option<String>,
    pub created_at: Instant,
    /// What changed something first.
    pub reason: String,
    pub files: Vec<SnapshotFile>,
    pub restored: bool,
    /// Made by a restore: the snapshot that was restored.
    pub undoes: Option<String>,
}

/// One file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    pub path: PathBuf,
    pub change: FileChange,
    pub added_lines: u32,
    pub removed_lines: u32,
    /// It is neither as the agent left it nor as it was before.
    pub edited_since: bool,
    /// Too large to be kept.
    pub not_kept: bool,
}

/// What a turn did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    Created,
    Changed,
    Deleted,
}

impl FileChange {
    /// The name used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
        }
    }
}

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    #[error("this session has nothing to undo: no tool has changed a file, or all of it is undone")]
    Nothing,
    #[error("`{0}` is no snapshot's id: give 4 to 64 hexadecimal digits")]
    BadId(String),
    #[error("this session has no snapshot `{0}`")]
    Unknown(String),
    #[error("`{id}` begins several snapshots: {}", matches.join(", "))]
    Ambiguous { id: String, matches: Vec<String> },
    #[error("snapshot {id} has no file {}", file.display())]
    NoSuchFile { id: String, file: PathBuf },
    #[error("the snapshots cannot be used: {0}")]
    Storage(#[from] io::Error),
}

impl SnapshotError {
    /// What the user can do now.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Nothing | Self::BadId(_) | Self::Unknown(_) => "see what there is: hermes-cli undo --list",
            Self::Ambiguous { .. } => "give more of the id",
            Self::NoSuchFile { .. } => "see its files: hermes-cli undo --list",
            Self::Storage(_) => {
                "look at the free space and the rights of `checkpoints/` in the profile's home"
            }
        }
    }
}

impl Snapshots {
    /// Snapshots in a folder. Nothing is made or removed before [`start`](Self::start) or a call.
    pub fn new(input: SnapshotsInput) -> Self {
        let tasks = input.tasks.clone();
        Self(Some(Inner { store: Arc::new(Store::new(input)), tasks }))
    }

    /// Begins the housekeeping of what earlier processes left, in the background.
    pub fn start(&self) {
        if let Some(inner) = &self.0 {
            let store = Arc::clone(&inner.store);
            inner.tasks.spawn_blocking("prune snapshots", move || prune::everything(&store));
        }
    }

    /// Keeps what `touches` are about to change. Comes back when it is on disk.
    pub async fn before(&self, call: SnapshotCall, touches: Vec<Touch>) -> Option<Keeping> {
        let inner = self.0.clone()?;
        if touches.is_empty() {
            return None;
        }
        let session = call.session.clone();
        let call = SnapshotCall { reason: call.reason.chars().take(REASON_CHARS).collect(), ..call };
        let store = Arc::clone(&inner.store);
        let work = move || keep::before(&store, &call, &touches);
        let kept = match inner.tasks.spawn_blocking("keep files", work).await {
            Ok(Ok(kept)) => kept?,
            Ok(Err(error)) => {
                tracing::warn!(%error, %session, "files could not be kept: this call cannot be undone");
                return None;
            }
            // Its panic is in the log.
            Err(_) => return None,
        };
        if kept.is_new {
            let store = Arc::clone(&inner.store);
            // A turn with changes has begun, so the one before is over.
            inner.tasks.spawn_blocking("prune snapshots", move || {
                prune::after_a_turn(&store, session.as_str());
            });
        }
        Some(Keeping { inner, kept: Some(kept) })
    }

    /// Writes down how the call left what it touched.
    pub async fn after(&self, mut keeping: Keeping) {
        let Some(kept) = keeping.kept.take() else { return };
        let store = Arc::clone(&keeping.inner.store);
        // Its panic is in the log.
        let _ = keeping.inner.tasks.spawn_blocking("note files", move || note(&store, kept)).await;
    }

    /// A session's snapshots, newest first; `limit` 0: all.
    pub async fn list(&self, session: &SessionId, limit: usize) -> Result<Vec<Snapshot>, SnapshotError> {
        let session = session.clone();
        self.work(Vec::new(), move |store| {
            let limit = if limit == 0 { usize::MAX } else { limit };
            Ok(all_of(store, &session).iter().take(limit).map(|index| describe(store, index)).collect())
        })
        .await
    }

    /// From what was kept to what stands there now. `id` is the beginning of one.
    pub async fn diff(
        &self,
        session: &SessionId,
        id: &str,
        file: Option<PathBuf>,
    ) -> Result<SnapshotDiff, SnapshotError> {
        let (session, id) = (session.clone(), id.to_owned());
        let nothing = SnapshotDiff { text: String::new(), truncated: false };
        self.work(nothing, move |store| {
            let indexes = all_of(store, &session);
            let index = indexes.get(find(&indexes, Some(&id))?).ok_or(SnapshotError::Nothing)?;
            has_file(index, file.as_deref())?;
            Ok(diff::run(store, index, |entry| restore::is_meant(entry, file.as_deref())))
        })
        .await
    }

    /// Puts files back as they were before a turn. The caller sees to it that no turn of the session runs.
    pub async fn restore(
        &self,
        session: &SessionId,
        request: RestoreRequest,
    ) -> Result<Restored, SnapshotError> {
        let Some(inner) = self.0.clone() else { return Err(SnapshotError::Nothing) };
        let session = session.clone();
        let work = move || {
            let store = &*inner.store;
            let lock = store.session_lock(session.as_str());
            let _locked = Store::lock(&lock);
            walk::settle_left_over(store, session.as_str());
            let indexes = store.shelf.of_session(session.as_str());
            let at = find(&indexes, request.id.as_deref())?;
            let index = indexes.get(at).cloned().ok_or(SnapshotError::Nothing)?;
            has_file(&index, request.file.as_deref())?;
            let newer = indexes.get(..at).unwrap_or_default();
            Ok(restore::run(store, &session, index, newer, &request)?)
        };
        let tasks = self.0.as_ref().map(|inner| inner.tasks.clone()).unwrap_or_default();
        tasks.spawn_blocking("restore files", work).await.unwrap_or_else(|error| Err(broken(&error)))
    }

    /// Removes all that is kept of a session.
    pub async fn forget_session(&self, session: &SessionId) {
        let session = session.clone();
        let forgotten = self.work((), move |store| {
            prune::forget(store, session.as_str());
            Ok(())
        });
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, "snapshots of a session stay");
        }
    }

    async fn work<T: Send + 'static>(
        &self,
        nothing: T,
        work: impl FnOnce(&Store) -> Result<T, SnapshotError> + Send + 'static,
    ) -> Result<T, SnapshotError> {
        let Some(inner) = &self.0 else { return Ok(nothing) };
        let store = Arc::clone(&inner.store);
        let done = inner.tasks.spawn_blocking("read snapshots", move || work(&store)).await;
        done.unwrap_or_else(|error| Err(broken(&error)))
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        // Whoever ran the call has dropped it. What its tool still does is not waited for: a file that changes
        // after this counts as edited by somebody else, and is not overwritten unasked.
        if tokio::runtime::Handle::try_current().is_ok() {
            let store = Arc::clone(&self.inner.store);
            self.inner.tasks.spawn_blocking("note files", move || note(&store, kept));
        }
    }
}

fn note(store: &Store, kept: keep::Kept) {
    if let Err(error) = keep::after(store, kept) {
        tracing::warn!(%error, "what a call changed could not be written down: it will not be undone unasked");
    }
}

/// A session's snapshots, newest first, with those that a dead daemon left in the middle of a command.
fn all_of(store: &Store, session: &SessionId) -> Vec<Index> {
    let lock = store.session_lock(session.as_str());
    let _locked = Store::lock(&lock);
    walk::settle_left_over(store, session.as_str());
    store.shelf.of_session(session.as_str())
}

/// The place of the snapshot that is meant.
fn find(indexes: &[Index], id: Option<&str>) -> Result<usize, SnapshotError> {
    let Some(id) = id else {
        let newest = indexes.iter().position(|index| !index.restored && index.undoes.is_none());
        return newest.ok_or(SnapshotError::Nothing);
    };
    let legal = (4..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !legal {
        return Err(SnapshotError::BadId(id.chars().take(80).collect()));
    }
    let wanted = id.to_ascii_lowercase();
    let mut found = indexes.iter().enumerate().filter(|(_, index)| index.id.starts_with(&wanted));
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (None, _) => Err(SnapshotError::Unknown(id.to_owned())),
        (Some(_), Some(_)) => {
            let matches = indexes.iter().filter(|index| index.id.starts_with(&wanted));
            Err(SnapshotError::Ambiguous {
                id: id.to_owned(),
                matches: matches.map(|index| index.id.clone()).collect(),
            })
        }
    }
}

fn has_file(index: &Index, file: Option<&std::path::Path>) -> Result<(), SnapshotError> {
    match file {
        Some(file) if !index.files.iter().any(|entry| restore::is_meant(entry, Some(file))) => {
            Err(SnapshotError::NoSuchFile { id: index.id.clone(), file: file.to_owned() })
        }
        _ => Ok(()),
    }
}

fn describe(store: &Store, index: &Index) -> Snapshot {
    let (limit, forbidden) = (store.settings().max_file(), store.paths.never_opened());
    let file = |entry: &Entry| {
        let now = look(&entry.path.0, limit, &forbidden).state;
        SnapshotFile {
            path: entry.path.0.clone(),
            change: match (&entry.before, &entry.after) {
                (State::Absent, _) => FileChange::Created,
                (_, State::Absent) => FileChange::Deleted,
                _ => FileChange::Changed,
            },
            added_lines: entry.added,
            removed_lines: entry.removed,
            edited_since: entry.mixed || !(now.same_content(&entry.after) || now.same_content(&entry.before)),
            not_kept: matches!(entry.before, State::Large { .. }) && entry.trash.is_none(),
        }
    };
    Snapshot {
        id: index.id.clone(),
        session: index.session.clone(),
        turn: Some(index.turn.clone()).filter(|turn| !turn.is_empty()),
        created_at: Instant(index.created_at),
        reason: index.reason.clone(),
        files: index.files.iter().map(file).collect(),
        restored: index.restored,
        undoes: index.undoes.clone(),
    }
}

fn broken(error: &tokio::task::JoinError) -> SnapshotError {
    SnapshotError::Storage(io::Error::other(error.to_string()))
}

//! What can go wrong, one enum per operation. Each text says what happened and what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{SessionId, TurnId, TurnState};
use rusqlite::ffi::ErrorCode;

/// The database could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error(
        "cannot create the database {}: {source}; check that its folder exists, belongs to you and can be \
         written, or point HERMES_HOME elsewhere",
        path.display()
    )]
    NotCreated { path: PathBuf, source: io::Error },
    #[error(
        "the database {} cannot be written: {reason}; make the file and its folder writable, or point \
         HERMES_HOME elsewhere",
        path.display()
    )]
    NotWritable { path: PathBuf, reason: String },
    #[error(
        "{} is not an SQLite database; move the file away and start again, or put a backup in its place",
        path.display()
    )]
    NotADatabase { path: PathBuf },
    #[error(
        "{} is an SQLite database, but not one of Hermes: {detail}; move the file away and start again",
        path.display()
    )]
    NotHermes { path: PathBuf, detail: String },
    #[error(
        "the database {} is damaged: {detail}; keep a copy of it (with its -wal file), then put a backup in its \
         place or move it away and start again",
        path.display()
    )]
    Corrupt { path: PathBuf, detail: String },
    #[error(
        "the database {} was locked by another process for {} s; stop what holds it (the original's gateway, \
         an SQLite browser, a backup) and try again",
        path.display(),
        waited.as_secs()
    )]
    Locked { path: PathBuf, waited: Duration },
    #[error("the disk that holds the database {} is full; free some space and try again", path.display())]
    DiskFull { path: PathBuf },
    #[error(
        "the file system under {} does not do the locking that SQLite needs ({detail}); network file systems \
         often do not: keep the home on a local disk (HERMES_HOME)",
        path.display()
    )]
    FileSystem { path: PathBuf, detail: String },
    #[error(
        "the database {} comes from the original and must be copied before it is adopted, but the disk has \
         {free_bytes} bytes free and {needed_bytes} are needed; free some space and try again",
        path.display()
    )]
    NoRoomForBackup { path: PathBuf, needed_bytes: u64, free_bytes: u64 },
    #[error(
        "cannot copy the database to {} before adopting it: {reason}; nothing was changed; free some space or \
         make the folder writable and try again",
        path.display()
    )]
    Backup { path: PathBuf, reason: String },
    #[error(
        "adopting the database {} of version {version} failed: {detail}; nothing in it was changed, and a copy \
         is at {}",
        path.display(),
        backup.display()
    )]
    Adoption { path: PathBuf, version: i64, backup: PathBuf, detail: String },
    #[error("cannot open the database {}: {source}; `hermes-cli doctor` looks closer", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("cannot start the database's threads: {source}; the process may have reached its thread limit")]
    Threads { source: io::Error },
}

impl OpenError {
    /// Sorts what SQLite says by its result code.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let detail = source.to_string();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Locked { path, waited: Duration::ZERO }
            }
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(
                ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::AuthorizationForStatementDenied,
            ) => Self::NotWritable { path, reason: detail },
            Some(ErrorCode::FileLockingProtocolFailed | ErrorCode::NoLargeFileSupport) => {
                Self::FileSystem { path, detail }
            }
            _ => Self::Sqlite { path, source },
        }
    }
}

/// A read or a write of an open database failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    #[error("the database is open for reading only: {reason}")]
    ReadOnly { reason: String },
    #[error("turn {turn_id} no longer owns its session: another turn took over, or it was already closed")]
    StaleGeneration { turn_id: TurnId },
    #[error("there is no session `{0}` in the database")]
    UnknownSession(SessionId),
    #[error("a session `{0}` exists already")]
    SessionExists(SessionId),
    #[error(
        "session storage could not be written: the database was locked for {} s; stop what holds it (an SQLite \
         browser, a backup, the original) and try again",
        waited.as_secs()
    )]
    Busy { waited: Duration },
    #[error("session storage could not be written: the disk is full; free some space and try again")]
    Full,
    #[error(
        "session storage failed: the disk reported an error ({detail}); check the disk and that the home is not \
         on a network file system"
    )]
    Io { detail: String },
    #[error(
        "session storage is damaged ({detail}); stop the daemon, keep a copy of state.db and run `hermes-cli doctor`"
    )]
    Corrupt { detail: String },
    #[error("the database is closed: the daemon is shutting down")]
    Closed,
    #[error("session storage failed: {0}; `hermes-cli doctor` looks closer")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for StateError {
    fn from(error: rusqlite::Error) -> Self {
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { waited: Duration::ZERO }
            }
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { detail },
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => Self::Io { detail },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { reason: detail },
            _ => Self::Sqlite(error),
        }
    }
}

impl StateError {
    /// Whether the same request may succeed later without anyone doing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}

/// A turn could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BeginTurnError {
    /// The client sent this input before: there is a turn for it already.
    #[error("this input was taken before, by turn {turn_id}")]
    Duplicate { turn_id: TurnId, state: TurnState, exit_reason: Option<String> },
    #[error(transparent)]
    State(#[from] StateError),
}

/// A session, as an error message names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRef {
    pub id: SessionId,
    pub title: Option<String>,
}

impl std::fmt::Display for SessionRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.title {
            Some(title) => write!(f, "{} ({title})", self.id),
            None => write!(f, "{}", self.id),
        }
    }
}

/// A reference names no session, or more than one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    #[error(
        "no session is called `{reference}`{}; `hermes-cli sessions list` shows them all",
        did_you_mean(near)
    )]
    NotFound {
        reference: String,
        /// Sessions whose id or title holds the reference, at most five, newest first.
        near: Vec<SessionRef>,
    },
    #[error("`{reference}` begins the id of more than one session: {}; give more of it", listed(matches))]
    Ambiguous {
        reference: String,
        /// At most ten.
        matches: Vec<SessionRef>,
    },
    #[error(transparent)]
    State(#[from] StateError),
}

fn did_you_mean(near: &[SessionRef]) -> String {
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", listed(near)) }
}

fn listed(sessions: &[SessionRef]) -> String {
    sessions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A title could not be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TitleError {
    #[error("a title has at most {max} characters, this one has {length}; shorten it")]
    TooLong { length: usize, max: usize },
    #[error(
        "the title `{title}` is taken by {}session {holder} (source {source_tag}); rename that one first, or \
         choose another title",
        if *archived { "the archived " } else { "" }
    )]
    Taken { title: String, holder: SessionId, source_tag: String, archived: bool },
    #[error(transparent)]
    State(#[from] StateError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn sqlite_codes_sort_into_kinds_that_callers_handle_differently() {
        assert!(matches!(StateError::from(failure(ffi::SQLITE_FULL)), StateError::Full));
        assert!(matches!(StateError::from(failure(ffi::SQLITE_BUSY_SNAPSHOT)), StateError::Busy { .. }));
        assert!(matches!(StateError::from(failure(ffi::SQLITE_CORRUPT_VTAB)), StateError::Corrupt { .. }));
        assert!(matches!(StateError::from(failure(ffi::SQLITE_IOERR_WRITE)), StateError::Io { .. }));
        assert!(matches!(StateError::from(failure(ffi::SQLITE_ERROR)), StateError::Sqlite(_)));
    }

    #[test]
    fn open_errors_say_what_happened_and_what_to_do() {
        let path = Path::new("/home/u/.hermes/state.db");
        for (code, what) in [
            (ffi::SQLITE_NOTADB, "is not an SQLite database"),
            (ffi::SQLITE_FULL, "is full"),
            (ffi::SQLITE_READONLY_DIRECTORY, "cannot be written"),
            (ffi::SQLITE_CANTOPEN, "cannot be written"),
            (ffi::SQLITE_BUSY, "was locked by another process"),
            (ffi::SQLITE_PROTOCOL, "network file systems"),
            (ffi::SQLITE_CORRUPT, "is damaged"),
        ] {
            let text = OpenError::from_sqlite(path, failure(code)).to_string();
            assert!(text.contains(what) && text.contains("state.db"), "{text}");
            assert!(text.contains("; ") || text.contains(": keep"), "no advice in: {text}");
        }
    }
}

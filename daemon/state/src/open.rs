//! Opening: header, version, journal, migrations, adoption, and one rolled-back probe insert.
//!
//! Nothing here looks at more than a few rows, so a large database opens as fast as a small one.
//! Only adoption, once in a file's life, goes through all of it.

use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hermes_core::Clock;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::adopt;
use crate::backup;
use crate::busy::{self, Patience};
use crate::connect;
use crate::error::OpenError;
use crate::foreign;
use crate::readers::Readers;
use crate::schema::{self, Found, LAST_ORIGINAL, LATEST};
use crate::settings::{StateSettings, Synchronous};
use crate::writer::{self, Writer, WriterCore};

/// How to open.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    pub synchronous: Synchronous,
    /// Writes and reads run in the calling task instead of threads. For tests on a paused clock,
    /// where waiting for a thread would let every timeout fire.
    pub inline_writer: bool,
    /// How long to wait for locks of other processes.
    pub patience: Patience,
}

impl From<&StateSettings> for OpenOptions {
    fn from(settings: &StateSettings) -> Self {
        Self { synchronous: settings.synchronous, ..Self::default() }
    }
}

/// What opening found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenReport {
    /// Why the database can only be read.
    pub read_only: Option<String>,
    /// The version of the original's database that was adopted just now.
    pub adopted_from: Option<i64>,
    /// The copy made before adopting or repairing.
    pub backup: Option<PathBuf>,
    /// What the user should know: one sentence each.
    pub warnings: Vec<String>,
    /// The last process to write did not close the database: [`crate::Db::check`] is worth running.
    pub unclean_end: bool,
    /// The database, as it was found, had the table of accepted policy settings: a daemon has accepted some before.
    pub knew_policy: bool,
}

/// The parts of an open database.
pub(crate) struct Opened {
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
    pub(crate) has_index: bool,
    pub(crate) report: OpenReport,
}

/// Opens, creates or adopts the database at `path`.
pub(crate) fn open(path: &Path, clock: &dyn Clock, options: &OpenOptions) -> Result<Opened, OpenError> {
    let mut report =
        OpenReport { unclean_end: length(&with_suffix(path, "-wal")) > 0, ..OpenReport::default() };
    create_private(path)?;
    let patience = options.patience.open;
    let (conn, found) = patiently(path, options, || {
        let conn = connect::file(path)?;
        let found = schema::find(&conn)?;
        Ok((conn, found))
    })?;
    if let Found::Foreign(detail) = found {
        return Err(OpenError::NotHermes { path: path.to_owned(), detail });
    }
    if let Found::Newer(version) = found {
        return open_for_reading(path, conn, version, options, report);
    }
    if conn.is_readonly("main").map_err(|error| OpenError::from_sqlite(path, error))? {
        return Err(OpenError::NotWritable {
            path: path.to_owned(),
            reason: "the file is write-protected".into(),
        });
    }
    make_private(path);
    if let Found::Original(version) = found {
        report.backup = Some(backup::before_adoption(&conn, path, version, clock.now())?);
    }
    report.warnings.extend(patiently(path, options, || connect::prepare_writer(&conn, options.synchronous))?);
    report.knew_policy = matches!(found, Found::Ours(version) if version >= schema::FIRST_WITH_POLICY);
    match found {
        Found::Original(version) => {
            let backup = report.backup.as_deref().unwrap_or(path);
            report.warnings.extend(adopt::adopt(&conn, path, version, backup, patience)?);
            report.adopted_from = Some(version);
        }
        Found::Ours(LATEST) => {}
        Found::Fresh | Found::Ours(_) | Found::Newer(_) | Found::Foreign(_) => {
            patiently(path, options, || upgrade(&conn))?;
        }
    }
    probe_or_repair(&conn, path, clock, options, &mut report)?;
    patiently(path, options, || heal_active(&conn))?;

    let inline = options.inline_writer;
    let upkeep = (!inline).then(|| (path.to_owned(), options.synchronous));
    let core =
        WriterCore::new(conn, options.patience, upkeep).map_err(|source| OpenError::Threads { source })?;
    let writer = if inline {
        Writer::Inline(Box::new(Mutex::new(Some(core))))
    } else {
        Writer::start(core).map_err(|source| OpenError::Threads { source })?
    };
    let readers = Readers::new(path.to_owned(), None, inline);
    Ok(Opened { writer, readers, has_index: true, report })
}

/// Opens a database that a later version wrote. Nothing in it is touched, not even its WAL.
fn open_for_reading(
    path: &Path,
    conn: Connection,
    version: i64,
    options: &OpenOptions,
    mut report: OpenReport,
) -> Result<Opened, OpenError> {
    let sqlite = |error| OpenError::from_sqlite(path, error);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(sqlite)?;
    drop(conn);
    let reason = if version > LATEST {
        format!(
            "a newer Hermes wrote it (schema {version}; this build knows {LATEST}). Update Hermes to go on writing"
        )
    } else {
        format!(
            "a newer version of the original wrote it (schema {version}; this build adopts up to {LAST_ORIGINAL}). \
             Update Hermes, or start a new profile"
        )
    };
    let (shim, has_index) = patiently(path, options, || {
        let conn = connect::reader(path, None)?;
        Ok((foreign::shim(&conn)?, foreign::has_index(&conn)))
    })?;
    report.read_only = Some(reason.clone());
    report.unclean_end = false;
    let readers = Readers::new(path.to_owned(), Some(shim), options.inline_writer);
    Ok(Opened { writer: Writer::None { reason }, readers, has_index, report })
}

/// Brings an empty file or an earlier version of ours to the newest, as one transaction.
fn upgrade(conn: &Connection) -> rusqlite::Result<()> {
    in_transaction(conn, |conn| match schema::find(conn)? {
        Found::Fresh => schema::migrate(conn, 0),
        Found::Ours(version) => schema::migrate(conn, version),
        // Another process was quicker; what it made is looked at when next opened.
        Found::Original(_) | Found::Newer(_) | Found::Foreign(_) => Ok(()),
    })
}

/// Inserts a row through all triggers and takes it back: a damaged index leaves reads fine and
/// breaks every insert. Such an index is built anew, once, after a copy of the file.
fn probe_or_repair(
    conn: &Connection,
    path: &Path,
    clock: &dyn Clock,
    options: &OpenOptions,
    report: &mut OpenReport,
) -> Result<(), OpenError> {
    let (error, waited) = match busy::retry(options.patience.open, || probe(conn)) {
        Ok(()) => return Ok(()),
        Err(failure) => failure,
    };
    if !writer::is_index_corruption(&error) {
        return Err(sorted(path, error, waited));
    }
    let copy = backup::before_repair(conn, path, clock.now())?;
    let repaired = patiently(path, options, || in_transaction(conn, writer::rebuild_index))
        .and_then(|()| patiently(path, options, || probe(conn)));
    if repaired.is_err() {
        return Err(OpenError::Corrupt { path: path.to_owned(), detail: error.to_string() });
    }
    report.warnings.push(format!(
        "the full-text index of the database was damaged and has been built anew; a copy from before is at {}",
        copy.display()
    ));
    report.backup = Some(copy);
    Ok(())
}

fn probe(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    // The savepoint makes the index write out what it holds, which is where damage shows.
    let outcome = conn.execute_batch(
        "SELECT 1 FROM sessions LIMIT 1;
         INSERT INTO sessions (id, source, started_at) VALUES ('probe of the opening', 'probe', 0);
         INSERT INTO messages (session_id, role, content, timestamp)
             VALUES ('probe of the opening', 'user', 'probe', 0);
         SAVEPOINT written;",
    );
    if conn.is_autocommit() {
        return outcome;
    }
    outcome.and(conn.execute_batch("ROLLBACK")).or_else(|error| {
        if !conn.is_autocommit() {
            conn.execute_batch("ROLLBACK")?;
        }
        Err(error)
    })
}

/// Older builds of the original could leave `active` NULL, which would hide the row. The look is
/// free: on our tables the column cannot be NULL, on adopted ones an index holds such rows.
fn heal_active(conn: &Connection) -> rusqlite::Result<()> {
    let any = conn.prepare("SELECT 1 FROM messages WHERE active IS NULL")?.exists([])?;
    if any {
        conn.execute("UPDATE messages SET active = 1 WHERE active IS NULL", [])?;
    }
    Ok(())
}

/// Runs `work` in one immediate transaction.
pub(crate) fn in_transaction<T>(
    conn: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let outcome = work(conn).and_then(|value| conn.execute_batch("COMMIT").map(|()| value));
    if !conn.is_autocommit() {
        conn.execute_batch("ROLLBACK")?;
    }
    outcome
}

fn patiently<T>(
    path: &Path,
    options: &OpenOptions,
    attempt: impl FnMut() -> rusqlite::Result<T>,
) -> Result<T, OpenError> {
    busy::retry(options.patience.open, attempt).map_err(|(error, waited)| sorted(path, error, waited))
}

fn sorted(path: &Path, error: rusqlite::Error, waited: std::time::Duration) -> OpenError {
    if busy::is_busy(&error) {
        return OpenError::Locked { path: path.to_owned(), waited };
    }
    OpenError::from_sqlite(path, error)
}

/// Makes an empty file that only its owner can read; SQLite gives its side files the same mode.
fn create_private(path: &Path) -> Result<(), OpenError> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // What is wrong with a folder of that name, SQLite will say.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(OpenError::NotCreated { path: path.to_owned(), source }),
    }
}

/// Takes the rights of others away. Never opens the file: closing it would drop SQLite's locks.
fn make_private(path: &Path) {
    for path in [path.to_owned(), with_suffix(path, "-wal"), with_suffix(path, "-shm")] {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o600));
        }
    }
}

/// `path` with `suffix` after its file name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

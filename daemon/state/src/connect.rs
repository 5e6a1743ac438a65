//! Connections: how each kind is opened, and its pragmas.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::settings::Synchronous;

/// How long SQLite itself waits for a lock before a writer's own patience begins.
const WRITER_BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// Readers wait longer: without WAL every commit of another process shuts them out for a moment.
const READER_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Page caches in KiB (negative is how SQLite takes KiB). Rows are read once and kept by the
/// engine, so a large cache would only be memory.
const WRITER_CACHE: i64 = -2048;
const READER_CACHE: i64 = -512;
const UPKEEP_CACHE: i64 = -64;

/// Prepared statements that the writer keeps; it runs some thirty different ones.
const WRITER_STATEMENTS: usize = 64;

/// A WAL that grew in one large write is cut back to this at the next checkpoint that resets it.
const WAL_KEPT_BYTES: i64 = 16 * 1024 * 1024;
/// Backstop should the upkeep thread not come to checkpoint: the writer does it at this many pages.
const WAL_BACKSTOP_PAGES: i64 = 16_000;

/// Opens an existing file for reading and writing, without looking at its content.
pub(crate) fn file(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(WRITER_BUSY_TIMEOUT)?;
    Ok(conn)
}

/// Sets what a writing connection needs. Returns a warning when the file cannot use WAL.
pub(crate) fn prepare_writer(
    conn: &Connection,
    synchronous: Synchronous,
) -> rusqlite::Result<Option<String>> {
    let warning = use_wal(conn)?;
    conn.set_prepared_statement_cache_capacity(WRITER_STATEMENTS);
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "cache_size", WRITER_CACHE)?;
    conn.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)?;
    conn.pragma_update(None, "wal_autocheckpoint", WAL_BACKSTOP_PAGES)?;
    set_synchronous(conn, synchronous)?;
    Ok(warning)
}

/// A connection that only moves pages from the WAL into the file.
pub(crate) fn upkeep(path: &Path, synchronous: Synchronous) -> rusqlite::Result<Connection> {
    let conn = file(path)?;
    conn.pragma_update(None, "cache_size", UPKEEP_CACHE)?;
    set_synchronous(&conn, synchronous)?;
    Ok(conn)
}

/// A connection that cannot write. `shim` is the SQL that makes an unknown version look like ours.
pub(crate) fn reader(path: &Path, shim: Option<&str>) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(READER_BUSY_TIMEOUT)?;
    conn.pragma_update(None, "cache_size", READER_CACHE)?;
    if let Some(shim) = shim {
        conn.execute_batch(shim)?;
    }
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

fn set_synchronous(conn: &Connection, synchronous: Synchronous) -> rusqlite::Result<()> {
    // macOS's fsync does not reach the platter; `checkpoint_fullfsync` does, and without
    // `synchronous=FULL` a power cut there can damage a WAL file.
    let full = synchronous == Synchronous::Full || cfg!(target_os = "macos");
    if cfg!(target_os = "macos") {
        conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    }
    conn.pragma_update(None, "synchronous", if full { "FULL" } else { "NORMAL" })
}

/// Turns WAL on. A file system that refuses it gets the rollback journal and a warning. A locked
/// file is an error, to be tried again: a live file is never switched while others hold it.
fn use_wal(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let mode = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, String>(0));
    let current = mode("PRAGMA journal_mode")?;
    if current.eq_ignore_ascii_case("wal") {
        return Ok(None);
    }
    let refusal = match mode("PRAGMA journal_mode = WAL") {
        Ok(now) if now.eq_ignore_ascii_case("wal") => return Ok(None),
        Ok(now) => format!("it stays in mode `{now}`"),
        Err(error) if crate::busy::is_busy(&error) => return Err(error),
        Err(error) => error.to_string(),
    };
    let now = mode("PRAGMA journal_mode = DELETE")?;
    Ok(Some(format!(
        "the file system refuses write-ahead logging for the database ({refusal}); going on with the `{now}` journal, \
         which is slower. Network file systems often refuse: keep the home on a local disk"
    )))
}

//! Copies of the database before something is done to it that cannot be taken back.
//!
//! Copies are made by SQLite's online backup: it holds a consistent state, WAL included, and it
//! never opens the file beside SQLite, which would drop the locks of this process.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hermes_core::utc_stamp;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::busy;
use crate::error::OpenError;
use crate::open::with_suffix;

/// Copies of one kind that are kept beside a database.
const KEPT: usize = 3;
/// How long the copy waits for another process's lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// Copies a database of the original before it is adopted: `state.db.v30-backup-<stamp>`.
pub(crate) fn before_adoption(
    conn: &Connection,
    path: &Path,
    version: i64,
    now: hermes_core::Instant,
) -> Result<PathBuf, OpenError> {
    copy(conn, path, &format!(".v{version}-backup-"), now)
}

/// Copies a damaged database before it is repaired: `state.db.malformed-backup-<stamp>`.
pub(crate) fn before_repair(
    conn: &Connection,
    path: &Path,
    now: hermes_core::Instant,
) -> Result<PathBuf, OpenError> {
    copy(conn, path, ".malformed-backup-", now)
}

fn copy(conn: &Connection, path: &Path, kind: &str, now: hermes_core::Instant) -> Result<PathBuf, OpenError> {
    check_room(path)?;
    let target = with_suffix(path, &format!("{kind}{}", utc_stamp(now)));
    // A copy that was cut off must never look like one.
    let unfinished = with_suffix(&target, ".part");
    let result =
        write(conn, &unfinished).and_then(|()| fs::rename(&unfinished, &target).map_err(|e| e.to_string()));
    if let Err(reason) = result {
        let _ = fs::remove_file(&unfinished);
        return Err(OpenError::Backup { path: target, reason });
    }
    prune(path, kind);
    Ok(target)
}

fn write(conn: &Connection, target: &Path) -> Result<(), String> {
    let _ = fs::remove_file(target);
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)
        .map_err(|error| error.to_string())?;
    let mut copy = crate::connect::file(target).map_err(|error| error.to_string())?;
    let backup = Backup::new(conn, &mut copy).map_err(|error| error.to_string())?;
    let started = Instant::now();
    loop {
        match backup.step(i32::MAX).map_err(|error| error.to_string())? {
            StepResult::Done => break,
            StepResult::Busy | StepResult::Locked if started.elapsed() >= PATIENCE => {
                return Err(format!("another process kept the database locked for {} s", PATIENCE.as_secs()));
            }
            StepResult::Busy | StepResult::Locked => busy::pause(started.elapsed(), PATIENCE),
            _ => {}
        }
    }
    drop(backup);
    copy.close().map_err(|(_, error)| error.to_string())
}

/// Refuses when less than twice the file's size is free: the copy needs once, the work on the
/// original up to once more.
fn check_room(path: &Path) -> Result<(), OpenError> {
    let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let needed_bytes = room_needed(size(path) + size(&with_suffix(path, "-wal")));
    let Some(folder) = path.parent() else { return Ok(()) };
    let Ok(disk) = nix::sys::statvfs::statvfs(folder) else { return Ok(()) };
    #[expect(clippy::useless_conversion, reason = "the width of these numbers differs between systems")]
    let free_bytes = u64::from(disk.blocks_available()).saturating_mul(u64::from(disk.fragment_size()));
    if free_bytes < needed_bytes {
        return Err(OpenError::NoRoomForBackup { path: path.to_owned(), needed_bytes, free_bytes });
    }
    Ok(())
}

fn room_needed(size: u64) -> u64 {
    size.saturating_mul(2)
}

/// Removes the oldest copies of this kind. Stamps sort by time.
fn prune(path: &Path, kind: &str) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    let prefix = format!("{}{kind}", name.to_string_lossy());
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut copies: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect();
    copies.sort();
    let surplus = copies.len().saturating_sub(KEPT);
    for old in copies.into_iter().take(surplus) {
        if let Err(error) = fs::remove_file(&old) {
            tracing::debug!(%error, "an old copy of the database was not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_three_copies_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        fs::write(&path, "").unwrap();
        let conn = crate::connect::file(&path).unwrap();
        conn.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
        let copies: Vec<PathBuf> = (0..5)
            .map(|day| before_repair(&conn, &path, hermes_core::Instant(f64::from(day) * 86_400.0)).unwrap())
            .collect();
        let exist: Vec<bool> = copies.iter().map(|copy| copy.exists()).collect();
        assert_eq!(exist, [false, false, true, true, true]);
        let copy = crate::connect::file(&copies[4]).unwrap();
        assert_eq!(copy.query_row("SELECT x FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    }

    #[test]
    fn a_copy_needs_twice_the_size() {
        assert_eq!(room_needed(10), 20);
        assert_eq!(room_needed(u64::MAX), u64::MAX);
    }
}

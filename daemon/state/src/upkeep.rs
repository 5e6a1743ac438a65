//! Checkpoints beside the writer: moving pages from the WAL into the file flushes the disk, and
//! no write should wait for that, nor a running turn compete with it for the disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::connect;
use crate::settings::Synchronous;

/// A checkpoint that is due waits until no write came for so long …
const QUIET: Duration = Duration::from_millis(50);
/// … but at most so long, and for at most so many further commits.
const LATEST: Duration = Duration::from_secs(2);
const FURTHER_COMMITS: u64 = 500;

/// The thread that checkpoints. Dropping it ends the thread and waits for it.
#[derive(Debug)]
pub(crate) struct Upkeep {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Commits so far, by which the thread sees whether the writer is busy.
    commits: Arc<AtomicU64>,
}

impl Upkeep {
    pub(crate) fn start(path: PathBuf, synchronous: Synchronous) -> std::io::Result<Self> {
        // Room for one: a checkpoint that is due already covers everything committed until it runs.
        let (wake, woken) = sync_channel(1);
        let commits = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&commits);
        let thread = std::thread::Builder::new().name("state-upkeep".to_owned()).spawn(move || {
            let mut conn: Option<Connection> = None;
            while woken.recv().is_ok() && wait_for_quiet(&woken, &seen) {
                if conn.is_none() {
                    conn = connect::upkeep(&path, synchronous)
                        .inspect_err(
                            |error| tracing::warn!(%error, "checkpoints cannot run beside the writer"),
                        )
                        .ok();
                }
                if let Some(conn) = &conn {
                    checkpoint(conn, "PASSIVE");
                }
            }
        })?;
        Ok(Self { wake: Some(wake), thread: Some(thread), commits })
    }

    /// Tells that the writer has committed.
    pub(crate) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks for a checkpoint; never waits.
    pub(crate) fn checkpoint_soon(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }
}

/// Waits for a pause between writes. `false` when the writer is closing, which checkpoints itself.
fn wait_for_quiet(woken: &Receiver<()>, commits: &AtomicU64) -> bool {
    let until = Instant::now() + LATEST;
    let first = commits.load(Ordering::Relaxed);
    loop {
        let before = commits.load(Ordering::Relaxed);
        if before.wrapping_sub(first) >= FURTHER_COMMITS || Instant::now() >= until {
            return true;
        }
        match woken.recv_timeout(QUIET) {
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) if commits.load(Ordering::Relaxed) == before => return true,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Checkpoints in the given mode. A failure is logged: the WAL merely stays longer.
pub(crate) fn checkpoint(conn: &Connection, mode: &str) {
    if let Err(error) = conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())) {
        tracing::debug!(%error, mode, "the checkpoint did not run");
    }
}

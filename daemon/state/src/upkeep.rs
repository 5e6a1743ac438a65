//! Checkpoints beside the writer: moving pages from the WAL into the file flushes the disk, and
//! no write should wait for that.

use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::connect;
use crate::settings::Synchronous;

/// The thread that checkpoints. Dropping it ends the thread and waits for it.
#[derive(Debug)]
pub(crate) struct Upkeep {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    pub(crate) fn start(path: PathBuf, synchronous: Synchronous) -> std::io::Result<Self> {
        // Room for one: a checkpoint that is due already covers everything committed until it runs.
        let (wake, woken) = sync_channel(1);
        let thread = std::thread::Builder::new().name("state-upkeep".to_owned()).spawn(move || {
            let mut conn: Option<Connection> = None;
            while woken.recv().is_ok() {
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
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }

    /// Asks for a checkpoint; never waits.
    pub(crate) fn checkpoint_soon(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
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

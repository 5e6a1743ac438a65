//! The handle that everyone holds.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{Clock, Instant};
use rusqlite::Connection;

use crate::busy::Kind;
use crate::error::{OpenError, StateError};
use crate::open::{self, OpenOptions, OpenReport, Opened};
use crate::readers::Readers;
use crate::writer::{Fault, Writer};

/// A profile's database. A clone is another handle on the same one.
///
/// Writes go to one thread and are durable when their future is ready: they survive the death of
/// every process. Dropping such a future does not undo the write. Reads see every write whose
/// future was ready before they began.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    readers: Readers,
    writer: Writer,
    has_index: bool,
}

impl Db {
    /// Opens the database at `path`, creates it, adopts one of the original's, or opens a newer
    /// one for reading only. Blocks; a database that exists opens within milliseconds.
    ///
    /// # Errors
    /// See [`OpenError`]: each text says what to do.
    pub fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        options: &OpenOptions,
    ) -> Result<(Self, OpenReport), OpenError> {
        let Opened { writer, readers, has_index, report } = open::open(path, &*clock, options)?;
        let inner = Inner { path: path.to_owned(), clock, readers, writer, has_index };
        Ok((Self { inner: Arc::new(inner) }, report))
    }

    /// Finishes queued writes, waits for running reads, empties the write-ahead log and closes.
    /// Calls on any handle fail with [`StateError::Closed`] from then on. Closing twice is no error.
    pub async fn close(&self) {
        self.inner.readers.close().await;
        self.inner.writer.close().await;
    }

    /// Why nothing can be written, when the database is open for reading only.
    pub fn read_only(&self) -> Option<&str> {
        match &self.inner.writer {
            Writer::None { reason } => Some(reason),
            Writer::Thread(..) | Writer::Inline(..) => None,
        }
    }

    /// Looks for damage: `quick` compares no index with its table. Returns what was found, at
    /// most 100 lines; empty when the file is sound. Reads the whole file.
    pub async fn check(&self, quick: bool) -> Result<Vec<String>, StateError> {
        self.read(move |conn| {
            let sql = if quick { "PRAGMA quick_check" } else { "PRAGMA integrity_check" };
            let lines: Vec<String> =
                conn.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            Ok(if lines == ["ok"] { Vec::new() } else { lines })
        })
        .await
    }

    /// Sessions and messages in the database.
    pub async fn counts(&self) -> Result<Counts, StateError> {
        self.read(|conn| {
            let count = |sql: &str| conn.query_row(sql, [], |row| crate::column::count(row, 0));
            Ok(Counts {
                sessions: count("SELECT count(*) FROM sessions")?,
                messages: count("SELECT count(*) FROM messages")?,
            })
        })
        .await
    }

    /// Whether the word index can be asked; a database that is only read may have none like ours.
    pub(crate) fn has_index(&self) -> bool {
        self.inner.has_index
    }

    pub(crate) fn now(&self) -> Instant {
        self.inner.clock.now()
    }

    /// A read whose only errors are storage's.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, StateError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.inner.readers.read(|conn| work(conn).map_err(StateError::from)).await
    }

    /// A read with errors of its own.
    pub(crate) async fn read_or<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StateError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        self.inner.readers.read(work).await
    }

    /// A write that is part of a conversation.
    pub(crate) async fn write_transcript<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StateError> + Send + 'static,
        F: FnMut(&Connection) -> Result<T, Fault<E>> + Send + 'static,
    {
        self.inner.writer.write(Kind::Transcript, work).await
    }

    /// Any other write.
    pub(crate) async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StateError> + Send + 'static,
        F: FnMut(&Connection) -> Result<T, Fault<E>> + Send + 'static,
    {
        self.inner.writer.write(Kind::Routine, work).await
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

/// How much is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub sessions: u64,
    pub messages: u64,
}

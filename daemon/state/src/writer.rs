//! The one connection that writes, and how requests share its transactions.
//!
//! Requests queue in a bounded channel; a full one makes callers wait. The writer takes all that
//! have come, runs each in a savepoint of its own inside one `BEGIN IMMEDIATE … COMMIT`, and
//! answers after the commit. So many small writes cost one commit, and yet each request happens
//! whole or not at all, alone.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rusqlite::{Connection, ffi};
use tokio::sync::{mpsc, oneshot};

use crate::busy::{self, Kind, Patience};
use crate::error::StateError;
use crate::settings::Synchronous;
use crate::upkeep::{Upkeep, checkpoint};

/// Requests that may wait; beyond that callers do.
const QUEUE: usize = 256;
/// Requests that share one transaction at most, so that the first does not wait long for its answer.
const GROUP: usize = 128;
/// Writes between two checkpoints (spec 70 §2).
const CHECKPOINT_EVERY: u64 = 50;
/// Writes between two merges of index segments, and the pages that one merge may write.
const MERGE_EVERY: u64 = 1000;
const MERGE_PAGES: i64 = 200;

/// Why a request ended without a value: SQLite failed, or the request itself says no. Either way
/// nothing of it stays.
#[derive(Debug)]
pub(crate) enum Fault<E> {
    Sqlite(rusqlite::Error),
    Refused(E),
}

impl<E> From<rusqlite::Error> for Fault<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// One request. It may run more than once: a failed commit is repeated request by request.
pub(crate) trait Job: Send {
    fn kind(&self) -> Kind;
    fn queued(&self) -> Instant;
    /// Runs and keeps the outcome. `Ok(false)` = refused, to be undone.
    fn run(&mut self, conn: &Connection) -> rusqlite::Result<bool>;
    /// Gives the outcome, or the storage error that took its place, to the caller.
    fn answer(self: Box<Self>, error: Option<StateError>);
}

struct Request<T, E, F> {
    kind: Kind,
    queued: Instant,
    work: F,
    outcome: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, F> Job for Request<T, E, F>
where
    T: Send,
    E: From<StateError> + Send,
    F: FnMut(&Connection) -> Result<T, Fault<E>> + Send,
{
    fn kind(&self) -> Kind {
        self.kind
    }

    fn queued(&self) -> Instant {
        self.queued
    }

    fn run(&mut self, conn: &Connection) -> rusqlite::Result<bool> {
        match (self.work)(conn) {
            Ok(value) => {
                self.outcome = Some(Ok(value));
                Ok(true)
            }
            Err(Fault::Refused(refusal)) => {
                self.outcome = Some(Err(refusal));
                Ok(false)
            }
            Err(Fault::Sqlite(error)) => Err(error),
        }
    }

    fn answer(self: Box<Self>, error: Option<StateError>) {
        let outcome = match (error, self.outcome) {
            (None, Some(outcome)) => outcome,
            (Some(error), _) => Err(E::from(error)),
            (None, None) => Err(E::from(StateError::Closed)),
        };
        // A caller that went away does not undo its write.
        let _ = self.reply.send(outcome);
    }
}

/// What the thread is told.
pub(crate) enum Command {
    Run(Box<dyn Job>),
    Close(oneshot::Sender<()>),
}

/// Where writes go.
pub(crate) enum Writer {
    /// A thread of its own.
    Thread(mpsc::Sender<Command>),
    /// The calling task itself, for tests on a paused clock. `None` once closed.
    Inline(Box<Mutex<Option<WriterCore>>>),
    /// Nowhere: the database is open for reading only.
    None { reason: String },
}

impl Writer {
    /// Starts the writer's thread.
    pub(crate) fn start(core: WriterCore) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        std::thread::Builder::new().name("state-writer".to_owned()).spawn(move || serve(core, receiver))?;
        Ok(Self::Thread(sender))
    }

    /// Runs `work` in a transaction and returns what it gave once that is committed. Dropping the
    /// returned future does not undo a request that was queued.
    pub(crate) async fn write<T, E, F>(&self, kind: Kind, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StateError> + Send + 'static,
        F: FnMut(&Connection) -> Result<T, Fault<E>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Box<dyn Job> =
            Box::new(Request { kind, queued: Instant::now(), work, outcome: None, reply });
        match self {
            Self::Thread(sender) => {
                sender.send(Command::Run(job)).await.map_err(|_| E::from(StateError::Closed))?;
            }
            Self::Inline(core) => {
                // Held for the whole write and never across an await.
                match core.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                    Some(core) => core.process(job, &mut || None),
                    None => return Err(E::from(StateError::Closed)),
                }
            }
            Self::None { reason } => return Err(E::from(StateError::ReadOnly { reason: reason.clone() })),
        }
        answer.await.unwrap_or_else(|_| Err(E::from(StateError::Closed)))
    }

    /// Finishes what is queued, checkpoints and closes. Later writes fail with [`StateError::Closed`].
    pub(crate) async fn close(&self) {
        match self {
            Self::Thread(sender) => {
                let (reply, closed) = oneshot::channel();
                if sender.send(Command::Close(reply)).await.is_ok() {
                    let _ = closed.await;
                }
            }
            Self::Inline(core) => {
                let core = core.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(core) = core {
                    core.close();
                }
            }
            Self::None { .. } => {}
        }
    }
}

/// The thread's life: until it is told to close, or nobody is left to ask.
fn serve(mut core: WriterCore, mut commands: mpsc::Receiver<Command>) {
    let mut closing = None;
    while closing.is_none() {
        match commands.blocking_recv() {
            Some(Command::Run(job)) => core.process(job, &mut || match commands.try_recv() {
                Ok(Command::Run(job)) => Some(job),
                Ok(Command::Close(reply)) => {
                    closing = Some(reply);
                    None
                }
                Err(_) => None,
            }),
            Some(Command::Close(reply)) => closing = Some(reply),
            None => break,
        }
    }
    commands.close();
    // Requests that were sent before the close still count.
    while let Ok(command) = commands.try_recv() {
        if let Command::Run(job) = command {
            core.process(job, &mut || None);
        }
    }
    core.close();
    if let Some(reply) = closing {
        let _ = reply.send(());
    }
}

/// The writing connection.
pub(crate) struct WriterCore {
    conn: Connection,
    upkeep: Option<Upkeep>,
    patience: Patience,
    writes: u64,
    /// The index was rebuilt once in this process already; a second corruption is reported.
    rebuilt: bool,
}

impl WriterCore {
    /// Takes over a prepared connection. With `upkeep_path` checkpoints get a thread of their own.
    pub(crate) fn new(
        conn: Connection,
        patience: Patience,
        upkeep_path: Option<(PathBuf, Synchronous)>,
    ) -> std::io::Result<Self> {
        let upkeep = upkeep_path.map(|(path, synchronous)| Upkeep::start(path, synchronous)).transpose()?;
        Ok(Self { conn, upkeep, patience, writes: 0, rebuilt: false })
    }

    /// Runs `first` and what `more` gives meanwhile as one transaction, and answers all of them.
    fn process(&mut self, first: Box<dyn Job>, more: &mut dyn FnMut() -> Option<Box<dyn Job>>) {
        let Some(first) = self.begin(first) else { return };
        let mut next = Some(first);
        let mut done: Vec<Box<dyn Job>> = Vec::new();
        while let Some(mut job) = next.take() {
            match self.run_in_savepoint(&mut *job) {
                Ok(()) => done.push(job),
                Err(error) if is_index_corruption(&error) && !self.rebuilt => {
                    self.rollback();
                    done.push(job);
                    self.rebuild_index(&error);
                    return self.one_by_one(done);
                }
                // Some errors (a full disk) make SQLite undo the whole transaction: the requests
                // before this one are repeated, each in a transaction of its own.
                Err(error) if self.conn.is_autocommit() => {
                    job.answer(Some(error.into()));
                    return self.one_by_one(done);
                }
                Err(error) => job.answer(Some(error.into())),
            }
            if done.len() < GROUP {
                next = more();
            }
        }
        match self.commit(&done) {
            Ok(()) => {
                let count = done.len();
                for job in done {
                    job.answer(None);
                }
                self.after_writes(count);
            }
            Err(error) => {
                self.rollback();
                if done.len() > 1 {
                    self.one_by_one(done);
                } else {
                    for job in done {
                        let error = storage_error(&error, job.queued());
                        job.answer(Some(error));
                    }
                }
            }
        }
    }

    fn one_by_one(&mut self, jobs: Vec<Box<dyn Job>>) {
        for job in jobs {
            self.process(job, &mut || None);
        }
    }

    /// Opens the transaction, waiting as long as the job is willing to. Answers the job and
    /// returns nothing when there is none to be had.
    fn begin(&mut self, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let patience = self.patience.of(job.kind()).saturating_sub(job.queued().elapsed());
        match busy::retry(patience, || execute(&self.conn, "BEGIN IMMEDIATE")) {
            Ok(()) => Some(job),
            Err((error, _)) => {
                let error = storage_error(&error, job.queued());
                job.answer(Some(error));
                None
            }
        }
    }

    fn run_in_savepoint(&self, job: &mut dyn Job) -> rusqlite::Result<()> {
        execute(&self.conn, "SAVEPOINT request")?;
        match job.run(&self.conn) {
            Ok(true) => execute(&self.conn, "RELEASE request"),
            Ok(false) => self.undo_savepoint(),
            Err(error) => {
                if !self.conn.is_autocommit() {
                    self.undo_savepoint()?;
                }
                Err(error)
            }
        }
    }

    /// When even this fails the whole transaction is undone, so that no half of a request is committed.
    fn undo_savepoint(&self) -> rusqlite::Result<()> {
        let undone =
            execute(&self.conn, "ROLLBACK TO request").and_then(|()| execute(&self.conn, "RELEASE request"));
        if undone.is_err() {
            self.rollback();
        }
        undone
    }

    /// Commits. Without WAL a reader of another process can be in the way: the longest patience
    /// among the jobs decides.
    fn commit(&self, jobs: &[Box<dyn Job>]) -> Result<(), rusqlite::Error> {
        let patience = jobs
            .iter()
            .map(|job| self.patience.of(job.kind()).saturating_sub(job.queued().elapsed()))
            .max()
            .unwrap_or_default();
        busy::retry(patience, || execute(&self.conn, "COMMIT")).map_err(|(error, _)| error)
    }

    fn rollback(&self) {
        if !self.conn.is_autocommit()
            && let Err(error) = execute(&self.conn, "ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction could not be rolled back");
        }
    }

    /// The full-text index can break while the rows are sound; then it is built anew from them,
    /// once per process, and the writes that met it are repeated (spec 70 §2 "Corruption").
    fn rebuild_index(&mut self, cause: &rusqlite::Error) {
        self.rebuilt = true;
        tracing::warn!(%cause, "the full-text index is damaged and is built anew");
        if let Err(error) = rebuild_index(&self.conn) {
            tracing::error!(%error, "the full-text index could not be built anew");
        }
    }

    fn after_writes(&mut self, count: usize) {
        let before = self.writes;
        self.writes += count as u64;
        if let Some(upkeep) = &self.upkeep {
            upkeep.committed();
        }
        if before / MERGE_EVERY != self.writes / MERGE_EVERY {
            let merge = "INSERT INTO messages_fts (messages_fts, rank) VALUES ('merge', ?1)";
            if let Err(error) = self.conn.execute(merge, [MERGE_PAGES]) {
                tracing::debug!(%error, "the index segments were not merged");
            }
        }
        if before / CHECKPOINT_EVERY != self.writes / CHECKPOINT_EVERY {
            match &self.upkeep {
                Some(upkeep) => upkeep.checkpoint_soon(),
                None => checkpoint(&self.conn, "PASSIVE"),
            }
        }
    }

    fn close(mut self) {
        // Its connection must be gone before the WAL can be cut to nothing.
        self.upkeep = None;
        checkpoint(&self.conn, "TRUNCATE");
        if let Err((_, error)) = self.conn.close() {
            tracing::warn!(%error, "the database was not closed cleanly");
        }
    }
}

/// Sorts the failure of a begin or a commit, which may concern several requests.
fn storage_error(error: &rusqlite::Error, queued: Instant) -> StateError {
    match error {
        error if busy::is_busy(error) => StateError::Busy { waited: queued.elapsed() },
        rusqlite::Error::SqliteFailure(code, text) => {
            rusqlite::Error::SqliteFailure(*code, text.clone()).into()
        }
        other => StateError::Io { detail: other.to_string() },
    }
}

/// Builds the full-text index anew from the messages.
pub(crate) fn rebuild_index(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("INSERT INTO messages_fts (messages_fts) VALUES ('rebuild')", []).map(drop)
}

/// Whether the error is the full-text index's: damage elsewhere has another extended code. An
/// index that lost its root writes over its own segments, which shows as a violated key in a table
/// that SQLite does not name; it names any other.
pub(crate) fn is_index_corruption(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => match code.extended_code {
            ffi::SQLITE_CORRUPT_VTAB => true,
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
                text.as_deref() == Some("constraint failed")
            }
            _ => false,
        },
        _ => false,
    }
}

fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

#[cfg(test)]
mod tests;

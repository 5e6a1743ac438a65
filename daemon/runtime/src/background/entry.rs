//! One tracked process: what never changes about it, and what does.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{Instant, Principal};
use tokio_util::sync::CancellationToken;

use super::input::{Input, WriteError};
use super::log::{Cursor, Log, Piece};
use super::record::{EndRecord, Record};
use super::{EndReason, ProcessEnd, ProcessError, ProcessView};
use crate::terminal::SessionKey;
use crate::terminal::group::Tree;
use crate::terminal::processes::Process;

/// What never changes.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) id: String,
    pub(super) session: SessionKey,
    pub(super) principal: Principal,
    pub(super) command: String,
    pub(super) cwd: PathBuf,
    /// The shell, which leads a process group.
    pub(super) process: Process,
    /// The run of the machine that `process` belongs to.
    pub(super) boot: String,
    pub(super) mark: String,
    pub(super) started_at: Instant,
    pub(super) pty: bool,
    pub(super) detached: bool,
    pub(super) watch_patterns: Vec<String>,
}

/// What changes.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) end: Option<ProcessEnd>,
    /// The agent wants it to end.
    pub(super) killed: bool,
    pub(super) notify: bool,
    /// The session knows of its end.
    pub(super) told: bool,
    pub(super) watch_hits: u64,
    pub(super) notices: u64,
    /// Members of its tree that were seen: after its end, those that it left behind.
    pub(super) known: BTreeSet<Process>,
    polled: Cursor,
}

/// One tracked process.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) facts: Facts,
    pub(super) log: Log,
    /// Fires once `Life::end` is set.
    pub(super) ended: CancellationToken,
    /// Guards short sections without `.await`.
    life: Mutex<Life>,
    /// Held while something is written, so that two writes do not mix.
    input: tokio::sync::Mutex<Input>,
}

impl Entry {
    pub(super) fn new(facts: Facts, log: Log, input: Input, notify: bool) -> Self {
        let life = Life {
            end: None,
            killed: false,
            notify,
            told: false,
            watch_hits: 0,
            notices: 0,
            known: BTreeSet::new(),
            polled: Cursor::default(),
        };
        Self {
            facts,
            log,
            ended: CancellationToken::new(),
            life: Mutex::new(life),
            input: tokio::sync::Mutex::new(input),
        }
    }

    /// A process of an earlier daemon, which runs or has ended since; `None` when even its log cannot be read.
    pub(super) fn restored(record: Record, boot: &str, now: Instant) -> Option<Self> {
        let log = Log::open(&record.log)
            .inspect_err(
                |error| tracing::warn!(id = record.id, %error, "log of a background process is gone"),
            )
            .ok()?;
        let process = Process { pid: record.pid, started: record.start_ticks };
        let same_boot = record.boot == boot;
        let runs = record.ended.is_none() && same_boot && process.is_alive();
        let end = match record.ended {
            Some(end) => Some(ProcessEnd {
                at: Instant(end.at),
                exit_code: end.exit_code,
                reason: end.reason,
                source: end.source,
            }),
            None if runs => None,
            None => Some(ProcessEnd { at: now, exit_code: None, reason: EndReason::Lost, source: None }),
        };
        // What lives of it. Its shell's number says nothing once the shell has gone.
        let known = if same_boot {
            Tree::new(runs.then_some(process.pid), &record.mark, BTreeSet::new()).living().clone()
        } else {
            BTreeSet::new()
        };
        let life = Life {
            end,
            killed: false,
            notify: record.notify_on_complete,
            told: record.told,
            watch_hits: record.watch_hits,
            notices: record.notices,
            known,
            polled: Cursor::at(record.polled.min(log.length())),
        };
        let ended = CancellationToken::new();
        if life.end.is_some() {
            ended.cancel();
        }
        let facts = Facts {
            id: record.id,
            // Whoever cannot be told gets the least rights.
            principal: Principal::parse(&record.principal)
                .unwrap_or_else(|| Principal::Child { of: record.session.clone() }),
            session: SessionKey::new(record.session),
            command: record.command,
            cwd: record.cwd,
            process,
            boot: record.boot,
            mark: record.mark,
            started_at: Instant(record.started_at),
            pty: record.pty,
            detached: true,
            watch_patterns: record.watch_patterns,
        };
        let input = Input::Closed { why: "it was closed when the daemon that started the process ended" };
        Some(Self { facts, log, ended, life: Mutex::new(life), input: tokio::sync::Mutex::new(input) })
    }

    pub(super) fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn view(&self) -> ProcessView {
        let life = self.life();
        ProcessView {
            id: self.facts.id.clone(),
            session: self.facts.session.clone(),
            principal: self.facts.principal.clone(),
            command: self.facts.command.clone(),
            cwd: self.facts.cwd.clone(),
            pid: self.facts.process.pid,
            started_at: self.facts.started_at,
            pty: self.facts.pty,
            detached: self.facts.detached,
            notify_on_complete: life.notify,
            watch_patterns: self.facts.watch_patterns.clone(),
            watch_hits: life.watch_hits,
            end: life.end.clone(),
        }
    }

    pub(super) fn record(&self) -> Record {
        let life = self.life();
        Record {
            id: self.facts.id.clone(),
            session: self.facts.session.as_str().to_owned(),
            principal: self.facts.principal.to_string(),
            command: self.facts.command.clone(),
            cwd: self.facts.cwd.clone(),
            log: self.log.path().to_owned(),
            pid: self.facts.process.pid,
            start_ticks: self.facts.process.started,
            boot: self.facts.boot.clone(),
            mark: self.facts.mark.clone(),
            started_at: self.facts.started_at.0,
            pty: self.facts.pty,
            notify_on_complete: life.notify,
            watch_patterns: self.facts.watch_patterns.clone(),
            watch_hits: life.watch_hits,
            notices: life.notices,
            polled: life.polled.offset,
            told: life.told,
            ended: life.end.as_ref().map(|end| EndRecord {
                at: end.at.0,
                exit_code: end.exit_code,
                reason: end.reason,
                source: end.source.clone(),
            }),
        }
    }

    /// What came since the last time.
    pub(super) fn new_output(&self, max_chars: usize) -> io::Result<Piece> {
        self.log.since(&mut self.life().polled, max_chars)
    }

    pub(super) async fn write(&self, data: &[u8]) -> Result<(), ProcessError> {
        let written = self.input.lock().await.write(data).await;
        written.map_err(|error| self.write_error(error, data.len()))
    }

    pub(super) async fn close_input(&self) -> Result<(), ProcessError> {
        let closed = self.input.lock().await.close().await;
        closed.map_err(|error| self.write_error(error, 1))
    }

    /// The process is gone, and nobody reads any more.
    pub(super) async fn drop_input(&self) {
        let mut input = self.input.lock().await;
        if !matches!(*input, Input::Closed { .. }) {
            *input = Input::Closed { why: "the process has ended" };
        }
    }

    fn write_error(&self, error: WriteError, length: usize) -> ProcessError {
        let id = self.facts.id.clone();
        match error {
            WriteError::Closed { why } => ProcessError::InputClosed { id, why },
            WriteError::NotReading { written } => ProcessError::NotReading { id, written, length },
        }
    }

    /// Removes what it left on the disk.
    pub(super) fn forget(&self) {
        let _ = std::fs::remove_file(self.log.path());
    }
}

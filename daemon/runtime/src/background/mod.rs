//! Background processes: started by one call, watched and ended by later ones (spec 40 §6.2).
//!
//! A process writes to a log file by itself and needs no living daemon: when the daemon ends, whichever way, it
//! goes on, and the next daemon takes it over from `processes.json`. It is known by its id and the kernel's start
//! time, so that nothing else is ever signalled in its place. What was lost in between is its input, which only the
//! daemon that started it held open, and its exit code.

mod entry;
mod input;
mod keeper;
mod log;
mod record;
mod view;
mod watch;
mod word;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{Clock, Principal};
use tokio_util::sync::CancellationToken;

use crate::secret::Secret;
use crate::tasks::Tasks;
use crate::terminal::group::Tree;
use crate::terminal::processes::{Process, boot_id};
use crate::terminal::{BackgroundSpec, SessionKey, TerminalBackend, TerminalError, pty};
use entry::{Entry, Facts};
use keeper::Keeper;
use log::Log;

pub use view::{EndReason, Killed, Output, Polled, ProcessEnd, ProcessView, WaitEnd};
pub use word::{NobodyListens, Occasion, ProcessListener, ProcessWord};

/// How many processes are tracked, ended ones included.
const MAX_TRACKED: usize = 64;
/// Ended ones are forgotten so long after their end.
const KEPT: Duration = Duration::from_mins(30);
/// How much of a log stays on the disk.
const LOG_BYTES: u64 = 64 * 1024 * 1024;
/// Characters of output that can be looked at.
const WINDOW_CHARS: usize = 200_000;
/// A process that is older does not keep a daemon alive.
const COUNTS_FOR_S: f64 = 24.0 * 3600.0;
/// How long the end of a killed process is waited for, beyond the grace.
const REAP_LIMIT: Duration = Duration::from_secs(2);

/// What [`Processes`] are built from.
#[derive(Debug)]
pub struct ProcessesInput {
    /// Absolute folder of the logs; made with mode 0700 when it is needed.
    pub folder: PathBuf,
    /// Absolute path of `processes.json`; its folder must exist.
    pub register: PathBuf,
    pub backend: Arc<dyn TerminalBackend>,
    pub tasks: Tasks,
    pub clock: Arc<dyn Clock>,
    /// Hears what processes have to say by themselves.
    pub listener: Arc<dyn ProcessListener>,
    /// How long a process that is to end may take for it, before it is killed.
    pub grace: Duration,
}

/// The background processes of a profile. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Processes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    input: ProcessesInput,
    limits: Limits,
    /// Guards short sections without `.await`.
    entries: Mutex<BTreeMap<String, Arc<Entry>>>,
    /// Taken to write the register, so that an older state never replaces a newer one.
    saving: Mutex<()>,
    breaker: Mutex<watch::Breaker>,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    tracked: usize,
    kept: Duration,
    log_bytes: u64,
}

/// A process to start.
#[derive(Clone)]
pub struct StartSpec {
    /// Shell text as it is run.
    pub command: String,
    /// The command as it is shown, when that is another.
    pub shown: Option<String>,
    /// Absolute, existing.
    pub cwd: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    /// On a terminal of its own. Such a process ends with the daemon.
    pub pty: bool,
    /// Whose it is.
    pub session: SessionKey,
    /// In whose name it was started.
    pub principal: Principal,
    /// Tell the session of its end.
    pub notify_on_complete: bool,
    /// Tell the session of lines that contain one of these.
    pub watch_patterns: Vec<String>,
    /// Written to its input at the start; the input stays open.
    pub input: Option<Secret>,
}

/// Hides the environment and the input, which may be secret.
impl fmt::Debug for StartSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartSpec")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .field("pty", &self.pty)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("{MAX_TRACKED} background processes run already; end some first")]
    TooMany,
    #[error("cannot make the log {}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("cannot start the process")]
    Spawn(#[source] io::Error),
    #[error(transparent)]
    Terminal(#[from] TerminalError),
}

/// Why something cannot be done with a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// There is none, or it is another session's.
    #[error("there is no background process {id} in this session")]
    Unknown { id: String },
    #[error("the stdin of {id} is closed: {why}")]
    InputClosed { id: String, why: &'static str },
    /// Its input is full.
    #[error("{id} does not read its stdin: {written} of {length} bytes were taken within {} s", input::LIMIT.as_secs())]
    NotReading { id: String, written: usize, length: usize },
    #[error("cannot read the output of {id}")]
    Output { id: String, source: io::Error },
}

impl Processes {
    /// No processes yet; [`readopt`](Self::readopt) brings those of an earlier daemon.
    pub fn new(input: ProcessesInput) -> Self {
        Self::with(input, Limits { tracked: MAX_TRACKED, kept: KEPT, log_bytes: LOG_BYTES })
    }

    fn with(input: ProcessesInput, limits: Limits) -> Self {
        Self(Arc::new(Shared {
            input,
            limits,
            entries: Mutex::default(),
            saving: Mutex::default(),
            breaker: Mutex::default(),
        }))
    }

    /// Starts a process. It is in the register when this returns.
    ///
    /// `cancel` counts until the process has started.
    pub async fn start(
        &self,
        spec: StartSpec,
        cancel: &CancellationToken,
    ) -> Result<ProcessView, StartError> {
        let shared = &self.0;
        if shared.make_room() {
            shared.save();
        }
        if shared.entries().len() >= shared.limits.tracked {
            return Err(StartError::TooMany);
        }
        let StartSpec { command, shown, cwd, env, pty, session, principal, .. } = spec;
        let shown = shown.unwrap_or_else(|| command.clone());
        let background = BackgroundSpec { command, cwd: cwd.clone(), env, pty, session: session.clone() };
        let mut prepared = shared.input.backend.prepare_background(&background, cancel).await?;
        let id = mint_id();
        let path = shared.input.folder.join(format!("{id}.log"));
        let log = hermes_config::create_private_dir(&shared.input.folder)
            .and_then(|()| Log::create(&path))
            .map_err(|source| StartError::Log { path, source })?;
        let shell = prepared.command.as_std().get_program().to_owned();
        let command = std::mem::replace(&mut prepared.command, tokio::process::Command::new(shell));
        // A password must not be shown by the terminal that it is typed into.
        let started = if pty {
            keeper::start_on_terminal(command, spec.input.is_none())
        } else {
            keeper::start_on_pipe(command, &log)
        };
        let started = started.map_err(|error| {
            let _ = std::fs::remove_file(log.path());
            StartError::Spawn(error)
        })?;
        let pid = started.child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        let facts = Facts {
            id,
            session,
            principal,
            command: shown,
            cwd,
            // A shell that has ended already is a zombie of ours until it is waited for.
            process: Process::living(pid).unwrap_or(Process { pid, started: 0 }),
            boot: boot_id(),
            mark: prepared.mark.clone(),
            started_at: shared.input.clock.now(),
            pty,
            detached: false,
            watch_patterns: spec.watch_patterns,
        };
        let entry = Arc::new(Entry::new(facts, log, started.input, spec.notify_on_complete));
        shared.entries().insert(entry.facts.id.clone(), Arc::clone(&entry));
        shared.save();
        tracing::info!(id = entry.facts.id, pid, pty, "background process started");
        let keeper = Keeper { shared: Arc::clone(shared), entry: Arc::clone(&entry) };
        shared.input.tasks.spawn("process", keeper.own(started.child, started.output, prepared));
        if let Some(input) = spec.input {
            // Before anybody else can write. One that reads nothing has no use for it either.
            let _ = entry.write(input.expose().as_bytes()).await;
        }
        Ok(entry.view())
    }

    /// Takes over what an earlier daemon left in the register: what still runs is watched again, the rest has ended.
    pub async fn readopt(&self) {
        let shared = Arc::clone(&self.0);
        let work = move || shared.readopt();
        match self.0.input.tasks.spawn_blocking("processes-readopt", work).await {
            Ok(keepers) => {
                for keeper in keepers {
                    self.0.input.tasks.spawn("process", keeper.detached());
                }
            }
            Err(error) => tracing::error!(%error, "background processes were not taken over"),
        }
    }

    /// The processes of one session, or of all, in the order of their start.
    pub fn list(&self, session: Option<&SessionKey>) -> Vec<ProcessView> {
        let mut views: Vec<ProcessView> = self
            .0
            .entries()
            .values()
            .filter(|entry| session.is_none_or(|session| *session == entry.facts.session))
            .map(|entry| entry.view())
            .collect();
        views.sort_by(|a, b| a.started_at.0.total_cmp(&b.started_at.0));
        views
    }

    /// One process of the session.
    pub fn get(&self, session: &SessionKey, id: &str) -> Result<ProcessView, ProcessError> {
        Ok(self.entry(session, id)?.view())
    }

    /// What a process has printed since the last poll, at most `max_chars`. An end that this tells is not told again.
    pub fn poll(&self, session: &SessionKey, id: &str, max_chars: usize) -> Result<Polled, ProcessError> {
        let entry = self.entry(session, id)?;
        // Looked at before the output is read, so that an end comes with all that was printed before it.
        let process = entry.view();
        let piece = entry
            .new_output(max_chars)
            .map_err(|source| ProcessError::Output { id: id.to_owned(), source })?;
        if process.end.is_some() {
            entry.life().told = true;
        }
        self.0.save();
        Ok(Polled { process, new_output: piece.text, skipped: piece.skipped })
    }

    /// The end of a process's output, at most `max_chars` and never more than 200,000.
    pub fn output(&self, session: &SessionKey, id: &str, max_chars: usize) -> Result<Output, ProcessError> {
        let entry = self.entry(session, id)?;
        let piece = entry
            .log
            .tail(max_chars.min(WINDOW_CHARS))
            .map_err(|source| ProcessError::Output { id: id.to_owned(), source })?;
        Ok(Output { text: piece.text, truncated: piece.skipped > 0 })
    }

    /// Waits for a process's end. An end that this tells is not told again. Cancel-safe.
    pub async fn wait(
        &self,
        session: &SessionKey,
        id: &str,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<(WaitEnd, ProcessView), ProcessError> {
        let entry = self.entry(session, id)?;
        let end = tokio::select! {
            biased;
            () = entry.ended.cancelled() => WaitEnd::Exited,
            () = cancel.cancelled() => WaitEnd::Interrupted,
            () = tokio::time::sleep(limit) => WaitEnd::TimedOut,
        };
        if end == WaitEnd::Exited {
            entry.life().told = true;
            self.0.save();
        }
        Ok((end, entry.view()))
    }

    /// Writes to a process's input.
    pub async fn write(&self, session: &SessionKey, id: &str, data: &[u8]) -> Result<(), ProcessError> {
        self.entry(session, id)?.write(data).await
    }

    /// Ends a process's input.
    pub async fn close_input(&self, session: &SessionKey, id: &str) -> Result<(), ProcessError> {
        self.entry(session, id)?.close_input().await
    }

    /// Ends a process with all that it started. Its end is not told by itself then. It goes on when it is dropped.
    pub async fn kill(&self, session: &SessionKey, id: &str) -> Result<Killed, ProcessError> {
        let entry = self.entry(session, id)?;
        let shared = Arc::clone(&self.0);
        let ending = self.0.input.tasks.spawn("process-kill", {
            let entry = Arc::clone(&entry);
            async move { shared.kill(&entry).await }
        });
        Ok(ending.await.unwrap_or_else(|error| {
            tracing::error!(%error, "ending a process broke off");
            Killed { process: entry.view(), already_exited: false, left_behind: false, survived: true }
        }))
    }

    /// How many run that keep a daemon from leaving when idle: those that are younger than a day.
    pub fn busy(&self) -> usize {
        let now = self.0.input.clock.now();
        self.list(None)
            .iter()
            .filter(|view| view.end.is_none() && now.seconds_since(view.started_at) < COUNTS_FOR_S)
            .count()
    }

    /// The processes, with the kernel's start times, from which those descend that earlier daemons started
    /// (contract §7): their shells, and what these were seen to have left.
    pub fn roots(&self) -> Vec<(i32, u64)> {
        let entries: Vec<Arc<Entry>> = self.0.entries().values().cloned().collect();
        let mut roots = Vec::new();
        for entry in entries.iter().filter(|entry| entry.facts.detached) {
            let mut found = entry.life().known.clone();
            found.insert(entry.facts.process);
            roots.extend(found.into_iter().map(|process| (process.pid, process.started)));
        }
        roots
    }

    fn entry(&self, session: &SessionKey, id: &str) -> Result<Arc<Entry>, ProcessError> {
        let entry = self.0.entries().get(id).cloned();
        entry
            .filter(|entry| entry.facts.session == *session)
            .ok_or_else(|| ProcessError::Unknown { id: id.to_owned() })
    }
}

impl Shared {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the register up to date.
    fn save(&self) {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let records = self.entries().values().map(|entry| entry.record()).collect();
        if let Err(error) = record::save(&self.input.register, records) {
            tracing::warn!(%error, "a restart would not find the background processes: their list cannot be written");
        }
    }

    /// Forgets the one that ended first when there is no room. Says whether one went.
    fn make_room(&self) -> bool {
        let mut entries = self.entries();
        if entries.len() < self.limits.tracked {
            return false;
        }
        let oldest = entries
            .values()
            .filter_map(|entry| entry.view().end.map(|end| (end.at, entry.facts.id.clone())))
            .min_by(|a, b| a.0.0.total_cmp(&b.0.0));
        let Some(gone) = oldest.and_then(|(_, id)| entries.remove(&id)) else { return false };
        gone.forget();
        true
    }

    fn remove(&self, entry: &Entry) {
        if self.entries().remove(&entry.facts.id).is_some() {
            entry.forget();
            self.save();
        }
    }

    /// The processes that an earlier daemon left, each with who will watch it.
    fn readopt(self: &Arc<Self>) -> Vec<Keeper> {
        let boot = boot_id();
        let now = self.input.clock.now();
        let mut keepers = Vec::new();
        for record in record::load(&self.input.register) {
            let known = self.entries().contains_key(&record.id);
            if known || record.log.parent() != Some(&self.input.folder) {
                continue;
            }
            let Some(entry) = Entry::restored(record, &boot, now) else { continue };
            let entry = Arc::new(entry);
            tracing::info!(
                id = entry.facts.id,
                running = entry.view().end.is_none(),
                "background process taken over"
            );
            self.entries().insert(entry.facts.id.clone(), Arc::clone(&entry));
            keepers.push(Keeper { shared: Arc::clone(self), entry });
        }
        self.save();
        self.sweep_logs();
        keepers
    }

    /// Removes logs that nobody knows any more.
    fn sweep_logs(&self) {
        let Ok(files) = std::fs::read_dir(&self.input.folder) else { return };
        let kept: Vec<PathBuf> = self.entries().values().map(|entry| entry.log.path().to_owned()).collect();
        for file in files.flatten().map(|file| file.path()) {
            let is_log = file.extension().is_some_and(|extension| extension == "log");
            if is_log && !kept.contains(&file) {
                let _ = std::fs::remove_file(file);
            }
        }
    }

    async fn kill(&self, entry: &Entry) -> Killed {
        let (running, known) = {
            let mut life = entry.life();
            let running = life.end.is_none();
            life.killed |= running;
            (running, life.known.clone())
        };
        // The number of a shell that has ended may be another's by now.
        let leader = Some(entry.facts.process).filter(|process| running && process.is_alive());
        let mut tree = Tree::new(leader.map(|process| process.pid), &entry.facts.mark, known);
        let left_behind = !running && !tree.living().is_empty();
        if !running && !left_behind {
            return Killed { process: entry.view(), already_exited: true, left_behind, survived: false };
        }
        let gone = tree.end(self.input.grace).await;
        if running {
            let _ = tokio::time::timeout(REAP_LIMIT, entry.ended.cancelled()).await;
        }
        tracing::info!(id = entry.facts.id, gone, "background process ended by the agent");
        Killed { process: entry.view(), already_exited: false, left_behind, survived: !gone }
    }
}

fn mint_id() -> String {
    let hex = uuid::Uuid::new_v4().simple().to_string();
    format!("proc_{}", hex.get(..12).unwrap_or(&hex))
}

//! The local backend: commands run on this machine, as the daemon's user (spec 40 §7.1, §7.2).

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::group::ProcessGroup;
use super::private_folder::PrivateFolder;
use super::pty::{self, OnTerminal};
use super::pump::{Collected, Pump};
use super::session::{BackgroundCommand, SessionSetup, ShellSession};
use super::shell::{Shell, folders_of, own_shell};
use super::{
    BackgroundSpec, CommandOutput, CommandSpec, EXIT_INTERRUPTED, EXIT_TIMEOUT, SessionKey, TerminalBackend,
    TerminalError,
};
use crate::child_env::blocked_names;
use crate::secret::SecretScope;
use crate::settings::TerminalSettings;

/// How long [`LocalBackend::close`] waits for commands that it has interrupted.
const CLOSE_LIMIT: Duration = Duration::from_secs(4);

/// What the local backend is built from.
#[derive(Debug, Clone)]
pub struct LocalBackendInput {
    /// Where the backend makes its private folder (mode 0700), at the first command. It must exist, and should be
    /// on a local disk.
    pub temp_dir: PathBuf,
    pub settings: TerminalSettings,
    /// Variables of these names are never written to a snapshot: a command that is given one gets it anew.
    pub secrets: SecretScope,
}

/// Runs commands on this machine.
///
/// Each command is one `bash -c` in its own process group. A session's snapshot is made by its first command.
#[derive(Debug)]
pub struct LocalBackend {
    temp_dir: PathBuf,
    setup: SessionSetup,
    /// Where shells are looked for; by default in the session's PATH and the standard folders.
    shells: Option<Vec<PathBuf>>,
    /// Guards short sections without `.await`.
    state: Mutex<State>,
    closing: CancellationToken,
    running: TaskTracker,
}

#[derive(Debug, Default)]
struct State {
    folder: Option<PrivateFolder>,
    sessions: HashMap<SessionKey, Arc<Slot>>,
    started: u64,
}

/// A session's place: filled by its first command, for which others of the same session wait.
#[derive(Debug, Default)]
struct Slot {
    folder: Option<PathBuf>,
    session: OnceCell<ShellSession>,
}

/// How a command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exited,
    TimedOut,
    Interrupted,
}

impl LocalBackend {
    /// A backend that has started nothing yet.
    pub fn new(input: LocalBackendInput) -> Self {
        let hidden =
            input.secrets.names().map(str::to_owned).chain(blocked_names().map(str::to_owned)).collect();
        Self {
            temp_dir: input.temp_dir,
            setup: SessionSetup { settings: input.settings, hidden },
            shells: None,
            state: Mutex::default(),
            closing: CancellationToken::new(),
            running: TaskTracker::new(),
        }
    }

    /// A backend for a machine that has shells in these folders only.
    #[cfg(test)]
    pub(super) fn for_tests(temp_dir: PathBuf, shells: Vec<PathBuf>) -> Self {
        let (settings, secrets) = (TerminalSettings::default(), SecretScope::empty());
        let backend = Self::new(LocalBackendInput { temp_dir, settings, secrets });
        Self { shells: Some(shells), ..backend }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session's place; a new one when there is none, or when a cleaner of temp folders took its files.
    fn slot(&self, key: &SessionKey) -> Arc<Slot> {
        let mut state = self.state();
        if let Some(slot) = state.sessions.get(key)
            && slot.session.get().is_none_or(ShellSession::is_intact)
        {
            return Arc::clone(slot);
        }
        state.started += 1;
        let name = format!("s{}", state.started);
        let mut folder = state.folder.as_ref().map(|private| private.subfolder(&name));
        if !matches!(folder, Some(Ok(_))) {
            folder = Some(PrivateFolder::create(&self.temp_dir).and_then(|private| {
                let session = private.subfolder(&name);
                state.folder = Some(private);
                session
            }));
        }
        let folder = folder.and_then(|made| {
            let folder = self.temp_dir.display();
            made.inspect_err(|error| tracing::warn!(%folder, %error, "no folder for the shell's files")).ok()
        });
        let slot = Arc::new(Slot { folder, session: OnceCell::new() });
        state.sessions.insert(key.clone(), Arc::clone(&slot));
        slot
    }

    /// The session's shell, started if need be. `Ok(None)` when `cancel` came first.
    async fn session<'a>(
        &self,
        slot: &'a Slot,
        env: &[(OsString, OsString)],
        cancel: &CancellationToken,
    ) -> Result<Option<&'a ShellSession>, TerminalError> {
        let started = slot.session.get_or_try_init(|| async {
            let folders = self.shells.clone().unwrap_or_else(|| folders_of(env));
            let Some(shell) = Shell::find(&folders) else {
                return Err(Some(TerminalError::NoShell { searched: folders }));
            };
            ShellSession::start(shell, slot.folder.clone(), &self.setup, env, cancel).await.ok_or(None)
        });
        match started.await {
            Ok(session) => Ok(Some(session)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }
}

#[async_trait]
impl TerminalBackend for LocalBackend {
    fn name(&self) -> &'static str {
        "local"
    }

    async fn run(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<CommandOutput, TerminalError> {
        if spec.command.contains('\0') {
            return Err(TerminalError::InvalidCommand { reason: "contains a NUL character" });
        }
        let _running = self.running.token();
        if self.closing.is_cancelled() {
            return Err(TerminalError::Closed);
        }
        // One token for both: the caller's interrupt, and the backend's end.
        let stop = self.closing.child_token();
        let begun = Instant::now();
        let run = async {
            if cancel.is_cancelled() {
                return Ok(not_started(&spec, begun));
            }
            let slot = self.slot(&spec.session);
            match self.session(&slot, &spec.env, &stop).await? {
                Some(session) => run_in(session, &spec, &stop).await,
                None => Ok(not_started(&spec, begun)),
            }
        };
        let pass_on = async {
            cancel.cancelled().await;
            stop.cancel();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            result = run => result,
            never = pass_on => match never {},
        }
    }

    async fn prepare_background(
        &self,
        spec: &BackgroundSpec,
        cancel: &CancellationToken,
    ) -> Result<BackgroundCommand, TerminalError> {
        if spec.command.contains('\0') {
            return Err(TerminalError::InvalidCommand { reason: "contains a NUL character" });
        }
        let _running = self.running.token();
        if self.closing.is_cancelled() {
            return Err(TerminalError::Closed);
        }
        let slot = self.slot(&spec.session);
        let session = tokio::select! {
            session = self.session(&slot, &spec.env, &self.closing) => session?.ok_or(TerminalError::Closed)?,
            () = cancel.cancelled() => return Err(TerminalError::Interrupted),
        };
        let on_terminal = spec.pty.then(|| pty::environment(&spec.env));
        let env = on_terminal.as_ref().unwrap_or(&spec.env);
        let other = own_shell(env);
        Ok(session.prepare_background(&spec.command, &spec.cwd, env, other.as_deref(), spec.pty))
    }

    async fn close_session(&self, session: &SessionKey) {
        let slot = self.state().sessions.remove(session);
        if let Some(folder) = slot.and_then(|slot| slot.folder.clone()) {
            let _ = tokio::fs::remove_dir_all(folder).await;
        }
    }

    async fn close(&self) {
        self.closing.cancel();
        self.running.close();
        if tokio::time::timeout(CLOSE_LIMIT, self.running.wait()).await.is_err() {
            tracing::warn!("commands still run while the terminal closes");
        }
        let mut state = self.state();
        state.sessions.clear();
        state.folder = None;
    }
}

/// The result of a command that was interrupted before it began.
fn not_started(spec: &CommandSpec, begun: Instant) -> CommandOutput {
    CommandOutput {
        output: "[interrupted before the command started]".to_owned(),
        exit_code: EXIT_INTERRUPTED,
        timed_out: false,
        interrupted: true,
        cwd: spec.cwd.clone(),
        cwd_note: None,
        omitted_chars: 0,
        full_log: None,
        duration: begun.elapsed(),
    }
}

async fn run_in(
    session: &ShellSession,
    spec: &CommandSpec,
    stop: &CancellationToken,
) -> Result<CommandOutput, TerminalError> {
    let begun = Instant::now();
    let failed = |source| TerminalError::Spawn { shell: session.shell().program.clone(), source };
    let (cwd, mut cwd_note) = existing(&spec.cwd);
    let mark = uuid::Uuid::new_v4().simple().to_string();
    let on_terminal = spec.pty.then(|| pty::environment(&spec.env));
    let env = on_terminal.as_ref().unwrap_or(&spec.env);
    let mut prepared = session.prepare(&spec.command, &cwd, env, &mark, spec.pty);
    let command = std::mem::replace(&mut prepared.command, Command::new(&session.shell().program));
    let Started { mut child, output, input } = start(command, spec).map_err(failed)?;
    let group = ProcessGroup::new(&child, &mark);

    let pump = Pump::new(session.marker(), spec.output_cap_chars, prepared.log.take());
    let exited = CancellationToken::new();
    let (collected, (end, status), ()) = tokio::join!(
        pump.run(output, &exited),
        async {
            let ended = supervise(&mut child, group, spec.timeout, stop).await;
            exited.cancel();
            ended
        },
        feed(input, spec, &exited),
    );
    prepared.finish();

    let Collected { text, omitted, cwd: told, full_log } = collected;
    let reached = told.unwrap_or(cwd);
    let (cwd, vanished) = existing(&reached);
    cwd_note = vanished.or(cwd_note);
    let mut output = text;
    let exit_code = match end {
        End::Exited => status.map_or(-1, exit_code),
        End::TimedOut => {
            note(
                &mut output,
                &format!("[the command was ended: it ran longer than {} s]", spec.timeout.as_secs_f64()),
            );
            EXIT_TIMEOUT
        }
        End::Interrupted => {
            note(&mut output, "[the command was interrupted]");
            EXIT_INTERRUPTED
        }
    };
    Ok(CommandOutput {
        output,
        exit_code,
        timed_out: end == End::TimedOut,
        interrupted: end == End::Interrupted,
        cwd,
        cwd_note,
        omitted_chars: omitted,
        full_log,
        duration: begun.elapsed(),
    })
}

/// A shell that runs, with both ends of its streams.
struct Started {
    child: Child,
    output: Box<dyn AsyncRead + Send + Unpin>,
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
}

fn start(mut command: Command, spec: &CommandSpec) -> std::io::Result<Started> {
    if spec.pty {
        // Nobody types, so nothing needs to be shown; a password must not be.
        let OnTerminal { child, output, input } = pty::spawn(command, false)?;
        return Ok(Started { child, output: Box::new(output), input: Some(Box::new(input)) });
    }
    let (reader, writer) = std::io::pipe()?;
    let second = writer.try_clone()?;
    let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    command.stdout(writer).stderr(second);
    command.stdin(if spec.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn()?;
    // The command goes with our copies of the writing end, without which the pipe would never end.
    drop(command);
    let input = child.stdin.take().map(|stdin| Box::new(stdin) as Box<dyn AsyncWrite + Send + Unpin>);
    Ok(Started { child, output: Box::new(reader), input })
}

/// Waits for the shell's exit; ends everything on timeout and interrupt.
async fn supervise(
    child: &mut Child,
    group: ProcessGroup,
    limit: Duration,
    stop: &CancellationToken,
) -> (End, Option<ExitStatus>) {
    let end = tokio::select! {
        biased;
        status = child.wait() => {
            group.release();
            return (End::Exited, status.ok());
        }
        () = stop.cancelled() => End::Interrupted,
        () = tokio::time::sleep(limit) => End::TimedOut,
    };
    match group.end(child).await {
        Ok(status) => (end, Some(status)),
        Err(error) => {
            tracing::warn!(%error, "a killed shell did not go");
            (end, None)
        }
    }
}

/// Gives the command its input, and ends it. A command that does not read it is no error.
async fn feed(
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    spec: &CommandSpec,
    exited: &CancellationToken,
) {
    let Some(mut input) = input else { return };
    let text = spec.stdin.as_ref().map_or("", |text| text.expose());
    let write = async {
        let _ = input.write_all(text.as_bytes()).await;
        if spec.pty {
            let _ = input.write_all(&[pty::END_OF_INPUT]).await;
            // The terminal must live as long as the command.
            exited.cancelled().await;
        }
        drop(input);
    };
    tokio::select! {
        () = write => {}
        () = exited.cancelled() => {}
    }
}

pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Adds a line at the end of the output.
fn note(output: &mut String, line: &str) {
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output.push_str(line);
}

/// The directory itself, or its nearest existing parent with a note that says so.
fn existing(path: &Path) -> (PathBuf, Option<String>) {
    // Only what is surely gone falls back; a directory that cannot be looked at is left to the shell.
    let gone =
        |path: &Path| fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if !gone(path) {
        return (path.to_owned(), None);
    }
    let parent = path.ancestors().skip(1).find(|parent| !gone(parent)).unwrap_or(Path::new("/"));
    let text =
        format!("{} no longer exists; the working directory is now {}", path.display(), parent.display());
    (parent.to_owned(), Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vanished_directory_falls_back_to_its_nearest_parent() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(existing(temp.path()), (temp.path().to_owned(), None));
        let gone = temp.path().join("a/b");
        let (path, note) = existing(&gone);
        assert_eq!(path, temp.path());
        let note = note.unwrap();
        assert!(note.contains(&gone.display().to_string()), "{note}");
    }

    #[test]
    fn a_signal_counts_as_128_and_its_number() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
    }
}

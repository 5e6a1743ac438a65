//! Terminal backends: where a command of the agent runs, and what comes back (spec 40 §7).
//!
//! The trait is shaped by the terminal tool's need. All backends share the execution model of §7.1: one
//! shell per command, a snapshot that carries exported state from one command to the next, a marker in the
//! output that tells the working directory, output bounded while it is read, and the whole process group
//! ended on timeout and on interrupt.

pub(crate) mod ansi;
pub(crate) mod decode;
pub(crate) mod group;
mod local;
mod marker;
mod output;
mod private_folder;
pub(crate) mod processes;
pub(crate) mod pty;
mod pump;
mod script;
mod session;
mod shell;
mod spill;

#[cfg(test)]
mod local_tests;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::SessionId;
use tokio_util::sync::CancellationToken;

use crate::secret::Secret;

pub(crate) use local::exit_code as local_exit_code;
pub use local::{LocalBackend, LocalBackendInput};
pub use session::BackgroundCommand;

/// Exit code of a command that its timeout ended.
pub const EXIT_TIMEOUT: i32 = 124;
/// Exit code of a command whose working directory cannot be entered.
pub const EXIT_BAD_DIRECTORY: i32 = 126;
/// Exit code of a command that an interrupt ended.
pub const EXIT_INTERRUPTED: i32 = 130;

/// Runs commands somewhere: on this machine, in a container, on another host.
#[async_trait]
pub trait TerminalBackend: Send + Sync + fmt::Debug {
    /// The backend's name in settings and messages: `local`, `docker`, …
    fn name(&self) -> &'static str;

    /// Runs one command to its end. A command that fails, times out or is interrupted is an `Ok` with the
    /// matching exit code: an error means that it surely did not start.
    ///
    /// Dropping the future kills the command and all its children at once.
    async fn run(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<CommandOutput, TerminalError>;

    /// Readies a command that is started in the background, with the session's exports, functions and aliases. It
    /// leaves none to the session. An error means that this backend cannot.
    async fn prepare_background(
        &self,
        spec: &BackgroundSpec,
        cancel: &CancellationToken,
    ) -> Result<BackgroundCommand, TerminalError>;

    /// Forgets a session: its snapshot and its full logs are removed. A later command of the same session
    /// starts a fresh one.
    async fn close_session(&self, session: &SessionKey);

    /// Forgets all sessions and leaves nothing behind. Later commands are refused.
    async fn close(&self);
}

/// Names the shell state that commands share. One per live session; parallel sessions never see each other's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(Arc<str>);

impl SessionKey {
    /// A key from any text that is unique among the live sessions.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&SessionId> for SessionKey {
    fn from(id: &SessionId) -> Self {
        Self(id.as_str().into())
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One command to run.
#[derive(Clone)]
pub struct CommandSpec {
    /// Shell text, run as it is: it reaches the shell as data, never through another shell's quoting.
    pub command: String,
    /// Absolute working directory. One that has vanished is replaced by its nearest existing parent, which
    /// [`CommandOutput::cwd_note`] then says; one that cannot be entered ends in exit code 126.
    pub cwd: PathBuf,
    /// The whole environment, as built by [`ChildEnv`](crate::ChildEnv). What commands export later in the
    /// session adds to it; a variable whose value changed since the last command wins over an old export.
    pub env: Vec<(OsString, OsString)>,
    /// The command is ended after this long.
    pub timeout: Duration,
    /// How many characters of output are kept: the first 40 %, the last 60 %.
    pub output_cap_chars: usize,
    /// Written to the command's standard input, which is then closed; without it the input is empty.
    pub stdin: Option<Secret>,
    /// Run it on a terminal of its own, for programs that will not work without one.
    pub pty: bool,
    /// Whose exports, functions, aliases and logs are used.
    pub session: SessionKey,
}

/// Shows names only: values of the environment and the input may be secret.
impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("CommandSpec")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .field("timeout", &self.timeout)
            .field("output_cap_chars", &self.output_cap_chars)
            .field("stdin", &self.stdin.is_some())
            .field("pty", &self.pty)
            .field("session", &self.session)
            .finish()
    }
}

/// A command that will run in the background.
#[derive(Clone)]
pub struct BackgroundSpec {
    /// As in [`CommandSpec`].
    pub command: String,
    /// Absolute working directory; it must be there.
    pub cwd: PathBuf,
    /// As in [`CommandSpec`].
    pub env: Vec<(OsString, OsString)>,
    /// On a terminal of its own.
    pub pty: bool,
    /// Whose exports, functions and aliases it starts with.
    pub session: SessionKey,
}

/// Shows names only: values of the environment may be secret.
impl fmt::Debug for BackgroundSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("BackgroundSpec")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .field("pty", &self.pty)
            .field("session", &self.session)
            .finish()
    }
}

/// What a command did. Secrets in it are not masked yet: that is done where the text is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Standard output and error in the order of writing: escape sequences removed, invalid UTF-8 replaced,
    /// at most the asked number of characters, with one line that says what was left out between head and
    /// tail, and one at the end after a timeout or an interrupt.
    pub output: String,
    /// The shell's exit code; 128 + n when signal n ended it; 124 after a timeout, 130 after an interrupt.
    pub exit_code: i32,
    pub timed_out: bool,
    pub interrupted: bool,
    /// The directory the session is in now.
    pub cwd: PathBuf,
    /// Why `cwd` is not the directory that was asked for or that the command ended in.
    pub cwd_note: Option<String>,
    /// How many characters of output were left out.
    pub omitted_chars: u64,
    /// The whole output, when some was left out: readable by the owner only, kept until the session is closed
    /// (the newest few of a session), cut at 64 MiB.
    pub full_log: Option<PathBuf>,
    pub duration: Duration,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    /// The command's text cannot be given to a shell.
    #[error("the command {reason}")]
    InvalidCommand { reason: &'static str },
    /// Neither bash nor sh was found.
    #[error("found neither bash nor sh in {}", searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoShell { searched: Vec<PathBuf> },
    /// The shell itself could not be started.
    #[error("cannot start {}", shell.display())]
    Spawn { shell: PathBuf, source: io::Error },
    /// The daemon is going down.
    #[error("the terminal is closed")]
    Closed,
    /// The turn was interrupted before the command began.
    #[error("interrupted before the command started")]
    Interrupted,
    /// This backend cannot run anything in the background.
    #[error("the {backend} backend runs no background processes")]
    NoBackground { backend: &'static str },
}

impl TerminalError {
    /// What the reader can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::InvalidCommand { .. } => "send the command as plain text",
            Self::NoShell { .. } => "install bash, or add its folder to PATH",
            Self::Spawn { source, .. } if source.raw_os_error() == Some(nix::libc::EAGAIN) => {
                "the limit of processes is reached: end some and try again"
            }
            Self::Spawn { .. } => "check that the shell can be executed by the daemon's user",
            Self::Closed => "the daemon is shutting down; try again when it runs",
            Self::Interrupted => "nothing was done",
            Self::NoBackground { .. } => "run it in the foreground",
        }
    }
}

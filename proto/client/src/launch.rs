//! Starting a daemon: which file, detached how, ready when, and what to say when it fails.
//!
//! Two clients may start one at the same time. `hermesd` takes the profile's lock before anything else,
//! so the second one ends at once; its client finds the first one in the lock's file and waits for its
//! socket. Likewise a start waits for a daemon that still drains.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::place::{Place, last_lines};

/// The daemon's file name.
const DAEMON: &str = "hermesd";
/// The exit code of a daemon whose settings are broken: no other daemon is the reason (spec 80 §4.2).
const BROKEN_SETTINGS: i32 = 78;
/// The exit code of a daemon that the agent's own tools tried to start.
const STARTED_INSIDE: i32 = 77;
/// How long a start may take in all. A large database may have to be adopted, or the daemon before it
/// may still drain.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long a socket is looked for after our own child failed: another client's child may be serving.
const OTHERS_LIMIT: Duration = Duration::from_millis(300);
/// First and longest pause between two looks at the socket.
const POLL_FIRST: Duration = Duration::from_millis(2);
const POLL_LONGEST: Duration = Duration::from_millis(20);
/// Pause before a start is tried again while another daemon holds the lock.
const RESPAWN: Duration = Duration::from_millis(500);
/// How much of a failed child's stderr is kept, from its end.
const STDERR_BYTES: usize = 4 * 1024;
/// Lines of the log that a failed start shows (contract §10).
const LOG_LINES: usize = 5;

/// How to find the daemon's program. Both come from the caller; nothing is read from the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// The client's own executable: the daemon is sought beside it first.
    pub client_exe: Option<PathBuf>,
    /// The value of `PATH`.
    pub search_path: Option<OsString>,
}

/// How a started daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartMode {
    /// By itself, when idle.
    OnDemand,
    /// When it is told to.
    Stay,
}

/// Why a start failed. The lines in it are for the user to read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("no `hermesd` found")]
    NoProgram { looked_in: Vec<PathBuf> },
    #[error("cannot run {}", program.display())]
    Spawn { program: PathBuf, source: std::io::Error },
    #[error("hermesd ended while starting ({status})")]
    Ended { status: ExitStatus, stderr: String, log: PathBuf, log_tail: Vec<String> },
    #[error("hermesd is running but did not become ready within {waited_s} s")]
    NotReady { waited_s: u64, stderr: String, log: PathBuf, log_tail: Vec<String> },
}

impl StartError {
    /// What the daemon said: its stderr, then the last lines of its log.
    pub fn details(&self) -> Vec<String> {
        match self {
            Self::NoProgram { looked_in } => {
                looked_in.iter().map(|dir| format!("looked in {}", dir.display())).collect()
            }
            Self::Spawn { .. } => Vec::new(),
            Self::Ended { stderr, log, log_tail, .. } | Self::NotReady { stderr, log, log_tail, .. } => {
                let mut lines: Vec<String> = stderr.lines().map(str::to_owned).collect();
                if !log_tail.is_empty() {
                    lines.push(format!("last lines of {}:", log.display()));
                    lines.extend(log_tail.iter().map(|line| format!("  {line}")));
                }
                lines
            }
        }
    }

    /// What the user can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::NoProgram { .. } => {
                "put `hermesd` beside this program or into PATH (cargo build --release builds both)".into()
            }
            Self::Spawn { program, .. } => format!("look at the mode of {}", program.display()),
            Self::Ended { status, .. } if status.code() == Some(BROKEN_SETTINGS) => {
                "correct the configuration (hermes-cli config check), then try again".into()
            }
            Self::Ended { status, .. } if status.code() == Some(STARTED_INSIDE) => {
                "this client was started by the agent's own tools: only the user can start the daemon, from a terminal of their own".into()
            }
            Self::Ended { .. } => "run it in the foreground to see more: hermes-cli daemon run".into(),
            Self::NotReady { log, .. } => format!("follow its log: {}", log.display()),
        }
    }
}

impl Launch {
    /// The daemon's program: beside the client's own file, then in `PATH`.
    ///
    /// # Errors
    /// [`StartError::NoProgram`] with the folders that were looked in.
    pub fn find(&self) -> Result<PathBuf, StartError> {
        let beside = self.client_exe.as_deref().and_then(Path::parent).map(Path::to_owned);
        let path = self.search_path.as_deref().unwrap_or(OsStr::new(""));
        let mut looked_in = Vec::new();
        for dir in beside.into_iter().chain(std::env::split_paths(path)) {
            // An empty entry means the working directory, which may be anybody's.
            if !dir.is_absolute() {
                continue;
            }
            let program = dir.join(DAEMON);
            if is_executable(&program) {
                return Ok(program);
            }
            if !looked_in.contains(&dir) {
                looked_in.push(dir);
            }
        }
        Err(StartError::NoProgram { looked_in })
    }

    /// The arguments of `hermesd` for a profile.
    pub fn arguments(place: &Place, mode: Option<StartMode>) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["run".into()];
        if mode == Some(StartMode::OnDemand) {
            arguments.push("--on-demand".into());
        }
        arguments.extend(["--home".into(), place.root.clone().into_os_string()]);
        arguments.extend(["--profile".into(), place.profile.clone().into()]);
        arguments
    }

    /// Starts a daemon and waits until its socket takes connections, its own or that of a daemon that
    /// somebody else started meanwhile.
    pub(crate) async fn start(&self, place: &Place, mode: StartMode) -> Result<(), StartError> {
        let program = self.find()?;
        let begun = Instant::now();
        loop {
            let mut attempt = Attempt::spawn(&program, place, mode)?;
            match attempt.until_ready(place, begun + START_LIMIT).await {
                Outcome::Ready => return Ok(()),
                Outcome::Ended(status) => {
                    let refused = matches!(status.code(), Some(BROKEN_SETTINGS | STARTED_INSIDE));
                    let held = !refused && place.held_by_other(attempt.pid);
                    let patience = if held { RESPAWN } else { OTHERS_LIMIT };
                    if wait_for_socket(place, patience).await {
                        return Ok(());
                    }
                    // The holder of the lock is starting, or draining: it serves soon, or it leaves.
                    if !held || begun.elapsed() >= START_LIMIT {
                        return Err(attempt.ended(status, place).await);
                    }
                }
                Outcome::TooLate => return Err(attempt.not_ready(place)),
            }
        }
    }
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

enum Outcome {
    Ready,
    Ended(ExitStatus),
    TooLate,
}

/// One child on its way to readiness.
struct Attempt {
    child: Child,
    pid: Option<u32>,
    pipe: Option<ChildStderr>,
    stderr: Vec<u8>,
}

impl Attempt {
    fn spawn(program: &Path, place: &Place, mode: StartMode) -> Result<Self, StartError> {
        let mut command = Command::new(program);
        command
            .args(Launch::arguments(place, Some(mode)))
            // It outlives this client, so it must not hold on to the folder that this client is in.
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Read until the daemon is ready, then closed: from there on it has its log.
            .stderr(Stdio::piped());
        detach(&mut command);
        let mut child =
            command.spawn().map_err(|source| StartError::Spawn { program: program.to_owned(), source })?;
        let pipe = child.stderr.take();
        Ok(Self { pid: child.id(), child, pipe, stderr: Vec::new() })
    }

    async fn until_ready(&mut self, place: &Place, give_up: Instant) -> Outcome {
        let mut pause = POLL_FIRST;
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => match status {
                    Ok(status) => return Outcome::Ended(status),
                    // The child cannot be waited for; its socket still tells the truth.
                    Err(_) => sleep(pause).await,
                },
                () = keep_reading(&mut self.pipe, &mut self.stderr) => {}
                () = sleep(pause) => {}
            }
            if socket_answers(place).await {
                return Outcome::Ready;
            }
            if Instant::now() >= give_up {
                return Outcome::TooLate;
            }
            pause = (pause * 2).min(POLL_LONGEST);
        }
    }

    async fn ended(mut self, status: ExitStatus, place: &Place) -> StartError {
        // What the child wrote last may still be in the pipe; a grandchild may hold it open.
        let rest = async {
            while self.pipe.is_some() {
                keep_reading(&mut self.pipe, &mut self.stderr).await;
            }
        };
        let _ = timeout(OTHERS_LIMIT, rest).await;
        StartError::Ended {
            status,
            stderr: text_of(&self.stderr),
            log: place.agent_log.clone(),
            log_tail: last_lines(&place.agent_log, LOG_LINES),
        }
    }

    fn not_ready(self, place: &Place) -> StartError {
        StartError::NotReady {
            waited_s: START_LIMIT.as_secs(),
            stderr: text_of(&self.stderr),
            log: place.agent_log.clone(),
            log_tail: last_lines(&place.agent_log, LOG_LINES),
        }
    }
}

/// Puts the child into a session of its own: no Ctrl+C of this terminal reaches it, no hang-up ends it,
/// and none of its tools can read from this terminal.
#[expect(unsafe_code, reason = "the standard library has no stable way to start a child in a new session")]
fn detach(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; `setsid` is one, and the
    // closure touches no memory of the parent.
    unsafe {
        command.pre_exec(|| match nix::unistd::setsid() {
            Ok(_) => Ok(()),
            Err(errno) => Err(std::io::Error::from_raw_os_error(errno as i32)),
        });
    }
}

/// Reads once into `kept`, which keeps only the newest bytes. Pending for ever when nothing is left to
/// read. Cancel-safe: a cancelled read has taken nothing.
async fn keep_reading(pipe: &mut Option<ChildStderr>, kept: &mut Vec<u8>) {
    let Some(source) = pipe else { return std::future::pending().await };
    let mut chunk = [0_u8; 1024];
    match source.read(&mut chunk).await {
        Ok(0) | Err(_) => *pipe = None,
        Ok(count) => {
            kept.extend(chunk.iter().take(count));
            let surplus = kept.len().saturating_sub(STDERR_BYTES);
            kept.drain(..surplus);
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

async fn socket_answers(place: &Place) -> bool {
    for socket in place.sockets() {
        if UnixStream::connect(&socket).await.is_ok() {
            return true;
        }
    }
    false
}

async fn wait_for_socket(place: &Place, limit: Duration) -> bool {
    let give_up = Instant::now() + limit;
    loop {
        if socket_answers(place).await {
            return true;
        }
        if Instant::now() >= give_up {
            return false;
        }
        sleep(POLL_LONGEST).await;
    }
}

#[cfg(test)]
mod tests;

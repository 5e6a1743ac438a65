//! What others see of background processes.

use std::path::PathBuf;

use hermes_core::{Instant, Principal};
use serde::{Deserialize, Serialize};

use crate::terminal::SessionKey;

/// A background process as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessView {
    /// `proc_` and 12 hexadecimal digits.
    pub id: String,
    pub session: SessionKey,
    pub principal: Principal,
    pub command: String,
    pub cwd: PathBuf,
    pub pid: i32,
    pub started_at: Instant,
    /// On a terminal of its own.
    pub pty: bool,
    /// Taken over from an earlier daemon: its input is closed and its exit code will not be known.
    pub detached: bool,
    pub notify_on_complete: bool,
    pub watch_patterns: Vec<String>,
    /// Lines that matched so far.
    pub watch_hits: u64,
    /// `None` while it runs.
    pub end: Option<ProcessEnd>,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessEnd {
    pub at: Instant,
    /// As a shell gives it; unknown when no daemon was there to see it.
    pub exit_code: Option<i32>,
    pub reason: EndReason,
    /// Who or what ended it, if it did not by itself: `process.kill`, `signal SIGKILL`.
    pub source: Option<String>,
}

/// Why a process is no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its shell came to its end.
    Exited,
    /// The agent ended it.
    Killed,
    /// It went while no daemon was there.
    Lost,
}

impl EndReason {
    /// The word for it in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Killed => "killed",
            Self::Lost => "lost",
        }
    }
}

/// New output of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Polled {
    pub process: ProcessView,
    /// What came since the last poll: escape sequences removed, secrets not masked.
    pub new_output: String,
    /// Bytes of older output that were passed over.
    pub skipped: u64,
}

/// The end of a process's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub text: String,
    /// It begins before `text` does.
    pub truncated: bool,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    Exited,
    TimedOut,
    Interrupted,
}

/// What a kill did.
#[derive(Debug, Clone, PartialEq)]
pub struct Killed {
    pub process: ProcessView,
    /// It had ended before, and had left nothing behind.
    pub already_exited: bool,
    /// It had ended before, and what it left behind was ended now.
    pub left_behind: bool,
    /// Something would not go.
    pub survived: bool,
}

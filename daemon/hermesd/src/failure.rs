//! A start that failed: what to tell, and with which exit code (spec 80 §4.2).

use std::error::Error;
use std::io;

use hermes_config::{HomeError, LoadError};
use hermes_engine::EngineError;
use hermes_server::BindError;
use hermes_state::{OpenError, StateError};

use crate::lock::LockError;
use crate::logs::LogError;
use crate::runtime_files::LifeState;

/// A general failure, also a profile that another daemon serves.
pub const EXIT_FAILURE: u8 = 1;
/// A planned restart: a supervisor must start the daemon again.
pub const EXIT_RESTART: u8 = 75;
/// A tool of the agent tried to start it: only its user may.
pub const EXIT_INSIDE: u8 = 77;
/// Broken settings or an unusable home: a supervisor must not try again.
pub const EXIT_CONFIG: u8 = 78;

/// Why the daemon could not start, or had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StartError {
    #[error("this daemon is not to be started by the agent's own tools: {0}")]
    Inside(String),
    #[error("cannot use the home folder")]
    Home(#[source] HomeError),
    #[error("cannot take the profile")]
    Lock(#[source] LockError),
    #[error("cannot read the settings")]
    Settings(#[source] LoadError),
    #[error("cannot start on these settings: {}", .0.join("; "))]
    Findings(Vec<String>),
    #[error("cannot write the logs")]
    Logs(#[source] LogError),
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot open the database")]
    Database(#[source] OpenError),
    #[error("cannot read what was accepted of the settings")]
    Policy(#[source] StateError),
    #[error("cannot close what the last run left unfinished")]
    Recovery(#[source] EngineError),
    #[error("cannot open the socket")]
    Socket(#[source] BindError),
    #[error("cannot announce the daemon in {path}")]
    Announce { path: String, source: io::Error },
    #[error("cannot put the parts together")]
    Wiring(#[source] Box<dyn Error + Send + Sync>),
    #[error("the server ended by itself")]
    Server(#[source] Option<hermes_server::ServeError>),
}

impl StartError {
    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Inside(_) => EXIT_INSIDE,
            Self::Home(_) | Self::Settings(_) | Self::Findings(_) | Self::Logs(_) => EXIT_CONFIG,
            Self::Lock(_)
            | Self::Runtime(_)
            | Self::Database(_)
            | Self::Policy(_)
            | Self::Recovery(_)
            | Self::Socket(_)
            | Self::Announce { .. }
            | Self::Wiring(_)
            | Self::Server(_) => EXIT_FAILURE,
        }
    }

    /// How the state file names this end.
    pub(crate) fn life_state(&self) -> LifeState {
        match self {
            Self::Server(_) => LifeState::Stopped,
            _ => LifeState::StartupFailed,
        }
    }

    /// What the user can do now.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Inside(_) => "its user can start it, from a terminal of their own".into(),
            Self::Home(error) => error.hint(),
            Self::Lock(LockError::Held { .. }) => {
                "use the running daemon, or stop it with `hermes-cli daemon stop`".into()
            }
            Self::Lock(LockError::Io { .. }) => "check that the folder is yours and has free space".into(),
            Self::Settings(error) => error.hint(),
            Self::Findings(_) => "correct them; `hermes-cli config check` shows all".into(),
            Self::Logs(LogError::Filter(_)) => "correct `logging.level`, `--log-level` or HERMES_LOG".into(),
            Self::Logs(_) => "check that the folder `logs` of the profile is yours and has free space".into(),
            Self::Runtime(_) => "check the limits of threads and open files (`ulimit -a`)".into(),
            // Its text says already what to do.
            Self::Database(_) => String::new(),
            Self::Policy(_) => "run `hermes-cli doctor`, and look at the disk's free space".into(),
            Self::Recovery(error) => error.hint(),
            Self::Socket(error) => error.hint(),
            Self::Announce { .. } => "check that the folder is yours and has free space".into(),
            Self::Wiring(_) | Self::Server(_) => "look at logs/errors.log of the profile".into(),
        }
    }

    /// The error with its causes in one line, each level once.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

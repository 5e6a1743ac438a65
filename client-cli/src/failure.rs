//! Why a command did not do its work: one text, what was found, what to do, and the exit code.

use std::error::Error;
use std::io;

use hermes_client::{CallError, CallErrorKind, ConnectError, StartError, WatchError};
use hermes_config::{HomeError, LoadError};

use crate::exit::{Exit, StopCause};

/// The end of a command that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// One line: what failed, with its causes.
    pub(crate) message: String,
    /// Further lines, such as the end of the daemon's log.
    pub(crate) details: Vec<String>,
    pub(crate) hint: Option<String>,
}

/// The end of a command before its time.
#[derive(Debug)]
pub(crate) enum Stop {
    Failure(Box<Failure>),
    /// Whoever read our output has left: end quietly.
    PipeClosed,
}

pub(crate) type Outcome<T> = Result<T, Stop>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), details: Vec::new(), hint: None }
    }

    /// A mistake in what the user typed.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn general(message: impl Into<String>) -> Self {
        Self::new(Exit::Failure, message)
    }

    /// This client stopped itself before there was a result.
    pub(crate) fn stopped(cause: StopCause) -> Self {
        Self::new(cause.exit(), cause.describe())
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(Box::new(failure))
    }
}

impl From<io::Error> for Stop {
    /// An error of our own output.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::PipeClosed;
        }
        Failure::general(format!("cannot write the output: {error}")).into()
    }
}

impl From<ConnectError> for Stop {
    fn from(error: ConnectError) -> Self {
        let details = match &error {
            ConnectError::Start(error) => error.details(),
            _ => Vec::new(),
        };
        Failure { details, ..Failure::general(chain(&error)) }.hint(error.hint()).into()
    }
}

impl From<StartError> for Stop {
    fn from(error: StartError) -> Self {
        ConnectError::from(error).into()
    }
}

impl From<CallError> for Stop {
    fn from(error: CallError) -> Self {
        let exit = match error.kind() {
            CallErrorKind::Invalid => Exit::Usage,
            _ => Exit::Failure,
        };
        let hint = error.hint().map(str::to_owned);
        Failure { hint, ..Failure::new(exit, chain(&error)) }.into()
    }
}

impl From<WatchError> for Stop {
    fn from(error: WatchError) -> Self {
        match error {
            WatchError::Call(error) => error.into(),
            WatchError::Reconnect(ConnectError::Start(error)) => {
                let what = "the daemon was lost, and it did not start again";
                let failure = Failure {
                    details: error.details(),
                    ..Failure::general(format!("{what}: {}", chain(&error)))
                };
                failure.hint(error.hint()).into()
            }
            error => Failure { hint: error.hint(), ..Failure::general(chain(&error)) }.into(),
        }
    }
}

impl From<HomeError> for Stop {
    fn from(error: HomeError) -> Self {
        Failure::general(chain(&error)).hint(error.hint()).into()
    }
}

impl From<LoadError> for Stop {
    fn from(error: LoadError) -> Self {
        Failure::general(chain(&error)).hint(error.hint()).into()
    }
}

/// The error with its causes in one line, each level once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let level = error.to_string();
        if !text.ends_with(&level) {
            text.push_str(": ");
            text.push_str(&level);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let stop = Stop::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(stop, Stop::PipeClosed));
        assert!(matches!(Stop::from(io::Error::from(io::ErrorKind::StorageFull)), Stop::Failure(_)));
    }

    #[test]
    fn causes_are_told_once_each() {
        let socket = "/run/hermesd.sock".into();
        let error = ConnectError::Socket { socket, source: io::Error::from(io::ErrorKind::PermissionDenied) };
        assert_eq!(chain(&error), "cannot use the daemon's socket /run/hermesd.sock: permission denied");
    }
}

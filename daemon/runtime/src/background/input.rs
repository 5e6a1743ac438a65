//! The writing end of a process's input.

use std::io;
use std::time::Duration;

use pty_process::OwnedWritePty;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::time::timeout;

use crate::terminal::pty::END_OF_INPUT;

/// How long a process may take to read what is written.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// Where a process reads from.
pub(super) enum Input {
    Pipe(ChildStdin),
    Terminal(OwnedWritePty),
    Closed { why: &'static str },
}

/// Why a write failed.
#[derive(Debug, Clone, Copy)]
pub(super) enum WriteError {
    Closed { why: &'static str },
    NotReading { written: usize },
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pipe(_) => "Pipe",
            Self::Terminal(_) => "Terminal",
            Self::Closed { .. } => "Closed",
        })
    }
}

impl Input {
    pub(super) async fn write(&mut self, data: &[u8]) -> Result<(), WriteError> {
        let mut written = 0;
        while let Some(rest) = data.get(written..).filter(|rest| !rest.is_empty()) {
            let step = match self {
                Self::Pipe(pipe) => timeout(LIMIT, pipe.write(rest)).await,
                Self::Terminal(terminal) => timeout(LIMIT, terminal.write(rest)).await,
                Self::Closed { why } => return Err(WriteError::Closed { why }),
            };
            match step {
                Ok(Ok(length)) => written += length,
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(_)) => {
                    let why = "the process has closed it";
                    *self = Self::Closed { why };
                    return Err(WriteError::Closed { why });
                }
                Err(_) => return Err(WriteError::NotReading { written }),
            }
        }
        Ok(())
    }

    /// Ends the input. The terminal itself stays, since closing it would end the process.
    pub(super) async fn close(&mut self) -> Result<(), WriteError> {
        match self {
            Self::Pipe(_) => *self = Self::Closed { why: "it was closed by an earlier call" },
            Self::Terminal(_) => return self.write(&[END_OF_INPUT]).await,
            Self::Closed { why } => return Err(WriteError::Closed { why }),
        }
        Ok(())
    }
}

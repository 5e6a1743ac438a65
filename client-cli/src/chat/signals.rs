//! The signals that stop a run.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::StopCause;

/// SIGINT and SIGTERM, taken over from here on.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over. Must be called within the runtime.
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// The next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> StopCause {
        tokio::select! {
            _ = self.interrupt.recv() => StopCause::Interrupt,
            _ = self.terminate.recv() => StopCause::Terminate,
        }
    }
}

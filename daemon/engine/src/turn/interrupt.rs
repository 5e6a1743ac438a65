//! The stop signal of one turn: a token, and the reason that was given first.

use std::sync::{Arc, OnceLock};

use hermes_core::InterruptCause;
use hermes_tools::StopSignal;
use tokio_util::sync::CancellationToken;

/// Shared between the actor, which raises it, and the turn, which obeys it.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    token: CancellationToken,
    cause: Arc<OnceLock<InterruptCause>>,
}

impl Interrupt {
    /// A signal below `parent`, which stands for the daemon's own end.
    pub(crate) fn below(parent: &CancellationToken) -> Self {
        Self { token: parent.child_token(), cause: Arc::default() }
    }

    /// Stops the turn. The first cause is the one that is told.
    pub(crate) fn raise(&self, cause: InterruptCause) {
        // Set before cancelling, so that whoever sees the token cancelled finds the cause.
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    /// The signal as tools take it.
    pub(crate) fn stop_signal(&self) -> StopSignal {
        StopSignal::new(self.token.clone(), Arc::clone(&self.cause))
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Why the turn must stop; `None` while it may go on.
    pub(crate) fn cause(&self) -> Option<InterruptCause> {
        // A token cancelled without a cause was cancelled by its parent: the daemon ends.
        self.token.is_cancelled().then(|| self.cause.get().copied().unwrap_or(InterruptCause::Shutdown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_is_told() {
        let interrupt = Interrupt::below(&CancellationToken::new());
        assert_eq!(interrupt.cause(), None);
        interrupt.raise(InterruptCause::UserStop);
        interrupt.raise(InterruptCause::NewMessage);
        assert_eq!(interrupt.cause(), Some(InterruptCause::UserStop));
    }

    #[test]
    fn the_daemons_end_is_a_shutdown() {
        let daemon = CancellationToken::new();
        let interrupt = Interrupt::below(&daemon);
        daemon.cancel();
        assert_eq!(interrupt.cause(), Some(InterruptCause::Shutdown));
    }
}

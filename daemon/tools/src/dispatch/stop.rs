//! The signal that ends calls before they are done, and why it was given.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hermes_core::{InterruptCause, ToolStatus};
use tokio_util::sync::CancellationToken;

/// Ends the calls of a turn, or of a batch of one. Cheap to clone; clones are the same signal.
#[derive(Debug, Clone)]
pub struct StopSignal {
    token: CancellationToken,
    /// Set by whoever stops the turn, before the token fires.
    turn: Arc<OnceLock<InterruptCause>>,
    /// Set when the time of the whole batch is over.
    batch: Arc<OnceLock<Duration>>,
}

/// Why calls were told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The turn was interrupted.
    Interrupted(InterruptCause),
    /// The batch took longer than it may.
    BatchTime(Duration),
}

impl StopSignal {
    /// The signal of a turn: `token` fires it, `cause` holds why. A token that fires without a cause was
    /// fired by the daemon's end.
    pub fn new(token: CancellationToken, cause: Arc<OnceLock<InterruptCause>>) -> Self {
        Self { token, turn: cause, batch: Arc::default() }
    }

    /// A signal for one batch of the turn: it fires with the turn's, and when the batch's time is over.
    #[must_use]
    pub fn for_batch(&self) -> Self {
        Self { token: self.token.child_token(), turn: Arc::clone(&self.turn), batch: Arc::default() }
    }

    /// Ends the batch because it took longer than `limit`.
    pub fn time_is_over(&self, limit: Duration) {
        let _ = self.batch.set(limit);
        self.token.cancel();
    }

    /// Fires when the calls must end.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Why the calls must end; `None` while they may go on.
    pub fn reason(&self) -> Option<StopReason> {
        self.token.is_cancelled().then(|| self.why())
    }

    /// Waits until the calls must end. Cancel-safe.
    pub async fn fired(&self) -> StopReason {
        self.token.cancelled().await;
        self.why()
    }

    fn why(&self) -> StopReason {
        match (self.turn.get(), self.batch.get()) {
            (Some(cause), _) => StopReason::Interrupted(*cause),
            (None, Some(limit)) => StopReason::BatchTime(*limit),
            (None, None) => StopReason::Interrupted(InterruptCause::Shutdown),
        }
    }
}

impl StopReason {
    /// The status of a call that was stopped for it.
    pub fn status(self) -> ToolStatus {
        match self {
            Self::Interrupted(_) => ToolStatus::Cancelled,
            Self::BatchTime(_) => ToolStatus::Timeout,
        }
    }

    /// The reason in words, for the model.
    pub fn words(self) -> String {
        match self {
            Self::Interrupted(cause) => cause.words().to_owned(),
            Self::BatchTime(limit) => {
                format!("the calls of this message together took longer than {} s", limit.as_secs_f64())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batchs_end_is_not_the_turns() {
        let turn = StopSignal::new(CancellationToken::new(), Arc::default());
        let batch = turn.for_batch();
        batch.time_is_over(Duration::from_mins(7));
        assert_eq!(batch.reason(), Some(StopReason::BatchTime(Duration::from_mins(7))));
        assert_eq!(turn.reason(), None);
    }

    #[test]
    fn the_recorded_cause_is_told_and_none_means_the_daemons_end() {
        for (cause, told) in
            [(Some(InterruptCause::NewMessage), InterruptCause::NewMessage), (None, InterruptCause::Shutdown)]
        {
            let cell = Arc::new(OnceLock::new());
            let turn = StopSignal::new(CancellationToken::new(), Arc::clone(&cell));
            if let Some(cause) = cause {
                cell.set(cause).unwrap();
            }
            turn.token().cancel();
            assert_eq!(turn.for_batch().reason(), Some(StopReason::Interrupted(told)));
        }
    }
}

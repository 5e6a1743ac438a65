//! How a turn leaves its loop: one variant per kind of ending.

use hermes_core::{ExitReason, InterruptCause, MessageId};
use hermes_tools::GuardrailStop;

/// The verdict that ends the loop; `finalize` turns it into the one terminal result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Exit {
    /// An answer was accepted and is durable.
    Answered { text: String, reason: ExitReason, message_id: MessageId, previewed: bool },
    /// Stopped by a person, a deadline, or the daemon's end.
    Interrupted { cause: InterruptCause, during_call: bool },
    /// The guardrail stopped it; the row that says so is durable and was shown.
    Halted { stop: GuardrailStop, text: String, message_id: Option<MessageId> },
    /// No iteration is left: the summary call follows.
    OutOfBudget,
    /// Something came, but not a whole answer. `text` is what there is, joined.
    Partial { reason: ExitReason, text: String, advice: String },
    /// Nothing usable came.
    Failed { reason: ExitReason, error: String, class: Option<&'static str> },
}

impl Exit {
    /// A row of this turn could not be written. Nothing goes on from memory alone.
    pub(crate) fn not_durable(error: &hermes_state::StateError) -> Self {
        Self::Failed {
            reason: ExitReason::SessionPersistenceFailed,
            error: format!("The session could not be written to disk, so the turn stopped: {error}."),
            class: Some("storage"),
        }
    }
}

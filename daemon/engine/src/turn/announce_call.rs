//! Tells watchers and the log that a model call begins.

use tracing::debug;

use crate::session::SessionFacts;
use crate::turn::preflight_gate::Sendable;
use crate::turn::{Turn, TurnCx};

pub(crate) fn run(turn: &Turn, _cx: &TurnCx<'_>, facts: &SessionFacts, request: &Sendable) {
    debug!(
        iteration = turn.budget.used(),
        rows = turn.history.wire().len(),
        estimated_tokens = request.draft.estimated_tokens,
        model = %facts.route.model,
        provider = %facts.route.provider,
        "model call"
    );
}

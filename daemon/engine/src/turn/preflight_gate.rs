//! Lets a request pass, or ends the turn before a call that cannot succeed (spec 10 §6).
//!
//! Exit: a local runtime that was loaded with a window too small for any turn.

use std::ops::ControlFlow;

use hermes_core::ExitReason;

use crate::session::SessionFacts;
use crate::turn::assemble_request::Draft;
use crate::turn::{Exit, Turn};

/// Smallest window of a local runtime that can hold a turn (spec 10 §6).
const SMALLEST_LOCAL_WINDOW: u64 = 8_000;

/// A request that was checked. Only this can be sent.
#[derive(Debug)]
pub(crate) struct Sendable {
    pub(crate) draft: Draft,
}

pub(crate) fn run(turn: &mut Turn, facts: &SessionFacts, draft: Draft) -> ControlFlow<Exit, Sendable> {
    let route = &facts.route;
    if let Some(window) = route.context_window.filter(|w| route.is_local && *w < SMALLEST_LOCAL_WINDOW) {
        turn.budget.refund();
        return ControlFlow::Break(Exit::Failed {
            reason: ExitReason::RuntimeContextTooSmall,
            error: format!(
                "{} is loaded with a context window of {window} tokens; at least {SMALLEST_LOCAL_WINDOW} are \
                 needed. Load it with a larger window, and set `model.context_length` to it.",
                route.model
            ),
            class: Some("context_too_small"),
        });
    }
    ControlFlow::Continue(Sendable { draft })
}

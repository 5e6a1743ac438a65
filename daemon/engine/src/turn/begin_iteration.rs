//! Begins an iteration: obeys a stop, and takes one from the budget.
//!
//! Exits: interrupted; out of budget.

use std::ops::ControlFlow;

use hermes_core::EventPayload;

use crate::turn::{Exit, Turn, TurnCx};

pub(crate) fn run(turn: &mut Turn, cx: &TurnCx<'_>) -> ControlFlow<Exit> {
    if let Some(cause) = cx.interrupt.cause() {
        return ControlFlow::Break(Exit::Interrupted { cause, during_call: false });
    }
    if !turn.budget.consume() {
        return ControlFlow::Break(Exit::OutOfBudget);
    }
    turn.emit(cx, EventPayload::AgentStep { iteration: turn.budget.used() });
    ControlFlow::Continue(())
}

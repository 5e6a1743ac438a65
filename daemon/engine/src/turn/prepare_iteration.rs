//! Readies the transcript for the next call: delivers what the user added meanwhile.
//!
//! Exit: the addition could not be made durable.

use std::ops::ControlFlow;

use hermes_core::{Message, Role};

use crate::turn::{Exit, Turn, TurnCx};

pub(crate) async fn run(turn: &mut Turn, cx: &TurnCx<'_>) -> ControlFlow<Exit> {
    // Only behind a finished tool group: directly after the user's own row the roles would not alternate.
    if turn.history.wire().last().is_none_or(|row| row.role != Role::Tool) {
        return ControlFlow::Continue(());
    }
    let Some(text) = cx.steer.drain() else { return ControlFlow::Continue(()) };
    let row = Message::user(text, cx.now());
    match turn.append(cx, vec![row]).await {
        Ok(_) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Exit::not_durable(&error)),
    }
}

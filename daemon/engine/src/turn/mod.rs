//! One turn: from an accepted input to its one terminal result (spec 10 §2).
//!
//! This file shows the order; each phase file holds its rule. A phase takes what the phase before
//! it made, so the compiler checks the order, and answers `ControlFlow`: go on, or leave with an
//! [`Exit`].

mod announce_call;
mod assemble_request;
mod begin_iteration;
mod exit;
mod finalize;
mod finish_text;
mod history;
mod intake;
mod interrupt;
mod model_call;
mod preflight_gate;
mod prepare_iteration;
mod setup;
mod state;
mod steer;
mod tool_round;

use std::ops::ControlFlow;
use std::sync::Arc;

use hermes_core::Message;

use crate::session::SessionFacts;
use crate::shared::Shared;
use crate::stream::SessionStream;

pub(crate) use exit::Exit;
pub(crate) use interrupt::Interrupt;
pub(crate) use state::{Accepted, Turn, TurnCx, TurnEnd, TurnInput};
pub(crate) use steer::SteerSlot;

/// Runs one turn to its end. Never fails: every path leads to a [`TurnEnd`].
pub(crate) async fn run(
    shared: &Arc<Shared>,
    stream: &Arc<SessionStream>,
    mut facts: Box<SessionFacts>,
    history: Vec<Arc<Message>>,
    input: TurnInput,
    interrupt: Interrupt,
    steer: SteerSlot,
) -> TurnEnd {
    let cx = TurnCx { shared, stream, interrupt: &interrupt, steer: &steer };
    let mut turn = match setup::run(&cx, &mut facts, history, input).await {
        setup::Setup::Ready(turn) => *turn,
        setup::Setup::Refused { history, result } => {
            return TurnEnd { facts, history, result, pending_steer: steer.close() };
        }
    };
    let exit = drive(&mut turn, &cx, &mut facts).await;
    finalize::run(turn, &cx, facts, exit).await
}

/// Iterates until a phase says how the turn ends.
async fn drive(turn: &mut Turn, cx: &TurnCx<'_>, facts: &mut SessionFacts) -> Exit {
    loop {
        if let ControlFlow::Break(exit) = iteration(turn, cx, facts).await {
            return exit;
        }
    }
}

/// One model call and the tool round that it asks for.
async fn iteration(turn: &mut Turn, cx: &TurnCx<'_>, facts: &mut SessionFacts) -> ControlFlow<Exit> {
    begin_iteration::run(turn, cx)?;
    prepare_iteration::run(turn, cx).await?;
    let draft = assemble_request::run(turn, facts);
    let request = preflight_gate::run(turn, facts, draft)?;
    announce_call::run(turn, cx, facts, &request);
    match model_call::run(turn, cx, facts, request).await? {
        model_call::Outcome::Again => ControlFlow::Continue(()),
        model_call::Outcome::Answer(answer) => match intake::run(turn, cx, facts, answer)? {
            intake::Intake::Again => ControlFlow::Continue(()),
            intake::Intake::Tools(batch) => tool_round::run(turn, cx, facts, batch).await,
            intake::Intake::Text(answer) => finish_text::run(turn, cx, facts, answer).await,
        },
    }
}

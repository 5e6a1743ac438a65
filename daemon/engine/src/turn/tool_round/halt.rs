//! Ends a turn that the guardrail stopped: a row that says why, shown like an answer (spec 10 §11).

use std::ops::ControlFlow;

use hermes_context::prompts;
use hermes_core::{EventPayload, FinishReason, Message};
use hermes_tools::GuardrailStop;
use tracing::info;

use crate::turn::{Exit, Turn, TurnCx};

/// The finish reason of the closing row.
const GUARDRAIL: &str = "guardrail_halt";

pub(super) async fn run(turn: &mut Turn, cx: &TurnCx<'_>, stop: GuardrailStop) -> ControlFlow<Exit> {
    info!(code = stop.code, tool = stop.tool, count = stop.count, "the guardrail ends the turn");
    let text = prompts::guardrail_halt(&stop.tool, stop.code, stop.count, stop.next_step);
    let row = Message {
        finish_reason: Some(FinishReason::Other(GUARDRAIL.to_owned())),
        ..Message::assistant(text.clone(), cx.now())
    };
    match turn.append(cx, vec![row]).await {
        Ok(ids) => {
            turn.emit(cx, EventPayload::MessageDelta { text: text.clone() });
            ControlFlow::Break(Exit::Halted { stop, text, message_id: ids.first().copied() })
        }
        Err(error) => ControlFlow::Break(Exit::not_durable(&error)),
    }
}

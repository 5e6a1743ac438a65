//! Runs a batch of tool calls (spec 10 §10).
//!
//! The assistant row with all its calls is durable before any tool runs; each result is durable
//! before it is shown and before the next call. Every call gets exactly one result, in the model's
//! order. Exits: a row could not be written; interrupted.

use std::ops::ControlFlow;
use std::sync::Arc;

use hermes_context::{defang_steer, repair_history, steer_block};
use hermes_core::{
    EffectDisposition, EventPayload, InterruptCause, Json, Message, ToolCall, ToolComplete, ToolStatus,
};
use hermes_tools::{CallCx, CallResult};
use serde_json::json;
use tracing::{Instrument as _, info_span};

use crate::session::SessionFacts;
use crate::turn::intake::{Batch, Planned};
use crate::turn::{Exit, Turn, TurnCx};

pub(crate) async fn run(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    facts: &SessionFacts,
    batch: Box<Batch>,
) -> ControlFlow<Exit> {
    let said = batch.row.text().trim().to_owned();
    let asked_by = match turn.append(cx, vec![batch.row]).await {
        Ok(ids) => ids.first().copied(),
        Err(error) => return ControlFlow::Break(Exit::not_durable(&error)),
    };
    if !said.is_empty() {
        let already_streamed = facts.streaming;
        let interim =
            EventPayload::MessageInterim { text: said.clone(), already_streamed, message_id: asked_by };
        turn.emit(cx, interim);
    }
    turn.recoveries.results_nudged = false;
    turn.output_cap = None;
    let unparsable = batch.calls.iter().any(|planned| planned.unparsable);
    let mut used_chars = 0;
    let mut only_housekeeping = true;
    let last = batch.calls.len().saturating_sub(1);
    for (index, planned) in batch.calls.into_iter().enumerate() {
        only_housekeeping &= is_housekeeping(&planned.call.name);
        let context = cx.shared.deps.dispatcher.preview(&facts.tools, &planned.call);
        turn.emit(
            cx,
            EventPayload::ToolStart {
                tool_id: planned.call.id.clone(),
                name: planned.call.name.clone(),
                context,
                message_id: asked_by,
            },
        );
        let result = one_call(turn, cx, facts, &planned, used_chars).await;
        used_chars += result.chars;
        // The user's own words ride on the last result, in the frame that the system prompt names.
        let steer = if index == last { cx.steer.drain() } else { None };
        if let Err(error) = record(turn, cx, &planned.call, result, steer).await {
            return ControlFlow::Break(Exit::not_durable(&error));
        }
    }
    if unparsable {
        // What stands in the row stays as the model wrote it; what goes out must be JSON.
        let repaired = repair_history(turn.history.durable().to_vec());
        turn.history.replace(repaired.messages);
    }
    turn.housekeeping_text = (only_housekeeping && !said.is_empty()).then_some(said);
    match cx.interrupt.cause() {
        Some(cause) => ControlFlow::Break(Exit::Interrupted { cause, during_call: false }),
        None => ControlFlow::Continue(()),
    }
}

async fn one_call(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    facts: &SessionFacts,
    planned: &Planned,
    used_chars: usize,
) -> CallResult {
    let call = &planned.call;
    if let Some(refusal) = &planned.refusal {
        return without_running(call, refusal.clone(), ToolStatus::Error);
    }
    if let Some(cause) = cx.interrupt.cause() {
        return without_running(call, cancelled_text(cause), ToolStatus::Cancelled);
    }
    turn.tool_calls += 1;
    let call_cx = CallCx {
        tools: Arc::clone(&facts.tools),
        session_id: facts.id.clone(),
        turn_id: turn.id.clone(),
        principal: turn.principal.clone(),
        yolo: turn.options.yolo,
        workspace: Arc::clone(&facts.workspace),
        cancel: cx.interrupt.token().child_token(),
        limits: facts.limits,
        batch_used: used_chars,
        guard: Arc::clone(&turn.guard),
    };
    let span = info_span!("tool_call", tool = %call.name, call = %call.id);
    let result = cx.shared.deps.dispatcher.call(call_cx, call).instrument(span).await;
    turn.tools_s += result.duration_s;
    result
}

/// Durable first, then visible.
async fn record(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    call: &ToolCall,
    result: CallResult,
    steer: Option<String>,
) -> Result<(), hermes_state::StateError> {
    let mut content = defang_steer(&result.content).into_owned();
    if let Some(text) = steer {
        content.push('\n');
        content.push_str(&steer_block(&text));
    }
    let row = Message { effect: Some(result.effect), ..Message::tool_result(call, content, cx.now()) };
    let ids = turn.append(cx, vec![row]).await?;
    let args = Json::parse(call.arguments.clone()).unwrap_or_else(|_| Json::from(json!(call.arguments)));
    turn.emit(
        cx,
        EventPayload::ToolComplete(Box::new(ToolComplete {
            tool_id: call.id.clone(),
            name: call.name.clone(),
            args,
            result: result.content,
            duration_s: result.duration_s,
            summary: result.summary,
            inline_diff: result.inline_diff,
            status: result.status,
            message_id: ids.first().copied(),
        })),
    );
    Ok(())
}

fn without_running(call: &ToolCall, content: String, status: ToolStatus) -> CallResult {
    CallResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        chars: content.chars().count(),
        content,
        status,
        effect: EffectDisposition::None,
        duration_s: 0.0,
        inline_diff: None,
        summary: None,
    }
}

fn cancelled_text(cause: InterruptCause) -> String {
    json!({ "error": format!("not executed: the turn was interrupted ({})", cause.as_str()) }).to_string()
}

/// Tools whose rounds do not count as work on the answer (spec 10 §13).
fn is_housekeeping(name: &str) -> bool {
    matches!(name, "memory" | "todo" | "skill_manage" | "session_search")
}

//! Makes a result durable, then shows it.

use hermes_context::{defang_steer, steer_block};
use hermes_core::{EffectDisposition, EventPayload, Json, Message, ToolCall, ToolComplete, ToolStatus};
use hermes_state::StateError;
use hermes_tools::CallResult;
use serde_json::json;

use crate::turn::tool_round::Round;
use crate::turn::{Turn, TurnCx};

impl Round<'_> {
    /// Records the result of the call at `place`; called in the model's order.
    pub(super) async fn record(
        &mut self,
        turn: &mut Turn,
        place: usize,
        result: CallResult,
    ) -> Result<(), StateError> {
        let Some(planned) = self.calls.get(place) else { return Ok(()) };
        self.used_chars += result.chars;
        // The user's own words ride on the last result, in the frame that the system prompt names.
        let steer = if place + 1 == self.calls.len() { self.cx.steer.drain() } else { None };
        record(turn, self.cx, &planned.call, result, steer).await
    }
}

async fn record(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    call: &ToolCall,
    result: CallResult,
    steer: Option<String>,
) -> Result<(), StateError> {
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

/// The result of a call that the intake refused.
pub(super) fn refused(call: &ToolCall, refusal: &str) -> CallResult {
    CallResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        chars: refusal.chars().count(),
        content: refusal.to_owned(),
        status: ToolStatus::Error,
        effect: EffectDisposition::None,
        duration_s: 0.0,
        inline_diff: None,
        summary: None,
    }
}

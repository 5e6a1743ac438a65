//! Runs a batch of tool calls (spec 10 §10).
//!
//! The assistant row with all its calls is durable before any tool runs; each result is durable
//! before it is shown. Every call gets exactly one result, and results are told in the model's
//! order, also of calls that worked at the same time: after a crash the rows are a beginning of the
//! batch. Exits: a row could not be written; interrupted; ended by the guardrail.

mod at_once;
mod halt;
mod in_order;
mod record;

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use hermes_context::repair_history;
use hermes_core::{EventPayload, MessageId, ToolCall};
use hermes_state::StateError;
use hermes_tools::{CallCx, Dispatcher, Patience, StopSignal};

use crate::session::SessionFacts;
use crate::turn::intake::{Batch, Planned};
use crate::turn::{Exit, Turn, TurnCx};

/// What the calls of one batch share.
struct Round<'a> {
    cx: &'a TurnCx<'a>,
    facts: &'a SessionFacts,
    calls: Vec<Planned>,
    /// The row that asks for them.
    asked_by: Option<MessageId>,
    /// The turn's part of what each call comes with.
    call_cx: CallCx,
    /// Characters of the results so far.
    used_chars: usize,
}

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
    let only_housekeeping = batch.calls.iter().all(|planned| is_housekeeping(&planned.call.name));
    let call_cx = call_cx(turn, cx, facts);
    let mut round = Round { cx, facts, calls: batch.calls, asked_by, call_cx, used_chars: 0 };
    if let Err(error) = round.run(turn).await {
        return ControlFlow::Break(Exit::not_durable(&error));
    }
    if unparsable {
        // What stands in the row stays as the model wrote it; what goes out must be JSON.
        let repaired = repair_history(turn.history.durable().to_vec());
        turn.history.replace(repaired.messages);
    }
    turn.housekeeping_text = (only_housekeeping && !said.is_empty()).then_some(said);
    if let Some(cause) = cx.interrupt.cause() {
        return ControlFlow::Break(Exit::Interrupted { cause, during_call: false });
    }
    match turn.guard.stop() {
        Some(stop) => halt::run(turn, cx, stop).await,
        None => ControlFlow::Continue(()),
    }
}

fn call_cx(turn: &Turn, cx: &TurnCx<'_>, facts: &SessionFacts) -> CallCx {
    CallCx {
        tools: Arc::clone(&facts.tools),
        session_id: facts.id.clone(),
        turn_id: turn.id.clone(),
        principal: turn.principal.clone(),
        yolo: turn.options.yolo,
        workspace: Arc::clone(&facts.workspace),
        platform: Arc::clone(&facts.platform),
        wakeable: facts.wakeable(&turn.principal, &turn.options),
        stop: cx.interrupt.stop_signal(),
        patience: Patience::default(),
        limits: facts.limits,
        batch_used: 0,
        guard: Arc::clone(&turn.guard),
    }
}

impl Round<'_> {
    async fn run(&mut self, turn: &mut Turn) -> Result<(), StateError> {
        let mut from = 0;
        while from < self.calls.len() {
            let (calls, at_once) = self.next_group(from, turn);
            from = calls.end;
            if at_once {
                at_once::run(self, turn, calls).await?;
            } else {
                in_order::run(self, turn, calls).await?;
            }
        }
        Ok(())
    }

    /// The next calls that run in one way, and whether they work at the same time. Planned anew behind each
    /// group, since what ran may have changed where paths lead. A call that is refused keeps nobody waiting.
    fn next_group(&self, from: usize, turn: &Turn) -> (Range<usize>, bool) {
        let all = self.calls.len();
        let rest = self.calls.iter().enumerate().skip(from).filter(|(_, planned)| planned.refusal.is_none());
        let (places, calls): (Vec<usize>, Vec<ToolCall>) =
            rest.map(|(place, planned)| (place, planned.call.clone())).unzip();
        let dispatcher = self.dispatcher();
        let segments = dispatcher.plan(&self.facts.tools, &self.facts.workspace, &calls);
        let Some(first) = segments.into_iter().next() else { return (from..all, false) };
        let end = places.get(first.calls.end).copied().unwrap_or(all);
        let at_once = first.parallel
            && !dispatcher.needs_order(&turn.guard, &self.facts.tools, calls.iter().take(first.calls.end));
        (from..end, at_once)
    }

    fn dispatcher(&self) -> &Dispatcher {
        &self.cx.shared.deps.dispatcher
    }

    /// What a call comes with that may begin now.
    fn for_call(&self, stop: &StopSignal) -> CallCx {
        CallCx { stop: stop.clone(), batch_used: self.used_chars, ..self.call_cx.clone() }
    }

    /// Tells watchers that a call begins.
    fn announce(&self, call: &ToolCall) {
        self.announcer()(call);
    }

    /// The same, for whoever cannot borrow the round meanwhile.
    fn announcer(&self) -> Announce {
        let (dispatcher, tools) = (self.dispatcher().clone(), Arc::clone(&self.facts.tools));
        let (stream, turn_id) = (Arc::clone(self.cx.stream), self.call_cx.turn_id.clone());
        let asked_by = self.asked_by;
        Box::new(move |call| {
            let start = EventPayload::ToolStart {
                tool_id: call.id.clone(),
                name: call.name.clone(),
                context: dispatcher.preview(&tools, call),
                message_id: asked_by,
            };
            stream.emit(Some(&turn_id), start);
        })
    }
}

/// Tells watchers that a call begins.
type Announce = Box<dyn Fn(&ToolCall) + Send + Sync>;

/// Tools whose rounds do not count as work on the answer (spec 10 §13).
fn is_housekeeping(name: &str) -> bool {
    matches!(name, "memory" | "todo" | "skill_manage" | "session_search")
}

//! Turns an [`Exit`] into the one terminal result: durable, told, and handed back (spec 10 §15).
//!
//! Each step stands alone: one that fails is noted in `cleanup_errors` and cannot drop the answer.

use std::sync::Arc;

use hermes_context::{Closing, closing_rows, prompts};
use hermes_core::{
    CostStatus, DisplayKind, EventPayload, ExitReason, FinishReason, Instant, InterruptCause, Json, Message,
    MessageComplete, MessageId, Role, TurnId, TurnOutcome, TurnResult, Usage,
};
use hermes_state::FinishTurn;
use tracing::{info, warn};

use crate::session::SessionFacts;
use crate::title;
use crate::turn::model_call::summarise;
use crate::turn::{Exit, Turn, TurnCx, TurnEnd};

/// What a turn comes to, before it is written down.
struct Verdict {
    reason: ExitReason,
    outcome: TurnOutcome,
    text: Option<String>,
    message_id: Option<MessageId>,
    previewed: bool,
    error: Option<String>,
    class: Option<&'static str>,
    /// Rows that close the transcript.
    rows: Vec<Message>,
    warning: Option<String>,
    guardrail: Option<Json>,
}

impl Verdict {
    fn new(reason: ExitReason, outcome: TurnOutcome) -> Self {
        Self {
            reason,
            outcome,
            text: None,
            message_id: None,
            previewed: false,
            error: None,
            class: None,
            rows: Vec::new(),
            warning: None,
            guardrail: None,
        }
    }
}

pub(crate) async fn run(
    mut turn: Turn,
    cx: &TurnCx<'_>,
    mut facts: Box<SessionFacts>,
    exit: Exit,
) -> TurnEnd {
    let mut cleanup_errors = Vec::new();
    turn.history.drop_ephemeral();
    let mut verdict = judge(&mut turn, cx, &mut facts, exit).await;
    write_end(&mut turn, cx, &mut verdict, &mut cleanup_errors).await;
    name_session(&turn, cx, &mut facts, &verdict, &mut cleanup_errors).await;

    let pending_steer = cx.steer.close();
    let result = Arc::new(result(&turn, cx, &facts, &verdict, cleanup_errors));
    info!(
        reason = %result.exit_reason,
        api_calls = turn.api_calls,
        tool_calls = turn.tool_calls,
        used = turn.budget.used(),
        max = turn.budget.max(),
        duration_s = result.duration_s,
        "turn ended"
    );
    let complete = MessageComplete { result: (*result).clone(), warning: verdict.warning };
    cx.stream.end_turn();
    turn.emit(cx, EventPayload::MessageComplete(Box::new(complete)));
    TurnEnd { facts, history: turn.history.into_durable(), result: Some(result), pending_steer }
}

async fn judge(turn: &mut Turn, cx: &TurnCx<'_>, facts: &mut SessionFacts, exit: Exit) -> Verdict {
    match exit {
        Exit::Answered { text, reason, message_id, previewed } => Verdict {
            text: Some(text),
            message_id: Some(message_id),
            previewed,
            ..Verdict::new(reason, TurnOutcome::Completed)
        },
        Exit::Interrupted { cause, during_call } => interrupted(turn, cx, cause, during_call),
        Exit::Halted { stop, text, message_id } => Verdict {
            error: Some(format!("The turn was ended because it went in circles ({}).", stop.code)),
            text: Some(text),
            message_id,
            previewed: true,
            guardrail: Some(Json::from(stop.to_json())),
            ..Verdict::new(ExitReason::GuardrailHalt, TurnOutcome::Partial)
        },
        Exit::OutOfBudget => out_of_budget(turn, cx, facts).await,
        Exit::Partial { reason, text, advice } => {
            let text = text.trim().to_owned();
            let rows = if text.is_empty() {
                Vec::new()
            } else {
                vec![Message {
                    finish_reason: Some(FinishReason::Incomplete),
                    ..Message::assistant(text.clone(), cx.now())
                }]
            };
            Verdict {
                text: (!text.is_empty()).then_some(text),
                error: Some(advice),
                rows,
                ..Verdict::new(reason, TurnOutcome::Partial)
            }
        }
        Exit::Failed { reason, error, class } => {
            Verdict { error: Some(error), class, ..Verdict::new(reason, TurnOutcome::Failed) }
        }
    }
}

/// Closes the transcript behind an interrupted turn, so that roles alternate for the next one.
fn interrupted(turn: &Turn, cx: &TurnCx<'_>, cause: InterruptCause, during_call: bool) -> Verdict {
    let reason = if during_call {
        ExitReason::InterruptedDuringApiCall { cause }
    } else {
        ExitReason::Interrupted { cause }
    };
    let mut rows = Vec::new();
    let shown = cx.stream.streamed_text();
    if !shown.trim().is_empty() {
        // For the eye only: an abandoned answer is never replayed to a model.
        rows.push(Message {
            display: Some(DisplayKind(DisplayKind::PARTIAL.into())),
            finish_reason: Some(FinishReason::Incomplete),
            ..Message::assistant(shown, cx.now())
        });
    }
    rows.extend(closing_rows(turn.history.durable(), &Closing::Interrupted(cause), cx.now()));
    let what = match cause {
        InterruptCause::UserStop => "The turn was stopped.",
        InterruptCause::NewMessage => "The turn was interrupted by a new message.",
        InterruptCause::ClientDisconnect => "The turn was stopped because its client went away.",
        InterruptCause::Deadline => "The turn was stopped at its time limit.",
        InterruptCause::Shutdown => "The turn was stopped because the daemon is shutting down.",
        InterruptCause::Watchdog | InterruptCause::Restart | InterruptCause::Inactivity => {
            "The turn was stopped by the daemon."
        }
    };
    Verdict { error: Some(what.into()), rows, ..Verdict::new(reason, TurnOutcome::Interrupted(cause)) }
}

/// One more call, without tools, for what was found so far; else a plain message. Never silence.
async fn out_of_budget(turn: &mut Turn, cx: &TurnCx<'_>, facts: &mut SessionFacts) -> Verdict {
    let (used, max) = (turn.budget.used(), turn.budget.max().unwrap_or(u32::MAX));
    let summary = summarise::run(turn, cx, facts).await;
    if let Some(cause) = cx.interrupt.cause() {
        return interrupted(turn, cx, cause, true);
    }
    let text = summary.unwrap_or_else(|| prompts::out_of_budget_message(max));
    Verdict {
        rows: vec![Message::assistant(text.clone(), cx.now())],
        text: Some(text),
        error: Some(format!(
            "The turn used all {max} model calls that it may make. Go on with a new message, or raise \
             `agent.max_turns` (or `--max-turns`)."
        )),
        ..Verdict::new(ExitReason::MaxIterationsReached { used, max }, TurnOutcome::Partial)
    }
}

/// Writes the closing rows and the turn's end in one transaction.
async fn write_end(turn: &mut Turn, cx: &TurnCx<'_>, verdict: &mut Verdict, errors: &mut Vec<String>) {
    let db = &cx.shared.deps.db;
    if turn.unbooked.is_some()
        && let Err(error) = turn.append(cx, Vec::new()).await
    {
        errors.push(format!("usage could not be written: {error}"));
    }
    let finish = FinishTurn {
        state: verdict.outcome.state(),
        exit_reason: verdict.reason.to_string(),
        rows: verdict.rows.clone(),
        ended_at: cx.now(),
    };
    match db.finish_turn(&turn.key, finish).await {
        Ok(ids) => {
            for (row, id) in std::mem::take(&mut verdict.rows).into_iter().zip(ids) {
                let answer = row.role == Role::Assistant && row.display.is_none();
                if answer && verdict.message_id.is_none() && verdict.text.is_some() {
                    verdict.message_id = Some(id);
                }
                if row.display.is_none() {
                    turn.history.push_durable(Message { id: Some(id), ..row });
                }
            }
        }
        Err(error) => {
            warn!(%error, "the turn's end could not be written");
            errors.push(format!("the turn's end could not be written: {error}"));
            if verdict.outcome != TurnOutcome::Failed && verdict.message_id.is_none() {
                verdict.outcome = TurnOutcome::Failed;
                verdict.reason = ExitReason::SessionPersistenceFailed;
                verdict.error = Some(format!("The answer could not be written to disk: {error}."));
                verdict.class = Some("storage");
            }
        }
    }
}

/// Gives an untitled session its title after the first delivered exchange.
async fn name_session(
    turn: &Turn,
    cx: &TurnCx<'_>,
    facts: &mut SessionFacts,
    verdict: &Verdict,
    errors: &mut Vec<String>,
) {
    if facts.title.is_some() || !turn.is_first_exchange || verdict.outcome != TurnOutcome::Completed {
        return;
    }
    let Some(text) = title::derive(&turn.user_text) else { return };
    match cx.shared.deps.db.derive_title(&facts.id, &text).await {
        Ok(Some(title)) => {
            facts.title = Some(title.clone());
            cx.stream.emit(None, EventPayload::SessionTitle { title });
        }
        Ok(None) => {}
        Err(error) => errors.push(format!("the session could not be titled: {error}")),
    }
}

fn result(
    turn: &Turn,
    cx: &TurnCx<'_>,
    facts: &SessionFacts,
    verdict: &Verdict,
    cleanup_errors: Vec<String>,
) -> TurnResult {
    TurnResult {
        final_response: verdict.text.clone(),
        last_reasoning: turn.last_reasoning.clone(),
        message_id: verdict.message_id,
        error: verdict.error.clone(),
        failure_reason: verdict.class.map(str::to_owned),
        response_previewed: verdict.previewed,
        api_calls: turn.api_calls,
        tool_calls: turn.tool_calls,
        usage: turn.usage,
        last_prompt_tokens: turn.last_prompt_tokens,
        duration_s: cx.now().seconds_since(turn.started_at).max(0.0),
        model_s: turn.model_s,
        tools_s: turn.tools_s,
        cleanup_errors,
        guardrail: verdict.guardrail.clone(),
        ..blank_result(facts, &turn.id, turn.started_at, verdict.reason.clone(), verdict.outcome)
    }
}

/// The result of a turn that called no model: an ending, and what the session says of itself.
pub(crate) fn blank_result(
    facts: &SessionFacts,
    turn_id: &TurnId,
    started_at: Instant,
    exit_reason: ExitReason,
    outcome: TurnOutcome,
) -> TurnResult {
    TurnResult {
        session_id: facts.id.clone(),
        turn_id: turn_id.clone(),
        exit_reason,
        final_response: None,
        last_reasoning: None,
        message_id: None,
        outcome,
        error: None,
        failure_reason: None,
        response_previewed: false,
        api_calls: 0,
        tool_calls: 0,
        model: facts.route.model.clone(),
        provider: facts.route.provider.clone(),
        base_url: facts.route.shown_address().to_owned(),
        usage: Usage::default(),
        last_prompt_tokens: 0,
        estimated_cost_usd: None,
        cost_status: CostStatus::Unknown,
        started_at,
        duration_s: 0.0,
        model_s: 0.0,
        tools_s: 0.0,
        cleanup_errors: Vec::new(),
        guardrail: None,
    }
}

//! The model call of one iteration: attempts, waits between them, and the verdict on the answer.
//!
//! `perform` makes one attempt, `judge` decides (purely) what an answer or an error means, and this
//! file acts on it. Exits: interrupted; refused; cut off too often; no attempt left.

mod judge;
mod perform;
pub(crate) mod summarise;

use std::ops::ControlFlow;
use std::time::Duration;

use hermes_context::prompts;
use hermes_core::{CostStatus, EventPayload, ExitReason, InterruptCause, Message, NoticeLevel, Usage};
use hermes_providers::{CallError, FailureClass, ModelResponse, retry};
use hermes_state::UsageDelta;
use tracing::{info, warn};

use crate::session::SessionFacts;
use crate::turn::preflight_gate::Sendable;
use crate::turn::{Exit, Turn, TurnCx};

use judge::{AfterError, Answer};

/// Most continuations of one answer that hit its length limit or lost its stream (spec 10 §8).
const MAX_CONTINUATIONS: u32 = 3;
/// Most times a call that was cut off inside a tool call is asked for again.
const MAX_TRUNCATED_CALLS: u32 = 4;
/// Output cap that continuations start from when none is configured.
const CONTINUATION_BASE: u32 = 4_096;
/// Output cap that continuations never exceed, unless more was asked for.
const CONTINUATION_CEILING: u32 = 32_768;
/// Quick retries of a stream that broke before anything was shown, within one attempt.
const STREAM_RETRIES: u32 = 2;

/// What a model call leads to.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answer(Box<ModelResponse>),
    /// The transcript changed: iterate again.
    Again,
}

pub(crate) async fn run(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    facts: &mut SessionFacts,
    request: Sendable,
) -> ControlFlow<Exit, Outcome> {
    let mut attempt = 1;
    let mut stream_retries = 0;
    // Text of a broken attempt stands on the screen already; the next attempt must not write it again.
    let mut shown_before = false;
    loop {
        let began = cx.now();
        let result = perform::run(turn, cx, facts, &request, shown_before).await;
        turn.model_s += cx.now().seconds_since(began).max(0.0);
        turn.api_calls += 1;

        if let Some(cause) = cx.interrupt.cause() {
            // What came is thrown away: an abandoned answer never enters history.
            return ControlFlow::Break(Exit::Interrupted { cause, during_call: true });
        }
        let error = match result {
            Ok(response) => {
                book(turn, facts, &response);
                if facts.streaming && !response.streamed {
                    info!("the server does not stream; not asking for it again in this session");
                    facts.streaming = false;
                }
                return on_response(turn, cx, facts, response);
            }
            Err(error) => error,
        };
        warn!(class = ?error.class, status = error.status, attempt, message = %error.message, "model call failed");

        match judge::error(&error, stream_retries < STREAM_RETRIES) {
            AfterError::ContinuePartial => return continue_partial(turn, cx, facts, error),
            AfterError::RetryStream => {
                stream_retries += 1;
                shown_before |= !error.streamed_text.is_empty();
                continue;
            }
            AfterError::DisableStreaming if facts.streaming => {
                facts.streaming = false;
                continue;
            }
            AfterError::DisableStreaming | AfterError::RetryOrFail => {}
        }
        match retry::next(attempt, turn.settings.max_attempts, &error, cx.shared.jitter()) {
            retry::Retry::Wait(wait) => {
                announce_wait(turn, cx, wait, &error);
                if let Some(cause) = wait_or_interrupt(cx, wait).await {
                    return ControlFlow::Break(Exit::Interrupted { cause, during_call: true });
                }
                attempt += 1;
            }
            retry::Retry::GiveUp => return ControlFlow::Break(failed(facts, &error, attempt)),
        }
    }
}

fn on_response(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    facts: &SessionFacts,
    response: ModelResponse,
) -> ControlFlow<Exit, Outcome> {
    match judge::answer(&response) {
        Answer::Whole => ControlFlow::Continue(Outcome::Answer(Box::new(response))),
        Answer::Refused => {
            let said = response.content.unwrap_or_default();
            ControlFlow::Break(Exit::Failed {
                reason: ExitReason::ContentPolicyBlocked,
                error: format!(
                    "content_policy_blocked: the model refused to answer. It said: {} Ask differently, or use \
                     another model with `-m`.",
                    if said.trim().is_empty() { "nothing." } else { said.trim() }
                ),
                class: Some("content_policy"),
            })
        }
        Answer::TruncatedCall => again_with_more_room(turn, facts, &response),
        Answer::TruncatedText { network } => {
            let text = response.content.clone().unwrap_or_default();
            let nudge = if network { prompts::CONTINUE_AFTER_CUT } else { prompts::CONTINUE_AFTER_LENGTH };
            continue_text(turn, cx, facts, text, nudge)
        }
        Answer::DroppedCall => {
            let text = response.content.clone().unwrap_or_default();
            let dropped = response.interrupted_stream.map(|cut| cut.dropped_calls).unwrap_or_default();
            tell_dropped(turn, cx, &dropped);
            continue_text(turn, cx, facts, text, prompts::RESEND_SMALLER)
        }
        Answer::OnlyThinking => ControlFlow::Break(Exit::Failed {
            reason: ExitReason::ThinkingBudgetExhausted,
            error: "The model used its whole output for thinking and gave no answer. Lower the reasoning effort, \
                    or raise `model.max_tokens`."
                .into(),
            class: Some("thinking_budget"),
        }),
    }
}

/// The stream broke after text was shown: keep it and ask for the rest.
fn continue_partial(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    facts: &SessionFacts,
    error: CallError,
) -> ControlFlow<Exit, Outcome> {
    if error.dropped_calls.is_empty() {
        continue_text(turn, cx, facts, error.streamed_text, prompts::CONTINUE_AFTER_CUT)
    } else {
        tell_dropped(turn, cx, &error.dropped_calls);
        continue_text(turn, cx, facts, error.streamed_text, prompts::RESEND_SMALLER)
    }
}

fn continue_text(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    facts: &SessionFacts,
    text: String,
    nudge: &'static str,
) -> ControlFlow<Exit, Outcome> {
    if !text.is_empty() {
        turn.fragments.push(text.clone());
    }
    turn.recoveries.length_continuations += 1;
    if turn.recoveries.length_continuations > MAX_CONTINUATIONS {
        return ControlFlow::Break(Exit::Partial {
            reason: ExitReason::Truncated,
            text: join_fragments(&turn.fragments),
            advice: format!(
                "The answer was cut off {} times and is incomplete. Ask for it in parts, or raise `model.max_tokens`.",
                MAX_CONTINUATIONS + 1
            ),
        });
    }
    turn.output_cap = Some(raised_cap(facts, turn.recoveries.length_continuations));
    let now = cx.now();
    if !text.is_empty() {
        turn.history.push_ephemeral(Message::assistant(text, now));
        turn.history.push_ephemeral(Message::user(nudge, now));
    }
    info!(continuation = turn.recoveries.length_continuations, "asking for the rest of an answer");
    ControlFlow::Continue(Outcome::Again)
}

/// A tool call was cut off. It is never run; the call is made again with more room.
fn again_with_more_room(
    turn: &mut Turn,
    facts: &SessionFacts,
    response: &ModelResponse,
) -> ControlFlow<Exit, Outcome> {
    turn.recoveries.truncated_calls += 1;
    if turn.recoveries.truncated_calls > MAX_TRUNCATED_CALLS {
        let mut names: Vec<&str> = Vec::new();
        for call in &response.tool_calls {
            if !names.contains(&call.name.as_str()) {
                names.push(&call.name);
            }
        }
        return ControlFlow::Break(Exit::Partial {
            reason: ExitReason::Truncated,
            text: response.content.clone().unwrap_or_default(),
            advice: format!(
                "The model's message with calls of {} was cut off every time, so nothing of it was executed. Ask for smaller \
                 steps, or raise `model.max_tokens`.",
                if names.is_empty() { "a tool".into() } else { names.join(", ") }
            ),
        });
    }
    turn.output_cap = Some(raised_cap(facts, turn.recoveries.truncated_calls));
    ControlFlow::Continue(Outcome::Again)
}

/// `min(max(base·2^n, requested), max(32768, requested))` (spec 10 §8).
fn raised_cap(facts: &SessionFacts, round: u32) -> u32 {
    let requested = facts.route.max_tokens.unwrap_or(0);
    let base = facts.route.max_tokens.unwrap_or(CONTINUATION_BASE);
    let doubled = base.saturating_mul(1_u32.checked_shl(round).unwrap_or(u32::MAX));
    doubled.max(requested).min(CONTINUATION_CEILING.max(requested))
}

fn tell_dropped(turn: &Turn, cx: &TurnCx<'_>, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let text =
        format!("The connection broke while {} was being called; it was not executed.", names.join(", "));
    turn.emit(cx, EventPayload::StatusUpdate { kind: "warn", text });
}

/// Books what the provider says a call cost, to be written with the next rows.
fn book(turn: &mut Turn, facts: &SessionFacts, response: &ModelResponse) {
    let usage = response.usage.unwrap_or_default();
    turn.usage += usage;
    if response.usage.is_some() {
        turn.last_prompt_tokens = usage.prompt_total();
    }
    let cost = response.provider_cost_usd;
    let status = if cost.is_some() { CostStatus::Actual } else { CostStatus::Unknown };
    let delta = turn.unbooked.get_or_insert_with(|| UsageDelta {
        model: response.model.clone(),
        provider: facts.route.provider.clone(),
        base_url: facts.route.shown_address().to_owned(),
        mode: facts.route.api_mode.as_str().to_owned(),
        task: String::new(),
        api_calls: 0,
        usage: Usage::default(),
        estimated_cost_usd: None,
        cost_status: status,
    });
    delta.api_calls += 1;
    delta.usage += usage;
    if let Some(cost) = cost {
        delta.estimated_cost_usd = Some(delta.estimated_cost_usd.unwrap_or(0.0) + cost);
    }
}

fn announce_wait(turn: &Turn, cx: &TurnCx<'_>, wait: Duration, error: &CallError) {
    let seconds = wait.as_secs_f64();
    let text = format!("{} Trying again in {seconds:.0} s.", error.message);
    if seconds > 60.0 {
        let notice =
            EventPayload::NotificationShow { text, level: NoticeLevel::Warn, key: None, ttl_ms: None };
        turn.emit(cx, notice);
    } else {
        turn.emit(cx, EventPayload::StatusUpdate { kind: "lifecycle", text });
    }
}

async fn wait_or_interrupt(cx: &TurnCx<'_>, wait: Duration) -> Option<InterruptCause> {
    tokio::select! {
        biased;
        () = cx.interrupt.token().cancelled() => cx.interrupt.cause(),
        () = tokio::time::sleep(wait) => None,
    }
}

fn failed(facts: &SessionFacts, error: &CallError, attempts: u32) -> Exit {
    let reason = match error.class {
        FailureClass::ContentPolicy => ExitReason::ContentPolicyBlocked,
        _ => ExitReason::AllRetriesExhaustedNoResponse,
    };
    let tries = if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() };
    let hint = error.hint();
    Exit::Failed {
        reason,
        error: format!(
            "{} ({} at {}) did not answer{tries}: {} {hint}",
            facts.route.model,
            facts.route.provider,
            facts.route.host(),
            sentence(&error.message),
        ),
        class: Some(error.class.as_str()),
    }
}

fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

pub(crate) use judge::join_fragments;

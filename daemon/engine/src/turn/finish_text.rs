//! Accepts an answer in words, or climbs the ladder for an empty one (spec 10 §13).
//!
//! Stop gates of later rooms stand before the acceptance. Exits: answered; empty to the end; the
//! answer could not be written.

use std::ops::ControlFlow;

use hermes_context::prompts;
use hermes_core::{ExitReason, Message, Role};
use hermes_providers::ModelResponse;
use tracing::info;

use crate::session::SessionFacts;
use crate::turn::model_call::join_fragments;
use crate::turn::{Exit, Turn, TurnCx};

/// Reasoning without an answer is sent back as a beginning, this often.
const REASONING_PREFILLS: u32 = 2;
/// A wholly empty answer is asked for again, this often.
const EMPTY_RETRIES: u32 = 3;
/// How far back a tool result counts as "just now".
const RECENT_ROWS: usize = 5;

pub(crate) async fn run(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    facts: &SessionFacts,
    response: Box<ModelResponse>,
) -> ControlFlow<Exit> {
    let mut pieces = std::mem::take(&mut turn.fragments);
    pieces.extend(response.content.clone());
    let text = join_fragments(&pieces).trim().to_owned();
    if text.is_empty() {
        return empty(turn, cx, &response).await;
    }
    let reason = ExitReason::TextResponse { finish_reason: response.finish_reason.as_str().to_owned() };
    let previewed = facts.streaming && response.streamed;
    let row = Message {
        finish_reason: Some(response.finish_reason),
        reasoning: response.reasoning,
        reasoning_content: response.reasoning_content,
        reasoning_details: response.reasoning_details,
        ..Message::assistant(text, cx.now())
    };
    accept(turn, cx, row, reason, previewed).await
}

/// Makes the answer durable before the loop is left.
async fn accept(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    row: Message,
    reason: ExitReason,
    previewed: bool,
) -> ControlFlow<Exit> {
    let text = row.text().into_owned();
    match turn.append(cx, vec![row]).await {
        Ok(ids) => ControlFlow::Break(match ids.first() {
            Some(&message_id) => Exit::Answered { text, reason, message_id, previewed },
            None => Exit::not_durable(&hermes_state::StateError::Closed),
        }),
        Err(error) => ControlFlow::Break(Exit::not_durable(&error)),
    }
}

/// The ladder: each rung once, or as often as its constant says.
async fn empty(turn: &mut Turn, cx: &TurnCx<'_>, response: &ModelResponse) -> ControlFlow<Exit> {
    let now = cx.now();
    if let Some(text) = turn.housekeeping_text.take() {
        let reason = ExitReason::FallbackPriorTurnContent;
        return accept(turn, cx, Message::assistant(text, now), reason, true).await;
    }
    let recent_results =
        turn.history.durable().iter().rev().take(RECENT_ROWS).any(|row| row.role == Role::Tool);
    if recent_results && response.reasoning.is_none() && !turn.recoveries.results_nudged {
        turn.recoveries.results_nudged = true;
        turn.history.push_ephemeral(Message::assistant(prompts::EMPTY_PLACEHOLDER, now));
        turn.history.push_ephemeral(Message::user(prompts::PROCESS_RESULTS, now));
        info!("empty answer after tool results; asking the model to go on");
        return ControlFlow::Continue(());
    }
    if let Some(reasoning) = &response.reasoning
        && turn.recoveries.reasoning_prefills < REASONING_PREFILLS
    {
        turn.recoveries.reasoning_prefills += 1;
        turn.history.drop_ephemeral();
        turn.history.push_ephemeral(Message::assistant(reasoning.clone(), now));
        turn.history.push_ephemeral(Message::user(prompts::ANSWER_NOW, now));
        info!("only reasoning came; asking for the answer");
        return ControlFlow::Continue(());
    }
    if turn.recoveries.empty_retries < EMPTY_RETRIES {
        turn.recoveries.empty_retries += 1;
        info!(attempt = turn.recoveries.empty_retries, "empty answer; asking again");
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(Exit::Failed {
        reason: ExitReason::EmptyResponseExhausted,
        error: format!(
            "The model answered with nothing {} times. Try again, or use another model with `-m`.",
            EMPTY_RETRIES + 1
        ),
        class: Some("empty_response"),
    })
}

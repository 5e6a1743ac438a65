//! Sets a turn up, once: session row, user row, repaired transcript (spec 10 §3).
//!
//! The user row is durable before the submitter is answered and before the first model call.
//! Exits: the input had its turn already; nothing can be written.

use std::sync::Arc;

use hermes_context::{legal, repair_history};
use hermes_core::{
    Content, EventPayload, ExitReason, Message, MessageComplete, Role, TurnOutcome, TurnResult, Usage,
};
use hermes_providers::RetrySettings;
use hermes_state::{BeginTurn, BeginTurnError, StateError, TurnKey};
use hermes_tools::TurnGuard;
use tracing::{info, warn};

use crate::api::{EngineError, SubmitStatus, Submitted};
use crate::budget::IterationBudget;
use crate::session::SessionFacts;
use crate::settings::{AgentSettings, TurnSettings};
use crate::turn::finalize::blank_result;
use crate::turn::history::History;
use crate::turn::state::Recoveries;
use crate::turn::{Turn, TurnCx, TurnInput};

/// What came of the set-up.
pub(crate) enum Setup {
    Ready(Box<Turn>),
    Refused { history: Vec<Arc<Message>>, result: Option<Arc<TurnResult>> },
}

pub(crate) async fn run(
    cx: &TurnCx<'_>,
    facts: &mut SessionFacts,
    history: Vec<Arc<Message>>,
    input: TurnInput,
) -> Setup {
    let deps = &cx.shared.deps;
    let started_at = cx.now();
    let is_first_exchange = !history.iter().any(|row| row.role == Role::Assistant);

    let user = Message::user(Content::Text(input.text.clone()), started_at);
    let begin = BeginTurn {
        turn_id: input.turn_id.clone(),
        session_id: facts.id.clone(),
        principal: input.principal.to_string(),
        client_message_id: input.client_message_id.clone(),
        user: user.clone(),
        started_at,
        queued_input: input.queued_input.clone(),
    };
    let begun = match store_session(cx, facts).await {
        Ok(()) => deps.db.begin_turn(begin).await,
        Err(error) => Err(BeginTurnError::State(error)),
    };
    let begun = match begun {
        Ok(begun) => begun,
        Err(BeginTurnError::Duplicate { turn_id, .. }) => {
            if let Some(id) = &input.queued_input
                && let Err(error) = deps.db.take_input(id).await
            {
                warn!(%error, "an input that had its turn already could not be taken from the queue");
            }
            input.accepted.answer(Ok(Submitted { turn_id, status: SubmitStatus::Done, position: None }));
            return Setup::Refused { history, result: None };
        }
        Err(error) => {
            let error = match error {
                BeginTurnError::State(error) => error,
                other => StateError::Io { detail: other.to_string() },
            };
            let result = refused(cx, facts, &input, &error);
            input.accepted.answer(Err(EngineError::Storage(error)));
            return Setup::Refused { history, result: Some(result) };
        }
    };

    let client_message_id = input.client_message_id.clone();
    cx.stream.begin_turn(&input.turn_id, &input.text);
    cx.stream.emit(
        Some(&input.turn_id),
        EventPayload::TurnAccepted { client_message_id, message_id: Some(begun.message_id) },
    );
    input.accepted.streaming();
    info!(principal = %input.principal, "turn started");

    let mut history = History::new(history);
    history.push_durable(Message { id: Some(begun.message_id), ..user });
    if legal(history.durable()).is_err() {
        let repaired = repair_history(history.durable().to_vec());
        info!(report = ?repaired.report, "transcript repaired for the model");
        history.replace(repaired.messages);
    }

    let agent: AgentSettings = cx.shared.section("agent");
    let retries: RetrySettings = cx.shared.section("agent");
    let settings = TurnSettings::freeze(&agent, retries.api_max_retries, &input.options);
    let turn = Turn {
        id: input.turn_id.clone(),
        key: TurnKey { session_id: facts.id.clone(), turn_id: input.turn_id, generation: begun.generation },
        principal: input.principal,
        options: input.options,
        settings,
        started_at,
        user_text: input.text,
        is_first_exchange,
        history,
        budget: IterationBudget::new(settings.max_iterations),
        recoveries: Recoveries::default(),
        fragments: Vec::new(),
        output_cap: None,
        housekeeping_text: None,
        streamed_any_text: false,
        unbooked: None,
        api_calls: 0,
        tool_calls: 0,
        usage: Usage::default(),
        last_prompt_tokens: 0,
        last_reasoning: None,
        model_s: 0.0,
        tools_s: 0.0,
        guard: Arc::new(TurnGuard::new(&cx.shared.section("tool_loop_guardrails"), &facts.platform)),
    };
    turn.emit(cx, EventPayload::MessageStart { model: facts.route.model.clone() });
    Setup::Ready(Box::new(turn))
}

/// Creates the session's row with its first turn, and stores what had to be rendered anew.
async fn store_session(cx: &TurnCx<'_>, facts: &mut SessionFacts) -> Result<(), StateError> {
    let db = &cx.shared.deps.db;
    if let Some(unsaved) = facts.unsaved.take() {
        if let Err(error) = db.create_session(unsaved.clone()).await {
            facts.unsaved = Some(unsaved);
            return Err(error);
        }
        return Ok(());
    }
    // A lost write of these only means that they are rendered once more.
    if facts.prompt_changed {
        let stored =
            db.set_prompt(&facts.id, &facts.system_prompt, &facts.route.model, &facts.route.provider).await;
        match stored {
            Ok(()) => facts.prompt_changed = false,
            Err(error) => warn!(%error, "the rebuilt system prompt could not be stored"),
        }
    }
    if facts.tools_changed {
        match db.set_tools(&facts.id, facts.tools.names(), &facts.tools.json()).await {
            Ok(()) => facts.tools_changed = false,
            Err(error) => warn!(%error, "the session's tools could not be stored"),
        }
    }
    Ok(())
}

/// The terminal result of a turn that could not begin.
fn refused(cx: &TurnCx<'_>, facts: &SessionFacts, input: &TurnInput, error: &StateError) -> Arc<TurnResult> {
    let (reason, outcome) = (ExitReason::SessionPersistenceFailed, TurnOutcome::Failed);
    let result = TurnResult {
        error: Some(format!("Your message could not be written to disk and was not sent: {error}.")),
        failure_reason: Some("storage".into()),
        ..blank_result(facts, &input.turn_id, cx.now(), reason, outcome)
    };
    let payload = MessageComplete { result: result.clone(), warning: None };
    cx.stream.emit(Some(&input.turn_id), EventPayload::MessageComplete(Box::new(payload)));
    Arc::new(result)
}

//! What a turn carries: borrowed services in [`TurnCx`], owned and changing state in [`Turn`].

use std::sync::Arc;

use hermes_core::{
    EventPayload, Instant, Message, MessageId, Principal, TurnId, TurnOptions, TurnResult, Usage,
};
use hermes_state::{StateError, TurnKey, TurnWrite, UsageDelta};
use hermes_tools::TurnGuard;
use tokio::sync::oneshot;

use crate::api::{EngineError, SubmitStatus, Submitted};
use crate::budget::IterationBudget;
use crate::session::SessionFacts;
use crate::settings::TurnSettings;
use crate::shared::Shared;
use crate::stream::SessionStream;
use crate::turn::history::History;
use crate::turn::{Interrupt, SteerSlot};

/// What starts a turn.
#[derive(Debug)]
pub(crate) struct TurnInput {
    pub(crate) turn_id: TurnId,
    pub(crate) text: String,
    pub(crate) principal: Principal,
    pub(crate) client_message_id: Option<String>,
    pub(crate) options: TurnOptions,
    /// The queue entry that this input was, if it had to wait.
    pub(crate) queued_input: Option<String>,
    pub(crate) accepted: Accepted,
}

/// Tells the submitter, once, what became of the input.
#[derive(Debug)]
pub(crate) struct Accepted {
    turn_id: TurnId,
    reply: Option<oneshot::Sender<Result<Submitted, EngineError>>>,
}

impl Accepted {
    /// With `reply: None` nobody waits: the input came from the queue.
    pub(crate) fn new(
        turn_id: TurnId,
        reply: Option<oneshot::Sender<Result<Submitted, EngineError>>>,
    ) -> Self {
        Self { turn_id, reply }
    }

    /// The user row is durable.
    pub(crate) fn streaming(self) {
        let turn_id = self.turn_id.clone();
        self.answer(Ok(Submitted { turn_id, status: SubmitStatus::Streaming, position: None }));
    }

    pub(crate) fn answer(self, answer: Result<Submitted, EngineError>) {
        if let Some(reply) = self.reply {
            // A submitter that went away does not matter: the turn is durable.
            let _ = reply.send(answer);
        }
    }
}

/// What a turn gives back to the actor.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    pub(crate) facts: Box<SessionFacts>,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) result: Option<Arc<TurnResult>>,
    pub(crate) pending_steer: Option<String>,
}

/// Read-only services of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnCx<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) stream: &'a Arc<SessionStream>,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) steer: &'a SteerSlot,
}

impl TurnCx<'_> {
    pub(crate) fn now(&self) -> Instant {
        self.shared.deps.clock.now()
    }
}

/// Counters that bound how often each recovery is tried within one turn (spec 10 §8, §9, §13).
#[derive(Debug, Default)]
pub(crate) struct Recoveries {
    pub(crate) length_continuations: u32,
    pub(crate) truncated_calls: u32,
    pub(crate) bad_arguments: u32,
    pub(crate) unknown_tools: u32,
    pub(crate) missing_calls: u32,
    pub(crate) open_markup: u32,
    pub(crate) empty_retries: u32,
    pub(crate) reasoning_prefills: u32,
    /// Re-armed by the next tool round.
    pub(crate) results_nudged: bool,
}

/// Owned state of a running turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    pub(crate) key: TurnKey,
    pub(crate) principal: Principal,
    pub(crate) options: TurnOptions,
    pub(crate) settings: TurnSettings,
    pub(crate) started_at: Instant,
    pub(crate) user_text: String,
    pub(crate) is_first_exchange: bool,

    pub(crate) history: History,
    pub(crate) budget: IterationBudget,
    pub(crate) recoveries: Recoveries,
    /// Answer fragments of a length-limited or cut-off answer, to be joined.
    pub(crate) fragments: Vec<String>,
    /// Raised output cap for the next call.
    pub(crate) output_cap: Option<u32>,
    /// Visible text of the previous round, when that round only did housekeeping.
    pub(crate) housekeeping_text: Option<String>,
    /// Tool activity since the last visible text: the next text begins a paragraph.
    pub(crate) streamed_any_text: bool,
    /// Reported by the calls since the last durable write.
    pub(crate) unbooked: Option<UsageDelta>,

    pub(crate) api_calls: u32,
    pub(crate) tool_calls: u32,
    pub(crate) usage: Usage,
    pub(crate) last_prompt_tokens: u64,
    pub(crate) last_reasoning: Option<String>,
    pub(crate) model_s: f64,
    pub(crate) tools_s: f64,
    /// Watches for calls that go in circles.
    pub(crate) guard: Arc<TurnGuard>,
}

impl Turn {
    /// Writes rows of this turn, with the usage that was not booked yet, and takes them into the
    /// transcript. Durable first, then visible: callers emit events after this.
    pub(crate) async fn append(
        &mut self,
        cx: &TurnCx<'_>,
        rows: Vec<Message>,
    ) -> Result<Vec<MessageId>, StateError> {
        let write = TurnWrite { rows: rows.clone(), usage: self.unbooked.take() };
        let ids = cx.shared.deps.db.write_turn(&self.key, write).await?;
        for (mut row, id) in rows.into_iter().zip(ids.iter().copied()) {
            row.id = Some(id);
            self.history.push_durable(row);
        }
        Ok(ids)
    }

    /// Emits an event of this turn.
    pub(crate) fn emit(&self, cx: &TurnCx<'_>, payload: EventPayload) {
        cx.stream.emit(Some(&self.id), payload);
    }
}

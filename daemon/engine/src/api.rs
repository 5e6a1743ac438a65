//! What the engine takes and gives: the inputs of its calls, their answers and their errors.

use std::sync::Arc;

use hermes_core::{
    Epoch, Event, InterruptCause, Message, MessageId, Principal, QueuedInput, SessionId, SessionInfo,
    SessionOptions, TurnId, TurnOptions, TurnResult, TurnState,
};
use hermes_state::SessionSummary;

/// A new session.
#[derive(Debug, Clone)]
pub struct CreateInput {
    pub principal: Principal,
    pub options: SessionOptions,
    pub title: Option<String>,
}

/// An existing session, named as people name it.
#[derive(Debug, Clone)]
pub struct OpenInput {
    /// Id, unique prefix of an id, title, or `latest`.
    pub reference: String,
    /// With `latest`: prefer the newest session of this source.
    pub source: Option<String>,
    /// What the client brings along; `client_env` is taken over, the cwd stays the session's own.
    pub options: SessionOptions,
}

/// A session that is loaded and can take turns.
#[derive(Debug, Clone)]
pub struct SessionDetail {
    pub summary: SessionSummary,
    pub info: SessionInfo,
    pub created: bool,
    /// What the user should know about this opening (flagged project files, unknown toolsets, …).
    pub warnings: Vec<String>,
}

/// One input.
#[derive(Debug, Clone)]
pub struct SubmitInput {
    pub session_id: SessionId,
    pub text: String,
    pub principal: Principal,
    /// The same id again gives the same answer and no second turn.
    pub client_message_id: Option<String>,
    pub options: TurnOptions,
}

/// What became of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    pub turn_id: TurnId,
    pub status: SubmitStatus,
    /// Place in the queue, from 1, when queued.
    pub position: Option<u32>,
}

/// How an input was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitStatus {
    /// Its turn runs.
    Streaming,
    /// It waits, durably, for its turn.
    Queued,
    /// It was given to the running turn.
    Steered,
    /// This `client_message_id` had its turn already.
    Done,
}

impl SubmitStatus {
    /// The name used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Streaming => "streaming",
            Self::Queued => "queued",
            Self::Steered => "steered",
            Self::Done => "done",
        }
    }
}

/// Where a watcher stands.
#[derive(Debug, Clone)]
pub struct AttachInput {
    pub session_id: SessionId,
    /// The epoch and the last event that the client saw; `None` on a first attach.
    pub epoch: Option<Epoch>,
    pub after_seq: u64,
    pub after_message_id: MessageId,
    /// Kinds of prompts that this client can answer (`approval`, `clarify`, `sudo`, `secret`).
    pub can_answer: Vec<String>,
}

/// The first answer to an attach (contract §4).
#[derive(Debug, Clone)]
pub struct Attached {
    pub epoch: Epoch,
    pub first_seq: u64,
    pub last_seq: u64,
    pub gap: bool,
    /// With `gap`: the durable rows after `after_message_id`.
    pub rows: Vec<Message>,
    pub inflight: Option<Inflight>,
    pub pending_prompts: Vec<PendingPrompt>,
    pub queue: Vec<QueuedInput>,
    pub info: SessionInfo,
}

/// The running turn, as far as it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inflight {
    pub turn_id: TurnId,
    pub user: String,
    /// Visible text of the current model call.
    pub assistant: String,
    pub streaming: bool,
}

/// A waiting question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPrompt {
    pub request_id: hermes_core::PromptId,
    pub kind: &'static str,
    pub text: String,
    pub choices: Vec<String>,
}

/// What is known of one turn.
#[derive(Debug, Clone)]
pub struct TurnSnapshot {
    pub turn_id: TurnId,
    pub state: TurnState,
    pub exit_reason: Option<String>,
    /// Present while the daemon that ran the turn still has it.
    pub result: Option<Arc<TurnResult>>,
}

/// The engine at a glance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineStatus {
    pub live_sessions: u32,
    pub active_turns: u32,
    pub queued_inputs: u32,
    pub watchers: u32,
    /// No new input is taken any more.
    pub draining: bool,
}

/// What `recover` found after an unclean end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Turns that were cut off and are now closed.
    pub closed: Vec<(SessionId, TurnId)>,
}

/// Why a call to the engine was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error("{what}")]
    NotFound { what: String, hint: String },
    #[error("`{reference}` matches several sessions")]
    Ambiguous { reference: String, matches: Vec<String> },
    #[error("{field}: {reason}")]
    Invalid { field: &'static str, reason: String },
    #[error("{queued} inputs wait in this session already")]
    QueueFull { queued: u32 },
    #[error("the daemon is shutting down")]
    ShuttingDown,
    #[error("cannot choose a model: {0}")]
    Model(#[from] hermes_providers::ResolveError),
    #[error("session storage: {0}")]
    Storage(#[from] hermes_state::StateError),
}

impl EngineError {
    /// What the user can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { hint, .. } => hint.clone(),
            Self::Ambiguous { matches, .. } => format!("give more of the id: {}", matches.join(", ")),
            Self::Invalid { .. } => "correct the value and send it again".into(),
            Self::QueueFull { .. } => "wait for the running turn, or interrupt it".into(),
            Self::ShuttingDown => "send it again in a moment; the next call starts the daemon anew".into(),
            Self::Model(error) => error.hint(),
            Self::Storage(_) => {
                "look at logs/errors.log of this profile, and at the disk's free space".into()
            }
        }
    }
}

/// How an interrupt is asked for.
#[derive(Debug, Clone)]
pub struct InterruptInput {
    pub session_id: SessionId,
    /// Only this turn; `None` = whichever runs.
    pub turn_id: Option<TurnId>,
    pub cause: InterruptCause,
}

/// A change of the session list, for profile-wide watchers.
#[derive(Debug, Clone)]
pub struct SessionChanged {
    pub summary: SessionSummary,
    pub running: bool,
}

/// Events of one session as they reach one watcher.
pub type SharedEvent = Arc<Event>;

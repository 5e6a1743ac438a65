//! Events: all that a client learns of a running session (spec 10 §19, 70 §8.2, contract §5).

use crate::clock::Instant;
use crate::id::{MessageId, PromptId, SessionId, ToolCallId, TurnId};
use crate::json::Json;
use crate::tool::ToolStatus;
use crate::turn::TurnResult;

/// One event of a session. `seq` counts within the daemon's epoch, from 1, without holes.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub session_id: SessionId,
    pub seq: u64,
    pub turn_id: Option<TurnId>,
    pub time: Instant,
    pub payload: EventPayload,
}

/// How loud a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoticeLevel {
    Info,
    Warn,
    Error,
}

impl NoticeLevel {
    /// The name used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// The end of a tool call. Blocked calls have one too, so that no client shows a hung start.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolComplete {
    pub tool_id: ToolCallId,
    pub name: String,
    pub args: Json,
    /// The result as the model sees it (secrets redacted).
    pub result: String,
    pub duration_s: f64,
    pub summary: Option<String>,
    pub inline_diff: Option<String>,
    pub status: ToolStatus,
    /// The durable row of the result.
    pub message_id: Option<MessageId>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageComplete {
    pub result: TurnResult,
    pub warning: Option<String>,
}

/// Session facts that clients show in their frames.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionInfo {
    pub model: String,
    pub provider: String,
    pub title: Option<String>,
    pub cwd: Option<String>,
    pub tools: Vec<String>,
    pub running: bool,
    pub yolo: bool,
}

/// One waiting input, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedInput {
    pub id: String,
    /// `queue` or `steer`; `notice` for one that a background process sent.
    pub mode: &'static str,
    /// `pending` or `delivered`.
    pub state: &'static str,
    pub position: u32,
    pub text: String,
}

/// What happened. Wire names are given beside each variant.
#[derive(Debug, Clone, PartialEq)]
pub enum EventPayload {
    /// `turn.accepted`: the user row is durable.
    TurnAccepted { client_message_id: Option<String>, message_id: Option<MessageId> },
    /// `message.start`
    MessageStart { model: String },
    /// `message.delta`
    MessageDelta { text: String },
    /// `message.interim`
    MessageInterim { text: String, already_streamed: bool, message_id: Option<MessageId> },
    /// `message.complete`
    MessageComplete(Box<MessageComplete>),
    /// `reasoning.delta`
    ReasoningDelta { text: String },
    /// `reasoning.available`: genuine reasoning only, at most 500 characters.
    ReasoningAvailable { text: String },
    /// `thinking.delta`: an indicator's text; empty = stop.
    ThinkingDelta { text: String },
    /// `tool.generating`: the model is writing a call.
    ToolGenerating { name: String },
    /// `tool.start`: `context` is a one-line preview; `message_id` the row that asked for it.
    ToolStart { tool_id: ToolCallId, name: String, context: String, message_id: Option<MessageId> },
    /// `tool.complete`
    ToolComplete(Box<ToolComplete>),
    /// `agent.step`
    AgentStep { iteration: u32 },
    /// `status.update`: kind is `lifecycle`, `warn`, `process` or `compacting`.
    StatusUpdate { kind: &'static str, text: String },
    /// `notification.show`
    NotificationShow { text: String, level: NoticeLevel, key: Option<String>, ttl_ms: Option<u64> },
    /// `notification.clear`
    NotificationClear { key: String },
    /// `session.notice`: something the user should read, part of the session's story.
    SessionNotice { text: String },
    /// `session.info`
    SessionInfo(Box<SessionInfo>),
    /// `session.title`
    SessionTitle { title: String },
    /// `input.state`
    InputState { queue: Vec<QueuedInput> },
    /// `approval.request`
    ApprovalRequest {
        request_id: PromptId,
        tool: String,
        command: String,
        description: String,
        /// `once`, and as far as they are offered `session` and `always`; last `deny`.
        choices: Vec<String>,
    },
    /// `sudo.request`: the password that a command's `sudo` wants.
    SudoRequest { request_id: PromptId, command: String },
    /// `clarify.request`
    ClarifyRequest { request_id: PromptId, question: String, choices: Vec<String> },
    /// `prompt.resolved`
    PromptResolved { request_id: PromptId, by: String, decision: String },
    /// `error`
    Error { message: String, code: Option<i32> },
}

impl EventPayload {
    /// Whether a slow watcher may lose this event: only pieces of text that the turn's end repeats.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::MessageDelta { .. } | Self::ReasoningDelta { .. } | Self::ThinkingDelta { .. })
    }

    /// The durable row that this event reports, when there is one.
    pub fn message_id(&self) -> Option<MessageId> {
        match self {
            Self::TurnAccepted { message_id, .. }
            | Self::MessageInterim { message_id, .. }
            | Self::ToolStart { message_id, .. } => *message_id,
            Self::ToolComplete(done) => done.message_id,
            Self::MessageComplete(done) => done.result.message_id,
            _ => None,
        }
    }
}

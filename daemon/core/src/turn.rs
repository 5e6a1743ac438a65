//! How a turn ends: exactly one result, on every path (spec 10 §15).

use std::fmt;

use crate::id::{MessageId, SessionId, TurnId};
use crate::usage::{CostStatus, Usage};

/// Who or what stopped a turn (spec 10 §16.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InterruptCause {
    UserStop,
    NewMessage,
    ClientDisconnect,
    Watchdog,
    Deadline,
    Shutdown,
    /// The daemon ended, by crash or kill, while the turn ran.
    Restart,
    Inactivity,
}

impl InterruptCause {
    /// The name used in events and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserStop => "user_stop",
            Self::NewMessage => "new_message",
            Self::ClientDisconnect => "client_disconnect",
            Self::Watchdog => "watchdog",
            Self::Deadline => "deadline",
            Self::Shutdown => "shutdown",
            Self::Restart => "restart",
            Self::Inactivity => "inactivity",
        }
    }

    /// The cause in words that fit after "interrupted:".
    pub fn words(self) -> &'static str {
        match self {
            Self::UserStop => "the user stopped it",
            Self::NewMessage => "a new message came",
            Self::ClientDisconnect => "the client went away",
            Self::Watchdog => "it made no progress",
            Self::Deadline => "its time was over",
            Self::Shutdown => "the daemon was shut down",
            Self::Restart => "the daemon ended while it ran",
            Self::Inactivity => "nothing happened for too long",
        }
    }
}

/// Why a turn ended: one variant per documented ending. There is no "unknown".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    TextResponse {
        finish_reason: String,
    },
    MaxIterationsReached {
        used: u32,
        max: u32,
    },
    BudgetExhausted,
    /// Stopped between model calls or in a tool.
    Interrupted {
        cause: InterruptCause,
    },
    InterruptedDuringApiCall {
        cause: InterruptCause,
    },
    GuardrailHalt,
    PartialStreamRecovery,
    FallbackPriorTurnContent,
    EmptyResponseExhausted,
    AllRetriesExhaustedNoResponse,
    ContentPolicyBlocked,
    Truncated,
    InvalidToolCalls,
    ThinkingBudgetExhausted,
    RuntimeContextTooSmall,
    CompactionHandoffNotActionable,
    SessionPersistenceFailed,
    LocalProcessingError {
        detail: String,
    },
    ErrorNearMaxIterations {
        detail: String,
    },
    RedirectRestartLimitExceeded,
    RebuiltRestartLimitExceeded,
    ReviewInputBudgetExhausted,
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TextResponse { finish_reason } => write!(f, "text_response(finish_reason={finish_reason})"),
            Self::MaxIterationsReached { used, max } => write!(f, "max_iterations_reached({used}/{max})"),
            Self::BudgetExhausted => f.write_str("budget_exhausted"),
            // The plain names are the original's, for what a person did.
            Self::Interrupted { cause: InterruptCause::UserStop } => f.write_str("interrupted_by_user"),
            Self::Interrupted { cause } => write!(f, "interrupted({})", cause.as_str()),
            Self::InterruptedDuringApiCall { cause: InterruptCause::UserStop } => {
                f.write_str("interrupted_during_api_call")
            }
            Self::InterruptedDuringApiCall { cause } => {
                write!(f, "interrupted_during_api_call({})", cause.as_str())
            }
            Self::GuardrailHalt => f.write_str("guardrail_halt"),
            Self::PartialStreamRecovery => f.write_str("partial_stream_recovery"),
            Self::FallbackPriorTurnContent => f.write_str("fallback_prior_turn_content"),
            Self::EmptyResponseExhausted => f.write_str("empty_response_exhausted"),
            Self::AllRetriesExhaustedNoResponse => f.write_str("all_retries_exhausted_no_response"),
            Self::ContentPolicyBlocked => f.write_str("content_policy_blocked"),
            Self::Truncated => f.write_str("truncated"),
            Self::InvalidToolCalls => f.write_str("invalid_tool_calls"),
            Self::ThinkingBudgetExhausted => f.write_str("thinking_budget_exhausted"),
            // The name is the original's, kept because clients match on it.
            Self::RuntimeContextTooSmall => f.write_str("ollama_runtime_context_too_small"),
            Self::CompactionHandoffNotActionable => f.write_str("compaction_handoff_not_actionable"),
            Self::SessionPersistenceFailed => f.write_str("session_persistence_failed"),
            Self::LocalProcessingError { detail } => write!(f, "local_processing_error({detail})"),
            Self::ErrorNearMaxIterations { detail } => write!(f, "error_near_max_iterations({detail})"),
            Self::RedirectRestartLimitExceeded => f.write_str("redirect_restart_limit_exceeded"),
            Self::RebuiltRestartLimitExceeded => f.write_str("rebuilt_restart_limit_exceeded"),
            Self::ReviewInputBudgetExhausted => f.write_str("review_input_budget_exhausted"),
        }
    }
}

/// How far a turn came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnOutcome {
    /// A whole answer was delivered.
    Completed,
    /// Something was delivered, but not all: cut off, or out of budget.
    Partial,
    Failed,
    Interrupted(InterruptCause),
}

impl TurnOutcome {
    /// The state that the turn's row ends in.
    pub fn state(self) -> TurnState {
        match self {
            Self::Completed | Self::Partial => TurnState::Completed,
            Self::Failed => TurnState::Failed,
            Self::Interrupted(_) => TurnState::Interrupted,
        }
    }
}

/// The status that clients paint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnStatus {
    Complete,
    Interrupted,
    Error,
}

impl TurnStatus {
    /// The name used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
        }
    }
}

/// The `state` column of a row in `turns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnState {
    Running,
    Completed,
    Failed,
    Interrupted,
}

impl TurnState {
    /// The name used in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Reads a stored name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "running" => Some(Self::Running),
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            "interrupted" => Some(Self::Interrupted),
            _ => None,
        }
    }
}

/// The one terminal result of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub exit_reason: ExitReason,
    /// The answer; `None` when there is none to show.
    pub final_response: Option<String>,
    /// Newest reasoning of this turn only.
    pub last_reasoning: Option<String>,
    /// The durable row of the answer.
    pub message_id: Option<MessageId>,
    pub outcome: TurnOutcome,
    /// What went wrong and what the user can do; `None` on success.
    pub error: Option<String>,
    /// The failure class, so that scripts can tell a quota wall from a task that failed.
    pub failure_reason: Option<String>,
    /// The client already showed the answer while it was streamed.
    pub response_previewed: bool,
    pub api_calls: u32,
    pub tool_calls: u32,
    pub model: String,
    pub provider: String,
    pub base_url: String,
    /// Tokens of this turn.
    pub usage: Usage,
    pub last_prompt_tokens: u64,
    pub estimated_cost_usd: Option<f64>,
    pub cost_status: CostStatus,
    pub started_at: crate::clock::Instant,
    pub duration_s: f64,
    pub model_s: f64,
    pub tools_s: f64,
    pub cleanup_errors: Vec<String>,
    /// Why the guardrail ended it: action, code, message, `tool_name`, count, signature.
    pub guardrail: Option<crate::json::Json>,
}

impl TurnResult {
    /// The status that clients paint.
    pub fn status(&self) -> TurnStatus {
        match self.outcome {
            TurnOutcome::Completed | TurnOutcome::Partial => TurnStatus::Complete,
            TurnOutcome::Failed => TurnStatus::Error,
            TurnOutcome::Interrupted(_) => TurnStatus::Interrupted,
        }
    }
}

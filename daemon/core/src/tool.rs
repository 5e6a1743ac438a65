//! Tool calls and what is known of their effects.

use crate::id::ToolCallId;
use crate::json::Json;

/// One call that the model asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: ToolCallId,
    pub name: String,
    /// The arguments as the model wrote them: always a JSON text, possibly a broken one.
    pub arguments: String,
    /// Fields that only the provider understands and that are replayed to it (`call_id`,
    /// `response_item_id`, `extra_content`).
    pub provider_data: Option<Json>,
}

/// How one tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolStatus {
    Ok,
    Error,
    /// Refused before it ran: by the authority list, a right, a hook, a guardrail or the policy.
    Blocked,
    Cancelled,
    Timeout,
}

impl ToolStatus {
    /// The name used in events and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Blocked => "blocked",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }

    /// Whether the model should take the result for a failure.
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }
}

/// What is known about a tool call's effect on the world, kept with its result row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EffectDisposition {
    Done,
    None,
    /// The call was cut off: its effect must be looked at before anything is repeated.
    Unknown,
}

impl EffectDisposition {
    /// The name used in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }

    /// Reads a stored name; a name that we do not know counts as unknown.
    pub fn parse(text: &str) -> Self {
        match text {
            "done" => Self::Done,
            "none" => Self::None,
            _ => Self::Unknown,
        }
    }
}

/// What the model is told about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSchema {
    pub name: String,
    pub description: String,
    /// A JSON Schema object.
    pub parameters: Json,
}

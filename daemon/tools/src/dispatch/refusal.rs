//! A call that does not run, and why.

use hermes_core::ToolStatus;
use serde_json::{Value, json};

/// The result of a call that a stage stopped.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: ToolStatus,
    /// Which rule stopped it: for hooks, logs and tests.
    pub(super) error_type: &'static str,
    pub(super) content: Value,
}

impl Refusal {
    /// The call is wrong in itself: the model can mend it.
    pub(super) fn wrong(error_type: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            error_type,
            content: json!({ "error": message.into(), "error_type": error_type }),
        }
    }

    /// The call may not run.
    pub(super) fn blocked(error_type: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Blocked,
            error_type,
            content: json!({ "error": message.into(), "status": "blocked", "error_type": error_type }),
        }
    }
}

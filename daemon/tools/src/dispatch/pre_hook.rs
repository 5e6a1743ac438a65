//! Stage 7: a `pre_tool_call` hook may block the call, or send it to a person.

use super::fit::Fitted;
use super::refusal::Refusal;
use crate::ports::{HookCall, HookDecision, Hooks};

/// Whether a person must allow the call, whatever the policy says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    AskAPerson { reason: String },
}

pub(super) async fn run(fitted: &Fitted, hooks: &dyn Hooks, call: HookCall<'_>) -> Result<Gate, Refusal> {
    match hooks.before(call, &fitted.arguments).await {
        HookDecision::Proceed => Ok(Gate::Open),
        HookDecision::Approve { reason } => Ok(Gate::AskAPerson { reason }),
        HookDecision::Block { message } => Err(Refusal::blocked("plugin_block", message)),
    }
}

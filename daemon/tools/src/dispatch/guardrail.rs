//! Stage 8: a turn that goes round in circles is stopped (spec 10 §11).

use serde_json::Value;

use super::fit::Fitted;
use super::refusal::Refusal;
use crate::output::ToolOutput;

/// Watches the calls of one turn: asked before each, told after each.
///
/// It keeps no counts yet, so it lets every call pass.
#[derive(Debug, Default)]
pub struct TurnGuard;

/// What the guardrail says to a call.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum GuardVerdict {
    Proceed,
}

impl TurnGuard {
    /// Asked before a call runs.
    #[expect(clippy::unused_self, reason = "counts of the turn's calls will be kept in it")]
    pub(crate) fn check(&self, _tool: &str, _arguments: &Value) -> GuardVerdict {
        GuardVerdict::Proceed
    }

    /// Told how a call ended.
    #[expect(clippy::unused_self, reason = "counts of the turn's calls will be kept in it")]
    pub(crate) fn observe(&self, _tool: &str, _arguments: &Value, _output: &ToolOutput) {}
}

#[expect(clippy::unnecessary_wraps, reason = "a stage; it refuses once the guard keeps counts")]
pub(super) fn run(fitted: &Fitted, guard: &TurnGuard) -> Result<(), Refusal> {
    match guard.check(fitted.tool.name(), &fitted.arguments) {
        GuardVerdict::Proceed => Ok(()),
    }
}

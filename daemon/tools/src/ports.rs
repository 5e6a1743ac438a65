//! Ports: what this crate needs of rooms above it, as small traits that those implement (design §2).

use std::fmt;
use std::path::Path;

use async_trait::async_trait;
use hermes_core::{Principal, SessionId, ToolCallId, ToolStatus, TurnId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Asks a person. Implemented by the engine's prompt broker.
#[async_trait]
pub trait Ask: Send + Sync + fmt::Debug {
    /// Asks and waits for the answer. When `cancel` fires the answer no longer matters.
    async fn ask(&self, request: AskRequest, cancel: &CancellationToken) -> AskAnswer;
}

/// A question to a person: may this call go ahead?
#[derive(Debug, Clone, PartialEq)]
pub struct AskRequest {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub call_id: ToolCallId,
    pub principal: Principal,
    pub tool: String,
    /// The command or the path.
    pub subject: String,
    /// Which rule asks: approvals are kept by rule.
    pub rule: &'static str,
    /// Why it is asked, for the person.
    pub description: String,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskAnswer {
    Allow,
    /// Somebody said no, with their reason if they gave one.
    Deny {
        reason: Option<String>,
    },
    /// There is nobody who could be asked, or nobody answered in time.
    Nobody,
}

/// Stands where no one can be asked: every question is a no.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyCanAnswer;

#[async_trait]
impl Ask for NobodyCanAnswer {
    async fn ask(&self, _: AskRequest, _: &CancellationToken) -> AskAnswer {
        AskAnswer::Nobody
    }
}

/// What others see of a call on its way through the pipeline.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    pub session_id: &'a SessionId,
    pub turn_id: &'a TurnId,
    pub call_id: &'a ToolCallId,
    pub principal: &'a Principal,
    pub tool: &'a str,
    /// The root of the session's workspace.
    pub workspace: &'a Path,
}

/// What a `pre_tool_call` hook decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookDecision {
    Proceed,
    /// The message becomes the result.
    Block {
        message: String,
    },
    /// A person must allow it; where nobody can, the answer is no.
    Approve {
        reason: String,
    },
}

/// What a `post_tool_call` hook learns.
#[derive(Debug, Clone, Copy)]
pub struct HookOutcome<'a> {
    pub status: ToolStatus,
    /// Which stage refused it, or `timeout`, `cancelled`, `tool_error`.
    pub error_type: Option<&'static str>,
    pub duration_ms: u64,
    pub result: &'a Value,
}

/// Hooks and middleware. Implemented by `extensions`; each method has a default that changes nothing.
#[async_trait]
pub trait Hooks: Send + Sync + fmt::Debug {
    /// Request middleware: other arguments in place of these. They are checked against the schema again.
    async fn rewrite(&self, _call: HookCall<'_>, _arguments: &Value) -> Option<Value> {
        None
    }

    /// `pre_tool_call`.
    async fn before(&self, _call: HookCall<'_>, _arguments: &Value) -> HookDecision {
        HookDecision::Proceed
    }

    /// `post_tool_call`: exactly once for each call, also for one that was refused.
    async fn after(&self, _call: HookCall<'_>, _arguments: &Value, _outcome: HookOutcome<'_>) {}

    /// `transform_tool_result`: another result in place of this one.
    async fn transform(&self, _call: HookCall<'_>, _result: &Value) -> Option<Value> {
        None
    }
}

/// No hooks at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

#[async_trait]
impl Hooks for NoHooks {}

/// Keeps what a call is about to change, so that it can be undone. It never blocks or fails a call.
#[async_trait]
pub trait Checkpoints: Send + Sync + fmt::Debug {
    /// Called before the first change to each of `directories` within a turn, and again for later ones:
    /// the implementor knows what it has kept.
    async fn keep(&self, turn: &TurnId, directories: &[&Path]);
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCheckpoints;

#[async_trait]
impl Checkpoints for NoCheckpoints {
    async fn keep(&self, _: &TurnId, _: &[&Path]) {}
}

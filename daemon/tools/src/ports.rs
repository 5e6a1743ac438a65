//! Ports: what this crate needs of rooms above it, as small traits that those implement (design §2).

use std::fmt;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{Principal, SessionId, ToolCallId, ToolStatus, TurnId};
use hermes_runtime::{ApprovalScope, Secret};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Asks a person. Implemented by the engine's prompt broker.
///
/// Who can answer is decided there (contract §7): the agent's own processes never can, and where nobody can
/// the answer comes at once. When `cancel` fires the answer no longer matters.
#[async_trait]
pub trait Ask: Send + Sync + fmt::Debug {
    /// May this call go ahead?
    async fn approve(&self, request: ApproveRequest, cancel: &CancellationToken) -> ApproveAnswer;

    /// A question of the model to the person.
    async fn question(&self, question: Question, cancel: &CancellationToken) -> QuestionAnswer;

    /// The password that `sudo` wants; `None` when there is nobody to ask, or nobody who gives it in time.
    async fn sudo_password(&self, request: SudoRequest, cancel: &CancellationToken) -> Option<Secret>;
}

/// A question to a person: may this call go ahead?
#[derive(Debug, Clone, PartialEq)]
pub struct ApproveRequest {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub call_id: ToolCallId,
    pub principal: Principal,
    pub tool: String,
    /// The command or the path: redacted, otherwise whole.
    pub subject: String,
    /// What it would do, for the person.
    pub description: String,
    /// Which rules ask.
    pub rules: Vec<&'static str>,
    /// The widest answer that is offered.
    pub widest: ApprovalScope,
    /// How long the question stays open.
    pub timeout: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApproveAnswer {
    Allow(ApprovalScope),
    /// Somebody said no, with their reason if they gave one.
    Deny {
        reason: Option<String>,
    },
    /// Somebody could have answered, and nobody did.
    TimedOut,
    /// There is nobody who could be asked.
    Nobody,
}

/// A question of the model to the person.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub call_id: ToolCallId,
    pub question: String,
    /// Answers to choose from; none makes it an open question. Any other answer is allowed too.
    pub choices: Vec<String>,
    pub timeout: Duration,
    /// How long it stays open, at most, once the last person who could answer has left.
    pub alone: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
    Answered(String),
    TimedOut,
    Nobody,
}

/// A command that needs the user's password.
#[derive(Debug, Clone, PartialEq)]
pub struct SudoRequest {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub call_id: ToolCallId,
    /// The command that asks for it, redacted.
    pub command: String,
}

/// Stands where no one can be asked: every question is a no.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyCanAnswer;

#[async_trait]
impl Ask for NobodyCanAnswer {
    async fn approve(&self, _: ApproveRequest, _: &CancellationToken) -> ApproveAnswer {
        ApproveAnswer::Nobody
    }

    async fn question(&self, _: Question, _: &CancellationToken) -> QuestionAnswer {
        QuestionAnswer::Nobody
    }

    async fn sudo_password(&self, _: SudoRequest, _: &CancellationToken) -> Option<Secret> {
        None
    }
}

/// Lets a background process speak to the session that started it. Implemented by the engine.
#[async_trait]
pub trait Wake: Send + Sync + fmt::Debug {
    /// Gives the session a notice: now when it lives, when it is next opened otherwise. Once a notice's id was
    /// taken, the same one is not given again. `true` when it is durable: the caller may forget it then.
    async fn notice(&self, notice: ProcessNotice) -> bool;
}

/// What a background process has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessNotice {
    /// The session that owns the process, and no other.
    pub session_id: SessionId,
    /// Who had the process started: a turn that the notice begins has their rights, and no more.
    pub principal: Principal,
    /// Unique for good: process and occasion.
    pub id: String,
    /// For the model, redacted.
    pub text: String,
}

/// Wakes nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyWakes;

#[async_trait]
impl Wake for NobodyWakes {
    async fn notice(&self, _: ProcessNotice) -> bool {
        false
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

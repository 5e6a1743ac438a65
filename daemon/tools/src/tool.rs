//! What a tool is.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::ToolSchema;
use hermes_runtime::Effect;
use serde_json::{Value, json};

use crate::output::ToolOutput;
use crate::services::ToolCx;
use crate::settings::ToolSettings;
use crate::workspace::Workspace;

/// One tool: what the model is told about it, what the policy judges, and what it does.
///
/// A room that brings tools implements this and hands them over as `Vec<Arc<dyn Tool>>`.
#[async_trait]
pub trait Tool: Send + Sync + fmt::Debug {
    /// The name in schemas and calls, unique over all tools.
    fn name(&self) -> &str;

    /// The toolset that it belongs to; MCP tools use `mcp-<server>`.
    fn toolset(&self) -> &str;

    /// What the model sees, with the limits that hold. Asked once when a session opens; must depend on
    /// nothing but `settings`, since sessions with equal tools share the result.
    fn schema(&self, settings: &ToolSettings) -> ToolSchema;

    /// Whether this profile can use it now. May be slow: the registry keeps the answer for 30 s. It must
    /// not depend on which surface a session has.
    fn available(&self) -> bool {
        true
    }

    /// How it behaves under the dispatcher.
    fn traits(&self) -> ToolTraits {
        ToolTraits::default()
    }

    /// What may run beside this call; by default what the traits say.
    fn concurrency(&self, _arguments: &Value) -> Concurrency {
        self.traits().concurrency
    }

    /// One short line about a call, for people who watch.
    fn preview(&self, arguments: &Value) -> String;

    /// What the call would touch, for the policy and for planning. An error is the call's result: a call
    /// whose effects cannot be named does not run.
    fn effect(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String>;

    /// The result of a call that was refused for `reason`.
    fn blocked(&self, reason: &str) -> Value {
        json!({ "error": reason, "status": "blocked" })
    }

    /// Does it. The arguments fit the schema. When `cx.cancel` fires it should end soon; a few seconds
    /// later the future is dropped, so work behind it must stop with it.
    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput;
}

/// How a tool behaves under the dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolTraits {
    pub concurrency: Concurrency,
    /// It can have changed nothing, however it ended.
    pub read_only: bool,
    /// Its own deadline; `None` = the default one.
    pub deadline: Option<Duration>,
    pub result_cap: ResultCap,
    /// It looks out for its own repetitions; a call of any other tool ends those.
    pub counts_repeats: bool,
    /// It has masked the secrets in its own output, as files need it (spec 40 §10.4).
    pub redacts_itself: bool,
}

/// What may run beside a call (spec 10 §10.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// Nothing.
    #[default]
    Barrier,
    /// Everything that is no barrier.
    Safe,
    /// What touches other paths, by its effects.
    PathScoped,
    /// Everything that is no barrier and writes no file.
    AfterWrites,
}

/// From how many characters on a result goes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultCap {
    /// The call's limits.
    #[default]
    Default,
    /// This many, where the call's limits allow it.
    Chars(usize),
    /// Never on its own account: it bounds its result itself.
    Unlimited,
}

/// What a call would touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedEffect {
    Command {
        command: String,
        cwd: PathBuf,
    },
    Write {
        path: PathBuf,
    },
    /// A write by a call that says that it means another profile's file.
    CrossProfileWrite {
        path: PathBuf,
    },
    Read {
        path: PathBuf,
    },
}

impl OwnedEffect {
    /// The effect as the policy takes it.
    pub fn as_effect(&self) -> Effect<'_> {
        match self {
            Self::Command { command, cwd } => Effect::Command { command, cwd },
            Self::Write { path } => Effect::Write { path },
            Self::CrossProfileWrite { path } => Effect::CrossProfileWrite { path },
            Self::Read { path } => Effect::Read { path },
        }
    }

    /// The command or path, as an approval names it.
    pub fn subject(&self) -> String {
        match self {
            Self::Command { command, .. } => command.clone(),
            Self::Write { path } | Self::CrossProfileWrite { path } | Self::Read { path } => {
                path.display().to_string()
            }
        }
    }
}

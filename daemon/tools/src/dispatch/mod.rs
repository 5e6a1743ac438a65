//! The one way to a tool (design §4, spec 10 §10.1): parse → unwrap a bridge call → authority list →
//! rights → fit to the schema → middleware → `pre_tool_call` → guardrail → policy and approval →
//! checkpoint → run under a deadline → `post_tool_call` → redact → size.
//!
//! One file per stage. A stage takes what the stage before it made, so that none can be left out, and a
//! stage that says no makes a [`Refusal`](refusal::Refusal), which becomes the call's result.

mod authority;
mod bridge;
mod checkpoint;
mod finish;
mod fit;
mod guardrail;
mod middleware;
mod parse;
mod patience;
mod plan;
mod policy;
mod pre_hook;
mod redact;
mod refusal;
mod rights;
mod run;
mod size;
mod spill;
mod stop;

use std::sync::Arc;
use std::time::Instant;

use hermes_core::{EffectDisposition, Principal, SessionId, ToolCall, ToolCallId, ToolStatus, TurnId};
use hermes_runtime::SessionKey;
use serde_json::Value;
use tracing::{Instrument as _, Span};

pub use guardrail::{GuardrailSettings, GuardrailStop, HardStopAfter, LoopCaps, TurnGuard, WarnAfter};
pub use patience::Patience;
pub use plan::Segment;
pub use size::ResultLimits;
pub use stop::{StopReason, StopSignal};

use crate::names::repair_name;
use crate::output::ToolOutput;
use crate::ports::HookCall;
use crate::registry::{Registry, SessionTools};
use crate::services::{ToolCx, ToolServices};
use crate::workspace::Workspace;
use refusal::Refusal;

/// What a call comes with: the session, the turn, and how much room is left for its result.
#[derive(Debug, Clone)]
pub struct CallCx {
    pub tools: Arc<SessionTools>,
    pub principal: Principal,
    pub yolo: bool,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub workspace: Arc<Workspace>,
    /// The session's surface: `cli`, `telegram`, `cron`, …
    pub platform: Arc<str>,
    /// Whether a notice that comes after the turn can begin another one (spec 40 §6.2).
    pub wakeable: bool,
    pub stop: StopSignal,
    /// Stands still while one of the batch's calls asks a person.
    pub patience: Patience,
    pub limits: ResultLimits,
    /// Characters of the results that this assistant message has had so far.
    pub batch_used: usize,
    /// The turn's guardrail.
    pub guard: Arc<TurnGuard>,
}

/// The one result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    pub call_id: ToolCallId,
    /// The tool that was meant: a repaired name, or the one behind a bridge call.
    pub name: String,
    /// What the model gets: one JSON value as text, or a block that says where the full text is.
    pub content: String,
    /// Characters of `content`, for [`CallCx::batch_used`].
    pub chars: usize,
    pub status: ToolStatus,
    pub effect: EffectDisposition,
    pub duration_s: f64,
    pub inline_diff: Option<String>,
    pub summary: Option<String>,
}

/// Runs tool calls. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    registry: Arc<Registry>,
    services: Arc<ToolServices>,
}

/// How far a call came, for its result and for hooks.
#[derive(Debug)]
struct Trail {
    name: String,
    arguments: Value,
}

/// A call that was judged and has not begun to work: the first of the three parts of [`Dispatcher::call`].
#[derive(Debug)]
pub struct Begun {
    trail: Trail,
    started: Instant,
    span: Span,
    stage: Result<Box<Ready>, Refusal>,
}

impl Begun {
    /// Whether anything is left to do but to tell the result.
    pub fn will_work(&self) -> bool {
        self.stage.is_ok()
    }
}

/// A call that may work.
#[derive(Debug)]
struct Ready {
    judged: policy::Judged,
    cx: ToolCx,
    stop: StopSignal,
}

/// A call whose work is over, and whose result nobody has seen yet.
#[derive(Debug)]
pub struct Worked {
    trail: Trail,
    started: Instant,
    span: Span,
    outcome: Result<ToolOutput, Refusal>,
}

impl Dispatcher {
    /// A pipeline over these tools, working with these services.
    pub fn new(registry: Arc<Registry>, services: Arc<ToolServices>) -> Self {
        Self { registry, services }
    }

    /// The tools that are registered, for sessions that open.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What the tools work with.
    pub fn services(&self) -> &Arc<ToolServices> {
        &self.services
    }

    /// One short line about a call, for people who watch; never fails.
    pub fn preview(&self, tools: &SessionTools, call: &ToolCall) -> String {
        let arguments = crate::arguments::parse_arguments(&call.arguments).unwrap_or(Value::Null);
        repair_name(&call.name, tools.names())
            .and_then(|name| self.registry.get(&name))
            .map(|tool| one_line(&self.services.redactor.redact(&tool.preview(&arguments))))
            .unwrap_or_default()
    }

    /// Removes what the session's calls have left outside its rows: saved results, snapshots, shell state and logs. For
    /// a session that is deleted; saved results of one that only closes may be read again later.
    pub async fn forget_session(&self, session: &SessionId) -> std::io::Result<()> {
        let key = SessionKey::from(session);
        self.services.policy.approvals().forget_session(&key);
        self.services.backend.close_session(&key).await;
        self.services.snapshots.forget_session(session).await;
        spill::remove(&self.services, session).await
    }

    /// Splits the calls of one assistant message into segments that run one after the other; within a
    /// parallel one all calls may run at once, with the outcome of running them in order. Looks at the file
    /// system to tell paths apart, but opens nothing.
    pub fn plan(&self, tools: &SessionTools, workspace: &Workspace, calls: &[ToolCall]) -> Vec<Segment> {
        plan::plan(calls.iter().map(|call| plan::reach(call, tools, &self.registry, workspace)))
    }

    /// Whether what the guard says to one of these calls could depend on another one of them: then they do not
    /// work at the same time, whatever the plan says.
    pub fn needs_order<'a>(
        &self,
        guard: &TurnGuard,
        tools: &SessionTools,
        calls: impl Iterator<Item = &'a ToolCall>,
    ) -> bool {
        let calls: Vec<(String, Value)> = calls
            .map(|call| {
                let name = repair_name(&call.name, tools.names()).unwrap_or_else(|| call.name.clone());
                let arguments = crate::arguments::parse_arguments(&call.arguments);
                let mut arguments = arguments.unwrap_or_else(|_| Value::String(call.arguments.clone()));
                if let Some(schema) = tools.parameters(&name) {
                    crate::arguments::coerce(&mut arguments, schema);
                }
                (name, arguments)
            })
            .collect();
        guard.needs_order(&calls)
    }

    /// Runs one call to its one result, whatever happens in it.
    ///
    /// Dropping the future stops the tool and all that it started; the effect is then unknown.
    pub async fn call(&self, cx: CallCx, call: &ToolCall) -> CallResult {
        let worked = self.work(self.begin(&cx, call).await).await;
        self.settle(&cx, call, worked).await
    }

    /// All that comes before the tool's own work. Whoever runs calls at once begins them one after the other,
    /// in the model's order: so hooks, guardrail, policy and questions to a person come in that order too.
    pub async fn begin(&self, cx: &CallCx, call: &ToolCall) -> Begun {
        let span = tracing::info_span!("tool_call", call = %call.id, tool = call.name);
        let started = Instant::now();
        let mut trail = Trail { name: call.name.clone(), arguments: Value::Null };
        let stage = self.reach(cx, call, &mut trail).instrument(span.clone()).await;
        Begun { trail, started, span, stage }
    }

    /// The tool's own work. Calls of one parallel segment may do this at the same time.
    ///
    /// Dropping the future stops the tool and all that it started; the effect is then unknown.
    pub async fn work(&self, begun: Begun) -> Worked {
        let Begun { trail, started, span, stage } = begun;
        let outcome = match stage {
            Ok(ready) => {
                let Ready { judged, cx, stop } = *ready;
                let work = async {
                    run::not_stopped_yet(&stop)?;
                    let keeping = checkpoint::before(&judged, &cx).await;
                    let outcome = run::run(judged, cx.clone(), &stop).await;
                    checkpoint::after(keeping, &cx).await;
                    outcome
                };
                work.instrument(span.clone()).await
            }
            Err(refusal) => Err(refusal),
        };
        Worked { trail, started, span, outcome }
    }

    /// Makes the one result of a call. In the model's order, since guardrail and size look at what came before:
    /// `cx.batch_used` counts the calls before this one.
    pub async fn settle(&self, cx: &CallCx, call: &ToolCall, worked: Worked) -> CallResult {
        let Worked { trail, started, span, outcome } = worked;
        finish::run(self, cx, call, trail, outcome, started).instrument(span).await
    }

    /// From the call as it was written to the moment before it does anything.
    async fn reach(&self, cx: &CallCx, call: &ToolCall, trail: &mut Trail) -> Result<Box<Ready>, Refusal> {
        run::not_stopped_yet(&cx.stop)?;
        let parsed = parse::run(call)?;
        let direct = bridge::run(parsed, &cx.tools)?;
        let known = authority::run(direct, &cx.tools, &self.registry)?;
        known.tool.name().clone_into(&mut trail.name);
        rights::run(&cx.principal, &known)?;
        let fitted = fit::run(known, &cx.tools)?;
        let fitted =
            middleware::run(fitted, &*self.services.hooks, hook_call(cx, call, &trail.name), &cx.tools)
                .await?;
        trail.arguments = fitted.arguments.clone();
        let hooks = &*self.services.hooks;
        let gate = pre_hook::run(&fitted, hooks, hook_call(cx, call, &trail.name)).await?;
        guardrail::run(&fitted, &cx.guard)?;
        let tool_cx = self.tool_cx(cx, call);
        let judged = policy::run(fitted, gate, &tool_cx, &cx.stop).await?;
        Ok(Box::new(Ready { judged, cx: tool_cx, stop: cx.stop.clone() }))
    }

    fn tool_cx(&self, cx: &CallCx, call: &ToolCall) -> ToolCx {
        ToolCx {
            session_id: cx.session_id.clone(),
            turn_id: cx.turn_id.clone(),
            call_id: call.id.clone(),
            principal: cx.principal.clone(),
            yolo: cx.yolo,
            workspace: Arc::clone(&cx.workspace),
            services: Arc::clone(&self.services),
            settings: Arc::clone(&self.services.settings.borrow()),
            tools: Arc::clone(&cx.tools),
            // The call's own branch: its deadline ends this call and no other.
            cancel: cx.stop.token().child_token(),
            platform: Arc::clone(&cx.platform),
            wakeable: cx.wakeable,
            patience: cx.patience.of_a_call(),
            limits: cx.limits,
            turn: cx.workspace.take_turn(),
        }
    }
}

/// Characters of a preview.
const PREVIEW_CHARS: usize = 200;

/// Whatever a tool made of a model's words, it is shown on one line.
fn one_line(text: &str) -> String {
    let (shown, _) = crate::files::first_chars(text, PREVIEW_CHARS);
    shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The call as hooks see it.
fn hook_call<'a>(cx: &'a CallCx, call: &'a ToolCall, tool: &'a str) -> HookCall<'a> {
    HookCall {
        session_id: &cx.session_id,
        turn_id: &cx.turn_id,
        call_id: &call.id,
        principal: &cx.principal,
        tool,
        workspace: cx.workspace.root(),
    }
}

#[cfg(test)]
mod segments_tests;
#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;

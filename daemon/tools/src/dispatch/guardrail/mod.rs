//! Stage 8, and a look at every result: a turn that goes round in circles is warned, and where nobody watches
//! it is stopped (spec 10 §11).
//!
//! The guard is asked and told in the model's order, also for calls that work at the same time; what it says
//! therefore depends on nothing but the calls and their results.

mod circles;
mod outcome;
mod settings;
mod signature;
#[cfg(test)]
mod tests;
mod texts;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{ToolCallId, ToolStatus};
use serde_json::{Value, json};

pub use settings::{GuardrailSettings, HardStopAfter, LoopCaps, WarnAfter};

use super::fit::Fitted;
use super::refusal::Refusal;
use crate::files::first_chars;
use crate::output::ToolOutput;
use circles::{Circle, HALT_AFTER, Step, Trail};
use outcome::{Outcome, is_poller, is_reader, may_keep_failing};
use settings::Limits;
use signature::Signature;
use texts::Rule;

/// Under this name a refusal of the guard is known to hooks and logs.
const BLOCKED: &str = "guardrail_block";
/// Characters from which on a repeated result is replaced by a reference to the first one.
const WORTH_A_STUB: usize = 512;
/// Characters of the arguments that a reference shows.
const REFERENCE_ARGUMENTS: usize = 120;
/// Tools whose newest result is looked up in the transcript, so that it must stand there.
const NEVER_A_STUB: [&str; 1] = ["todo"];

/// Watches the calls of one turn: asked before each, told after each.
#[derive(Debug)]
pub struct TurnGuard {
    limits: Limits,
    // Short sections without an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    exact: HashMap<Signature, Failures>,
    same_tool: HashMap<String, u32>,
    answers: HashMap<Signature, Answers>,
    trail: Trail,
    /// Where a result stands that may come again.
    told: HashMap<(Signature, blake3::Hash), First>,
    web_searches: u32,
    subagents: u32,
    stop: Option<GuardrailStop>,
}

/// Failures of one call.
#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    count: u32,
    /// Something was changed since: the next try is a new one.
    world_changed: bool,
}

/// Equal answers to one question.
#[derive(Debug, Clone, Copy)]
struct Answers {
    result: blake3::Hash,
    count: u32,
    world_changed: bool,
}

#[derive(Debug, Clone)]
struct First {
    call: ToolCallId,
    file: Option<PathBuf>,
}

/// Why the guard ends a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailStop {
    /// `block`: the call was not run; `halt`: it was, and it was the last straw.
    pub action: &'static str,
    pub code: &'static str,
    pub tool: String,
    pub count: u32,
    pub signature: String,
    /// What the model was told.
    pub message: String,
    /// What the user can do.
    pub next_step: &'static str,
}

impl GuardrailStop {
    fn new(action: &'static str, rule: Rule, signature: &Signature, count: u32) -> Self {
        Self {
            action,
            code: rule.code(),
            tool: signature.tool.clone(),
            count,
            signature: signature.shown(),
            message: rule.message(&signature.tool, count),
            next_step: rule.next_step(),
        }
    }

    /// The `guardrail` object of results and of the turn's end.
    pub fn to_json(&self) -> Value {
        json!({
            "action": self.action,
            "code": self.code,
            "message": self.message,
            "tool_name": self.tool,
            "count": self.count,
            "signature": self.signature,
        })
    }
}

/// What the guard makes of a result.
#[derive(Debug)]
pub(super) struct Observed {
    /// Goes into the result's `_warning`.
    warning: Option<String>,
    stop: Option<GuardrailStop>,
    /// The result is a repeat, and the first one stands there.
    first: Option<First>,
    key: Option<(Signature, blake3::Hash)>,
}

impl Default for TurnGuard {
    fn default() -> Self {
        Self::new(&GuardrailSettings::default(), "")
    }
}

impl TurnGuard {
    /// The guard of a turn on this surface.
    pub fn new(settings: &GuardrailSettings, platform: &str) -> Self {
        Self { limits: Limits::of(settings, platform), state: Mutex::default() }
    }

    /// Why the turn must end after this batch; the first reason counts.
    pub fn stop(&self) -> Option<GuardrailStop> {
        self.lock().stop.clone()
    }

    /// Whether what the guard says to one of these calls could depend on another one of them, so that they
    /// must not work at the same time.
    pub(super) fn needs_order(&self, calls: &[(String, Value)]) -> bool {
        let state = self.lock();
        let mut seen = std::collections::HashSet::new();
        let searches = calls.iter().filter(|(tool, _)| tool == "web_search").count();
        let searches = u32::try_from(searches).unwrap_or(u32::MAX);
        let cap = self.limits.caps.max_web_searches;
        (cap > 0 && searches > 0 && state.web_searches.saturating_add(searches) > cap)
            || calls.iter().any(|(tool, arguments)| {
                let signature = Signature::of(tool, arguments);
                self.refuses(&state, &signature).is_some() || !seen.insert(signature)
            })
    }

    /// Asked before a call runs.
    fn check(&self, tool: &str, arguments: &Value) -> Option<GuardrailStop> {
        let signature = Signature::of(tool, arguments);
        let mut state = self.lock();
        let caps = self.limits.caps;
        let refused = match tool {
            "web_search" if reached(state.web_searches, 1, caps.max_web_searches) => {
                Some((Rule::WebSearchCap, state.web_searches))
            }
            "delegate_task" if reached(state.subagents, children(arguments), caps.max_subagents) => {
                Some((Rule::SubagentCap, state.subagents))
            }
            _ => self.refuses(&state, &signature),
        };
        if let Some((rule, count)) = refused {
            let stop = GuardrailStop::new("block", rule, &signature, count);
            state.stop.get_or_insert_with(|| stop.clone());
            return Some(stop);
        }
        match tool {
            "web_search" => state.web_searches += 1,
            "delegate_task" => state.subagents += children(arguments),
            _ => {}
        }
        None
    }

    /// The rules that keep a call from running.
    fn refuses(&self, state: &State, signature: &Signature) -> Option<(Rule, u32)> {
        if !self.limits.stop {
            return None;
        }
        let failures = state.exact.get(signature).filter(|failures| !failures.world_changed);
        if let Some(failures) = failures.filter(|failures| failures.count >= self.limits.exact.stop) {
            return Some((Rule::ExactFailureBlock, failures.count));
        }
        let answers = state.answers.get(signature).filter(|answers| !answers.world_changed)?;
        (answers.count >= self.limits.no_progress.stop).then_some((Rule::NoProgressBlock, answers.count))
    }

    /// Told how a call ended: once for each call, in the model's order.
    pub(super) fn observe(
        &self,
        tool: &str,
        arguments: &Value,
        output: &ToolOutput,
        error_type: Option<&'static str>,
    ) -> Observed {
        let nothing = Observed { warning: None, stop: None, first: None, key: None };
        let outcome = Outcome::of(output);
        // What the guard itself refused was counted when it was refused.
        if error_type == Some(BLOCKED) || outcome == Outcome::Cut {
            return nothing;
        }
        let signature = Signature::of(tool, arguments);
        let text = output.content.to_string();
        let result = blake3::hash(text.as_bytes());
        let mut state = self.lock();
        let found = state.count(&self.limits, &signature, result, outcome);
        if tool == "delegate_task" && output.status != ToolStatus::Ok {
            state.subagents = state.subagents.saturating_sub(children(arguments));
        }
        let worth_it = text.chars().nth(WORTH_A_STUB - 1).is_some() && !NEVER_A_STUB.contains(&tool);
        let key = worth_it.then(|| (signature.clone(), result));
        let first = key.as_ref().and_then(|key| state.told.get(key).cloned());
        let mut observed = Observed { first, key, ..nothing };
        match found {
            Some(Found::Halt(rule, count)) => {
                let stop = GuardrailStop::new("halt", rule, &signature, count);
                state.stop.get_or_insert_with(|| stop.clone());
                observed.stop = Some(stop);
            }
            Some(Found::Warn(rule, count)) if self.limits.warn => {
                observed.warning = Some(rule.message(tool, count));
            }
            Some(Found::Warn(..)) | None => {}
        }
        observed
    }

    /// Told where a result stands that was not a repeat.
    pub(super) fn told(&self, observed: &Observed, call: &ToolCallId, file: Option<PathBuf>) {
        if let Some(key) = &observed.key {
            self.lock().told.entry(key.clone()).or_insert(First { call: call.clone(), file });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a result shows about the turn's way.
enum Found {
    Warn(Rule, u32),
    Halt(Rule, u32),
}

impl State {
    fn count(
        &mut self,
        limits: &Limits,
        signature: &Signature,
        result: blake3::Hash,
        outcome: Outcome,
    ) -> Option<Found> {
        let circle = self.trail.push(Step { signature: signature.clone(), result }, is_poller);
        let found = if outcome == Outcome::Failed {
            self.failed(limits, signature)
        } else {
            self.went_well(limits, signature, result, outcome)
        };
        let circle = circle.map(|circle| {
            let count = match circle {
                Circle::Streak { times } => times,
                Circle::Cycle { laps, .. } => laps,
            };
            let shown = u32::try_from(count).unwrap_or(u32::MAX);
            if limits.stop && count >= HALT_AFTER {
                Found::Halt(Rule::of_circle(circle, true), shown)
            } else {
                Found::Warn(Rule::of_circle(circle, false), shown)
            }
        });
        match (found, circle) {
            (Some(Found::Warn(..)), Some(halt @ Found::Halt(..))) => Some(halt),
            (found, circle) => found.or(circle),
        }
    }

    fn failed(&mut self, limits: &Limits, signature: &Signature) -> Option<Found> {
        self.answers.remove(signature);
        let failures = self.exact.entry(signature.clone()).or_default();
        if std::mem::take(&mut failures.world_changed) {
            failures.count = 0;
        }
        failures.count += 1;
        let exact = failures.count;
        let same = self.same_tool.entry(signature.tool.clone()).or_default();
        *same += 1;
        if limits.stop && *same >= limits.same_tool.stop && !may_keep_failing(&signature.tool) {
            return Some(Found::Halt(Rule::SameToolHalt, *same));
        }
        if exact >= limits.exact.warn {
            return Some(Found::Warn(Rule::ExactFailureWarning, exact));
        }
        (*same >= limits.same_tool.warn).then_some(Found::Warn(Rule::SameToolWarning, *same))
    }

    fn went_well(
        &mut self,
        limits: &Limits,
        signature: &Signature,
        result: blake3::Hash,
        outcome: Outcome,
    ) -> Option<Found> {
        self.exact.remove(signature);
        self.same_tool.remove(&signature.tool);
        if outcome == Outcome::Changed {
            self.exact.values_mut().for_each(|failures| failures.world_changed = true);
            self.answers.values_mut().for_each(|answers| answers.world_changed = true);
        }
        if !is_reader(&signature.tool) {
            return None;
        }
        let answers = self.answers.entry(signature.clone()).or_insert(Answers {
            result,
            count: 0,
            world_changed: false,
        });
        if answers.result != result || answers.world_changed {
            *answers = Answers { result, count: 0, world_changed: false };
        }
        answers.count += 1;
        (answers.count >= limits.no_progress.warn)
            .then_some(Found::Warn(Rule::NoProgressWarning, answers.count))
    }
}

impl Observed {
    /// The result as the model gets it: a repeat as a reference, and with what the guard has to say in fields
    /// of its own, never behind the JSON.
    pub(super) fn apply(&self, tool: &str, arguments: &Value, content: Value) -> Value {
        let mut content = match &self.first {
            Some(first) => first.reference(tool, arguments),
            None => content,
        };
        if self.warning.is_none() && self.stop.is_none() {
            return content;
        }
        if !content.is_object() {
            content = json!({ "result": content });
        }
        if let Value::Object(fields) = &mut content {
            if let Some(warning) = &self.warning {
                let warning = match fields.get("_warning").and_then(Value::as_str) {
                    Some(own) => format!("{own}\n{warning}"),
                    None => warning.clone(),
                };
                fields.insert("_warning".to_owned(), warning.into());
            }
            if let Some(stop) = &self.stop {
                fields.insert("guardrail".to_owned(), stop.to_json());
            }
        }
        content
    }

    /// Whether the result stands in the transcript already.
    pub(super) fn is_repeat(&self) -> bool {
        self.first.is_some()
    }
}

impl First {
    /// What stands in place of a result that was told before.
    fn reference(&self, tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        let (shown, cut) = first_chars(&arguments, REFERENCE_ARGUMENTS);
        let place = match &self.file {
            Some(file) => format!("{}, the full text in {}", self.call, file.display()),
            None => self.call.to_string(),
        };
        json!({
            "note": format!("The call ran. Its result is byte for byte the one of call {place}."),
            "same_as": self.call.as_str(),
            "tool": tool,
            "arguments": format!("{shown}{}", if cut { "…" } else { "" }),
        })
    }
}

/// Whether `more` go over a cap; 0 is none.
fn reached(count: u32, more: u32, cap: u32) -> bool {
    cap > 0 && count.saturating_add(more) > cap
}

/// Children that a delegation would start.
fn children(arguments: &Value) -> u32 {
    let tasks = arguments.get("tasks").and_then(Value::as_array).map_or(1, Vec::len);
    u32::try_from(tasks.max(1)).unwrap_or(u32::MAX)
}

pub(super) fn run(fitted: &Fitted, guard: &TurnGuard) -> Result<(), Refusal> {
    let Some(stop) = guard.check(fitted.tool.name(), &fitted.arguments) else { return Ok(()) };
    tracing::info!(code = stop.code, count = stop.count, "the guardrail refuses the call");
    Err(Refusal {
        status: ToolStatus::Blocked,
        error_type: BLOCKED,
        content: json!({ "error": stop.message, "guardrail": stop.to_json() }),
    })
}

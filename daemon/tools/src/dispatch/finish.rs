//! The last stages: result contract, redaction, `post_tool_call` and its successors, size.

use std::time::Instant;

use hermes_core::{EffectDisposition, ToolCall, ToolStatus};
use serde_json::{Value, json};

use super::parse::kind;
use super::refusal::Refusal;
use super::{CallCx, CallResult, Dispatcher, Trail, hook_call, redact, size};
use crate::output::ToolOutput;
use crate::ports::HookOutcome;

/// Every call comes through here exactly once, also one that was refused.
pub(super) async fn run(
    dispatcher: &Dispatcher,
    cx: &CallCx,
    call: &ToolCall,
    trail: Trail,
    outcome: Result<ToolOutput, Refusal>,
    started: Instant,
) -> CallResult {
    let services = &dispatcher.services;
    let tool = dispatcher.registry.get(&trail.name);
    let traits = tool.map(|tool| tool.traits()).unwrap_or_default();
    let (mut output, error_type) = match outcome {
        Ok(output) => {
            let output = within_contract(&trail.name, output);
            let error_type = error_type(&output);
            (output, error_type)
        }
        Err(refusal) => {
            tracing::info!(error_type = refusal.error_type, "tool call refused");
            let output = ToolOutput { status: refusal.status, ..ToolOutput::looked(refusal.content) };
            (output, Some(refusal.error_type))
        }
    };
    if !traits.redacts_itself || error_type.is_some() {
        redact::run(&mut output.content, &services.redactor);
    }
    let mask = |text: String| services.redactor.redact(&text).into_owned();
    output.summary = output.summary.map(mask);
    if !traits.redacts_itself {
        output.inline_diff = output.inline_diff.map(mask);
    }

    let hooks = &*services.hooks;
    let seen = hook_call(cx, call, &trail.name);
    let duration = started.elapsed();
    let told = HookOutcome {
        status: output.status,
        error_type,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        result: &output.content,
    };
    hooks.after(seen, &trail.arguments, told).await;
    if let Some(mut other) = hooks.transform(seen, &output.content).await {
        redact::run(&mut other, &services.redactor);
        output.content = other;
    }
    // Of a call that was refused before its arguments were read, what was written is all there is.
    let written = Value::String(call.arguments.clone());
    let arguments = if trail.arguments.is_null() { &written } else { &trail.arguments };
    let observed = cx.guard.observe(&trail.name, arguments, &output, error_type);
    output.content = observed.apply(&trail.name, arguments, output.content);

    let delivered = matches!(output.status, ToolStatus::Ok | ToolStatus::Error | ToolStatus::Blocked);
    let sized = size::run(&output.content, traits.result_cap, &trail.name, call, cx, services).await;
    if !observed.is_repeat() && delivered {
        cx.guard.told(&observed, &call.id, sized.file.clone());
    }
    if sized.spilled || !delivered {
        // What was read is not in front of the model: it may read it again.
        cx.workspace.forget_read_of(&call.id);
    }
    CallResult {
        call_id: call.id.clone(),
        name: trail.name,
        chars: sized.chars,
        content: sized.text,
        status: output.status,
        effect: output.effect,
        duration_s: duration.as_secs_f64(),
        inline_diff: output.inline_diff,
        summary: output.summary,
    }
}

/// A result is a JSON object, whoever made it.
fn within_contract(tool: &str, output: ToolOutput) -> ToolOutput {
    if output.content.is_object() {
        return output;
    }
    let kind = kind(&output.content);
    let content = json!({
        "error": format!("{tool} gave {kind} instead of an object"),
        "error_type": "tool_result_contract",
        "tool": tool,
        "result_type": kind,
    });
    // It ran, so whatever it did is done.
    ToolOutput { content, status: ToolStatus::Error, effect: worst(output.effect), ..output }
}

fn worst(effect: EffectDisposition) -> EffectDisposition {
    match effect {
        EffectDisposition::None => EffectDisposition::Unknown,
        known => known,
    }
}

fn error_type(output: &ToolOutput) -> Option<&'static str> {
    match output.status {
        ToolStatus::Ok => None,
        ToolStatus::Error => Some("tool_error"),
        ToolStatus::Blocked => Some("tool_block"),
        ToolStatus::Cancelled => Some("cancelled"),
        ToolStatus::Timeout => Some("timeout"),
    }
}

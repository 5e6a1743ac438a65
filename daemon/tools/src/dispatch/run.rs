//! Stage 11: the tool runs, under a deadline and until somebody interrupts it; its panic is its result.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use hermes_core::{EffectDisposition, ToolStatus};
use serde_json::json;

use super::policy::Judged;
use super::refusal::Refusal;
use super::stop::{StopReason, StopSignal};
use crate::output::{ToolOutput, broken};
use crate::services::ToolCx;
use crate::tool::Concurrency;

/// How long a tool that was told to end may take for it (spec 10 §10.3).
const GRACE: Duration = Duration::from_secs(3);

/// Why a tool was told to end.
#[derive(Debug, Clone, Copy)]
enum Cause {
    Stopped(StopReason),
    Deadline(Duration),
}

/// A call of a batch that was told to end does not begin.
pub(super) fn not_stopped_yet(stop: &StopSignal) -> Result<(), Refusal> {
    let Some(reason) = stop.reason() else { return Ok(()) };
    let status = reason.status();
    let error = format!("not begun, so nothing was done: {}", reason.words());
    Err(Refusal {
        status,
        error_type: status.as_str(),
        content: json!({ "error": error, "status": status.as_str() }),
    })
}

pub(super) async fn run(judged: Judged, cx: ToolCx, stop: &StopSignal) -> Result<ToolOutput, Refusal> {
    let Judged { tool, arguments, .. } = judged;
    let traits = tool.traits();
    // However it ends, calls that began later need not wait for this one.
    let _turn = cx.turn.pass_at_end();
    let alone = tool.concurrency(&arguments) == Concurrency::Barrier;
    if alone && !traits.counts_repeats {
        cx.workspace.files().note_other_call();
        // It may make calls of its own, which come behind it.
        cx.turn.pass();
    }
    // Whatever ends this function, also being dropped, ends the work behind the tool.
    let _stop = cx.cancel.clone().drop_guard();
    let deadline = cx.settings.timeouts.deadline(tool.name(), traits.deadline);
    let mut work = std::pin::pin!(AssertUnwindSafe(tool.run(&cx, arguments)).catch_unwind());
    let cause = tokio::select! {
        biased;
        done = &mut work => {
            // Beside others: noted in the order in which the calls began, which may have to be waited for.
            if !alone && !traits.counts_repeats && cx.turn_has_come().await {
                cx.workspace.files().note_other_call();
            }
            let output = settled(tool.name(), done);
            return Ok(match stop.reason() {
                // It saw the signal as soon as we did.
                Some(reason) if output.status == ToolStatus::Cancelled => {
                    cut_off(tool.name(), traits.read_only, Cause::Stopped(reason), Some(output))
                }
                _ => output,
            });
        }
        reason = stop.fired() => Cause::Stopped(reason),
        limit = cx.patience.elapsed(deadline) => Cause::Deadline(limit),
    };
    cx.cancel.cancel();
    let late = tokio::time::timeout(GRACE, &mut work).await.ok().map(|done| settled(tool.name(), done));
    Ok(cut_off(tool.name(), traits.read_only, cause, late))
}

fn settled(tool: &str, done: Result<ToolOutput, Box<dyn Any + Send>>) -> ToolOutput {
    done.unwrap_or_else(|panic| {
        let message = panic_message(&*panic);
        tracing::error!(tool, message, "tool panicked");
        // What it had done until then is not known.
        ToolOutput { effect: EffectDisposition::Unknown, ..broken("panic", &format!("{tool}: {message}")) }
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// The result of a tool that was told to end, with what it still gave back, if it did.
fn cut_off(tool: &str, read_only: bool, cause: Cause, late: Option<ToolOutput>) -> ToolOutput {
    if let Some(output) = &late
        && output.status == ToolStatus::Ok
    {
        // It had just finished.
        return output.clone();
    }
    let effect = match &late {
        _ if read_only => EffectDisposition::None,
        Some(output) => output.effect,
        None => EffectDisposition::Unknown,
    };
    let (status, text) = match cause {
        Cause::Stopped(reason @ StopReason::Interrupted(_)) => {
            (reason.status(), format!("{tool} was interrupted: {}", reason.words()))
        }
        Cause::Stopped(reason @ StopReason::BatchTime(_)) => {
            (reason.status(), format!("{tool} was stopped: {}", reason.words()))
        }
        Cause::Deadline(limit) => (
            ToolStatus::Timeout,
            format!("{tool} did not finish within {} s and was stopped", limit.as_secs_f64()),
        ),
    };
    // A tool that ended in good order reports more than we can: what its command printed until then.
    if let Some(output) = late
        && output.status == ToolStatus::Cancelled
    {
        return ToolOutput { status, effect, ..output };
    }
    let advice = if effect == EffectDisposition::Unknown {
        ". What it did until then is not known: look before you repeat it"
    } else {
        ""
    };
    let content = json!({ "error": format!("{text}{advice}"), "status": status.as_str() });
    ToolOutput { status, effect, ..ToolOutput::looked(content) }
}

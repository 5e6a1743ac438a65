//! Stage 11: the tool runs, under a deadline and until somebody interrupts it; its panic is its result.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use hermes_core::{EffectDisposition, ToolStatus};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::policy::Judged;
use super::refusal::Refusal;
use crate::output::{ToolOutput, broken};
use crate::services::ToolCx;

/// How long a tool that was told to end may take for it (spec 10 §10.3).
const GRACE: Duration = Duration::from_secs(3);

/// Why a tool was told to end.
#[derive(Debug, Clone, Copy)]
enum Cause {
    Interrupt,
    Deadline(Duration),
}

/// A call of an interrupted turn does not begin.
pub(super) fn not_cancelled_yet(cancel: &CancellationToken) -> Result<(), Refusal> {
    if !cancel.is_cancelled() {
        return Ok(());
    }
    Err(Refusal {
        status: ToolStatus::Cancelled,
        error_type: "cancelled",
        content: json!({ "error": "interrupted before the call began; nothing was done", "status": "cancelled" }),
    })
}

pub(super) async fn run(judged: Judged, cx: ToolCx) -> Result<ToolOutput, Refusal> {
    let Judged { tool, arguments, .. } = judged;
    let traits = tool.traits();
    if !traits.counts_repeats {
        cx.workspace.files().note_other_call();
    }
    // Whatever ends this function, also being dropped, ends the work behind the tool.
    let _stop = cx.cancel.clone().drop_guard();
    let deadline = cx.settings.timeouts.deadline(tool.name(), traits.deadline);
    let mut work = std::pin::pin!(AssertUnwindSafe(tool.run(&cx, arguments)).catch_unwind());
    let cause = tokio::select! {
        biased;
        done = &mut work => return Ok(settled(tool.name(), done)),
        () = cx.cancel.cancelled() => Cause::Interrupt,
        limit = elapsed(deadline) => Cause::Deadline(limit),
    };
    cx.cancel.cancel();
    let late = tokio::time::timeout(GRACE, &mut work).await.ok().map(|done| settled(tool.name(), done));
    Ok(cut_off(tool.name(), traits.read_only, cause, late))
}

/// Waits for the deadline; without one, for ever.
async fn elapsed(deadline: Option<Duration>) -> Duration {
    match deadline {
        Some(limit) => {
            tokio::time::sleep(limit).await;
            limit
        }
        None => std::future::pending().await,
    }
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
        Cause::Interrupt => (ToolStatus::Cancelled, format!("{tool} was interrupted")),
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

//! The rows that close a turn that was cut off, so that its history stays legal and says what is known
//! (spec 10 §16.3, §20). Nothing is ever run again from here.

use std::collections::HashSet;
use std::sync::Arc;

use hermes_core::{EffectDisposition, FinishReason, Instant, InterruptCause, Message, Role, ToolCall};

use crate::prompts::{self, fill};
use crate::repair::is_display_only;
use crate::scan::head;

/// Tools that change nothing, so that a call that was cut off may be forgotten (spec 10 §10.5).
pub const NO_EFFECT_TOOLS: [&str; 12] = [
    "read_file",
    "search_files",
    "session_search",
    "skill_view",
    "skills_list",
    "web_extract",
    "web_search",
    "vision_analyze",
    "browser_snapshot",
    "browser_get_images",
    "browser_console",
    "read_terminal",
];

/// Most characters of a call's arguments in the closing row.
const PREVIEW_CHARS: usize = 80;

/// The finish reason of a closing row.
const INTERRUPTED: &str = "interrupted";

/// How a cut turn closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing<'a> {
    /// A short row that says what was interrupted, and by what.
    Interrupted(InterruptCause),
    /// This text was delivered as the answer before the turn was cut off.
    Delivered { text: &'a str, cause: InterruptCause },
}

/// The rows to append to `rows`, the active rows of a session whose turn was cut off: a result for every call of the
/// last round that has none, then an assistant row. Nothing when the transcript ends in an assistant's words
/// already, or is empty.
pub fn closing_rows(rows: &[Arc<Message>], closing: &Closing<'_>, at: Instant) -> Vec<Message> {
    let (Closing::Interrupted(cause) | Closing::Delivered { cause, .. }) = *closing;
    let rows: Vec<&Message> = rows.iter().map(AsRef::as_ref).filter(|row| !is_display_only(row)).collect();
    let Some(last) = rows.last() else { return Vec::new() };
    let open = match last.role {
        Role::User | Role::System => Vec::new(),
        Role::Assistant if last.tool_calls.is_empty() => return Vec::new(),
        Role::Assistant | Role::Tool => unanswered_calls(&rows),
    };
    let mut out: Vec<Message> = open.iter().map(|call| recovered_result(call, cause, at)).collect();
    let text = match closing {
        Closing::Delivered { text, .. } if !text.trim().is_empty() => (*text).to_owned(),
        _ if last.role == Role::User => fill(prompts::UNANSWERED, &[("cause", cause.words())]),
        Closing::Delivered { .. } | Closing::Interrupted(_) => note(cause, &open),
    };
    out.push(Message {
        finish_reason: Some(FinishReason::Other(INTERRUPTED.to_owned())),
        ..Message::assistant(text, at)
    });
    out
}

/// The calls of the last round without a result.
fn unanswered_calls<'a>(rows: &[&'a Message]) -> Vec<&'a ToolCall> {
    let results = rows.iter().rev().take_while(|row| row.role == Role::Tool);
    let answered: HashSet<&str> =
        results.filter_map(|row| row.tool_call_id.as_ref()).map(hermes_core::ToolCallId::as_str).collect();
    let caller = rows.iter().rev().find(|row| row.role != Role::Tool);
    let calls = caller.map(|row| row.tool_calls.as_slice()).unwrap_or_default();
    calls.iter().filter(|call| !answered.contains(call.id.as_str())).collect()
}

/// What is known of a call that was cut off.
fn effect(call: &ToolCall) -> EffectDisposition {
    if NO_EFFECT_TOOLS.contains(&call.name.as_str()) {
        EffectDisposition::None
    } else {
        EffectDisposition::Unknown
    }
}

fn recovered_result(call: &ToolCall, cause: InterruptCause, at: Instant) -> Message {
    let effect = effect(call);
    let template = match effect {
        EffectDisposition::None => prompts::STUB_NONE,
        EffectDisposition::Done | EffectDisposition::Unknown => prompts::STUB_UNKNOWN,
    };
    let error = fill(template, &[("cause", cause.words())]);
    let content = serde_json::json!({ "error": error, "effect": effect.as_str() }).to_string();
    Message { effect: Some(effect), ..Message::tool_result(call, content, at) }
}

/// The closing row's text: what was interrupted, and which effects have to be looked at.
fn note(cause: InterruptCause, open: &[&ToolCall]) -> String {
    let list = |wanted: EffectDisposition, template: &str| {
        let calls: Vec<String> =
            open.iter().filter(|call| effect(call) == wanted).map(|call| preview(call)).collect();
        if calls.is_empty() { String::new() } else { fill(template, &[("calls", &calls.join(", "))]) }
    };
    let calls = list(EffectDisposition::Unknown, prompts::INTERRUPTED_UNKNOWN)
        + &list(EffectDisposition::None, prompts::INTERRUPTED_NONE);
    fill(prompts::INTERRUPTED, &[("cause", cause.words()), ("calls", &calls)])
}

fn preview(call: &ToolCall) -> String {
    let arguments: String = call.arguments.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let kept = head(&arguments, PREVIEW_CHARS);
    let more = if kept.len() < arguments.len() { "…" } else { "" };
    format!("`{}` {kept}{more}", call.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::{legal, repair_history};
    use hermes_core::{DisplayKind, ToolCallId};
    use pretty_assertions::assert_eq;

    const AT: Instant = Instant(9.0);

    fn call(id: &str, name: &str) -> ToolCall {
        ToolCall {
            id: ToolCallId::new(id),
            name: name.into(),
            arguments: format!("{{\"x\":\n\"{id}\"}}"),
            provider_data: None,
        }
    }

    fn calling(calls: &[ToolCall]) -> Message {
        Message { tool_calls: calls.to_vec(), ..Message::new(Role::Assistant, Instant(1.0)) }
    }

    fn close(rows: &[Message]) -> Vec<Message> {
        let rows: Vec<Arc<Message>> = rows.iter().cloned().map(Arc::new).collect();
        let out = closing_rows(&rows, &Closing::Interrupted(InterruptCause::Restart), AT);
        let mut all = rows;
        all.extend(out.iter().cloned().map(Arc::new));
        all.push(Arc::new(Message::user("next", AT)));
        let all: Vec<Arc<Message>> = all.into_iter().filter(|row| !is_display_only(row)).collect();
        assert_eq!(legal(&all), Ok(()), "the history is legal for the next user message");
        out
    }

    #[test]
    fn open_calls_get_results_that_say_what_is_known() {
        let calls = [call("a", "read_file"), call("b", "terminal"), call("c", "write_file")];
        let done = Message::tool_result(&calls[2], "{}", Instant(2.0));
        let out = close(&[Message::user("go", Instant(0.0)), calling(&calls), done]);
        let shown: Vec<String> = out
            .iter()
            .map(|row| {
                format!("{} {:?} {:?}\n{}", row.role.as_str(), row.tool_call_id, row.effect, row.text())
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n\n"));
        assert!(out.iter().all(|row| row.timestamp == AT));
    }

    #[test]
    fn an_answered_round_gets_only_the_closing_row() {
        let calls = [call("a", "terminal")];
        let done = Message::tool_result(&calls[0], "{}", Instant(2.0));
        let out = close(&[Message::user("go", Instant(0.0)), calling(&calls), done]);
        assert_eq!(out.len(), 1);
        assert_eq!(out[0].text(), "[Interrupted: the daemon ended while it ran.]");
    }

    #[test]
    fn a_turn_cut_before_any_answer_is_closed_too() {
        let out = close(&[Message::user("go", Instant(0.0))]);
        assert_eq!(out.len(), 1);
        assert_eq!(
            out[0].text(),
            "[Interrupted: the daemon ended while it ran, before an answer was given.]"
        );
    }

    #[test]
    fn an_answer_or_an_empty_session_needs_nothing() {
        assert_eq!(close(&[Message::user("go", Instant(0.0)), Message::assistant("done", AT)]), []);
        assert_eq!(closing_rows(&[], &Closing::Interrupted(InterruptCause::Restart), AT), []);
    }

    #[test]
    fn display_rows_do_not_count() {
        let mut partial = Message::assistant("half of an ans", AT);
        partial.display = Some(DisplayKind(DisplayKind::PARTIAL.into()));
        assert_eq!(close(&[Message::user("go", Instant(0.0)), partial]).len(), 1);
    }

    #[test]
    fn delivered_text_is_the_closing_row() {
        let calls = [call("a", "terminal")];
        let rows = [Arc::new(Message::user("go", AT)), Arc::new(calling(&calls))];
        let closing = Closing::Delivered { text: "It is done.", cause: InterruptCause::Shutdown };
        let out = closing_rows(&rows, &closing, AT);
        assert_eq!(out.len(), 2);
        assert_eq!(out[1].text(), "It is done.");
    }

    #[test]
    fn a_second_recovery_adds_nothing() {
        let calls = [call("a", "terminal")];
        let mut rows = vec![Message::user("go", AT), calling(&calls)];
        rows.extend(close(&rows));
        assert_eq!(close(&rows), []);
        let rows: Vec<Arc<Message>> = rows.into_iter().map(Arc::new).collect();
        assert!(repair_history(rows).report.is_clean());
    }
}

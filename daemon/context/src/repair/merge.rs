//! Several rows of one role in one (spec 10 §22.2).
//!
//! Both texts of a row are merged: the clean one, and the one that was sent when it differed, so that a merged row
//! still holds what the model was told, and no stale sidecar stays behind.

use std::sync::Arc;

use hermes_core::{Content, FinishReason, Json, Message, Part, ToolCall};

use crate::prompts;

/// Finish reasons of an answer that a stop gate held back; a later answer takes its place.
const PROVISIONAL: [&str; 4] =
    ["verification_required", "verify_hook_continue", "kanban_terminal_required", "todo_reconcile_required"];

/// Whether a row has words or an image.
pub(super) fn says_something(message: &Message) -> bool {
    let image = match &message.content {
        Some(Content::Parts(parts)) => parts.iter().any(|part| matches!(part, Part::Image { .. })),
        Some(Content::Text(_)) | None => false,
    };
    image || !message.wire_text().trim().is_empty()
}

/// One assistant row with the words of all `rows`, and `calls`.
pub(super) fn assistants(rows: &[Arc<Message>], calls: Vec<ToolCall>) -> Message {
    let last_words = rows.iter().rposition(|row| says_something(row));
    let speaking: Vec<&Message> = rows
        .iter()
        .enumerate()
        .filter(|(at, row)| says_something(row) && (!is_provisional(row) || Some(*at) == last_words))
        .map(|(_, row)| row.as_ref())
        .collect();
    let (content, api_content) = join(&speaking, |texts| texts.join("\n"));
    let rows: Vec<&Message> = rows.iter().map(AsRef::as_ref).collect();
    let last = rows.last().copied().expect("a merge has at least two rows");
    Message {
        id: None,
        content,
        api_content,
        tool_calls: calls,
        reasoning: lines(&rows, |row| row.reasoning.as_deref()),
        reasoning_content: lines(&rows, |row| row.reasoning_content.as_deref()),
        reasoning_details: items(&rows, |row| row.reasoning_details.as_ref()),
        codex_reasoning_items: items(&rows, |row| row.codex_reasoning_items.as_ref()),
        codex_message_items: items(&rows, |row| row.codex_message_items.as_ref()),
        ..last.clone()
    }
}

/// One user row in place of several, and how many rows vanished. A single row, or the only one that says something,
/// stays as it is.
pub(super) fn users(mut rows: Vec<Arc<Message>>) -> (u32, Option<Arc<Message>>) {
    let vanished = u32::try_from(rows.len().saturating_sub(1)).unwrap_or(u32::MAX);
    if rows.len() <= 1 {
        return (0, rows.pop());
    }
    let speaking: Vec<Arc<Message>> = rows.iter().filter(|row| says_something(row)).cloned().collect();
    if speaking.len() <= 1 {
        return (vanished, speaking.into_iter().next().or_else(|| rows.pop()));
    }
    let speaking: Vec<&Message> = speaking.iter().map(AsRef::as_ref).collect();
    let (content, api_content) = number(&speaking);
    let last = speaking.last().copied().expect("there are at least two");
    (vanished, Some(Arc::new(Message { id: None, content, api_content, ..last.clone() })))
}

/// The rows' words, each under its number, below a line that says what this is. A first row that is such a merge
/// already is continued, so that one merge more or less on the way gives the same bytes.
fn number(rows: &[&Message]) -> (Option<Content>, Option<String>) {
    let first = rows.first().map(|row| row.text()).unwrap_or_default();
    let merged = numbered(&first);
    let label = |at: usize| format!("[Message {}]", at + merged.max(1));
    let (content, api_content) = join(rows, |texts| {
        let parts = texts.iter().enumerate().map(|(at, text)| match (at, merged) {
            (0, 0) => format!("{}\n\n{}\n{text}", prompts::MERGED_USERS, label(0)),
            (0, _) => (*text).to_owned(),
            (at, _) => format!("{}\n{text}", label(at)),
        });
        parts.collect::<Vec<_>>().join("\n\n")
    });
    let Some(Content::Parts(_)) = content else { return (content, api_content) };
    // With images among them, labels stand as parts of their own.
    let mut parts = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        match (at, merged) {
            (0, 0) => parts.push(Part::Text(format!("{}\n\n{}", prompts::MERGED_USERS, label(0)))),
            (0, _) => {}
            (at, _) => parts.push(Part::Text(label(at))),
        }
        parts.extend(as_parts(row));
    }
    (Some(Content::Parts(parts)), None)
}

/// How many messages an earlier merge put into `text`; 0 when it is none.
fn numbered(text: &str) -> usize {
    if !text.starts_with(prompts::MERGED_USERS) {
        return 0;
    }
    let mut count = 0;
    for line in text.lines() {
        if line == format!("[Message {}]", count + 1) {
            count += 1;
        }
    }
    count
}

/// Joins clean texts and sent texts alike; rows with images become parts.
fn join(rows: &[&Message], with: impl Fn(&[&str]) -> String) -> (Option<Content>, Option<String>) {
    if rows.is_empty() {
        return (None, None);
    }
    if rows.iter().any(|row| matches!(row.content, Some(Content::Parts(_)))) {
        let parts = rows.iter().flat_map(|row| as_parts(row)).collect();
        return (Some(Content::Parts(parts)), None);
    }
    let clean: Vec<_> = rows.iter().map(|row| row.text()).collect();
    let sent: Vec<_> = rows.iter().map(|row| row.wire_text()).collect();
    let clean = with(&clean.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    let sent = with(&sent.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    let api_content = (sent != clean).then_some(sent);
    (Some(clean.into()), api_content)
}

fn as_parts(row: &Message) -> Vec<Part> {
    match &row.content {
        Some(Content::Parts(parts)) => parts.clone(),
        Some(Content::Text(_)) | None => vec![Part::Text(row.wire_text().into_owned())],
    }
}

fn is_provisional(row: &Message) -> bool {
    match &row.finish_reason {
        Some(FinishReason::Other(reason)) => PROVISIONAL.contains(&reason.as_str()),
        _ => false,
    }
}

fn lines(rows: &[&Message], of: impl Fn(&Message) -> Option<&str>) -> Option<String> {
    let all: Vec<&str> = rows.iter().filter_map(|row| of(row)).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// Concatenates JSON arrays; where one is no array, the last one counts.
fn items(rows: &[&Message], of: impl Fn(&Message) -> Option<&Json>) -> Option<Json> {
    let all: Vec<&Json> = rows.iter().filter_map(|row| of(row)).collect();
    let last = (*all.last()?).clone();
    if all.len() == 1 {
        return Some(last);
    }
    let arrays: Option<Vec<Vec<serde_json::Value>>> =
        all.iter().map(|json| serde_json::from_str(json.as_str()).ok()).collect();
    Some(arrays.map_or(last, |arrays| serde_json::Value::Array(arrays.concat()).into()))
}

//! One row of `messages`.

use hermes_core::{
    DisplayKind, EffectDisposition, FinishReason, Message, MessageId, Role, SessionId, ToolCallId,
};
use rusqlite::{Connection, Row, params};

use super::{content, tool_calls};
use crate::column;

/// The columns that [`read`] needs, for the SELECT lists of its callers.
pub(crate) const COLUMNS: &str = "id, role, content, api_content, tool_call_id, tool_calls, tool_name, \
     effect_disposition, timestamp, finish_reason, reasoning, reasoning_content, reasoning_details, \
     codex_reasoning_items, codex_message_items, platform_message_id, display_kind";

/// Appends `message` to its session's active rows. The caller keeps the session's counters.
pub(crate) fn insert(
    conn: &Connection,
    session_id: &SessionId,
    message: &Message,
) -> rusqlite::Result<MessageId> {
    // `active` is named although it has a default: in a file that older builds of the original made
    // it has none, and a row without it would be hidden.
    let mut statement = conn.prepare_cached(
        "INSERT INTO messages (session_id, role, content, api_content, tool_call_id, tool_calls, tool_name, \
         effect_disposition, timestamp, finish_reason, reasoning, reasoning_content, reasoning_details, \
         codex_reasoning_items, codex_message_items, platform_message_id, display_kind, active, compacted) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, 1, 0)",
    )?;
    let id = statement.insert(params![
        session_id.as_str(),
        message.role.as_str(),
        message.content.as_ref().map(content::encode),
        message.api_content,
        message.tool_call_id.as_ref().map(ToolCallId::as_str),
        tool_calls::encode(&message.tool_calls),
        message.tool_name,
        message.effect.map(EffectDisposition::as_str),
        message.timestamp.unix_seconds(),
        message.finish_reason.as_ref().map(FinishReason::as_str),
        message.reasoning,
        message.reasoning_content,
        message.reasoning_details.as_ref().map(hermes_core::Json::as_str),
        message.codex_reasoning_items.as_ref().map(hermes_core::Json::as_str),
        message.codex_message_items.as_ref().map(hermes_core::Json::as_str),
        message.platform_message_id,
        message.display.as_ref().map(|kind| kind.0.as_str()),
    ])?;
    Ok(MessageId(id))
}

/// Reads a row that begins with [`COLUMNS`]. `None` for a role that we do not know: such rows are
/// notes of other programs, not parts of the conversation.
///
/// Columns go by position: looking names up costs more than reading a row, and whole transcripts
/// pass through here.
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Option<Message>> {
    let role = column::text(row, 1)?.unwrap_or_default();
    let Some(role) = Role::parse(&role) else { return Ok(None) };
    let timestamp = column::instant(row, 8)?.unwrap_or_default();
    Ok(Some(Message {
        role,
        id: Some(MessageId(row.get(0)?)),
        content: column::text(row, 2)?.map(content::decode),
        api_content: column::text(row, 3)?,
        tool_call_id: column::text(row, 4)?.map(ToolCallId::new),
        tool_calls: column::text(row, 5)?.map_or_else(Vec::new, |stored| tool_calls::decode(&stored)),
        tool_name: column::text(row, 6)?,
        effect: column::text(row, 7)?.map(|name| EffectDisposition::parse(&name)),
        finish_reason: column::text(row, 9)?.map(|name| FinishReason::parse(&name)),
        reasoning: column::text(row, 10)?,
        reasoning_content: column::text(row, 11)?,
        reasoning_details: column::json(row, 12)?,
        codex_reasoning_items: column::json(row, 13)?,
        codex_message_items: column::json(row, 14)?,
        platform_message_id: column::text(row, 15)?,
        display: column::filled(row, 16)?.map(DisplayKind),
        ..Message::new(role, timestamp)
    }))
}

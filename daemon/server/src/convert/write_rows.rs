//! Core → contract: rows of a transcript, cut into frames that fit the limit of one message.

use hermes_core::{Message, ToolCall};
use hermes_proto::v1 as wire;
use prost::Message as _;

use crate::limit::{ROW_TEXT_BYTES, ROWS_BYTES};

/// One row as clients see it.
pub(crate) fn row(message: Message) -> wire::Row {
    wire::Row {
        id: message.id.map_or(0, |id| id.0),
        role: message.role.as_str().to_owned(),
        content: cut(message.text().into_owned()),
        tool_calls: message.tool_calls.into_iter().map(tool_call).collect(),
        tool_call_id: message.tool_call_id.map(|id| id.as_str().to_owned()),
        tool_name: message.tool_name,
        finish_reason: message.finish_reason.map(|reason| reason.as_str().to_owned()),
        reasoning: message.reasoning.map(cut),
        display_kind: message.display.map(|kind| kind.0),
        effect_disposition: message.effect.map(|effect| effect.as_str().to_owned()),
        timestamp: message.timestamp.unix_seconds(),
    }
}

fn tool_call(call: ToolCall) -> wire::ToolCall {
    wire::ToolCall { id: call.id.as_str().to_owned(), name: call.name, arguments: cut(call.arguments) }
}

/// A text that alone would fill a message is cut, and says so.
fn cut(text: String) -> String {
    if text.len() <= ROW_TEXT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(ROW_TEXT_BYTES);
    let omitted = text.len() - end;
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}\n[… {omitted} bytes more are stored, too many for one message]")
}

/// Groups rows so that each group stays within one frame; a row larger than a frame stands alone.
/// There is always one group, though it may be empty.
pub(crate) fn frames(rows: impl IntoIterator<Item = Message>) -> Vec<Vec<wire::Row>> {
    let mut groups: Vec<Vec<wire::Row>> = vec![Vec::new()];
    let mut bytes = 0;
    for row in rows.into_iter().map(row) {
        let size = row.encoded_len();
        let room = |group: &&mut Vec<wire::Row>| group.is_empty() || bytes + size <= ROWS_BYTES;
        if let Some(group) = groups.last_mut().filter(room) {
            bytes += size;
            group.push(row);
        } else {
            bytes = size;
            groups.push(vec![row]);
        }
    }
    groups
}

/// One answer's rows: at most `limit`, and no more than fit into a frame. The second value says whether
/// there are more.
pub(crate) fn page(messages: Vec<Message>, limit: u32) -> (Vec<wire::Row>, bool) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = messages.len() > limit;
    let mut frames = frames(messages.into_iter().take(limit));
    let more = more || frames.len() > 1;
    (frames.swap_remove(0), more)
}

#[cfg(test)]
mod tests {
    use hermes_core::{Instant, MessageId};
    use hermes_proto::MAX_MESSAGE_BYTES;

    use super::*;

    fn said(id: i64, text: String) -> Message {
        Message { id: Some(MessageId(id)), ..Message::user(text, Instant(1.5)) }
    }

    #[test]
    fn frames_hold_every_row_once_in_order_and_fit() {
        let rows = (1..=20).map(|id| said(id, "x".repeat(900_000)));
        let frames = frames(rows);
        assert!(frames.len() > 1);
        let ids: Vec<i64> = frames.iter().flatten().map(|row| row.id).collect();
        assert_eq!(ids, (1..=20).collect::<Vec<_>>());
        for frame in frames {
            let size: usize = frame.iter().map(prost::Message::encoded_len).sum();
            assert!(size <= ROWS_BYTES, "{size}");
        }
    }

    #[test]
    fn a_page_says_whether_rows_are_left() {
        let rows = |count: i64, size: usize| (1..=count).map(|id| said(id, "x".repeat(size))).collect();
        let short = |(rows, more): (Vec<wire::Row>, bool)| (rows.len(), more);
        assert_eq!(short(page(rows(3, 1), 3)), (3, false));
        assert_eq!(short(page(rows(4, 1), 3)), (3, true));
        assert_eq!(short(page(rows(3, 3_000_000), 3)), (1, true));
        assert_eq!(short(page(Vec::new(), 3)), (0, false));
    }

    #[test]
    fn no_rows_are_one_empty_frame() {
        assert_eq!(frames([]), [Vec::new()]);
    }

    #[test]
    fn a_giant_row_is_cut_at_a_character_and_says_so() {
        let frames = frames([said(1, "é".repeat(MAX_MESSAGE_BYTES))]);
        let row = frames.into_iter().flatten().next().unwrap();
        assert!(row.content.len() < ROW_TEXT_BYTES + 100);
        assert!(row.content.ends_with("too many for one message]"));
    }
}

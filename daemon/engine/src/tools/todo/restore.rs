//! Reads a session's list from its rows: the newest result that holds one, and what came after it.

use std::collections::HashMap;

use hermes_core::{Message, Role};
use serde_json::Value;

use super::NAME;
use super::list::TodoList;

/// The list as the session's calls left it.
pub(super) fn list<M: AsRef<Message>>(rows: &[M]) -> TodoList {
    let mut list = TodoList::default();
    let mut asked = HashMap::new();
    for row in rows.iter().map(AsRef::as_ref) {
        match row.role {
            Role::Assistant => {
                asked.extend(row.tool_calls.iter().map(|call| (call.id.clone(), call.arguments.as_str())));
            }
            Role::Tool if row.tool_name.as_deref() == Some(NAME) => {
                let text = row.text();
                if let Some(stored) = first_json(&text).as_ref().and_then(TodoList::from_json) {
                    list = stored;
                } else if is_elsewhere(&text)
                    && let Some(arguments) = row.tool_call_id.as_ref().and_then(|id| asked.get(id))
                    && let Ok(arguments) = hermes_tools::parse_arguments(arguments)
                {
                    // The result stands in a file; the call itself says what it did.
                    let _ = list.apply(&arguments);
                }
            }
            Role::System | Role::User | Role::Tool => {}
        }
    }
    list
}

/// The result's JSON; words of the user may follow it.
fn first_json(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// Whether a result was too long for its row.
fn is_elsewhere(text: &str) -> bool {
    text.starts_with("<persisted-output>")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hermes_core::{Instant, ToolCall, ToolCallId};
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn round(id: &str, arguments: &Value, result: &str) -> [Arc<Message>; 2] {
        let call = ToolCall {
            id: ToolCallId::new(id),
            name: NAME.into(),
            arguments: arguments.to_string(),
            provider_data: None,
        };
        let at = Instant(1.0);
        let asks = Message { tool_calls: vec![call.clone()], ..Message::new(Role::Assistant, at) };
        [Arc::new(asks), Arc::new(Message::tool_result(&call, result, at))]
    }

    #[test]
    fn the_newest_result_counts_and_calls_whose_result_stands_elsewhere_are_done_again() {
        let stored = r#"{"todos":[{"id":"1","content":"a","status":"completed"}],"summary":{}}
<out_of_band_user_message>
hurry
</out_of_band_user_message>"#;
        let merge = json!({ "merge": true, "todos": [{ "id": "2", "content": "b" }] });
        let mut rows =
            round("c0", &json!({ "todos": [{ "id": "9", "content": "old" }] }), "{\"todos\":[]}").to_vec();
        rows.extend(round("c1", &json!({}), stored));
        rows.extend(round("c2", &merge, "<persisted-output>\nThe result of todo …"));
        rows.extend(round("c3", &json!({ "todos": [{ "id": "3" }] }), r#"{"error":"item `3` is new"}"#));
        let want = json!({ "todos": [
            { "id": "1", "content": "a", "status": "completed" },
            { "id": "2", "content": "b", "status": "pending" },
        ] });
        assert_eq!(list(&rows).to_json()["todos"], want["todos"]);
    }

    #[test]
    fn a_session_without_calls_has_an_empty_list() {
        assert_eq!(list::<Arc<Message>>(&[]), TodoList::default());
    }
}

//! The protocol that every request is held against.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ModelRequest;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub request: usize,
    pub rule: String,
}

/// Fields of ours that must never reach a provider (spec 30 §1).
const INTERNAL: [&str; 9] = [
    "reasoning",
    "finish_reason",
    "api_content",
    "timestamp",
    "tool_name",
    "effect_disposition",
    "codex_reasoning_items",
    "codex_message_items",
    "reasoning_details",
];

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
}

/// What each conversation sent last, to see that it only grows.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    /// By the bytes of the system row and the first user row.
    last: BTreeMap<(String, String), Sent>,
}

#[derive(Debug)]
struct Sent {
    tools: String,
    messages: Vec<String>,
}

impl Conversations {
    pub(crate) fn check(&mut self, request: &ModelRequest) -> Vec<Violation> {
        let mut rules = Vec::new();
        match serde_json::from_str::<Body<'_>>(&request.body) {
            Err(error) => rules.push(format!("the body is not a chat request: {error}")),
            Ok(body) => {
                let rows: Vec<Value> =
                    body.messages.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
                check_rows(&rows, &mut rules);
                if request.has_tools() {
                    self.check_growth(&body, &mut rules);
                }
            }
        }
        rules.into_iter().map(|rule| Violation { request: request.index, rule }).collect()
    }

    fn check_growth(&mut self, body: &Body<'_>, rules: &mut Vec<String>) {
        let messages: Vec<String> = body.messages.iter().map(|raw| raw.get().to_owned()).collect();
        let tools = body.tools.map(|raw| raw.get().to_owned()).unwrap_or_default();
        let key =
            (messages.first().cloned().unwrap_or_default(), messages.get(1).cloned().unwrap_or_default());
        // Without an answer in it a history is a new conversation, which may begin with the words of another.
        let continues = messages.len() > 2;
        if let Some(before) = self.last.get(&key).filter(|_| continues) {
            if before.tools != tools {
                rules.push("the tool list changed within a conversation".into());
            }
            let same = before.messages.iter().zip(&messages).take_while(|(old, new)| old == new).count();
            if same < before.messages.len() {
                rules.push(format!(
                    "the history did not only grow: row {same} of {} was {} and is {}",
                    before.messages.len(),
                    short(before.messages.get(same)),
                    short(messages.get(same)),
                ));
            }
        }
        self.last.insert(key, Sent { tools, messages });
    }
}

fn short(row: Option<&String>) -> String {
    row.map_or_else(|| "missing".into(), |row| row.chars().take(160).collect())
}

/// One system row first, then alternating roles, and each call answered exactly once.
fn check_rows(rows: &[Value], rules: &mut Vec<String>) {
    let role = |row: &Value| row["role"].as_str().unwrap_or_default().to_owned();
    if rows.first().map(&role).as_deref().is_none_or(|first| first != "system" && first != "developer") {
        rules.push("the first row is not the system prompt".into());
    }
    let mut before = "system".to_owned();
    let mut open: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    for (index, row) in rows.iter().enumerate().skip(1) {
        let now = role(row);
        let legal = match now.as_str() {
            "user" => before != "user",
            "assistant" => before == "user" || before == "tool",
            "tool" => before == "assistant" || before == "tool",
            _ => false,
        };
        if !legal {
            rules.push(format!("row {index}: `{now}` after `{before}`"));
        }
        if now != "tool" && !open.is_empty() {
            rules.push(format!("row {index}: calls without a result: {}", open.join(", ")));
            open.clear();
        }
        if now == "tool" {
            let id = row["tool_call_id"].as_str().unwrap_or_default();
            match open.iter().position(|waiting| waiting == id) {
                Some(at) => drop(open.remove(at)),
                None => rules.push(format!("row {index}: a result without its call: {id}")),
            }
        }
        for call in row["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if id.is_empty() || !known.insert(id.clone()) {
                rules.push(format!("row {index}: call id `{id}` is blank or used before"));
            }
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_err() {
                rules.push(format!("row {index}: arguments in history are not a JSON object: {arguments}"));
            }
            open.push(id);
        }
        for key in row.as_object().into_iter().flat_map(serde_json::Map::keys) {
            if key.starts_with('_') || INTERNAL.contains(&key.as_str()) {
                rules.push(format!("row {index}: internal field `{key}`"));
            }
        }
        before = now;
    }
    if !open.is_empty() {
        rules.push(format!("the last calls have no result: {}", open.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(index: usize, rows: &Value) -> ModelRequest {
        let body = json!({ "model": "m", "messages": rows, "tools": [{ "type": "function" }] });
        ModelRequest { index, body: body.to_string().into(), authorization: None }
    }

    fn rules(conversations: &mut Conversations, rows: &Value) -> Vec<String> {
        conversations.check(&request(0, rows)).into_iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn a_legal_history_passes_and_may_grow() {
        let mut conversations = Conversations::default();
        let mut rows = vec![
            json!({ "role": "system", "content": "s" }),
            json!({ "role": "user", "content": "q" }),
            json!({ "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } }] }),
            json!({ "role": "tool", "tool_call_id": "a", "content": "r" }),
        ];
        assert_eq!(rules(&mut conversations, &json!(rows)), Vec::<String>::new());
        rows.push(json!({ "role": "assistant", "content": "done" }));
        assert_eq!(rules(&mut conversations, &json!(rows)), Vec::<String>::new());
    }

    #[test]
    fn what_breaks_the_protocol_is_seen() {
        let call = json!([{ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{" } }]);
        let table = [
            json!([{ "role": "user", "content": "q" }]),
            json!([{ "role": "system", "content": "s" }, { "role": "user", "content": "a" }, { "role": "user", "content": "b" }]),
            json!([{ "role": "system", "content": "s" }, { "role": "user", "content": "a" }, { "role": "tool", "tool_call_id": "x", "content": "" }]),
            json!([{ "role": "system", "content": "s" }, { "role": "user", "content": "a" }, { "role": "assistant", "tool_calls": call }]),
            json!([{ "role": "system", "content": "s" }, { "role": "user", "content": "a", "timestamp": 1 }]),
        ];
        for rows in table {
            assert!(!rules(&mut Conversations::default(), &rows).is_empty(), "{rows}");
        }
    }

    #[test]
    fn a_changed_row_is_seen() {
        let mut conversations = Conversations::default();
        let rows = |last: &str| {
            json!([
                { "role": "system", "content": "s" },
                { "role": "user", "content": "q" },
                { "role": "assistant", "content": last },
            ])
        };
        assert!(rules(&mut conversations, &rows("a")).is_empty());
        assert_eq!(rules(&mut conversations, &rows("b")).len(), 1);
    }
}

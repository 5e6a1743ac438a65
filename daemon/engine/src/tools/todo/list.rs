//! A task list: its items, its limits, and what a call makes of it.

use serde_json::{Value, json};

/// Items of a list (spec 40 §6.4).
pub(super) const MAX_ITEMS: usize = 256;
/// Characters of an item; more are cut off.
const MAX_CONTENT: usize = 4_000;
/// Characters of a whole list as JSON.
const MAX_LIST: usize = 512_000;
/// Ends a content that was cut.
const CUT: &str = "… [cut]";

/// What an item can be.
pub(super) const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "cancelled"];

/// A session's list, in the order in which the items came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TodoList(Vec<Item>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    id: String,
    content: String,
    status: &'static str,
}

/// One item as a call names it; what is left out stays as it is.
struct Change {
    id: String,
    content: Option<String>,
    status: Option<&'static str>,
}

impl TodoList {
    /// Does what a call asks for, and says how many items found no room. An error changes nothing.
    pub(super) fn apply(&mut self, arguments: &Value) -> Result<usize, String> {
        let Some(given) = arguments.get("todos").filter(|given| !given.is_null()) else { return Ok(0) };
        let Some(given) = given.as_array() else { return Err("`todos` must be an array".to_owned()) };
        let merge = arguments.get("merge").and_then(Value::as_bool).unwrap_or(false);
        let changes = given.iter().map(Change::read).collect::<Result<Vec<_>, _>>()?;
        let mut items = if merge { self.0.clone() } else { Vec::new() };
        for change in last_of_each(changes) {
            match items.iter_mut().find(|item| item.id == change.id) {
                Some(item) => {
                    item.content = change.content.unwrap_or_else(|| std::mem::take(&mut item.content));
                    item.status = change.status.unwrap_or(item.status);
                }
                None => items.push(change.into_item()?),
            }
        }
        let dropped = items.len().saturating_sub(MAX_ITEMS);
        items.truncate(MAX_ITEMS);
        let list = Self(items);
        let chars = list.to_json().to_string().chars().count();
        if chars > MAX_LIST {
            return Err(format!(
                "the list would have {chars} characters, and {MAX_LIST} is the most; write shorter items. Nothing was changed"
            ));
        }
        *self = list;
        Ok(dropped)
    }

    /// The list and its counts, as every call returns them.
    pub(super) fn to_json(&self) -> Value {
        let todos: Vec<Value> = self
            .0
            .iter()
            .map(|item| json!({ "id": item.id, "content": item.content, "status": item.status }))
            .collect();
        let mut summary = json!({ "total": self.0.len() });
        for status in STATUSES {
            summary[status] = self.0.iter().filter(|item| item.status == status).count().into();
        }
        json!({ "todos": todos, "summary": summary })
    }

    /// Reads what [`to_json`](Self::to_json) wrote; `None` for anything else.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        value.get("todos")?.as_array()?;
        let mut list = Self::default();
        list.apply(&json!({ "todos": value.get("todos") })).ok()?;
        Some(list)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Items that need no more work.
    pub(super) fn done(&self) -> usize {
        self.0.iter().filter(|item| matches!(item.status, "completed" | "cancelled")).count()
    }
}

/// Of items with one id the last, at the place where it stands.
fn last_of_each(changes: Vec<Change>) -> Vec<Change> {
    let mut seen = std::collections::HashSet::new();
    let mut kept: Vec<Change> =
        changes.into_iter().rev().filter(|change| seen.insert(change.id.clone())).collect();
    kept.reverse();
    kept
}

impl Change {
    fn read(given: &Value) -> Result<Self, String> {
        let id = match given.get("id") {
            Some(Value::String(id)) => id.trim().to_owned(),
            Some(Value::Number(id)) => id.to_string(),
            _ => String::new(),
        };
        if id.is_empty() {
            return Err("every item of `todos` needs an `id`".to_owned());
        }
        let content = given.get("content").and_then(Value::as_str).map(str::trim).filter(|c| !c.is_empty());
        let status = match given.get("status") {
            None | Some(Value::Null) => None,
            Some(Value::String(status)) if status.is_empty() => None,
            Some(given) => {
                let known = STATUSES.into_iter().find(|status| given.as_str() == Some(status));
                let wrong = || {
                    format!("item `{id}` has the status {given}; it must be one of {}", STATUSES.join(", "))
                };
                Some(known.ok_or_else(wrong)?)
            }
        };
        Ok(Self { id, content: content.map(cut), status })
    }

    fn into_item(self) -> Result<Item, String> {
        let Self { id, content, status } = self;
        let content = content.ok_or_else(|| format!("item `{id}` is new and needs a `content`"))?;
        Ok(Item { id, content, status: status.unwrap_or("pending") })
    }
}

fn cut(content: &str) -> String {
    match content.char_indices().nth(MAX_CONTENT) {
        Some((end, _)) => format!("{}{CUT}", content.get(..end).unwrap_or(content).trim_end_matches(CUT)),
        None => content.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn applied(list: &mut TodoList, arguments: &Value) -> Result<usize, String> {
        list.apply(arguments)
    }

    fn shown(list: &TodoList) -> Vec<String> {
        list.0.iter().map(|item| format!("{} {} {}", item.id, item.status, item.content)).collect()
    }

    #[test]
    fn a_list_is_replaced_or_merged_into_by_id() {
        let mut list = TodoList::default();
        let first = json!({ "todos": [
            { "id": "1", "content": "read", "status": "completed" },
            { "id": "2", "content": "old", "status": "pending" },
            { "id": "2", "content": "write", "status": "in_progress" },
        ] });
        assert_eq!(applied(&mut list, &first), Ok(0));
        assert_eq!(shown(&list), ["1 completed read", "2 in_progress write"]);
        let merge = json!({ "merge": true, "todos": [
            { "id": 2, "status": "completed" },
            { "id": "3", "content": "test" },
            { "id": "1", "content": "", "status": "cancelled" },
        ] });
        assert_eq!(applied(&mut list, &merge), Ok(0));
        assert_eq!(shown(&list), ["1 cancelled read", "2 completed write", "3 pending test"]);
        assert_eq!(applied(&mut list, &json!({})), Ok(0));
        assert_eq!(
            list.to_json()["summary"],
            json!({
                "total": 3, "pending": 1, "in_progress": 0, "completed": 1, "cancelled": 1,
            })
        );
        assert_eq!(TodoList::from_json(&list.to_json()), Some(list.clone()));
        assert_eq!(applied(&mut list, &json!({ "todos": [] })), Ok(0));
        assert_eq!(list.len(), 0);
    }

    #[test]
    fn what_is_wrong_changes_nothing() {
        let mut list = TodoList::default();
        list.apply(&json!({ "todos": [{ "id": "1", "content": "a" }] })).unwrap();
        for (todos, says) in [
            (json!([{ "id": "1", "content": "b", "status": "done" }]), "must be one of pending, in_progress"),
            (json!([{ "content": "b" }]), "needs an `id`"),
            (json!([{ "id": "9", "status": "pending" }]), "needs a `content`"),
            (json!("x"), "must be an array"),
        ] {
            let error = applied(&mut list, &json!({ "todos": todos })).unwrap_err();
            assert!(error.contains(says), "{error}");
            assert_eq!(shown(&list), ["1 pending a"]);
        }
        let huge: Vec<Value> =
            (0..MAX_ITEMS).map(|n| json!({ "id": n, "content": "x".repeat(MAX_CONTENT) })).collect();
        assert!(applied(&mut list, &json!({ "todos": huge })).unwrap_err().contains("shorter items"));
    }

    #[test]
    fn long_lists_and_long_items_are_cut_and_it_is_said() {
        let mut list = TodoList::default();
        let many: Vec<Value> = (0..300).map(|n| json!({ "id": n, "content": "x" })).collect();
        assert_eq!(applied(&mut list, &json!({ "todos": many })), Ok(300 - MAX_ITEMS));
        assert_eq!(list.len(), MAX_ITEMS);
        list.apply(&json!({ "todos": [{ "id": "1", "content": "é".repeat(5_000) }] })).unwrap();
        let once = list.clone();
        assert!(list.0[0].content.ends_with(CUT));
        // Reading a cut item back cuts nothing more.
        assert_eq!(TodoList::from_json(&list.to_json()), Some(once));
    }
}

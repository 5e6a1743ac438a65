//! `todo`: the list that the model keeps of a session's work (spec 40 §6.4).
//!
//! The list lives as long as its session is loaded; afterwards it is read from the session's rows, so
//! that it survives whatever the daemon does.

mod list;
mod restore;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hermes_core::{Json, Message, SessionId, ToolSchema};
use hermes_tools::{OwnedEffect, ResultCap, Tool, ToolCx, ToolOutput, ToolSettings, ToolTraits, Workspace};
use serde_json::{Value, json};

use list::TodoList;

/// The tool's name, by which its rows are found.
const NAME: &str = "todo";

/// The lists of all loaded sessions.
#[derive(Debug, Default)]
pub struct TodoLists(Mutex<HashMap<SessionId, TodoList>>);

impl TodoLists {
    /// Takes the list out of a session's rows, when it is loaded.
    pub(crate) fn restore(&self, session: &SessionId, rows: &[Arc<Message>]) {
        let list = restore::list(rows);
        self.with(|lists| lists.insert(session.clone(), list));
    }

    /// Forgets the list of a session that is unloaded.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.with(|lists| lists.remove(session));
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<SessionId, TodoList>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The tool.
#[derive(Debug)]
pub(super) struct Todo {
    lists: Arc<TodoLists>,
}

impl Todo {
    pub(super) fn new(lists: Arc<TodoLists>) -> Self {
        Self { lists }
    }
}

#[async_trait]
impl Tool for Todo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn toolset(&self) -> &'static str {
        "todo"
    }

    fn schema(&self, _: &ToolSettings) -> ToolSchema {
        ToolSchema {
            name: NAME.to_owned(),
            description: "Keep a task list for work of three or more steps. Without `todos` it reads the list; every \
                          call returns all of it. Keep one item in_progress, and mark it completed as soon as it is."
                .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "todos": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "id": { "type": "string" },
                                "content": { "type": "string", "description": "Needed for a new item" },
                                "status": { "type": "string", "enum": list::STATUSES },
                            },
                            "required": ["id"],
                        },
                    },
                    "merge": {
                        "type": "boolean",
                        "description": "true: update these items by id and add new ones; false (default): replace the list",
                    },
                },
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits { result_cap: ResultCap::Unlimited, ..ToolTraits::default() }
    }

    fn preview(&self, arguments: &Value) -> String {
        match arguments.get("todos").and_then(Value::as_array) {
            Some(items) => format!("{} items", items.len()),
            None => "read".to_owned(),
        }
    }

    fn effect(&self, _: &Value, _: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        let done = self.lists.with(|lists| {
            let list = lists.entry(cx.session_id.clone()).or_default();
            list.apply(&arguments).map(|dropped| (list.to_json(), list.done(), list.len(), dropped))
        });
        match done {
            Err(problem) => ToolOutput::error(problem),
            Ok((content, done, all, dropped)) => {
                let output = ToolOutput::looked(content).summed_up(format!("{done}/{all} done"));
                match dropped {
                    0 => output,
                    _ => output.with(
                        "note",
                        format!("A list holds {} items; the last {dropped} were dropped.", list::MAX_ITEMS),
                    ),
                }
            }
        }
    }
}

//! The rules that every request keeps (spec 10 §1, 30 §1), as a check.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hermes_core::{Message, Role, ToolCallId};

use super::{arguments, is_display_only, is_empty_assistant, is_interim};

/// The first rule that a history breaks. `at` is the index of the row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    #[error("row {at} is a system row inside the history")]
    SystemRow { at: usize },
    #[error("row {at} is for display only")]
    DisplayRow { at: usize },
    #[error("row {at} has the same role as the row before it ({role})")]
    SameRole { at: usize, role: &'static str },
    #[error("assistant row {at} has neither words nor calls")]
    EmptyAssistant { at: usize },
    #[error("a tool call of row {at} has no id")]
    BlankCallId { at: usize },
    #[error("row {at} uses the call id `{id}` a second time")]
    DuplicateCallId { at: usize, id: ToolCallId },
    #[error("the call `{id}` of row {at} has no name")]
    BlankCallName { at: usize, id: ToolCallId },
    #[error("the arguments of call `{id}` of row {at} are no JSON object")]
    BadArguments { at: usize, id: ToolCallId },
    #[error("the result in row {at} answers no open call before it")]
    OrphanResult { at: usize },
    #[error("the call `{id}` of row {at} has no result")]
    MissingResult { at: usize, id: ToolCallId },
}

/// Checks that `messages` may be sent to any provider.
///
/// # Errors
/// The first [`Violation`], in the order of the rows.
pub fn legal(messages: &[Arc<Message>]) -> Result<(), Violation> {
    let mut ids: HashSet<&ToolCallId> = HashSet::new();
    let mut open = Open::default();
    let mut before: Option<&Message> = None;
    for (at, message) in messages.iter().enumerate() {
        let message = message.as_ref();
        if is_display_only(message) {
            return Err(Violation::DisplayRow { at });
        }
        match message.role {
            Role::System => return Err(Violation::SystemRow { at }),
            Role::Tool => {
                let answered = message.tool_call_id.as_ref().is_some_and(|id| open.answer(id));
                if !answered {
                    return Err(Violation::OrphanResult { at });
                }
            }
            Role::User | Role::Assistant => {
                open.close()?;
                if let Some(before) = before.filter(|before| before.role == message.role)
                    && !(is_interim(before) || is_interim(message))
                {
                    return Err(Violation::SameRole { at, role: message.role.as_str() });
                }
            }
        }
        if message.role == Role::Assistant {
            if is_empty_assistant(message) {
                return Err(Violation::EmptyAssistant { at });
            }
            for call in &message.tool_calls {
                let id = call.id.clone();
                if id.as_str().trim().is_empty() {
                    return Err(Violation::BlankCallId { at });
                }
                if !ids.insert(&call.id) {
                    return Err(Violation::DuplicateCallId { at, id });
                }
                if call.name.trim().is_empty() {
                    return Err(Violation::BlankCallName { at, id });
                }
                if !arguments::is_object(&call.arguments) {
                    return Err(Violation::BadArguments { at, id });
                }
            }
            open = Open { at, calls: message.tool_calls.iter().map(|call| (&call.id, false)).collect() };
        }
        before = Some(message);
    }
    open.close()
}

/// The calls of the newest assistant row.
#[derive(Default)]
struct Open<'a> {
    at: usize,
    calls: HashMap<&'a ToolCallId, bool>,
}

impl Open<'_> {
    /// Takes a result; false when no call waits for it.
    fn answer(&mut self, id: &ToolCallId) -> bool {
        match self.calls.get_mut(id) {
            Some(answered) if !*answered => {
                *answered = true;
                true
            }
            _ => false,
        }
    }

    /// Ends the round: nothing after this answers its calls.
    fn close(&mut self) -> Result<(), Violation> {
        let mut missing: Vec<&&ToolCallId> =
            self.calls.iter().filter(|(_, answered)| !**answered).map(|(id, _)| id).collect();
        missing.sort();
        if let Some(id) = missing.first() {
            return Err(Violation::MissingResult { at: self.at, id: (**id).clone() });
        }
        self.calls.clear();
        Ok(())
    }
}

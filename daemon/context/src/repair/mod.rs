//! Makes a history legal for every provider, on the outgoing copy (spec 10 §22, 30 §1).
//!
//! The history is cut into blocks of `assistant… → tool… → user…`. Within a block, assistants merge, each call gets
//! exactly one result, and users merge. A row that needs no change keeps its `Arc`, so that bytes already serialised
//! for it stay good. A second pass changes nothing, and [`legal`] accepts every output.

mod arguments;
mod block;
mod legal;
mod merge;

use std::collections::HashSet;
use std::sync::Arc;

use hermes_core::{DisplayKind, FinishReason, Message, Role, ToolCallId};

pub use legal::{Violation, legal};

use block::{Block, Taken};

/// A history that may be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    pub messages: Vec<Arc<Message>>,
    pub report: RepairReport,
}

/// How many repairs of each kind were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// Rows for the eye only, left out. This is no repair.
    pub display_rows: u32,
    /// System rows, left out: the system prompt travels apart.
    pub system_rows: u32,
    /// Assistant rows with neither words nor calls, left out.
    pub empty_assistants: u32,
    pub merged_assistants: u32,
    pub merged_users: u32,
    /// Results without a call, and second results of one call, left out.
    pub orphan_results: u32,
    /// Results that stood behind a user row and were moved to their call.
    pub late_results: u32,
    /// Calls without a result, which got one that says so.
    pub missing_results: u32,
    /// Calls with the id of another call of the same round, left out.
    pub duplicate_calls: u32,
    /// Calls whose id was blank or already used by an earlier round, with a new id.
    pub renamed_calls: u32,
    pub blank_names: u32,
    /// Calls whose arguments were damaged but could be read.
    pub repaired_arguments: u32,
    /// Calls whose arguments were lost; they are sent as `{}`, and the result says so.
    pub corrupted_arguments: u32,
}

impl RepairReport {
    /// Repairs of all kinds.
    pub fn total(&self) -> u32 {
        let Self {
            display_rows: _,
            system_rows,
            empty_assistants,
            merged_assistants,
            merged_users,
            orphan_results,
            late_results,
            missing_results,
            duplicate_calls,
            renamed_calls,
            blank_names,
            repaired_arguments,
            corrupted_arguments,
        } = self;
        system_rows
            + empty_assistants
            + merged_assistants
            + merged_users
            + orphan_results
            + late_results
            + missing_results
            + duplicate_calls
            + renamed_calls
            + blank_names
            + repaired_arguments
            + corrupted_arguments
    }

    /// Whether the history was legal, but for rows that are never sent.
    pub fn is_clean(&self) -> bool {
        self.total() == 0
    }
}

/// Repairs `messages`: the rows of a session without its system prompt, oldest first.
pub fn repair_history(messages: Vec<Arc<Message>>) -> Repaired {
    let mut sweep = Sweep { out: Vec::with_capacity(messages.len()), ..Sweep::default() };
    for message in messages {
        sweep.push(message);
    }
    sweep.close_block();
    Repaired { messages: sweep.out, report: sweep.report }
}

#[derive(Default)]
struct Sweep {
    out: Vec<Arc<Message>>,
    block: Block,
    /// Call ids of closed blocks.
    ids: HashSet<ToolCallId>,
    report: RepairReport,
}

impl Sweep {
    fn push(&mut self, message: Arc<Message>) {
        if is_display_only(&message) {
            self.report.display_rows += 1;
            return;
        }
        match message.role {
            Role::System => self.report.system_rows += 1,
            Role::User => self.block.push_user(message),
            Role::Tool => match self.block.push_result(message) {
                Taken::InPlace => {}
                Taken::Late => self.report.late_results += 1,
                Taken::Orphan => self.report.orphan_results += 1,
            },
            Role::Assistant if is_empty_assistant(&message) => self.report.empty_assistants += 1,
            Role::Assistant => {
                if !self.block.takes_assistant(&message) {
                    self.close_block();
                }
                self.report.duplicate_calls += self.block.push_assistant(message);
            }
        }
    }

    fn close_block(&mut self) {
        std::mem::take(&mut self.block).close(&mut self.ids, &mut self.out, &mut self.report);
    }
}

/// Whether a row is for people's eyes alone and never sent.
pub(crate) fn is_display_only(message: &Message) -> bool {
    message
        .display
        .as_ref()
        .is_some_and(|kind| matches!(kind.0.as_str(), DisplayKind::PARTIAL | DisplayKind::HIDDEN))
}

/// Whether an assistant row says nothing: no words, no image, no call. Most APIs refuse such a row.
fn is_empty_assistant(message: &Message) -> bool {
    message.tool_calls.is_empty() && !merge::says_something(message) && !is_interim(message)
}

/// An unfinished Responses answer, which is replayed item by item and never merged.
fn is_interim(message: &Message) -> bool {
    message.role == Role::Assistant
        && message.finish_reason == Some(FinishReason::Incomplete)
        && (message.codex_message_items.is_some() || message.codex_reasoning_items.is_some())
}

#[cfg(test)]
mod tests;

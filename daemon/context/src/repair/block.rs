//! One block of a history: assistants in a row, the results of their calls, the users behind them.

use std::collections::HashSet;
use std::sync::Arc;

use hermes_core::{Content, EffectDisposition, Message, Part, Role, ToolCall, ToolCallId};
use sha2::{Digest as _, Sha256};

use super::arguments::{self, Arguments};
use super::{RepairReport, is_interim, merge};
use crate::prompts;

/// What a call without a name is called, so that call and result stay a pair.
const NAMELESS: &str = "invalid_tool_call";

#[derive(Default)]
pub(super) struct Block {
    assistants: Vec<Arc<Message>>,
    /// The calls of all assistants, without repetitions.
    calls: Vec<Slot>,
    /// Results with the index of the call that they answer.
    results: Vec<(usize, Arc<Message>)>,
    users: Vec<Arc<Message>>,
}

/// One call: where it stands, and whether it has its result.
struct Slot {
    row: usize,
    index: usize,
    answered: bool,
}

/// What became of a result.
pub(super) enum Taken {
    InPlace,
    /// It answers a call of this block, but a user row stood between them.
    Late,
    Orphan,
}

impl Block {
    /// Whether `message` merges into this block; if not, it begins the next one.
    pub(super) fn takes_assistant(&self, message: &Message) -> bool {
        match self.assistants.last() {
            Some(last) => {
                self.results.is_empty() && self.users.is_empty() && !is_interim(last) && !is_interim(message)
            }
            None => self.users.is_empty(),
        }
    }

    /// Takes an assistant row and returns how many of its calls repeat an id of the block.
    pub(super) fn push_assistant(&mut self, message: Arc<Message>) -> u32 {
        let row = self.assistants.len();
        self.assistants.push(message);
        let mut repeated = 0;
        for index in 0..self.assistants.last().map_or(0, |message| message.tool_calls.len()) {
            let slot = Slot { row, index, answered: false };
            let id = self.call(&slot).map(|call| call.id.clone());
            let known = |other: &Slot| self.call(other).map(|call| &call.id) == id.as_ref();
            if id.as_ref().is_some_and(|id| !is_blank(id.as_str())) && self.calls.iter().any(known) {
                repeated += 1;
            } else {
                self.calls.push(slot);
            }
        }
        repeated
    }

    pub(super) fn push_user(&mut self, message: Arc<Message>) {
        self.users.push(message);
    }

    pub(super) fn push_result(&mut self, message: Arc<Message>) -> Taken {
        let Some(at) = self.open_call(&message) else { return Taken::Orphan };
        if let Some(slot) = self.calls.get_mut(at) {
            slot.answered = true;
        }
        self.results.push((at, message));
        if self.users.is_empty() { Taken::InPlace } else { Taken::Late }
    }

    fn call(&self, slot: &Slot) -> Option<&ToolCall> {
        self.assistants.get(slot.row)?.tool_calls.get(slot.index)
    }

    /// The unanswered call that `result` belongs to: by its id, else by another id that the provider gave the call.
    fn open_call(&self, result: &Message) -> Option<usize> {
        let wanted = result.tool_call_id.as_ref().map_or("", ToolCallId::as_str);
        let open = |fits: &dyn Fn(&ToolCall) -> bool| {
            self.calls.iter().position(|slot| !slot.answered && self.call(slot).is_some_and(fits))
        };
        if is_blank(wanted) {
            return open(&|call| is_blank(call.id.as_str()));
        }
        open(&|call| call.id.as_str() == wanted).or_else(|| open(&|call| has_other_id(call, wanted)))
    }

    /// Writes the block's rows to `out`.
    pub(super) fn close(
        self,
        ids: &mut HashSet<ToolCallId>,
        out: &mut Vec<Arc<Message>>,
        report: &mut RepairReport,
    ) {
        let calls: Vec<Sendable> = self
            .calls
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| Some(Sendable::new(self.call(slot)?, index, ids, report)))
            .collect();
        let stamp = self.assistants.last().map(|last| last.timestamp);
        let given: usize = self.assistants.iter().map(|message| message.tool_calls.len()).sum();
        let intact = given == calls.len() && !calls.iter().any(|call| call.changed);
        let count = |rows: &[Arc<Message>]| u32::try_from(rows.len().saturating_sub(1)).unwrap_or(u32::MAX);
        report.merged_assistants += count(&self.assistants);
        match <[Arc<Message>; 1]>::try_from(self.assistants) {
            Ok([only]) if intact => out.push(only),
            Ok([only]) => {
                let calls = calls.iter().map(|call| call.call.clone()).collect();
                out.push(Arc::new(Message { tool_calls: calls, ..(*only).clone() }));
            }
            Err(rows) if rows.is_empty() => {}
            Err(rows) => {
                let calls = calls.iter().map(|call| call.call.clone()).collect();
                out.push(Arc::new(merge::assistants(&rows, calls)));
            }
        }
        for (at, result) in self.results {
            if let Some(call) = calls.get(at) {
                out.push(call.answer(result));
            }
        }
        for (slot, call) in self.calls.iter().zip(&calls) {
            if let (false, Some(stamp)) = (slot.answered, stamp) {
                report.missing_results += 1;
                let stub = serde_json::json!({ "error": prompts::STUB_MISSING }).to_string();
                let stub = Message {
                    effect: Some(EffectDisposition::Unknown),
                    ..Message::tool_result(&call.call, stub, stamp)
                };
                out.push(call.answer(Arc::new(stub)));
            }
        }
        let (merged, rest) = merge::users(self.users);
        report.merged_users += merged;
        out.extend(rest);
    }
}

/// A call as it is sent.
struct Sendable {
    call: ToolCall,
    /// It differs from the stored one.
    changed: bool,
    /// It had no name.
    nameless: bool,
    /// Its arguments are lost.
    corrupted: bool,
}

impl Sendable {
    fn new(call: &ToolCall, index: usize, ids: &mut HashSet<ToolCallId>, report: &mut RepairReport) -> Self {
        let mut call = call.clone();
        let nameless = is_blank(&call.name);
        if nameless {
            report.blank_names += 1;
            NAMELESS.clone_into(&mut call.name);
        }
        let (arguments_changed, corrupted) = match arguments::repair(&call.arguments) {
            Arguments::Intact => (false, false),
            Arguments::Repaired(text) => {
                report.repaired_arguments += 1;
                call.arguments = text;
                (true, false)
            }
            Arguments::Corrupted => {
                report.corrupted_arguments += 1;
                "{}".clone_into(&mut call.arguments);
                (true, true)
            }
        };
        let id = free_id(&call, index, ids);
        let id_changed = id != call.id;
        if id_changed {
            report.renamed_calls += 1;
        }
        ids.insert(id.clone());
        call.id = id;
        Self { call, changed: nameless || id_changed || arguments_changed, nameless, corrupted }
    }

    /// `result` as the answer to this call.
    fn answer(&self, result: Arc<Message>) -> Arc<Message> {
        let paired = result.tool_call_id.as_ref() == Some(&self.call.id);
        let named = !self.nameless || result.tool_name.as_deref().is_some_and(|name| !is_blank(name));
        if paired && named && !self.corrupted {
            return result;
        }
        let mut result = Arc::unwrap_or_clone(result);
        result.tool_call_id = Some(self.call.id.clone());
        if !named {
            result.tool_name = Some(self.call.name.clone());
        }
        if self.corrupted {
            mark(&mut result);
        }
        Arc::new(result)
    }
}

/// Tells in a result that the arguments of its call were lost.
fn mark(result: &mut Message) {
    debug_assert_eq!(result.role, Role::Tool, "only results are marked");
    result.content = Some(match result.content.take() {
        Some(Content::Parts(mut parts)) => {
            parts.insert(0, Part::Text(prompts::CORRUPTED_ARGUMENTS.to_owned()));
            Content::Parts(parts)
        }
        Some(Content::Text(text)) => format!("{}\n{text}", prompts::CORRUPTED_ARGUMENTS).into(),
        None => prompts::CORRUPTED_ARGUMENTS.into(),
    });
    // The sidecar belonged to the old content.
    result.api_content = None;
}

/// The call's own id where it is one and still free; else one derived from it, the same every time.
fn free_id(call: &ToolCall, index: usize, ids: &HashSet<ToolCallId>) -> ToolCallId {
    let own = if is_blank(call.id.as_str()) { derived_id(call, index) } else { call.id.clone() };
    if !ids.contains(&own) {
        return own;
    }
    let mut number = 2_u32;
    loop {
        let id = ToolCallId::new(format!("{own}_{number}"));
        if !ids.contains(&id) {
            return id;
        }
        number += 1;
    }
}

/// The id of a call that came without one (spec 30 §1): `call_` and 12 hex digits of a hash.
fn derived_id(call: &ToolCall, index: usize) -> ToolCallId {
    let hash = Sha256::digest(format!("{}:{}:{index}", call.name, call.arguments));
    let head = hash.iter().take(6).fold(0_u64, |head, byte| head << 8 | u64::from(*byte));
    ToolCallId::new(format!("call_{head:012x}"))
}

/// Whether the provider knows the call by `id` too (Responses: `call_id` beside the item's id).
fn has_other_id(call: &ToolCall, id: &str) -> bool {
    let Some(data) = &call.provider_data else { return false };
    let data = data.to_value();
    ["call_id", "response_item_id"]
        .iter()
        .any(|key| data.get(key).and_then(serde_json::Value::as_str) == Some(id))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

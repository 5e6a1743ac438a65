//! Puts tool calls together out of the pieces that servers send, each in its own way (spec 30 §3).
//!
//! Calls stand in slots, in the order in which they first appeared.

use std::fmt::Write as _;

use hermes_core::{Json, ToolCall, ToolCallId};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::arguments::{Checked, check, is_json};

/// The calls so far.
#[derive(Debug, Default)]
pub(crate) struct CallSlots {
    slots: Vec<Slot>,
    /// The newest slot of each index that the server gave, in order of first use.
    newest: Vec<(i64, usize)>,
}

#[derive(Debug, Default)]
struct Slot {
    index: i64,
    id: String,
    name: String,
    arguments: String,
    extra_content: Option<Value>,
    announced: bool,
}

/// The calls when the stream is over.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FinishedCalls {
    pub(crate) calls: Vec<ToolCall>,
    /// Some arguments were cut off.
    pub(crate) truncated: bool,
    /// Some arguments are not JSON, cut off or not.
    pub(crate) unparsable: bool,
    /// Some call has no arguments at all: legal, but in a broken stream a sign of a cut.
    pub(crate) without_arguments: bool,
    /// Calls that had no name and were dropped.
    pub(crate) nameless: usize,
}

impl CallSlots {
    /// Takes one `tool_calls` list of a delta. Calls `began` with the name of each call that begins.
    /// Whether the list carried anything is the answer.
    pub(crate) fn push(&mut self, pieces: &Value, began: &mut dyn FnMut(&str)) -> bool {
        let pieces = pieces.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut progress = false;
        for piece in pieces.iter().filter_map(Value::as_object) {
            progress |= self.piece(piece, piece.get("index").and_then(Value::as_i64), began);
        }
        progress
    }

    /// Takes the `tool_calls` of a whole message: each entry is a call of its own.
    pub(crate) fn push_whole(&mut self, calls: &Value, began: &mut dyn FnMut(&str)) {
        let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
        for (position, call) in calls.iter().filter_map(Value::as_object).enumerate() {
            self.piece(call, i64::try_from(position).ok(), began);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The names so far, for calls that are dropped.
    pub(crate) fn names(&self) -> Vec<String> {
        self.slots.iter().filter(|slot| !slot.name.is_empty()).map(|slot| slot.name.clone()).collect()
    }

    fn piece(&mut self, piece: &Map<String, Value>, index: Option<i64>, began: &mut dyn FnMut(&str)) -> bool {
        let function = piece.get("function").and_then(Value::as_object);
        let id = match piece.get("id") {
            Some(Value::String(id)) => id.trim().to_owned(),
            Some(Value::Number(id)) => id.to_string(),
            _ => String::new(),
        };
        let name = function.and_then(|function| function.get("name")?.as_str()).unwrap_or_default().trim();
        let arguments = function.and_then(|function| function.get("arguments")).unwrap_or(&Value::Null);
        let position = self.slot_for(index, &id, name, arguments);
        let Some(slot) = self.slots.get_mut(position) else { return false };
        if slot.id.is_empty() {
            slot.id = id;
        }
        let mut progress = false;
        if !name.is_empty() {
            progress |= slot.name != name;
            // Set, not appended: some servers repeat it in every piece.
            name.clone_into(&mut slot.name);
        }
        progress |= slot.add_arguments(arguments);
        if let Some(extra) = piece.get("extra_content").filter(|extra| !extra.is_null()) {
            slot.extra_content = Some(extra.clone());
        }
        if !slot.announced && !slot.name.is_empty() {
            slot.announced = true;
            began(&slot.name);
        }
        progress
    }

    /// Finds the slot that a piece belongs to, or opens one.
    fn slot_for(&mut self, given: Option<i64>, id: &str, name: &str, arguments: &Value) -> usize {
        let index = given.unwrap_or(0);
        let newest = self.newest.iter().position(|(known, _)| *known == index);
        let Some(newest) = newest else {
            self.newest.push((index, self.slots.len()));
            return self.open(index);
        };
        let current = self.newest.get(newest).map_or(0, |(_, slot)| *slot);
        let opens_new = match self.slots.get(current) {
            None => true,
            // A new id at a known index is a new call: some servers send all of them at index 0.
            Some(slot) if !id.is_empty() && !slot.id.is_empty() => {
                if slot.id == id {
                    return current;
                }
                // Calls may also be written in turns: then the id is known.
                let known = self.slots.iter().position(|slot| slot.index == index && slot.id == id);
                if let Some(known) = known {
                    return known;
                }
                true
            }
            // No two ids to compare. An index without an id means the same call; else a name after a
            // whole call begins another one, unless it is the same call again.
            Some(slot) => {
                let goes_by_index = given.is_some() && id.is_empty();
                let is_repeat = slot.name == name && arguments.as_str() == Some(slot.arguments.as_str());
                !goes_by_index && !name.is_empty() && is_whole(&slot.arguments) && !is_repeat
            }
        };
        if !opens_new {
            return current;
        }
        if let Some((_, slot)) = self.newest.get_mut(newest) {
            *slot = self.slots.len();
        }
        self.open(index)
    }

    fn open(&mut self, index: i64) -> usize {
        self.slots.push(Slot { index, ..Slot::default() });
        self.slots.len() - 1
    }

    /// Checks and completes the calls.
    pub(crate) fn finish(self) -> FinishedCalls {
        let mut done = FinishedCalls::default();
        for (position, slot) in self.slots.into_iter().enumerate() {
            if slot.name.is_empty() {
                done.nameless += 1;
                continue;
            }
            done.without_arguments |= slot.arguments.trim().is_empty();
            let arguments = match check(slot.arguments) {
                Checked::Valid(text) => text,
                Checked::Truncated(text) => {
                    done.truncated = true;
                    done.unparsable = true;
                    text
                }
                Checked::Broken(text) => {
                    done.unparsable = true;
                    text
                }
            };
            let is_taken = done.calls.iter().any(|call| call.id.as_str() == slot.id);
            let id = if slot.id.is_empty() || is_taken {
                derived_id(&slot.name, &arguments, position)
            } else {
                slot.id
            };
            done.calls.push(ToolCall {
                id: ToolCallId::new(id),
                name: slot.name,
                arguments,
                provider_data: slot.extra_content.map(|extra| {
                    Json::from(Value::Object(Map::from_iter([("extra_content".to_owned(), extra)])))
                }),
            });
        }
        done
    }
}

impl Slot {
    fn add_arguments(&mut self, arguments: &Value) -> bool {
        match arguments {
            Value::Null => false,
            Value::String(piece) if piece.is_empty() => false,
            // The whole again, as some servers send it at the end.
            Value::String(piece) if *piece == self.arguments && is_whole(piece) => false,
            Value::String(piece) => {
                self.arguments.push_str(piece);
                true
            }
            // Some servers send an object where the wire has a string.
            whole => {
                self.arguments = whole.to_string();
                true
            }
        }
    }
}

fn is_whole(arguments: &str) -> bool {
    arguments.trim_start().starts_with(['{', '[']) && is_json(arguments)
}

/// The id of a call that came without one: the same for the same call, so that call and result agree.
fn derived_id(name: &str, arguments: &str, position: usize) -> String {
    let digest = Sha256::digest(format!("{name}:{arguments}:{position}"));
    digest.iter().take(6).fold("call_".to_owned(), |mut id, byte| {
        write!(id, "{byte:02x}").expect("writing to a string cannot fail");
        id
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Name, arguments and id of each call, and the names announced on the way.
    fn gather(deltas: &[Value]) -> (Vec<(String, String, String)>, Vec<String>) {
        let mut slots = CallSlots::default();
        let mut began = Vec::new();
        for delta in deltas {
            slots.push(delta, &mut |name| began.push(name.to_owned()));
        }
        let calls = slots.finish().calls;
        (
            calls.into_iter().map(|call| (call.name, call.arguments, call.id.as_str().to_owned())).collect(),
            began,
        )
    }

    fn piece(
        index: impl Into<Value>,
        id: impl Into<Value>,
        name: impl Into<Value>,
        arguments: impl Into<Value>,
    ) -> Value {
        let (index, id, name, arguments): (Value, Value, Value, Value) =
            (index.into(), id.into(), name.into(), arguments.into());
        json!([{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}])
    }

    fn call(name: &str, arguments: &str, id: &str) -> (String, String, String) {
        (name.to_owned(), arguments.to_owned(), id.to_owned())
    }

    #[test]
    fn fragments_at_one_index_are_joined() {
        let (calls, began) = gather(&[
            piece(0, "a", "read", ""),
            piece(0, Value::Null, Value::Null, "{\"x\""),
            piece(1, "b", "write", "{"),
            piece(0, "", "", ":1}"),
            piece(1, Value::Null, Value::Null, "}"),
        ]);
        assert_eq!(calls, [call("read", "{\"x\":1}", "a"), call("write", "{}", "b")]);
        assert_eq!(began, ["read", "write"]);
    }

    #[test]
    fn a_new_id_at_the_same_index_is_a_new_call() {
        let (calls, _) = gather(&[
            piece(0, "a", "read", "{\"x\":1}"),
            piece(0, "b", "read", "{\"x\":2}"),
            piece(0, "c", "read", "{\"x\":3}"),
        ]);
        assert_eq!(
            calls,
            [call("read", "{\"x\":1}", "a"), call("read", "{\"x\":2}", "b"), call("read", "{\"x\":3}", "c")]
        );
    }

    #[test]
    fn an_absent_index_is_zero_and_a_name_after_a_whole_call_opens_another() {
        let (calls, began) = gather(&[
            json!([{"function": {"name": "read", "arguments": "{\"x\":"}}]),
            json!([{"function": {"arguments": "1}"}}]),
            json!([{"function": {"name": "read", "arguments": "{\"x\":2}"}}]),
        ]);
        assert_eq!(
            calls.iter().map(|(_, arguments, _)| arguments.as_str()).collect::<Vec<_>>(),
            ["{\"x\":1}", "{\"x\":2}"]
        );
        assert_eq!(began, ["read", "read"]);
    }

    #[test]
    fn a_repeated_name_is_set_and_announced_once() {
        let (calls, began) = gather(&[
            piece(0, "a", "read", "{\"x\""),
            piece(0, "a", "read", ":1"),
            piece(0, "a", "read", "}"),
        ]);
        assert_eq!(calls, [call("read", "{\"x\":1}", "a")]);
        assert_eq!(began, ["read"]);
    }

    #[test]
    fn arguments_may_be_an_object_and_may_come_twice() {
        let (calls, _) = gather(&[piece(0, "a", "read", json!({"x": 1}))]);
        assert_eq!(calls, [call("read", "{\"x\":1}", "a")]);
        let (calls, _) = gather(&[piece(0, "a", "read", "{\"x\":1}"), piece(0, "a", "read", "{\"x\":1}")]);
        assert_eq!(calls, [call("read", "{\"x\":1}", "a")]);
        let (calls, _) = gather(&[piece(0, "a", "read", "{\"x\":"), piece(0, "a", "read", json!({"x": 2}))]);
        assert_eq!(calls, [call("read", "{\"x\":2}", "a")]);
    }

    #[test]
    fn numeric_ids_become_text_and_blank_or_repeated_ones_are_derived() {
        let (calls, _) = gather(&[piece(0, 7, "read", "{}")]);
        assert_eq!(calls, [call("read", "{}", "7")]);
        let blank = [piece(0, " ", "read", "{}"), piece(1, Value::Null, "read", "{}")];
        let (calls, _) = gather(&blank);
        let ids: Vec<&str> = calls.iter().map(|(_, _, id)| id.as_str()).collect();
        assert_eq!(ids, ["call_b392fc708b91", "call_87342943ed98"]);
        assert_eq!(gather(&blank).0, calls);
        let (calls, _) = gather(&[piece(0, "same", "read", "{}"), piece(1, "same", "read", "{}")]);
        assert_eq!(calls[0].2, "same");
        assert!(calls[1].2.starts_with("call_"));
    }

    #[test]
    fn extra_content_is_kept_and_null_does_not_erase_it() {
        let mut slots = CallSlots::default();
        slots.push(&json!([{"index": 0, "id": "a", "function": {"name": "f"}, "extra_content": {"google": {"s": "1"}}}]), &mut |_| {});
        slots.push(
            &json!([{"index": 0, "extra_content": null, "function": {"arguments": "{}"}}]),
            &mut |_| {},
        );
        let data = slots.finish().calls.remove(0).provider_data.unwrap();
        assert_eq!(data.to_value(), json!({"extra_content": {"google": {"s": "1"}}}));
    }

    #[test]
    fn a_call_without_a_name_is_dropped_and_cut_arguments_are_told_from_broken_ones() {
        let finish = |arguments: &str| {
            let mut slots = CallSlots::default();
            slots.push(&piece(0, "a", "f", arguments), &mut |_| {});
            slots.finish()
        };
        let mut slots = CallSlots::default();
        slots.push(&piece(0, "a", "", "{}"), &mut |_| {});
        assert_eq!(slots.finish(), FinishedCalls { nameless: 1, ..FinishedCalls::default() });
        let cut = finish("{\"command\": \"rm -rf /tmp/a");
        assert!(cut.truncated && cut.unparsable);
        let broken = finish("{command: 1}");
        assert!(!broken.truncated && broken.unparsable && broken.calls[0].arguments == "{command: 1}");
        let empty = finish("");
        assert!(empty.without_arguments && empty.calls[0].arguments == "{}");
    }

    #[test]
    fn whole_messages_keep_every_call_apart() {
        let mut slots = CallSlots::default();
        let calls = json!([
            {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
        ]);
        slots.push_whole(&calls, &mut |_| {});
        let arguments: Vec<String> = slots.finish().calls.into_iter().map(|call| call.arguments).collect();
        assert_eq!(arguments, ["{}", "{\"a\":1}"]);
    }

    proptest! {
        #[test]
        fn calls_survive_any_cut_of_their_arguments(texts in proptest::collection::vec("[a-zä\"\\\\]{0,12}", 1..5), every in 1usize..7) {
            let mut deltas = Vec::new();
            let mut expected = Vec::new();
            for (index, text) in texts.iter().enumerate() {
                let arguments = json!({ "text": text }).to_string();
                let characters: Vec<char> = arguments.chars().collect();
                deltas.push(piece(index, format!("id{index}"), "f", ""));
                for fragment in characters.chunks(every) {
                    deltas.push(piece(index, Value::Null, Value::Null, fragment.iter().collect::<String>()));
                }
                expected.push(call("f", &arguments, &format!("id{index}")));
            }
            prop_assert_eq!(gather(&deltas).0, expected);
        }
    }
}

//! `reasoning_details`: opaque, replayable items that arrive in pieces (spec 30 §3).

use hermes_core::Json;
use serde_json::{Map, Value};

/// Fields whose pieces are joined; of all others the last value counts.
const JOINED: [&str; 3] = ["text", "summary", "data"];

/// The items so far.
#[derive(Debug, Default)]
pub(crate) struct ReasoningDetails {
    items: Vec<Map<String, Value>>,
}

impl ReasoningDetails {
    /// Takes the pieces of one delta.
    pub(crate) fn push(&mut self, pieces: &Value) {
        let Some(pieces) = pieces.as_array() else { return };
        for piece in pieces.iter().filter_map(Value::as_object) {
            match self.position_of(piece).and_then(|position| self.items.get_mut(position)) {
                Some(item) => merge(item, piece),
                None => self.items.push(piece.clone()),
            }
        }
    }

    /// Which item a piece belongs to: the one of its index, else of its id, else the last one when
    /// neither is given and the kind is the same.
    fn position_of(&self, piece: &Map<String, Value>) -> Option<usize> {
        let given = |name: &str| piece.get(name).filter(|value| !value.is_null());
        for name in ["index", "id"] {
            if let Some(value) = given(name) {
                return self.items.iter().position(|item| item.get(name) == Some(value));
            }
        }
        let last = self.items.last()?;
        (last.get("type") == piece.get("type")).then(|| self.items.len() - 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The readable part of the items, repeats dropped.
    pub(crate) fn text(&self) -> String {
        let mut texts: Vec<String> = Vec::new();
        for item in &self.items {
            let text =
                ["summary", "thinking", "content", "text"].iter().find_map(|name| readable(item.get(*name)?));
            if let Some(text) = text.filter(|text| !texts.contains(text)) {
                texts.push(text);
            }
        }
        texts.join("\n\n")
    }

    /// The items as they are to be replayed.
    pub(crate) fn into_json(self) -> Option<Json> {
        (!self.items.is_empty())
            .then(|| Json::from(Value::Array(self.items.into_iter().map(Value::Object).collect())))
    }
}

/// The readable text of one delta's pieces.
pub(crate) fn delta_text(pieces: &Value) -> String {
    let pieces = pieces.as_array().map(Vec::as_slice).unwrap_or_default();
    pieces
        .iter()
        .filter_map(|piece| {
            ["summary", "thinking", "content", "text"].iter().find_map(|name| piece.get(*name)?.as_str())
        })
        .collect()
}

fn readable(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()))
                .collect();
            texts.join("\n")
        }
        _ => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

fn merge(item: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (name, value) in piece {
        match (item.get_mut(name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if JOINED.contains(&name.as_str()) => {
                text.push_str(more);
            }
            (Some(known), value) => *known = value.clone(),
            (None, value) => {
                item.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_are_merged_by_index_then_by_id() {
        let mut details = ReasoningDetails::default();
        for pieces in [
            json!([{"type": "reasoning.text", "index": 0, "text": "a", "signature": null}]),
            json!([{"type": "reasoning.text", "index": 0, "text": "b", "signature": "s1"}]),
            json!([{"type": "reasoning.text", "index": 0, "text": "", "signature": "s2"}]),
            json!([{"type": "reasoning.summary", "id": "x", "summary": "c"}]),
            json!([{"type": "reasoning.summary", "id": "x", "summary": "d"}]),
            json!([{"type": "reasoning.encrypted", "data": "e"}]),
            json!([{"type": "reasoning.encrypted", "data": "f"}]),
            json!("nonsense"),
        ] {
            details.push(&pieces);
        }
        assert_eq!(details.text(), "ab\n\ncd");
        assert_eq!(
            details.into_json().unwrap().to_value(),
            json!([
                {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s2"},
                {"type": "reasoning.summary", "id": "x", "summary": "cd"},
                {"type": "reasoning.encrypted", "data": "ef"},
            ])
        );
    }
}

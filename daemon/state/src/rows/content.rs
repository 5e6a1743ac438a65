//! The `content` column: clean text as it is, structured content as JSON behind a sentinel.
//!
//! The sentinel is the control character U+0001 and `json:`. The original's begins with U+0000
//! instead, which is read too but no more written: SQLite's own text functions (`substr`, `LIKE`,
//! `length`) stop at a NUL, so that such rows escape previews and scans. Text that happens to
//! begin with a sentinel is stored as a JSON string behind one, so every content round-trips.

use hermes_core::{Content, Part, scrub_surrogates};
use serde_json::{Map, Value, json};

/// Marks structured content.
const SENTINEL: &str = "\u{1}json:";
/// The original's mark.
const ORIGINAL_SENTINEL: &str = "\u{0}json:";

/// Longest preview of a session, in characters.
const PREVIEW_CHARS: usize = 60;

/// The column's value for `content`.
pub(super) fn encode(content: &Content) -> String {
    match content {
        Content::Text(text) if after_sentinel(text).is_none() => text.clone(),
        Content::Text(text) => format!("{SENTINEL}{}", Value::String(text.clone())),
        Content::Parts(parts) => {
            let parts: Vec<Value> = parts.iter().map(encode_part).collect();
            format!("{SENTINEL}{}", Value::Array(parts))
        }
    }
}

/// Reads the column's value. What stands behind a sentinel but is not the JSON of a content stays text.
pub(crate) fn decode(stored: String) -> Content {
    let Some(json_text) = after_sentinel(&stored) else { return Content::Text(stored) };
    match serde_json::from_str::<Value>(&scrub_surrogates(json_text)) {
        Ok(Value::String(text)) => Content::Text(text),
        Ok(Value::Array(parts)) => Content::Parts(parts.iter().map(decode_part).collect()),
        Ok(Value::Object(part)) => Content::Parts(vec![decode_part(&Value::Object(part))]),
        _ => Content::Text(stored),
    }
}

/// The first words of a stored content on one line, for lists. `stored` may be cut anywhere, so
/// structured content that no longer parses gives its first text part as far as it goes.
pub(crate) fn preview(stored: &[u8]) -> String {
    let stored = String::from_utf8_lossy(stored);
    let text = match after_sentinel(&stored) {
        None => stored.into_owned(),
        Some(json_text) => match decode(stored.clone().into_owned()) {
            Content::Text(text) if text != *stored => text,
            Content::Parts(parts) => Content::Parts(parts).text().into_owned(),
            Content::Text(_) => first_text_of_cut_json(json_text),
        },
    };
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.chars().count() > PREVIEW_CHARS {
            let kept: String = words.chars().take(PREVIEW_CHARS - 1).collect();
            return format!("{}…", kept.trim_end());
        }
    }
    words
}

fn after_sentinel(text: &str) -> Option<&str> {
    text.strip_prefix(SENTINEL).or_else(|| text.strip_prefix(ORIGINAL_SENTINEL))
}

fn encode_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { url, detail: None } => json!({ "type": "image_url", "image_url": { "url": url } }),
        Part::Image { url, detail: Some(detail) } => {
            json!({ "type": "image_url", "image_url": { "url": url, "detail": detail } })
        }
    }
}

fn decode_part(part: &Value) -> Part {
    let fields = match part {
        Value::String(text) => return Part::Text(text.clone()),
        Value::Object(fields) => fields,
        other => return Part::Text(other.to_string()),
    };
    let known = match text_of(fields, "type") {
        Some("text" | "input_text" | "output_text") => {
            text_of(fields, "text").map(|text| Part::Text(text.to_owned()))
        }
        Some("image_url" | "input_image" | "image") => match fields.get("image_url") {
            Some(Value::Object(image)) => text_of(image, "url").map(|url| Part::Image {
                url: url.to_owned(),
                detail: text_of(image, "detail").map(str::to_owned),
            }),
            Some(Value::String(url)) => {
                Some(Part::Image { url: url.clone(), detail: text_of(fields, "detail").map(str::to_owned) })
            }
            _ => None,
        },
        _ => None,
    };
    // A part that we do not know is kept as its JSON, so that nothing is lost from view.
    known.unwrap_or_else(|| Part::Text(part.to_string()))
}

fn text_of<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

fn first_text_of_cut_json(json_text: &str) -> String {
    let Some((_, after_key)) = json_text.split_once("\"text\":") else { return String::new() };
    let mut text = String::new();
    let mut chars = after_key.trim_start().trim_start_matches('"').chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('n' | 'r' | 't') => text.push(' '),
                Some(other) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_part() -> impl Strategy<Value = Part> {
        prop_oneof![
            any::<String>().prop_map(Part::Text),
            (any::<String>(), proptest::option::of(any::<String>()))
                .prop_map(|(url, detail)| Part::Image { url, detail }),
        ]
    }

    fn any_content() -> impl Strategy<Value = Content> {
        prop_oneof![
            any::<String>().prop_map(Content::Text),
            (prop_oneof![Just(SENTINEL), Just(ORIGINAL_SENTINEL)], any::<String>())
                .prop_map(|(mark, rest)| Content::Text(format!("{mark}{rest}"))),
            proptest::collection::vec(any_part(), 0..4).prop_map(Content::Parts),
        ]
    }

    proptest! {
        #[test]
        fn every_content_round_trips(content in any_content()) {
            prop_assert_eq!(decode(encode(&content)), content);
        }

        #[test]
        fn every_stored_text_can_be_read_and_previewed(stored in any::<String>(), mark in any::<bool>()) {
            let stored = if mark { format!("{SENTINEL}{stored}") } else { stored };
            let preview = preview(stored.as_bytes());
            prop_assert!(preview.chars().count() <= PREVIEW_CHARS);
            let _ = decode(stored);
        }
    }

    #[test]
    fn the_originals_structured_rows_are_read() {
        let stored = "\u{0}json:[{\"type\": \"text\", \"text\": \"look\"}, {\"type\": \"image_url\", \
                      \"image_url\": {\"url\": \"data:x\"}}, {\"type\": \"odd\"}]";
        assert_eq!(
            decode(stored.to_owned()),
            Content::Parts(vec![
                Part::Text("look".into()),
                Part::Image { url: "data:x".into(), detail: None },
                Part::Text("{\"type\":\"odd\"}".into()),
            ])
        );
    }

    #[test]
    fn previews_are_one_short_line() {
        assert_eq!(preview(b"  hello\n\n world "), "hello world");
        let long = preview("word ".repeat(40).as_bytes());
        assert!(long.ends_with('…') && long.chars().count() <= PREVIEW_CHARS, "{long}");
        assert_eq!(preview("\u{1}json:[{\"type\":\"text\",\"text\":\"a pic".as_bytes()), "a pic");
        assert_eq!(preview("\u{1}json:[{\"type\":\"text\",\"text\":\"whole\"}]".as_bytes()), "whole");
    }
}

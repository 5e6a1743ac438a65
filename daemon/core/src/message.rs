//! Messages: the rows of a session's transcript (spec 10 §22.1, 30 §1).

use crate::clock::Instant;
use crate::id::{MessageId, ToolCallId};
use crate::json::Json;
use crate::tool::{EffectDisposition, ToolCall};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    /// The name used in the database and on every wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// Reads a stored role; `None` for one that we do not know.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "system" | "developer" => Some(Self::System),
            "user" => Some(Self::User),
            "assistant" => Some(Self::Assistant),
            "tool" | "function" => Some(Self::Tool),
            _ => None,
        }
    }
}

/// One piece of structured content.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Plain text.
    Text(String),
    /// An image: an https address, a `data:` address, or a reference into the media cache.
    Image { url: String, detail: Option<String> },
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    Parts(Vec<Part>),
}

impl Content {
    /// All text parts, joined by newlines.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Parts(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| match part {
                        Part::Text(text) => Some(text.as_str()),
                        Part::Image { .. } => None,
                    })
                    .collect();
                texts.join("\n").into()
            }
        }
    }

    /// Whether there is neither text nor an image.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Parts(parts) => parts.is_empty(),
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Why the model stopped, normalised over all API modes (spec 30 §1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    Incomplete,
    /// A reason of ours (for instance a stop gate's) or one that we do not know.
    Other(String),
}

impl FinishReason {
    /// The name used in the database and in exit reasons.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Incomplete => "incomplete",
            Self::Other(name) => name,
        }
    }

    /// Reads a stored or received reason.
    pub fn parse(text: &str) -> Self {
        match text {
            "stop" => Self::Stop,
            "tool_calls" | "function_call" => Self::ToolCalls,
            "length" => Self::Length,
            "content_filter" => Self::ContentFilter,
            "incomplete" => Self::Incomplete,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// How clients should paint a row. Never sent to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayKind(pub String);

impl DisplayKind {
    /// Visible text of an answer that was cut off; shown, never replayed.
    pub const PARTIAL: &'static str = "partial";
    /// A row that clients do not show.
    pub const HIDDEN: &'static str = "hidden";
}

/// One row of a transcript, in the internal shape that all providers are translated from.
///
/// `content` is the clean text; `api_content` is the exact text that was sent to the model when
/// it differed (spec 10 §5.2) and must be dropped by whoever rewrites `content`.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    /// The row's durable id; `None` until it is written.
    pub id: Option<MessageId>,
    pub content: Option<Content>,
    pub api_content: Option<String>,
    /// On assistant rows: the calls that the model asks for.
    pub tool_calls: Vec<ToolCall>,
    /// On tool rows: which call this answers, and the tool's name.
    pub tool_call_id: Option<ToolCallId>,
    pub tool_name: Option<String>,
    pub effect: Option<EffectDisposition>,
    pub finish_reason: Option<FinishReason>,
    /// Joined plain text of the model's thinking: for display and search only.
    pub reasoning: Option<String>,
    /// Vendor echo text, sent back only to vendors that need it.
    pub reasoning_content: Option<String>,
    /// Opaque, replayable reasoning items (spec 30 §1).
    pub reasoning_details: Option<Json>,
    pub codex_reasoning_items: Option<Json>,
    pub codex_message_items: Option<Json>,
    pub platform_message_id: Option<String>,
    pub display: Option<DisplayKind>,
    /// When it was said: the platform's time for user rows when known, else the time of writing.
    pub timestamp: Instant,
}

impl Message {
    /// An empty row of `role`; the constructors below fill it.
    pub fn new(role: Role, timestamp: Instant) -> Self {
        Self {
            role,
            id: None,
            content: None,
            api_content: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            effect: None,
            finish_reason: None,
            reasoning: None,
            reasoning_content: None,
            reasoning_details: None,
            codex_reasoning_items: None,
            codex_message_items: None,
            platform_message_id: None,
            display: None,
            timestamp,
        }
    }

    /// What a person (or a job, or a parent agent) says.
    pub fn user(content: impl Into<Content>, timestamp: Instant) -> Self {
        Self { content: Some(content.into()), ..Self::new(Role::User, timestamp) }
    }

    /// An answer in words.
    pub fn assistant(content: impl Into<Content>, timestamp: Instant) -> Self {
        Self { content: Some(content.into()), ..Self::new(Role::Assistant, timestamp) }
    }

    /// The result of one tool call.
    pub fn tool_result(call: &ToolCall, content: impl Into<Content>, timestamp: Instant) -> Self {
        Self {
            content: Some(content.into()),
            tool_call_id: Some(call.id.clone()),
            tool_name: Some(call.name.clone()),
            ..Self::new(Role::Tool, timestamp)
        }
    }

    /// The clean text, empty when there is none.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        self.content.as_ref().map_or_else(Default::default, Content::text)
    }

    /// The text that goes to the model: the sidecar where there is one.
    pub fn wire_text(&self) -> std::borrow::Cow<'_, str> {
        match &self.api_content {
            Some(text) => text.as_str().into(),
            None => self.text(),
        }
    }
}

/// Replaces text that JSON would carry as lone surrogates (`\ud800` escapes) by U+FFFD.
///
/// Rust strings cannot hold surrogates; what arrives escaped in JSON text is made harmless here,
/// before it is parsed.
pub fn scrub_surrogates(json_text: &str) -> std::borrow::Cow<'_, str> {
    let bytes = json_text.as_bytes();
    if !json_text.contains("\\u") {
        return json_text.into();
    }
    let unit_at = |at: usize| -> Option<u32> {
        let escape = bytes.get(at..at + 6)?;
        if escape.first() != Some(&b'\\') || escape.get(1) != Some(&b'u') {
            return None;
        }
        u32::from_str_radix(std::str::from_utf8(escape.get(2..6)?).ok()?, 16).ok()
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match unit_at(at) {
            Some(0xD800..=0xDBFF) if matches!(unit_at(at + 6), Some(0xDC00..=0xDFFF)) => {
                out.extend_from_slice(bytes.get(at..at + 12).unwrap_or_default());
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                out.extend_from_slice(b"\\ufffd");
                at += 6;
            }
            Some(_) => {
                out.extend_from_slice(bytes.get(at..at + 6).unwrap_or_default());
                at += 6;
            }
            // A backslash escapes the next byte, so `\\ud800` is text and not an escape.
            None if byte == b'\\' => {
                out.extend_from_slice(bytes.get(at..(at + 2).min(bytes.len())).unwrap_or_default());
                at += 2;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).map_or_else(|_| json_text.into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogate_escapes_become_replacement_characters() {
        assert_eq!(scrub_surrogates(r#""a\ud83d\ude00b""#), r#""a\ud83d\ude00b""#);
        assert_eq!(scrub_surrogates(r#""a\ud83db""#), r#""a\ufffdb""#);
        assert_eq!(scrub_surrogates(r#""a\\ud83db""#), r#""a\\ud83db""#);
        assert_eq!(scrub_surrogates(r#""\udc00\ud83d""#), r#""\ufffd\ufffd""#);
        assert_eq!(scrub_surrogates("\"\\"), "\"\\");
    }

    #[test]
    fn wire_text_prefers_the_sidecar() {
        let mut message = Message::user("clean", Instant(1.0));
        assert_eq!(message.wire_text(), "clean");
        message.api_content = Some("clean + note".into());
        assert_eq!(message.wire_text(), "clean + note");
    }
}

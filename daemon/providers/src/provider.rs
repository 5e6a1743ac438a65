//! What a call to a model takes and gives, the same for every API mode.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_core::{FinishReason, Json, Message, ToolCall, ToolSchema, Usage};
use tokio_util::sync::CancellationToken;

use crate::failure::CallError;
use crate::offline::OfflineFacts;
use crate::prefix::PrefixCache;
use crate::route::Route;

/// Speaks one API mode.
#[async_trait]
pub trait Provider: Send + Sync + fmt::Debug {
    /// Makes one attempt at one call. Never retries after a byte of the answer came: whether to try
    /// again is the caller's decision (see [`crate::retry`]).
    ///
    /// What the model says goes to `sink` while it comes in, and whole into the answer.
    ///
    /// # Errors
    /// Every failure is classified. A stream that breaks after text was shown, and before a tool
    /// call began, is no error but an answer with [`ModelResponse::interrupted_stream`].
    ///
    /// # Cancellation
    /// When `cancel` fires the call ends within 0.3 s with [`crate::FailureClass::Cancelled`] and its
    /// connection is closed. Dropping the future closes it too.
    async fn call(
        &self,
        request: CallRequest<'_>,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, CallError>;
}

/// One request.
#[derive(Debug)]
pub struct CallRequest<'a> {
    pub route: &'a Route,
    /// The system prompt; empty for none.
    pub system: &'a str,
    pub tools: &'a ToolList,
    /// The outgoing copy of the history: roles in legal order, every call with its result.
    pub messages: &'a [Arc<Message>],
    /// A cap for this call only; wins over the route's.
    pub max_output_tokens: Option<u32>,
    /// Ask for a stream. Answered anyway when a server refuses it (see [`ModelResponse::streamed`]).
    pub stream: bool,
    /// The session's serialised prefix. Holds any session together; give each session its own.
    pub prefix: &'a mut PrefixCache,
    /// What the offline responder may tell about this machine.
    pub facts: &'a OfflineFacts,
}

/// The tools of a session, frozen when it opens: their bytes are part of the cached prefix.
#[derive(Debug, Clone)]
pub struct ToolList {
    schemas: Arc<[ToolSchema]>,
    json: Arc<str>,
}

impl ToolList {
    /// Freezes `schemas` in their order. A name that stands twice keeps its first schema.
    pub fn new(schemas: Vec<ToolSchema>) -> Self {
        let mut kept: Vec<ToolSchema> = Vec::with_capacity(schemas.len());
        for schema in schemas {
            if kept.iter().any(|other| other.name == schema.name) {
                tracing::warn!(tool = %schema.name, "a tool name stands twice; the first one is kept");
            } else {
                kept.push(schema);
            }
        }
        let json = crate::chat::tools_json(&kept);
        Self { schemas: kept.into(), json: json.into() }
    }

    /// Takes schemas over with the text of their `tools` array, byte for byte: a session that goes on
    /// sends what it sent before, whatever this version would write.
    pub fn frozen(schemas: Arc<[ToolSchema]>, json: Arc<str>) -> Self {
        Self { schemas, json }
    }

    /// No tools.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// In the order in which they are sent.
    pub fn schemas(&self) -> &[ToolSchema] {
        &self.schemas
    }

    /// The `tools` array of `chat_completions`, as sent; `[]` when there are none.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Whether the session has no tools.
    pub fn is_empty(&self) -> bool {
        self.schemas.is_empty()
    }

    /// Whether the session has a tool of that name.
    pub fn has(&self, name: &str) -> bool {
        self.schemas.iter().any(|schema| schema.name == name)
    }
}

impl Default for ToolList {
    fn default() -> Self {
        Self::empty()
    }
}

/// Takes what comes in while a call runs. Called from the call's own task; must not block.
pub trait StreamSink: Send {
    /// Takes one piece. Pieces of one kind, joined, are what the whole answer holds of that kind,
    /// but for text that follows a tool call, which is only in the whole answer.
    fn delta(&mut self, delta: StreamDelta<'_>);
}

/// One piece of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamDelta<'a> {
    /// Visible text.
    Text(&'a str),
    /// The model's thinking.
    Reasoning(&'a str),
    /// The model began to write a call; once per call.
    ToolGenerating { name: &'a str },
    /// Nothing came for that long; repeated every 30 s of silence. At `limit_seconds` the attempt
    /// ends as stale.
    Waiting { seconds: u64, limit_seconds: Option<u64> },
}

/// A sink for callers who only want the whole answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl StreamSink for NoSink {
    fn delta(&mut self, _: StreamDelta<'_>) {}
}

/// What the model answered, the same for every API mode (spec 30 §1).
#[derive(Debug, Clone, PartialEq)]
pub struct ModelResponse {
    /// Visible text, without inline thinking; `None` when there is none.
    pub content: Option<String>,
    /// In the model's order, each with an id. Arguments are one JSON value as written (control
    /// characters and trailing commas repaired), or broken text that the intake has to refuse.
    pub tool_calls: Vec<ToolCall>,
    pub finish_reason: FinishReason,
    /// Joined plain text of the thinking, for display and search.
    pub reasoning: Option<String>,
    /// Vendor echo text, as it came.
    pub reasoning_content: Option<String>,
    /// A JSON list of opaque items, to be replayed unmodified.
    pub reasoning_details: Option<Json>,
    /// What the server counted; `None` when it told nothing.
    pub usage: Option<Usage>,
    /// The model that really answered.
    pub model: String,
    pub response_id: Option<String>,
    /// The stream broke, and this is what was recovered. `finish_reason` is `Length`.
    pub interrupted_stream: Option<InterruptedStream>,
    /// A call's arguments were cut off: `finish_reason` is `Length` and no call may be executed.
    pub truncated_call: bool,
    /// Whether the answer came as a stream. When a stream was asked for and this is false, the
    /// server ignores `stream`: ask without it for the rest of the session.
    pub streamed: bool,
    /// Cost in US dollars as the provider reports it.
    pub provider_cost_usd: Option<f64>,
}

impl Default for ModelResponse {
    /// A streamed answer that says nothing and stops.
    fn default() -> Self {
        Self {
            content: None,
            tool_calls: Vec::new(),
            finish_reason: FinishReason::Stop,
            reasoning: None,
            reasoning_content: None,
            reasoning_details: None,
            usage: None,
            model: String::new(),
            response_id: None,
            interrupted_stream: None,
            truncated_call: false,
            streamed: true,
            provider_cost_usd: None,
        }
    }
}

/// A stream that broke after something of it was shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InterruptedStream {
    /// Names of the calls that the model was writing. They were not executed.
    pub dropped_calls: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_tool_name_keeps_its_first_schema() {
        let schema = |name: &str, description: &str| ToolSchema {
            name: name.into(),
            description: description.into(),
            parameters: Json::parse(r#"{"type":"object","properties":{}}"#).unwrap(),
        };
        let tools = ToolList::new(vec![schema("a", "first"), schema("b", "x"), schema("a", "second")]);
        assert_eq!(tools.schemas().len(), 2);
        assert!(tools.has("a") && tools.json().contains("first") && !tools.json().contains("second"));
        assert_eq!(ToolList::empty().json(), "[]");
    }
}

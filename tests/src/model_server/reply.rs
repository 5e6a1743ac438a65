//! What the scripted server answers.

use std::time::Duration;

use serde_json::{Value, json};

/// One tool call of a reply.
#[derive(Debug, Clone)]
pub struct Call {
    pub name: String,
    /// Sent as it is, so it may be broken JSON.
    pub arguments: String,
}

impl Call {
    /// A call with proper arguments.
    pub fn new(name: &str, arguments: &Value) -> Self {
        Self { name: name.to_owned(), arguments: arguments.to_string() }
    }
}

/// One answer of the server.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A status with a body of the given content type, and headers.
    Status { status: u16, content_type: &'static str, body: String, headers: Vec<(&'static str, String)> },
    /// A completion.
    Completion(Completion),
}

/// A completion, streamed or not as the request asks.
#[derive(Debug, Clone, Default)]
pub struct Completion {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<Call>,
    pub finish: Option<&'static str>,
    /// Breaks the connection after this many events.
    pub cut_after: Option<usize>,
    /// Sends the headers, then nothing for this long.
    pub stall: Option<Duration>,
    /// Between two events.
    pub delay: Option<Duration>,
    /// Answers with one JSON object although a stream was asked for.
    pub ignore_stream: bool,
}

impl Reply {
    /// An answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Completion(Completion { text: text.into(), ..Completion::default() })
    }

    /// One tool call.
    pub fn call(name: &str, arguments: &Value) -> Self {
        Self::calls(vec![Call::new(name, arguments)])
    }

    /// Several tool calls at once.
    pub fn calls(calls: Vec<Call>) -> Self {
        Self::Completion(Completion { calls, ..Completion::default() })
    }

    /// Nothing at all: no text, no call.
    pub fn empty() -> Self {
        Self::Completion(Completion::default())
    }

    /// A provider's error object.
    pub fn error(status: u16, message: &str) -> Self {
        let body = json!({ "error": { "message": message, "type": "scripted", "code": status } }).to_string();
        Self::Status { status, content_type: "application/json", body, headers: Vec::new() }
    }

    /// A page instead of JSON.
    pub fn html(status: u16, html: &str) -> Self {
        Self::Status { status, content_type: "text/html", body: html.into(), headers: Vec::new() }
    }

    /// Adds `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, seconds: &str) -> Self {
        if let Self::Status { headers, .. } = &mut self {
            headers.push(("retry-after", seconds.to_owned()));
        }
        self
    }

    /// Changes the completion.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Completion)) -> Self {
        if let Self::Completion(completion) = &mut self {
            change(completion);
        }
        self
    }
}

impl Completion {
    fn finish(&self) -> &'static str {
        self.finish.unwrap_or(if self.calls.is_empty() { "stop" } else { "tool_calls" })
    }

    fn call_json(&self, request: usize) -> Vec<Value> {
        self.calls
            .iter()
            .enumerate()
            .map(|(index, call)| {
                json!({
                    "index": index,
                    "id": format!("call_{request}_{index}"),
                    "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments },
                })
            })
            .collect()
    }

    /// The server-sent events of this completion, without the closing `[DONE]`.
    pub(crate) fn events(&self, request: usize, usage: &Value) -> Vec<String> {
        let chunk = |delta: Value, finish: Value| {
            json!({
                "id": format!("chatcmpl-{request}"),
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "fake",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
            })
            .to_string()
        };
        let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
        if !self.reasoning.is_empty() {
            events.push(chunk(json!({ "reasoning_content": self.reasoning }), Value::Null));
        }
        for piece in pieces(&self.text) {
            events.push(chunk(json!({ "content": piece }), Value::Null));
        }
        for call in self.call_json(request) {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default().to_owned();
            let mut opening = call.clone();
            opening["function"]["arguments"] = json!("");
            events.push(chunk(json!({ "tool_calls": [opening] }), Value::Null));
            for piece in pieces(&arguments) {
                let delta =
                    json!({ "tool_calls": [{ "index": call["index"], "function": { "arguments": piece } }] });
                events.push(chunk(delta, Value::Null));
            }
        }
        events.push(chunk(json!({}), json!(self.finish())));
        events.push(
            json!({
                "id": format!("chatcmpl-{request}"),
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "fake",
                "choices": [],
                "usage": usage,
            })
            .to_string(),
        );
        events
    }

    /// The same as one object.
    pub(crate) fn whole(&self, request: usize, usage: &Value) -> String {
        let mut message = json!({
            "role": "assistant",
            "content": if self.text.is_empty() { Value::Null } else { json!(self.text) },
        });
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = Value::Array(self.call_json(request));
        }
        json!({
            "id": format!("chatcmpl-{request}"),
            "object": "chat.completion",
            "created": 1,
            "model": "fake",
            "choices": [{ "index": 0, "message": message, "finish_reason": self.finish() }],
            "usage": usage,
        })
        .to_string()
    }
}

/// Text in pieces of up to 24 characters, as servers send it.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(24).map(|piece| piece.iter().collect()).collect()
}

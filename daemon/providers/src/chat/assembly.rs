//! Turns what comes in into one answer, and decides what a stream that ended is worth.
//!
//! The table of end states is spec 30 §3. Its rule of thumb: what the user has seen is kept, a tool
//! call that may be incomplete is never handed on as if it were whole, and nothing at all is an error.

use hermes_core::{FinishReason, Usage};
use serde_json::Value;

use crate::chat::reasoning::{ReasoningDetails, delta_text};
use crate::chat::tool_calls::CallSlots;
use crate::chat::usage::{cost_usd, usage};
use crate::failure::FailureClass;
use crate::failure::body::ErrorFacts;
use crate::provider::{InterruptedStream, ModelResponse, StreamDelta, StreamSink};
use crate::think::{Piece, ThinkScrubber};

/// How the exchange ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The server said that it is done, or sent one whole object.
    Done,
    /// The stream ended without saying so.
    Eof,
    Broken(Fault),
}

/// What broke an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) class: FailureClass,
    pub(crate) status: Option<u16>,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, status: None, message: message.into() }
    }
}

/// A call that gave no answer, with what had been shown by then.
#[derive(Debug, PartialEq)]
pub(crate) struct Unanswered {
    pub(crate) fault: Fault,
    pub(crate) streamed_text: String,
    pub(crate) tool_in_flight: bool,
    pub(crate) dropped_calls: Vec<String>,
}

impl Unanswered {
    /// A failure that came ahead of any answer.
    pub(crate) fn before_anything(fault: Fault) -> Self {
        Self { fault, streamed_text: String::new(), tool_in_flight: false, dropped_calls: Vec::new() }
    }
}

/// What is known of the call beyond its stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    /// The model that was asked for, in case the answer names none.
    pub(crate) model: &'a str,
    pub(crate) streamed: bool,
    /// A backend known to say `stop` when it ran out of room, answering after tool results.
    pub(crate) may_misreport_stop: bool,
}

/// The answer so far.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    scrubber: ThinkScrubber,
    content: String,
    /// How much of `content` was shown.
    shown: usize,
    inline_thinking: String,
    refusal: String,
    reasoning: String,
    reasoning_content: String,
    details: ReasoningDetails,
    calls: CallSlots,
    finish: Option<String>,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    model: Option<String>,
    id: Option<String>,
}

impl Assembly {
    /// Whether the server gave a reason for its end.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Takes one event of a stream. Whether it was progress is the answer; an error object inside the
    /// stream is the error.
    pub(crate) fn event(&mut self, event: &Value, sink: &mut dyn StreamSink) -> Result<bool, ErrorFacts> {
        if let Some(facts) = error_in(event) {
            return Err(facts);
        }
        self.note_frame(event);
        let mut progress = self.note_usage(event);
        let choices = event.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // We ask for one choice; a second one would be mixed into it.
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_i64).unwrap_or(0) == 0;
        for choice in choices.iter().filter(first) {
            let delta = choice.get("delta").filter(|delta| delta.is_object());
            if let Some(delta) = delta {
                progress |= self.delta(delta, sink);
                if let Some(calls) = delta.get("tool_calls") {
                    progress |=
                        self.calls.push(calls, &mut |name| sink.delta(StreamDelta::ToolGenerating { name }));
                }
            }
            if let Some(reason) = choice.get("finish_reason").filter(|reason| !reason.is_null()) {
                self.finish = Some(reason.as_str().map_or_else(|| reason.to_string(), str::to_owned));
                progress = true;
            }
        }
        Ok(progress)
    }

    /// Takes a whole answer, in place of a stream.
    pub(crate) fn whole(&mut self, answer: &Value, sink: &mut dyn StreamSink) -> Result<(), ErrorFacts> {
        if let Some(facts) = error_in(answer) {
            return Err(facts);
        }
        let choice = answer.get("choices").and_then(Value::as_array).and_then(|choices| choices.first());
        let Some(message) =
            choice.and_then(|choice| choice.get("message")).filter(|message| message.is_object())
        else {
            return Err(ErrorFacts::from_value(answer));
        };
        self.note_frame(answer);
        self.note_usage(answer);
        self.delta(message, sink);
        if let Some(calls) = message.get("tool_calls") {
            self.calls.push_whole(calls, &mut |name| sink.delta(StreamDelta::ToolGenerating { name }));
        }
        let reason = choice.and_then(|choice| choice.get("finish_reason")).filter(|reason| !reason.is_null());
        self.finish = reason.map(|reason| reason.as_str().map_or_else(|| reason.to_string(), str::to_owned));
        Ok(())
    }

    fn note_frame(&mut self, frame: &Value) {
        let text = |name: &str| frame.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(model) = text("model") {
            self.model = Some(model.to_owned());
        }
        if let Some(id) = text("id") {
            self.id = Some(id.to_owned());
        }
    }

    fn note_usage(&mut self, frame: &Value) -> bool {
        let Some(counts) = frame.get("usage") else { return false };
        self.cost_usd = cost_usd(counts).or(self.cost_usd);
        match usage(counts) {
            // Some servers end with an empty count; it must not wipe out a real one.
            Some(new) if new.total() > 0 || self.usage.is_none() => {
                let is_news = self.usage != Some(new);
                self.usage = Some(new);
                is_news
            }
            _ => false,
        }
    }

    /// Text, thinking and refusal of a delta, or of a whole message, which has the same fields.
    fn delta(&mut self, delta: &Value, sink: &mut dyn StreamSink) -> bool {
        let mut progress = false;
        let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        let (echo, plain) = (text("reasoning_content"), text("reasoning"));
        self.reasoning_content.push_str(&sanitise(echo));
        // Servers that send both send the same twice.
        let thinking = if echo.is_empty() { plain } else { echo };
        progress |= self.think(thinking, sink);
        if let Some(pieces) = delta.get("reasoning_details") {
            self.details.push(pieces);
            if thinking.is_empty() {
                // Shown, but not joined here: the items themselves are the text's home.
                let shown = delta_text(pieces);
                if !shown.is_empty() {
                    sink.delta(StreamDelta::Reasoning(&shown));
                    progress = true;
                }
            }
            progress |= pieces.as_array().is_some_and(|pieces| !pieces.is_empty());
        }
        match delta.get("content") {
            Some(Value::String(content)) => progress |= self.say(content, sink),
            Some(Value::Array(parts)) => {
                for part in parts {
                    progress |= self.part(part, sink);
                }
            }
            _ => {}
        }
        let refusal = text("refusal");
        self.refusal.push_str(&sanitise(refusal));
        progress || !refusal.is_empty()
    }

    fn part(&mut self, part: &Value, sink: &mut dyn StreamSink) -> bool {
        if let Some(text) = part.as_str() {
            return self.say(text, sink);
        }
        let field = |name: &str| part.get(name);
        match field("type").and_then(Value::as_str) {
            Some("thinking") => match field("thinking").or(field("text")) {
                Some(Value::String(text)) => self.think(text, sink),
                Some(inner @ Value::Array(_)) => {
                    let text = delta_text(inner);
                    self.think(&text, sink)
                }
                _ => false,
            },
            _ => match field("text") {
                Some(Value::String(text)) => self.say(text, sink),
                _ => false,
            },
        }
    }

    fn think(&mut self, text: &str, sink: &mut dyn StreamSink) -> bool {
        if text.is_empty() {
            return false;
        }
        let text = sanitise(text);
        self.reasoning.push_str(&text);
        sink.delta(StreamDelta::Reasoning(&text));
        true
    }

    fn say(&mut self, text: &str, sink: &mut dyn StreamSink) -> bool {
        if text.is_empty() {
            return false;
        }
        let mut scrubber = std::mem::take(&mut self.scrubber);
        scrubber.push(&sanitise(text), &mut |piece| self.sort(piece, sink));
        self.scrubber = scrubber;
        true
    }

    fn sort(&mut self, piece: Piece<'_>, sink: &mut dyn StreamSink) {
        match piece {
            Piece::Text(text) => {
                self.content.push_str(text);
                if self.calls.is_empty() {
                    self.shown = self.content.len();
                    sink.delta(StreamDelta::Text(text));
                }
            }
            Piece::Thinking(text) => {
                self.inline_thinking.push_str(text);
                sink.delta(StreamDelta::Reasoning(text));
            }
        }
    }

    /// Decides what the exchange is worth.
    pub(crate) fn conclude(
        mut self,
        ending: Ending,
        about: Circumstances<'_>,
        sink: &mut dyn StreamSink,
    ) -> Result<ModelResponse, Unanswered> {
        let mut scrubber = std::mem::take(&mut self.scrubber);
        scrubber.finish(&mut |piece| self.sort(piece, sink));
        let has_text = !self.content.trim().is_empty();
        let has_thinking =
            !(self.reasoning.is_empty() && self.inline_thinking.is_empty() && self.details.is_empty());
        let is_empty = !has_text && !has_thinking && self.calls.is_empty() && self.refusal.is_empty();
        let fault = match ending {
            // A reason was given, so what broke afterwards took nothing of the answer away.
            Ending::Broken(fault) if self.is_finished() && fault.class != FailureClass::Cancelled => None,
            Ending::Broken(fault) => Some(fault),
            Ending::Done | Ending::Eof if is_empty && !self.is_finished() => Some(Fault::new(
                FailureClass::EmptyStream,
                "the server ended its answer without having said anything",
            )),
            Ending::Eof
                if !self.is_finished() && !has_text && self.calls.is_empty() && self.refusal.is_empty() =>
            {
                Some(Fault::new(
                    FailureClass::Connection,
                    "the stream ended while the model was still thinking",
                ))
            }
            Ending::Eof if !self.is_finished() => return Ok(self.conclude_cut(about)),
            Ending::Done | Ending::Eof => None,
        };
        match fault {
            None => self.conclude_whole(about),
            Some(fault) if self.calls.is_empty() && has_text && fault.class.is_retryable() => {
                Ok(self.interrupted(Vec::new(), &fault.message, about))
            }
            Some(fault) => Err(self.unanswered(fault)),
        }
    }

    /// The stream ended without a reason and without `[DONE]`.
    fn conclude_cut(mut self, about: Circumstances<'_>) -> ModelResponse {
        const CAUSE: &str = "the stream ended before the answer was complete";
        if self.calls.is_empty() {
            return self.interrupted(Vec::new(), CAUSE, about);
        }
        let names = self.calls.names();
        let calls = std::mem::take(&mut self.calls).finish();
        // Empty arguments are legal, but here they may be all that came of a longer text.
        if calls.unparsable || calls.without_arguments || calls.calls.is_empty() {
            return self.interrupted(names, CAUSE, about);
        }
        let mut answer = self.answer(FinishReason::ToolCalls, about);
        answer.tool_calls = calls.calls;
        answer
    }

    fn conclude_whole(mut self, about: Circumstances<'_>) -> Result<ModelResponse, Unanswered> {
        let has_text = !self.content.trim().is_empty();
        if self.finish.as_deref() == Some("error") {
            let fault = Fault::new(FailureClass::ServerError, "the server ended its answer with an error");
            return Err(self.unanswered(fault));
        }
        if !self.refusal.is_empty() && !has_text && self.calls.is_empty() {
            self.content = std::mem::take(&mut self.refusal);
            return Ok(self.answer(FinishReason::ContentFilter, about));
        }
        let reason_given = self.finish.is_some();
        let reason = self.finish.as_deref().map_or(FinishReason::Stop, finish_reason);
        let names = self.calls.names();
        let calls = std::mem::take(&mut self.calls).finish();
        if calls.nameless > 0 {
            tracing::warn!(
                count = calls.nameless,
                "the model sent tool calls without a name; they are dropped"
            );
        }
        if calls.calls.is_empty() {
            let reason =
                if about.may_misreport_stop && reason == FinishReason::Stop && looks_cut(&self.content) {
                    FinishReason::Length
                } else {
                    reason
                };
            return Ok(self.answer(reason, about));
        }
        if calls.unparsable && !reason_given {
            const CAUSE: &str = "the stream ended within a tool call";
            return Ok(self.interrupted(names, CAUSE, about));
        }
        let reason = match reason {
            _ if calls.truncated => FinishReason::Length,
            FinishReason::Length => FinishReason::Length,
            FinishReason::ContentFilter => FinishReason::ContentFilter,
            // Calls are there, whatever the server says of its end.
            _ => FinishReason::ToolCalls,
        };
        let mut answer = self.answer(reason, about);
        answer.truncated_call =
            calls.truncated || (calls.unparsable && answer.finish_reason == FinishReason::Length);
        answer.tool_calls = calls.calls;
        Ok(answer)
    }

    fn interrupted(self, dropped_calls: Vec<String>, cause: &str, about: Circumstances<'_>) -> ModelResponse {
        tracing::info!(model = about.model, cause, "a stream broke; what had come of it is kept");
        let mut answer = self.answer(FinishReason::Length, about);
        answer.interrupted_stream = Some(InterruptedStream { dropped_calls });
        answer
    }

    fn answer(self, finish_reason: FinishReason, about: Circumstances<'_>) -> ModelResponse {
        let filled = |text: String| (!text.trim().is_empty()).then_some(text);
        // The first home of thinking that holds any (spec 30 §1).
        let reasoning = filled(self.reasoning)
            .or_else(|| filled(self.details.text()))
            .or_else(|| filled(self.inline_thinking));
        ModelResponse {
            content: filled(self.content),
            tool_calls: Vec::new(),
            finish_reason,
            reasoning,
            reasoning_content: filled(self.reasoning_content),
            reasoning_details: self.details.into_json(),
            usage: self.usage,
            model: self.model.unwrap_or_else(|| about.model.to_owned()),
            response_id: self.id,
            interrupted_stream: None,
            truncated_call: false,
            streamed: about.streamed,
            provider_cost_usd: self.cost_usd,
        }
    }

    fn unanswered(mut self, fault: Fault) -> Unanswered {
        self.content.truncate(self.shown);
        Unanswered {
            fault,
            streamed_text: self.content,
            tool_in_flight: !self.calls.is_empty(),
            dropped_calls: self.calls.names(),
        }
    }
}

/// The error that an event or a body carries in place of an answer.
fn error_in(frame: &Value) -> Option<ErrorFacts> {
    let has_choices =
        frame.get("choices").and_then(Value::as_array).is_some_and(|choices| !choices.is_empty());
    let error = frame.get("error").filter(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
    let names_itself = || frame.get("object").and_then(Value::as_str) == Some("error");
    match error {
        Some(error) => Some(ErrorFacts::from_value(error)),
        None if !has_choices && names_itself() => Some(ErrorFacts::from_value(frame)),
        None => None,
    }
}

/// Normalises a reason over all dialects.
fn finish_reason(given: &str) -> FinishReason {
    match given.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "eos" | "eos_token" | "stop_sequence" | "completed" => FinishReason::Stop,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => FinishReason::Length,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => FinishReason::ToolCalls,
        "content_filter" | "safety" | "sensitive" => FinishReason::ContentFilter,
        _ => FinishReason::parse(given),
    }
}

/// Whether a text of some length stops in the middle of a sentence.
fn looks_cut(text: &str) -> bool {
    const SHORTEST: usize = 20;
    let text = text.trim();
    let ends_naturally = text.ends_with(|last: char| {
        last.is_ascii_punctuation() || "。！？…”’»」』）】：".contains(last) || !(last.is_alphanumeric())
    });
    text.chars().count() >= SHORTEST && text.contains(char::is_whitespace) && !ends_naturally
}

/// NUL has no place in a text that people read and databases store.
fn sanitise(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "").into() } else { text.into() }
}

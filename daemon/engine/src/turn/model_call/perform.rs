//! One attempt of a model call, with its deltas going to the watchers.
//!
//! The sink lives as long as the attempt, so an abandoned attempt cannot write any more.

use hermes_core::EventPayload;
use hermes_providers::{CallError, CallRequest, ModelResponse, StreamDelta, StreamSink};

use crate::session::SessionFacts;
use crate::stream::SessionStream;
use crate::turn::preflight_gate::Sendable;
use crate::turn::{Turn, TurnCx};

pub(super) async fn run(
    turn: &mut Turn,
    cx: &TurnCx<'_>,
    facts: &mut SessionFacts,
    request: &Sendable,
    shown_before: bool,
) -> Result<ModelResponse, CallError> {
    let mut sink = EventSink {
        stream: cx.stream,
        turn_id: &turn.id,
        model: &facts.route.model,
        place: match (turn.fragments.is_empty(), turn.streamed_any_text) {
            (true, false) => Place::Start,
            (true, true) => Place::AfterTools,
            (false, _) => Place::Within,
        },
        wrote_text: false,
        muted: shown_before,
    };
    let provider = cx.shared.deps.providers.provider_for(&facts.route);
    let call = CallRequest {
        route: &facts.route,
        system: &facts.system_prompt,
        tools: &facts.tool_list,
        messages: turn.history.wire(),
        max_output_tokens: request.draft.output_cap,
        stream: facts.streaming,
        prefix: &mut facts.prefix,
        facts: &cx.shared.deps.offline_facts,
    };
    let result = provider.call(call, &mut sink, cx.interrupt.token()).await;
    turn.streamed_any_text |= sink.wrote_text;
    result
}

struct EventSink<'a> {
    stream: &'a SessionStream,
    turn_id: &'a hermes_core::TurnId,
    model: &'a str,
    place: Place,
    wrote_text: bool,
    /// An earlier attempt showed this text.
    muted: bool,
}

/// Where the next text stands in what the user sees. Leading newlines of a text are not shown, and text
/// after tool activity begins a paragraph (spec 10 §18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    AfterTools,
    Within,
}

impl StreamSink for EventSink<'_> {
    fn delta(&mut self, delta: StreamDelta<'_>) {
        let payload = match delta {
            StreamDelta::Text(_) if self.muted => return,
            StreamDelta::Text(text) => {
                let text = match self.place {
                    Place::Start | Place::AfterTools => text.trim_start_matches(['\n', '\r']),
                    Place::Within => text,
                };
                if text.is_empty() {
                    return;
                }
                self.wrote_text = true;
                let before = std::mem::replace(&mut self.place, Place::Within);
                let break_before = if before == Place::AfterTools { "\n\n" } else { "" };
                EventPayload::MessageDelta { text: format!("{break_before}{text}") }
            }
            StreamDelta::Reasoning(text) => EventPayload::ReasoningDelta { text: text.to_owned() },
            StreamDelta::ToolGenerating { name } => EventPayload::ToolGenerating { name: name.to_owned() },
            StreamDelta::Waiting { seconds, .. } => EventPayload::StatusUpdate {
                kind: "lifecycle",
                text: format!("Waiting for {} for {seconds} s.", self.model),
            },
        };
        self.stream.emit(Some(self.turn_id), payload);
    }
}

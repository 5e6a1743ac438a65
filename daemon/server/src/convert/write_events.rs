//! Core → contract: events of a session, one arm per event.

use hermes_core::{Event, EventPayload, Json, QueuedInput, SessionInfo, ToolComplete};
use hermes_engine::PendingPrompt;
use hermes_proto::v1 as wire;
use hermes_proto::v1::event::Payload;

use super::write_turns;

pub(crate) fn event(event: &Event) -> wire::Event {
    wire::Event {
        session_id: event.session_id.to_string(),
        seq: event.seq,
        turn_id: event.turn_id.as_ref().map(ToString::to_string),
        time: event.time.unix_seconds(),
        payload: Some(payload(&event.payload)),
    }
}

fn payload(payload: &EventPayload) -> Payload {
    match payload {
        EventPayload::TurnAccepted { client_message_id, message_id } => {
            Payload::TurnAccepted(wire::TurnAccepted {
                client_message_id: client_message_id.clone(),
                message_id: message_id.map(|id| id.0),
            })
        }
        EventPayload::MessageStart { model } => {
            Payload::MessageStart(wire::MessageStart { model: model.clone() })
        }
        EventPayload::MessageDelta { text } => Payload::MessageDelta(text_delta(text)),
        EventPayload::MessageInterim { text, already_streamed, message_id } => {
            Payload::MessageInterim(wire::MessageInterim {
                text: text.clone(),
                already_streamed: *already_streamed,
                message_id: message_id.map(|id| id.0),
            })
        }
        EventPayload::MessageComplete(done) => {
            Payload::MessageComplete(Box::new(write_turns::result(&done.result, done.warning.as_deref())))
        }
        EventPayload::ReasoningDelta { text } => Payload::ReasoningDelta(text_delta(text)),
        EventPayload::ReasoningAvailable { text } => Payload::ReasoningAvailable(text_delta(text)),
        EventPayload::ThinkingDelta { text } => Payload::ThinkingDelta(text_delta(text)),
        EventPayload::ToolGenerating { name } => {
            Payload::ToolGenerating(wire::ToolGenerating { name: name.clone() })
        }
        EventPayload::ToolStart { tool_id, name, context, message_id } => {
            Payload::ToolStart(wire::ToolStart {
                tool_id: tool_id.to_string(),
                name: name.clone(),
                context: context.clone(),
                message_id: message_id.map(|id| id.0),
            })
        }
        EventPayload::ToolComplete(done) => Payload::ToolComplete(tool_complete(done)),
        EventPayload::AgentStep { iteration } => {
            Payload::AgentStep(wire::AgentStep { iteration: *iteration })
        }
        EventPayload::StatusUpdate { kind, text } => {
            Payload::StatusUpdate(wire::StatusUpdate { kind: (*kind).to_owned(), text: text.clone() })
        }
        EventPayload::NotificationShow { text, level, key, ttl_ms } => {
            Payload::NotificationShow(wire::NotificationShow {
                text: text.clone(),
                level: level.as_str().to_owned(),
                key: key.clone(),
                ttl_ms: *ttl_ms,
            })
        }
        EventPayload::NotificationClear { key } => {
            Payload::NotificationClear(wire::NotificationClear { key: key.clone() })
        }
        EventPayload::SessionNotice { text } => Payload::SessionNotice(text_delta(text)),
        EventPayload::SessionInfo(info) => Payload::SessionInfo(session_info(info)),
        EventPayload::SessionTitle { title } => {
            Payload::SessionTitle(wire::SessionTitle { title: title.clone() })
        }
        EventPayload::InputState { queue } => {
            Payload::InputState(wire::InputState { queue: queue.iter().map(queued).collect() })
        }
        EventPayload::ApprovalRequest { request_id, tool, command, description, choices } => {
            Payload::ApprovalRequest(wire::ApprovalRequest {
                request_id: request_id.to_string(),
                tool: tool.clone(),
                command: command.clone(),
                description: description.clone(),
                choices: choices.clone(),
                allow_permanent: choices.iter().any(|choice| choice == "always"),
            })
        }
        EventPayload::SudoRequest { request_id, command } => Payload::SudoRequest(wire::SudoRequest {
            request_id: request_id.to_string(),
            command: command.clone(),
        }),
        EventPayload::ClarifyRequest { request_id, question, choices } => {
            Payload::ClarifyRequest(wire::ClarifyRequest {
                request_id: request_id.to_string(),
                question: question.clone(),
                choices: choices.clone(),
            })
        }
        EventPayload::PromptResolved { request_id, by, decision } => {
            Payload::PromptResolved(wire::PromptResolved {
                request_id: request_id.to_string(),
                by: by.clone(),
                decision: decision.clone(),
            })
        }
        EventPayload::Error { message, code } => {
            Payload::Error(wire::ErrorNotice { message: message.clone(), code: *code })
        }
    }
}

fn text_delta(text: &str) -> wire::TextDelta {
    wire::TextDelta { text: text.to_owned() }
}

fn tool_complete(done: &ToolComplete) -> wire::ToolComplete {
    wire::ToolComplete {
        tool_id: done.tool_id.to_string(),
        name: done.name.clone(),
        args: Some(wire::Json { raw: done.args.as_str().to_owned() }),
        result: Some(json_or_text(&done.result)),
        duration_s: done.duration_s,
        summary: done.summary.clone(),
        inline_diff: done.inline_diff.clone(),
        is_error: done.status.is_error(),
        status: done.status.as_str().to_owned(),
        message_id: done.message_id.map(|id| id.0),
    }
}

/// A result that is JSON stays as it is; any other text becomes a JSON string.
fn json_or_text(text: &str) -> wire::Json {
    let json = Json::parse(text).unwrap_or_else(|_| Json::from(serde_json::Value::from(text)));
    wire::Json { raw: json.as_str().to_owned() }
}

pub(crate) fn session_info(info: &SessionInfo) -> wire::SessionInfo {
    wire::SessionInfo {
        model: info.model.clone(),
        provider: info.provider.clone(),
        title: info.title.clone(),
        cwd: info.cwd.clone(),
        tools: info.tools.clone(),
        running: info.running,
        yolo: info.yolo,
    }
}

pub(crate) fn queued(input: &QueuedInput) -> wire::QueuedInput {
    wire::QueuedInput {
        id: input.id.clone(),
        mode: input.mode.to_owned(),
        state: input.state.to_owned(),
        position: input.position,
        text: input.text.clone(),
    }
}

pub(crate) fn pending(prompt: PendingPrompt) -> wire::PendingPrompt {
    wire::PendingPrompt {
        request_id: prompt.request_id.to_string(),
        kind: prompt.kind.to_owned(),
        text: prompt.text,
        choices: prompt.choices,
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::{Instant, SessionId, ToolCallId, ToolStatus};

    use super::*;

    fn on_wire(payload: EventPayload) -> serde_json::Value {
        let core = Event {
            session_id: SessionId::parse("s1").unwrap(),
            seq: 7,
            turn_id: None,
            time: Instant(1.5),
            payload,
        };
        serde_json::to_value(event(&core)).unwrap()
    }

    #[test]
    fn an_event_carries_its_place_and_its_documented_name() {
        let json = on_wire(EventPayload::MessageDelta { text: "hi".into() });
        let expected = serde_json::json!({
            "session_id": "s1", "seq": 7, "time": 1.5, "type": "message.delta", "payload": {"text": "hi"},
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn a_tools_json_is_embedded_and_its_plain_text_is_a_string() {
        let done = |result: &str| {
            on_wire(EventPayload::ToolComplete(Box::new(ToolComplete {
                tool_id: ToolCallId::new("c1"),
                name: "read_file".into(),
                args: Json::parse(r#"{"path":"a"}"#).unwrap(),
                result: result.into(),
                duration_s: 0.25,
                summary: None,
                inline_diff: None,
                status: ToolStatus::Blocked,
                message_id: None,
            })))
        };
        let json = done(r#"{"lines":2}"#);
        assert_eq!(json.pointer("/payload/result/lines"), Some(&2.into()));
        assert_eq!(json.pointer("/payload/is_error"), Some(&true.into()));
        assert_eq!(json.pointer("/payload/args/path"), Some(&"a".into()));
        assert_eq!(done("not {json").pointer("/payload/result"), Some(&"not {json".into()));
    }
}

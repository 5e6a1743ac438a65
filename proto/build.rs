//! Compiles the contract with `protox`, so that no system `protoc` is needed.

use std::error::Error;
use std::path::Path;

/// Wire names of the event `oneof` (contract §2): the variant's name in code → `type` on the wire.
const EVENT_TYPES: &[(&str, &str)] = &[
    ("turn_accepted", "turn.accepted"),
    ("message_start", "message.start"),
    ("message_delta", "message.delta"),
    ("message_interim", "message.interim"),
    ("message_complete", "message.complete"),
    ("reasoning_delta", "reasoning.delta"),
    ("reasoning_available", "reasoning.available"),
    ("thinking_delta", "thinking.delta"),
    ("tool_generating", "tool.generating"),
    ("tool_start", "tool.start"),
    ("tool_complete", "tool.complete"),
    ("agent_step", "agent.step"),
    ("status_update", "status.update"),
    ("notification_show", "notification.show"),
    ("notification_clear", "notification.clear"),
    ("session_notice", "session.notice"),
    ("session_info", "session.info"),
    ("session_title", "session.title"),
    ("input_state", "input.state"),
    ("approval_request", "approval.request"),
    ("clarify_request", "clarify.request"),
    ("sudo_request", "sudo.request"),
    ("prompt_resolved", "prompt.resolved"),
    ("error", "error"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("proto");
    let files = ["control", "events", "policy", "prompts", "sessions", "tools", "turns", "types"]
        .map(|name| root.join("hermes/v1").join(format!("{name}.proto")));
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let descriptors = protox::compile(&files, [root])?;

    let mut builder = tonic_prost_build::configure()
        .message_attribute(".", "#[derive(serde::Serialize, serde::Deserialize)]")
        .message_attribute(".", "#[serde(default)]")
        .enum_attribute("hermes.v1.Event.payload", "#[derive(serde::Serialize, serde::Deserialize)]")
        .enum_attribute("hermes.v1.Event.payload", "#[serde(tag = \"type\", content = \"payload\")]")
        .enum_attribute("hermes.v1.AttachFrame.frame", "#[derive(serde::Serialize, serde::Deserialize)]")
        .enum_attribute("hermes.v1.AttachFrame.frame", "#[serde(rename_all = \"snake_case\")]")
        .enum_attribute("hermes.v1.ProfileEvent.payload", "#[derive(serde::Serialize, serde::Deserialize)]")
        .enum_attribute("hermes.v1.ProfileEvent.payload", "#[serde(rename_all = \"snake_case\")]")
        .field_attribute("hermes.v1.Event.payload", "#[serde(flatten)]")
        .field_attribute("hermes.v1.AttachFrame.frame", "#[serde(flatten)]")
        .field_attribute("hermes.v1.ProfileEvent.payload", "#[serde(flatten)]")
        .field_attribute("hermes.v1.Json.raw", "#[serde(with = \"crate::embedded_json\")]")
        .message_attribute("hermes.v1.Json", "#[serde(transparent)]")
        // A turn's result is far larger than a delta.
        .boxed("hermes.v1.Event.payload.message_complete")
        .boxed("hermes.v1.ProfileEvent.payload.session_changed");
    for (field, name) in EVENT_TYPES {
        builder = builder.field_attribute(
            format!("hermes.v1.Event.payload.{field}"),
            format!("#[serde(rename = \"{name}\")]"),
        );
    }
    for (path, skip) in optional_fields(&descriptors) {
        builder = builder.field_attribute(path, skip);
    }
    builder.compile_fds(descriptors)?;
    Ok(())
}

/// Absent fields are absent in JSON too.
fn optional_fields(
    descriptors: &prost_types::FileDescriptorSet,
) -> impl Iterator<Item = (String, &'static str)> {
    use prost_types::field_descriptor_proto::{Label, Type};
    descriptors.file.iter().flat_map(|file| &file.message_type).flat_map(|message| {
        message.field.iter().filter_map(move |field| {
            let in_oneof = field.oneof_index.is_some() && !field.proto3_optional();
            let single_message = field.r#type() == Type::Message && field.label() != Label::Repeated;
            let optional = field.proto3_optional() || (single_message && !in_oneof);
            optional.then(|| {
                let path = format!("hermes.v1.{}.{}", message.name(), field.name());
                (path, "#[serde(skip_serializing_if = \"Option::is_none\")]")
            })
        })
    })
}

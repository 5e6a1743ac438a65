//! The body of a `chat_completions` request.
//!
//! Everything here is a pure function of the route and the messages: the same history has the same
//! bytes today and after a restart. Bookkeeping fields are never written, because only the fields
//! that the wire knows are.

use std::collections::BTreeMap;

use hermes_core::{Content, Message, Part, Role, ToolCall, ToolSchema, scrub_surrogates};
use serde_json::value::RawValue;

use crate::arguments::canonical_arguments;
use crate::provider::CallRequest;
use crate::resolve::Address;
use crate::route::Route;

/// What a route decides about the bytes of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// `developer` for the models that want it.
    system_role: &'static str,
    /// Gemini needs its thought signatures back; others refuse them.
    keeps_extra_content: bool,
    echo: Echo,
}

/// What a vendor wants back of the model's thinking (spec 30 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    Nothing,
    /// `reasoning_details`, unmodified.
    Details,
    /// `reasoning_content` on every assistant message, one space where there is none.
    Content,
}

impl Form {
    pub(crate) fn of(route: &Route) -> Self {
        let system_role =
            if route.model_contains(&["gpt-5", "codex"]) { "developer" } else { Role::System.as_str() };
        let address = Address::parse("base_url", &route.base_url).ok();
        let is_on = |domains: &[&str]| address.as_ref().is_some_and(|address| address.is_on(domains));
        // An aggregator converts for the vendor; what it wants back are its own items.
        let echo = if is_on(&["openrouter.ai", "nousresearch.com"]) {
            Echo::Details
        } else if route.provider == "deepseek"
            || route.model_contains(&["deepseek", "kimi", "mimo"])
            || is_on(&["deepseek.com", "api.kimi.com", "moonshot.ai", "moonshot.cn", "xiaomimimo.com"])
        {
            Echo::Content
        } else {
            Echo::Nothing
        };
        Self { system_role, keeps_extra_content: route.model_contains(&["gemini", "gemma"]), echo }
    }

    pub(crate) fn write_system(self, out: &mut Vec<u8>, system: &str) {
        write_role_and_text(out, self.system_role, system);
        out.push(b'}');
    }

    /// Writes one message. `is_first`: nothing stands before it in the request.
    pub(crate) fn write_message(self, out: &mut Vec<u8>, message: &Message, is_first: bool) {
        match message.role {
            Role::System => {
                let role = if is_first { self.system_role } else { Role::System.as_str() };
                write_role_and_text(out, role, message.text().trim());
            }
            Role::User => {
                out.extend_from_slice(br#"{"role":"user","content":"#);
                match (&message.api_content, &message.content) {
                    (None, Some(Content::Parts(parts))) => write_parts(out, parts),
                    _ => write_string(out, message.wire_text().trim()),
                }
            }
            Role::Assistant => self.write_assistant(out, message),
            Role::Tool => {
                out.extend_from_slice(br#"{"role":"tool","tool_call_id":"#);
                write_string(out, message.tool_call_id.as_ref().map_or("", |id| id.as_str()));
                out.extend_from_slice(br#","content":"#);
                match &message.content {
                    Some(Content::Parts(parts)) if has_image(parts) => write_parts(out, parts),
                    _ => write_string(out, message.text().trim()),
                }
            }
        }
        out.push(b'}');
    }

    fn write_assistant(self, out: &mut Vec<u8>, message: &Message) {
        out.extend_from_slice(br#"{"role":"assistant","content":"#);
        let text = message.wire_text();
        let text = text.trim();
        if text.is_empty() && !message.tool_calls.is_empty() {
            out.extend_from_slice(b"null");
        } else {
            write_string(out, text);
        }
        match self.echo {
            Echo::Nothing => {}
            Echo::Content => {
                out.extend_from_slice(br#","reasoning_content":"#);
                // These vendors refuse a message without it, and an empty one too.
                let stored = message.reasoning_content.as_deref().filter(|text| !text.is_empty());
                write_string(out, stored.unwrap_or(" "));
            }
            Echo::Details => {
                if let Some(details) = &message.reasoning_details {
                    out.extend_from_slice(br#","reasoning_details":"#);
                    out.extend_from_slice(scrub_surrogates(details.as_str()).as_bytes());
                }
            }
        }
        if message.tool_calls.is_empty() {
            return;
        }
        out.extend_from_slice(br#","tool_calls":["#);
        for (position, call) in message.tool_calls.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            self.write_call(out, call);
        }
        out.push(b']');
    }

    fn write_call(self, out: &mut Vec<u8>, call: &ToolCall) {
        out.extend_from_slice(br#"{"id":"#);
        write_string(out, call.id.as_str());
        out.extend_from_slice(br#","type":"function","function":{"name":"#);
        write_string(out, &call.name);
        out.extend_from_slice(br#","arguments":"#);
        write_string(out, &canonical_arguments(&call.arguments));
        out.push(b'}');
        if self.keeps_extra_content
            && let Some(data) = &call.provider_data
            && let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(data.as_str())
            && let Some(extra) = fields.get("extra_content")
        {
            out.extend_from_slice(br#","extra_content":"#);
            out.extend_from_slice(scrub_surrogates(extra.get()).as_bytes());
        }
        out.push(b'}');
    }
}

fn has_image(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Image { .. }))
}

fn write_parts(out: &mut Vec<u8>, parts: &[Part]) {
    out.push(b'[');
    for (position, part) in parts.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        match part {
            Part::Text(text) => write_text_part(out, text),
            Part::Image { url, detail } if is_sendable(url) => {
                out.extend_from_slice(br#"{"type":"image_url","image_url":{"url":"#);
                write_string(out, url);
                if let Some(detail) = detail {
                    out.extend_from_slice(br#","detail":"#);
                    write_string(out, detail);
                }
                out.extend_from_slice(b"}}");
            }
            Part::Image { .. } => write_text_part(out, "[image]"),
        }
    }
    out.push(b']');
}

/// A server can fetch or decode this address; a reference into our own media cache it cannot.
fn is_sendable(url: &str) -> bool {
    ["https://", "http://", "data:"].iter().any(|scheme| url.starts_with(scheme))
}

fn write_text_part(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    write_string(out, text);
    out.push(b'}');
}

/// Leaves the object open.
fn write_role_and_text(out: &mut Vec<u8>, role: &str, text: &str) {
    out.extend_from_slice(br#"{"role":"#);
    write_string(out, role);
    out.extend_from_slice(br#","content":"#);
    write_string(out, text);
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing a string to memory cannot fail");
}

/// The `tools` array.
pub(crate) fn tools_json(schemas: &[ToolSchema]) -> String {
    let mut out = Vec::with_capacity(schemas.len() * 512 + 2);
    out.push(b'[');
    for (position, schema) in schemas.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        out.extend_from_slice(br#"{"type":"function","function":{"name":"#);
        write_string(&mut out, &schema.name);
        out.extend_from_slice(br#","description":"#);
        write_string(&mut out, &schema.description);
        out.extend_from_slice(br#","parameters":"#);
        out.extend_from_slice(schema.parameters.as_str().as_bytes());
        out.extend_from_slice(b"}}");
    }
    out.push(b']');
    String::from_utf8(out).expect("JSON made of strings is UTF-8")
}

/// The name of the parameter that caps the answer.
fn cap_parameter(route: &Route) -> &'static str {
    const FAMILIES: [&str; 6] = ["gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4"];
    const HOSTS: [&str; 3] = ["api.openai.com", "openai.azure.com", "githubcopilot.com"];
    let slug = route.model.rsplit('/').next().unwrap_or_default().to_lowercase();
    let is_on_host = Address::parse("base_url", &route.base_url).is_ok_and(|address| address.is_on(&HOSTS));
    if is_on_host || FAMILIES.iter().any(|family| slug.starts_with(family)) {
        "max_completion_tokens"
    } else {
        "max_tokens"
    }
}

/// The whole body as one buffer. The messages come out of the session's prefix: what was sent before
/// is copied, not written again.
pub(crate) fn body(request: &mut CallRequest<'_>) -> Vec<u8> {
    let route = request.route;
    let messages = request.prefix.update(Form::of(route), request.system, request.messages);
    /// Model, flags and brackets.
    const FRAME_BYTES: usize = 512;
    let extra = route.extra_body.as_ref().map_or("", |extra| extra.as_str());
    let capacity =
        messages.len() + request.tools.json().len() + route.model.len() + extra.len() + FRAME_BYTES;
    let mut out = Vec::with_capacity(capacity);
    out.extend_from_slice(br#"{"model":"#);
    write_string(&mut out, &route.model);
    out.extend_from_slice(br#","messages":"#);
    out.extend_from_slice(messages);
    out.push(b']');
    if !request.tools.is_empty() {
        out.extend_from_slice(br#","tools":"#);
        out.extend_from_slice(request.tools.json().as_bytes());
    }
    let user: BTreeMap<String, &RawValue> = serde_json::from_str(extra).unwrap_or_default();
    for (name, value) in our_fields(request, route) {
        if !user.contains_key(name) {
            write_field(&mut out, name, &value);
        }
    }
    // The user's own fields come last and win. `null` takes a field of ours away.
    for (name, value) in &user {
        if value.get() != "null" {
            write_field(&mut out, name, value.get());
        }
    }
    out.push(b'}');
    out
}

fn our_fields(request: &CallRequest<'_>, route: &Route) -> Vec<(&'static str, String)> {
    let mut fields = vec![("stream", request.stream.to_string())];
    if request.stream {
        fields.push(("stream_options", r#"{"include_usage":true}"#.to_owned()));
    }
    if let Some(cap) = request.max_output_tokens.or(route.max_tokens) {
        fields.push((cap_parameter(route), cap.to_string()));
    }
    if route.model_contains(&["trinity-large-thinking"]) {
        fields.push(("temperature", "0.5".to_owned()));
    }
    fields
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b',');
    write_string(out, name);
    out.push(b':');
    out.extend_from_slice(value.as_bytes());
}

#[cfg(test)]
pub(crate) fn messages_of(
    cache: &mut crate::prefix::PrefixCache,
    route: &Route,
    system: &str,
    messages: &[std::sync::Arc<Message>],
) -> String {
    let mut bytes = cache.update(Form::of(route), system, messages).to_vec();
    bytes.push(b']');
    String::from_utf8(bytes).unwrap()
}

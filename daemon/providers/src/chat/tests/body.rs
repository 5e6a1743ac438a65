//! Request bodies: their exact text, and that they never change.

use std::sync::Arc;

use hermes_core::{Content, Instant, Json, Message, Part, ToolCall, ToolCallId, ToolSchema};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use crate::chat::request::{body, messages_of};
use crate::offline::OfflineFacts;
use crate::prefix::PrefixCache;
use crate::provider::{CallRequest, ToolList};
use crate::route::Route;

const AT: Instant = Instant(1.0);

fn route(model: &str, base_url: &str) -> Route {
    Route { provider: "custom".into(), model: model.into(), base_url: base_url.into(), ..Route::offline() }
}

fn tools() -> ToolList {
    ToolList::new(vec![ToolSchema {
        name: "read_file".into(),
        description: "Reads a \"file\".".into(),
        parameters: Json::parse(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#).unwrap(),
    }])
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: ToolCallId::new(id),
        name: "read_file".into(),
        arguments: arguments.into(),
        provider_data: Some(
            Json::parse(r#"{"call_id":"fc_1","extra_content":{"google":{"thought_signature":"s"}}}"#)
                .unwrap(),
        ),
    }
}

/// A history with everything that must not reach the wire.
fn history() -> Vec<Arc<Message>> {
    let mut user = Message::user("  What is in a.txt?\n", AT);
    user.api_content = Some("What is in a.txt?\n\n(note)".into());
    user.platform_message_id = Some("tg-1".into());
    let mut asks = Message::assistant("  ", AT);
    asks.tool_calls = vec![call("call_1", " { \"path\" : \"a.txt\", \"limit\": 5 } ")];
    asks.reasoning = Some("secret thoughts".into());
    asks.reasoning_content = Some("echo".into());
    asks.reasoning_details =
        Some(Json::parse(r#"[{"type":"reasoning.text","text":"t","signature":"s"}]"#).unwrap());
    asks.finish_reason = Some(hermes_core::FinishReason::ToolCalls);
    let result = Message::tool_result(asks.tool_calls.first().unwrap(), "{\"content\":\"1|grüße\\n\"}\n", AT);
    let answer = Message::assistant("It says \"grüße\".\n", AT);
    let picture = Message::user(
        Content::Parts(vec![
            Part::Text("and this?".into()),
            Part::Image { url: "data:image/png;base64,AA".into(), detail: Some("low".into()) },
            Part::Image { url: "media:abc".into(), detail: None },
        ]),
        AT,
    );
    [user, asks, result, answer, picture].map(Arc::new).to_vec()
}

fn body_of(route: &Route, stream: bool, cap: Option<u32>, tools: &ToolList) -> String {
    let mut prefix = PrefixCache::default();
    let messages = history();
    let facts = OfflineFacts::default();
    let mut request = CallRequest {
        route,
        system: "You are Hermes.",
        tools,
        messages: &messages,
        max_output_tokens: cap,
        stream,
        prefix: &mut prefix,
        facts: &facts,
    };
    let text = String::from_utf8(body(&mut request)).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
    text
}

/// One field of a message per line, so that a reviewer can read the difference.
fn readable(body: &str) -> String {
    body.replace("},{\"role\"", "},\n{\"role\"").replace("],\"", "],\n\"")
}

#[test]
fn the_body_of_a_plain_server() {
    let body = body_of(&route("fake", "http://127.0.0.1:1/v1"), true, None, &tools());
    insta::assert_snapshot!("plain_server", readable(&body));
}

#[test]
fn the_body_of_a_call_that_does_not_stream() {
    let mut route = route("fake", "http://127.0.0.1:1/v1");
    route.max_tokens = Some(1000);
    insta::assert_snapshot!("without_stream", readable(&body_of(&route, false, None, &ToolList::empty())));
}

#[test]
fn the_body_of_openai_names_the_developer_and_the_cap_its_own_way() {
    let body =
        body_of(&route("gpt-5-mini", "https://api.openai.com/v1"), true, Some(4096), &ToolList::empty());
    insta::assert_snapshot!("openai", readable(&body));
}

#[test]
fn the_body_of_openrouter_replays_reasoning_and_gemini_its_signatures() {
    let body = body_of(
        &route("google/gemini-3-pro", "https://openrouter.ai/api/v1"),
        true,
        None,
        &ToolList::empty(),
    );
    insta::assert_snapshot!("openrouter_gemini", readable(&body));
}

#[test]
fn the_body_of_deepseek_echoes_reasoning_on_every_answer() {
    let body =
        body_of(&route("deepseek-chat", "https://api.deepseek.com/v1"), true, None, &ToolList::empty());
    insta::assert_snapshot!("deepseek", readable(&body));
}

#[test]
fn the_users_own_fields_win_and_null_takes_one_of_ours_away() {
    let mut route = route("fake", "http://127.0.0.1:1/v1");
    route.max_tokens = Some(1000);
    route.extra_body = Some(
        Json::parse(r#"{"max_tokens": 7, "stream_options": null, "options": {"num_ctx": 8192}}"#).unwrap(),
    );
    let body = body_of(&route, true, None, &ToolList::empty());
    assert!(body.ends_with(r#"],"stream":true,"max_tokens":7,"options":{"num_ctx": 8192}}"#), "{body}");
}

#[test]
fn the_cap_is_called_by_the_name_that_the_model_knows() {
    let cases = [
        ("gpt-4o-mini", "http://h/v1", "max_completion_tokens"),
        ("openai/o3", "https://openrouter.ai/api/v1", "max_completion_tokens"),
        ("llama3", "https://api.openai.com/v1", "max_completion_tokens"),
        ("llama3", "https://x.openai.azure.com/openai", "max_completion_tokens"),
        ("llama3", "http://h/v1", "max_tokens"),
        ("my-gpt-5", "http://h/v1", "max_tokens"),
    ];
    for (model, base_url, name) in cases {
        let body = body_of(&route(model, base_url), true, Some(9), &ToolList::empty());
        assert!(body.contains(&format!("\"{name}\":9")), "{model} {base_url}");
    }
}

#[test]
fn a_call_appends_to_what_was_sent_and_writes_nothing_twice() {
    let route = route("fake", "http://h/v1");
    let messages = history();
    let mut cache = PrefixCache::default();
    let mut before = String::new();
    for count in 1..=messages.len() {
        let now = messages_of(&mut cache, &route, "s", &messages[..count]);
        let shared = before.strip_suffix(']').unwrap_or_default();
        assert!(now.starts_with(shared), "request {count} changed what was sent");
        before = now;
    }
    assert_eq!(cache.messages_written(), messages.len() as u64);
}

#[test]
fn what_differs_is_written_anew_from_there() {
    let route = route("fake", "http://h/v1");
    let messages = history();
    let mut cache = PrefixCache::default();
    let whole = messages_of(&mut cache, &route, "s", &messages);
    let mut changed = messages.clone();
    changed[3] = Arc::new(Message::assistant("other", AT));
    let other = messages_of(&mut cache, &route, "s", &changed);
    assert!(other.contains("other") && other != whole);
    assert_eq!(cache.messages_written(), 5 + 2);
    // Back again, a shorter history, another prompt, another form: always as a new cache would write it.
    for (route, system, messages) in [
        (&route, "s", &messages[..]),
        (&route, "s", &messages[..2]),
        (&route, "another", &messages[..]),
        (&route, "", &messages[..]),
        (&self::route("gpt-5", "http://h/v1"), "s", &messages[..]),
    ] {
        let fresh = messages_of(&mut PrefixCache::default(), route, system, messages);
        assert_eq!(messages_of(&mut cache, route, system, messages), fresh);
    }
}

fn message() -> impl Strategy<Value = Message> {
    let text = "[ a-zä\"\\\\\n]{0,12}";
    prop_oneof![
        text.prop_map(|text| Message::user(text, AT)),
        text.prop_map(|text| Message::assistant(text, AT)),
        (text, "[a-z{}:\" ]{0,10}").prop_map(|(text, arguments)| {
            let mut message = Message::assistant(text, AT);
            message.tool_calls = vec![call("c", &arguments)];
            message
        }),
        text.prop_map(|text| Message::tool_result(&call("c", "{}"), text, AT)),
    ]
}

proptest! {
    /// A daemon that restarts loads equal messages under other addresses, and sends all at once what
    /// the one before it had sent piece by piece.
    #[test]
    fn a_reloaded_history_has_the_same_bytes(messages in proptest::collection::vec(message(), 0..8), cuts in proptest::collection::vec(0usize..9, 0..4)) {
        let route = route("fake", "http://h/v1");
        let live: Vec<Arc<Message>> = messages.iter().cloned().map(Arc::new).collect();
        let mut cache = PrefixCache::default();
        for cut in cuts {
            messages_of(&mut cache, &route, "s", &live[..cut.min(live.len())]);
        }
        let sent = messages_of(&mut cache, &route, "s", &live);
        let reloaded: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
        prop_assert_eq!(messages_of(&mut PrefixCache::default(), &route, "s", &reloaded), sent.clone());
        prop_assert!(serde_json::from_str::<serde_json::Value>(&sent).is_ok());
    }
}

//! Conversations with the offline responder.

use std::sync::Arc;

use hermes_core::{Content, FinishReason, Instant, Json, Message, SystemClock, ToolSchema};
use hermes_runtime::{Redactor, SecretScope};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Offline, OfflineFacts};
use crate::failure::FailureClass;
use crate::local::LocalServer;
use crate::prefix::PrefixCache;
use crate::provider::{CallRequest, ModelResponse, Provider as _, StreamDelta, StreamSink, ToolList};
use crate::route::Route;

const AT: Instant = Instant(1_767_323_045.0);

#[derive(Debug, Default)]
struct Shown(String);

impl StreamSink for Shown {
    fn delta(&mut self, delta: StreamDelta<'_>) {
        if let StreamDelta::Text(text) = delta {
            self.0.push_str(text);
        }
    }
}

fn tools(names: &[&str]) -> ToolList {
    let schema = |name: &&str| ToolSchema {
        name: (*name).into(),
        description: String::new(),
        parameters: Json::parse(r#"{"type":"object"}"#).unwrap(),
    };
    ToolList::new(names.iter().map(schema).collect())
}

const ALL: [&str; 3] = ["read_file", "search_files", "terminal"];

async fn answer(messages: &[Arc<Message>], tools: &ToolList, facts: &OfflineFacts) -> ModelResponse {
    let offline = Offline::new(Redactor::new(true, &SecretScope::empty()), Arc::new(FixedClock));
    let route = Route::offline();
    let request = CallRequest {
        route: &route,
        system: "",
        tools,
        messages,
        max_output_tokens: None,
        stream: true,
        prefix: &mut PrefixCache::default(),
        facts,
    };
    let mut shown = Shown::default();
    let answer = offline.call(request, &mut shown, &CancellationToken::new()).await.unwrap();
    assert_eq!(shown.0, answer.content.clone().unwrap_or_default());
    answer
}

#[derive(Debug)]
struct FixedClock;

impl hermes_core::Clock for FixedClock {
    fn now(&self) -> Instant {
        AT
    }
}

/// Asks, and when a tool is called gives it `result`; returns the calls made and the answer without its footer.
async fn talk(request: &str, result: &Value) -> (Vec<(String, String)>, String) {
    let (tools, facts) = (tools(&ALL), OfflineFacts::default());
    let mut messages = vec![Arc::new(Message::user(request, AT))];
    let mut calls = Vec::new();
    loop {
        let reply = answer(&messages, &tools, &facts).await;
        if reply.tool_calls.is_empty() {
            let text = reply.content.unwrap();
            assert!(text.contains("No model is configured") && text.contains("base_url:"), "{text}");
            return (calls, text.split("\n\n---\n").next().unwrap().to_owned());
        }
        assert_eq!(reply.finish_reason, FinishReason::ToolCalls);
        let mut asks = Message::assistant("", AT);
        asks.tool_calls.clone_from(&reply.tool_calls);
        messages.push(Arc::new(asks));
        for call in &reply.tool_calls {
            calls.push((call.name.clone(), call.arguments.clone()));
            let content = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
            messages.push(Arc::new(Message::tool_result(call, Content::Text(content), AT)));
        }
        assert!(calls.len() < 3, "it calls for ever");
    }
}

#[tokio::test]
async fn a_folder_is_listed_from_the_tools_own_result() {
    let (calls, text) = talk(
        "What is in this folder?",
        &json!({"total_count": 3, "files": ["/w/b.txt", "/w/src/", "/w/src/a.rs"]}),
    )
    .await;
    assert_eq!(
        calls,
        [(
            "search_files".to_owned(),
            r#"{"pattern":"/*","target":"files","path":".","limit":500}"#.to_owned()
        )]
    );
    assert_eq!(text, "This folder holds 3 entries:\n\n- b.txt\n- src/\n- src/a.rs");
    let (_, text) = talk("list files in empty/", &json!({"total_count": 0, "files": []})).await;
    assert_eq!(text, "There are no files in `empty/` (hidden and ignored ones are not counted).");
}

#[tokio::test]
async fn a_large_folder_is_summed_up() {
    let files: Vec<String> =
        (0..90).map(|n| format!("./src/f{n}.rs")).chain(["README.md".to_owned()]).collect();
    let (_, text) = talk("ls", &json!({"total_count": 400, "files": files, "truncated": true})).await;
    assert_eq!(text, "This folder holds 400 entries; the newest 91 of them stand in:\n\n- README.md\n- src/");
}

#[tokio::test]
async fn a_file_is_quoted_without_its_line_numbers() {
    let (calls, text) =
        talk("Read notes.txt", &json!({"content": "1|one\n2|a ``` b\n", "total_lines": 2})).await;
    assert_eq!(calls, [("read_file".to_owned(), r#"{"path":"notes.txt"}"#.to_owned())]);
    assert_eq!(text, "`notes.txt` (2 lines):\n\n````\none\na ``` b\n````");
    let (_, text) =
        talk("Read nots.txt", &json!({"error": "File not found: nots.txt", "similar_files": ["notes.txt"]}))
            .await;
    assert_eq!(
        text,
        "I could not read `nots.txt`: File not found: nots.txt\n\nFiles with a similar name: notes.txt"
    );
    let (_, text) =
        talk("Read a.txt", &json!({"status": "unchanged", "message": "you have it already"})).await;
    assert_eq!(text, "`a.txt`: you have it already");
}

#[tokio::test]
async fn hits_are_told_with_their_place() {
    let result =
        json!({"total_count": 1, "matches": [{"path": "src/a.rs", "line": 3, "content": "  // TODO"}]});
    let (calls, text) = talk("search for TODO in src/", &result).await;
    assert_eq!(
        calls,
        [("search_files".to_owned(), r#"{"pattern":"TODO","target":"content","path":"src/"}"#.to_owned())]
    );
    assert_eq!(text, "`TODO` stands once in `src/`:\n\n```\nsrc/a.rs:3: // TODO\n```");
    let (_, text) = talk("search for TODO", &json!({"total_count": 0, "matches": []})).await;
    assert_eq!(text, "`TODO` stands nowhere in this folder.");
}

#[tokio::test]
async fn a_command_runs_or_its_refusal_is_told() {
    let (calls, text) = talk("run `echo hi`", &json!({"output": "hi\n", "exit_code": 0})).await;
    assert_eq!(calls, [("terminal".to_owned(), r#"{"command":"echo hi"}"#.to_owned())]);
    assert_eq!(text, "`echo hi` ran:\n\n```\nhi\n```");
    let (_, text) = talk("run false", &json!({"output": "", "exit_code": 1, "error": null})).await;
    assert_eq!(text, "`false` ended with exit code 1 and printed nothing.");
    let refused = json!({"output": "", "exit_code": -1, "error": "terminal commands need approval, which is not there yet; run again with --yolo.", "status": "blocked"});
    let (calls, text) = talk("run ls", &refused).await;
    assert_eq!(calls.len(), 1);
    assert_eq!(
        text,
        "I did not get a result of `ls`: terminal commands need approval, which is not there yet; run again with --yolo"
    );
    let (_, text) = talk("run ls", &json!("cut off by the size limit")).await;
    assert_eq!(text, "`ls`:\n\n```\ncut off by the size limit\n```");
}

#[tokio::test]
async fn a_tool_that_the_session_lacks_is_named_and_not_called() {
    let messages = [Arc::new(Message::user("run ls", AT))];
    let reply = answer(&messages, &tools(&["read_file"]), &OfflineFacts::default()).await;
    assert!(reply.tool_calls.is_empty());
    assert!(reply.content.unwrap().starts_with("For running a command I need the tool `terminal`"));
}

#[tokio::test]
async fn what_needs_no_tool_is_answered_at_once() {
    assert_eq!(
        talk("what time is it", &json!(null)).await,
        (vec![], "It is 2026-01-02 03:04:05 UTC.".to_owned())
    );
    let (_, text) = talk("Remember that I like tea", &json!(null)).await;
    assert!(text.starts_with("I cannot remember that") && text.ends_with("Nothing was stored."), "{text}");
    let (_, text) = talk("hello", &json!(null)).await;
    assert!(text.starts_with("Hello. I am Hermes, running without a language model."), "{text}");
    let (_, text) = talk("write a poem", &json!(null)).await;
    assert!(text.starts_with("That needs a language model, and none is configured."), "{text}");
}

#[tokio::test]
async fn results_of_an_earlier_question_are_not_taken_for_this_one() {
    let (tools, facts) = (tools(&ALL), OfflineFacts::default());
    let mut messages = vec![Arc::new(Message::user("run `a`", AT))];
    let first = answer(&messages, &tools, &facts).await;
    let mut asks = Message::assistant("", AT);
    asks.tool_calls.clone_from(&first.tool_calls);
    let result = Message::tool_result(&first.tool_calls[0], "{\"output\":\"x\",\"exit_code\":0}", AT);
    messages
        .extend([asks, result, Message::assistant("done", AT), Message::user("run `a`", AT)].map(Arc::new));
    let second = answer(&messages, &tools, &facts).await;
    assert_eq!(second.tool_calls.len(), 1);
    assert_ne!(second.tool_calls[0].id, first.tool_calls[0].id);
    assert_eq!(answer(&messages, &tools, &facts).await, second);
}

#[tokio::test]
async fn what_was_seen_on_the_machine_is_told_with_what_to_write() {
    let facts = OfflineFacts {
        key_variables: vec!["OPENROUTER_API_KEY".into()],
        local_servers: vec![LocalServer {
            name: "Ollama",
            base_url: "http://127.0.0.1:11434/v1".into(),
            models: vec!["llama3:8b".into()],
        }],
        config_path: Some("/home/me/.hermes/config.yaml".into()),
        env_path: Some("/home/me/.hermes/.env".into()),
        local_time: Some("Friday, 12:00".into()),
    };
    let reply = answer(&[Arc::new(Message::user("what time is it?", AT))], &tools(&ALL), &facts).await;
    insta::assert_snapshot!("with_facts", reply.content.unwrap());
    let reply = answer(&[Arc::new(Message::user("help", AT))], &tools(&ALL), &OfflineFacts::default()).await;
    insta::assert_snapshot!("without_facts", reply.content.unwrap());
}

#[tokio::test]
async fn a_cancelled_call_says_so() {
    let offline = Offline::new(Redactor::new(true, &SecretScope::empty()), Arc::new(SystemClock));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let request = CallRequest {
        route: &Route::offline(),
        system: "",
        tools: &ToolList::empty(),
        messages: &[],
        max_output_tokens: None,
        stream: true,
        prefix: &mut PrefixCache::default(),
        facts: &OfflineFacts::default(),
    };
    let error = offline.call(request, &mut Shown::default(), &cancel).await.unwrap_err();
    assert_eq!(error.class, FailureClass::Cancelled);
}

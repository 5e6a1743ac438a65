//! Whole exchanges over a socket: what is sent, what is made of the answer, and how it ends.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant as Moment};

use hermes_core::{FinishReason, Instant, Message, SystemClock};
use hermes_runtime::{Redactor, Secret, SecretScope};
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use super::Seen;
use super::server::{Server, Step, chunk, event, http, say, stop, stream_head, streamed};
use crate::chat::ChatCompletions;
use crate::failure::{CallError, FailureClass};
use crate::http::Http;
use crate::offline::OfflineFacts;
use crate::prefix::PrefixCache;
use crate::provider::{CallRequest, ModelResponse, Provider as _, StreamSink, ToolList};
use crate::route::{Route, StaleLimit};
use crate::watch::NOTICE_EVERY;

/// A cancelled call closes its connection within 0.3 s; a busy machine is given some more.
const PROMPTLY: Duration = Duration::from_secs(1);

fn provider_with(notice_every: Duration) -> ChatCompletions {
    let redactor = Redactor::new(true, &SecretScope::empty());
    ChatCompletions::new(Arc::new(Http::default()), redactor, Arc::new(SystemClock), notice_every)
}

struct Client {
    provider: ChatCompletions,
    stream: bool,
    cancel: CancellationToken,
}

impl Client {
    fn new() -> Self {
        Self { provider: provider_with(NOTICE_EVERY), stream: true, cancel: CancellationToken::new() }
    }

    async fn call(&self, route: &Route, sink: &mut dyn StreamSink) -> Result<ModelResponse, CallError> {
        let messages = [Arc::new(Message::user("hello", Instant(1.0)))];
        let request = CallRequest {
            route,
            system: "You are Hermes.",
            tools: &ToolList::empty(),
            messages: &messages,
            max_output_tokens: None,
            stream: self.stream,
            prefix: &mut PrefixCache::default(),
            facts: &OfflineFacts::default(),
        };
        self.provider.call(request, sink, &self.cancel).await
    }
}

/// The socket is closed by the connection's own task, which needs turns of the runtime.
async fn was_closed(closed: Receiver<()>) -> bool {
    tokio::task::spawn_blocking(move || closed.recv_timeout(Duration::from_secs(5)).is_ok()).await.unwrap()
}

async fn answer_to(steps: Vec<Step>) -> Result<ModelResponse, CallError> {
    let server = Server::script(vec![steps]);
    Client::new().call(&server.route(), &mut Seen::default()).await
}

async fn error_of(status: &str, headers: &[&str], body: &str) -> CallError {
    answer_to(vec![http(status, headers, body)]).await.unwrap_err()
}

fn tool_delta(arguments: &str) -> Step {
    let call =
        serde_json::json!({"index": 0, "id": "a", "function": {"name": "terminal", "arguments": arguments}});
    event(&serde_json::json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string())
}

#[tokio::test]
async fn a_stream_is_shown_as_it_comes_and_returned_whole() {
    let server = Server::script(vec![streamed([
        chunk(": hold on\n\n"),
        event(r#"{"id":"r","model":"fake-1","choices":[{"delta":{"role":"assistant","content":""}}]}"#),
        event(r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#),
        say("hel"),
        say("lo"),
        event(
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#,
        ),
    ])]);
    let mut route = server.route();
    route.credential = Some(Secret::from("sk-0123456789"));
    let mut seen = Seen::default();
    let answer = Client::new().call(&route, &mut seen).await.unwrap();
    assert_eq!(seen.0, ["think:hm", "text:hel", "text:lo"]);
    assert_eq!(answer.content.as_deref(), Some("hello"));
    assert_eq!(
        (answer.finish_reason, answer.model.as_str(), answer.streamed),
        (FinishReason::Stop, "fake-1", true)
    );
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output), (5, 4, 2));

    let request = server.requests.recv().unwrap();
    assert!(request.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", request.head);
    assert!(request.head.to_lowercase().contains("authorization: bearer sk-0123456789\r\n"));
    assert!(request.head.to_lowercase().contains("content-type: application/json\r\n"));
    let expected = r#"{"model":"fake","messages":[{"role":"system","content":"You are Hermes."},{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true}}"#;
    assert_eq!(request.body, expected);
}

#[tokio::test]
async fn the_cut_of_the_bytes_does_not_matter() {
    let whole = "data: {\"choices\":[{\"delta\":{\"content\":\"grüße 😀\"}}]}\r\n\r\n: ping\r\n\r\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n";
    let single = whole.as_bytes().iter().map(|byte| {
        let mut piece = b"1\r\n".to_vec();
        piece.push(*byte);
        piece.extend_from_slice(b"\r\n");
        Step::Send(piece)
    });
    let steps =
        [stream_head()].into_iter().chain(single).chain([Step::Send(b"0\r\n\r\n".to_vec())]).collect();
    assert_eq!(answer_to(steps).await.unwrap().content.as_deref(), Some("grüße 😀"));
}

#[tokio::test]
async fn a_server_that_ignores_stream_is_taken_at_its_word() {
    let body = r#"{"id":"x","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    for headers in [&["Content-Type: application/json"][..], &["Content-Type: text/event-stream"], &[]] {
        let server = Server::script(vec![vec![http("200 OK", headers, body)]]);
        let mut seen = Seen::default();
        let answer = Client::new().call(&server.route(), &mut seen).await.unwrap();
        assert!(!answer.streamed);
        assert_eq!(seen.0, ["text:hi", "tool:f"]);
        assert_eq!((answer.tool_calls.len(), answer.finish_reason), (1, FinishReason::ToolCalls));
        assert_eq!(answer.usage.unwrap().input, 3);
    }
}

#[tokio::test]
async fn a_call_without_a_stream_asks_for_none() {
    let body = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}"#;
    let server = Server::script(vec![vec![http("200 OK", &[], body)]]);
    let client = Client { stream: false, ..Client::new() };
    let answer = client.call(&server.route(), &mut Seen::default()).await.unwrap();
    assert_eq!((answer.content, answer.finish_reason), (None, FinishReason::ToolCalls));
    assert!(server.requests.recv().unwrap().body.ends_with(r#","stream":false}"#));
}

#[tokio::test]
async fn the_connection_is_used_again_after_done() {
    let server = Server::script(vec![streamed([say("a")]), streamed([say("b")])]);
    let client = Client::new();
    for expected in ["a", "b"] {
        let answer = client.call(&server.route(), &mut Seen::default()).await.unwrap();
        assert_eq!(answer.content.as_deref(), Some(expected));
    }
    let connections: Vec<usize> = server.requests.try_iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0]);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
    let mut first = streamed([say("a")]);
    first.push(Step::Close);
    // The second request may still go out on the old connection, which answers nothing.
    let server = Server::script(vec![first, streamed([say("b")])]);
    let client = Client::new();
    client.call(&server.route(), &mut Seen::default()).await.unwrap();
    let answer = client.call(&server.route(), &mut Seen::default()).await.unwrap();
    assert_eq!(answer.content.as_deref(), Some("b"));
}

#[tokio::test]
async fn a_connection_that_breaks_before_an_answer_is_tried_once_more_and_then_told() {
    let server = Server::script(vec![vec![Step::Close], vec![Step::Close], streamed([say("too late")])]);
    let error = Client::new().call(&server.route(), &mut Seen::default()).await.unwrap_err();
    assert_eq!(error.class, FailureClass::Connection);
    assert_eq!(server.requests.try_iter().count(), 2);
}

#[tokio::test]
async fn http_errors_are_classified_and_told_in_one_line() {
    let error = error_of(
        "401 Unauthorized",
        &[],
        r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#,
    )
    .await;
    assert_eq!((error.class, error.status), (FailureClass::Auth, Some(401)));
    assert_eq!(error.message, "HTTP 401: Incorrect API key provided");
    assert!(!error.retryable() && error.hint().contains(".env"), "{}", error.hint());

    let error = error_of("429 Too Many", &["Retry-After: 7"], r#"{"error":{"message":"slow down"}}"#).await;
    assert_eq!((error.class, error.retry_after), (FailureClass::RateLimit, Some(Duration::from_secs(7))));

    let page = format!(
        "<html><head><title>502 Bad Gateway</title></head><body>{}</body></html>",
        "x".repeat(300_000)
    );
    let error = error_of("502 Bad Gateway", &["Content-Type: text/html"], &page).await;
    assert_eq!(error.class, FailureClass::ServerError);
    assert_eq!(error.message, "HTTP 502: the server answered with a web page: 502 Bad Gateway");

    let error = error_of("500 Oops", &[], &"word ".repeat(500)).await;
    assert_eq!(error.message.chars().count(), 300);

    let error = error_of("404 Not Found", &[], r#"{"error":{"message":"model `fake` not found"}}"#).await;
    assert_eq!(error.class, FailureClass::ModelNotFound);
    let error = error_of("404 Not Found", &[], "404 page not found").await;
    assert_eq!(error.class, FailureClass::WrongEndpoint);
    assert!(error.hint().contains("/v1"), "{}", error.hint());
}

#[tokio::test]
async fn an_error_that_repeats_our_key_is_told_without_it() {
    let server = Server::script(vec![vec![http(
        "400 Bad",
        &[],
        r#"{"error":"you sent Bearer my-private-value-1 to me"}"#,
    )]]);
    let mut route = server.route();
    route.credential = Some(Secret::from("my-private-value-1"));
    let error = Client::new().call(&route, &mut Seen::default()).await.unwrap_err();
    assert!(!error.message.contains("my-private-value-1"), "{}", error.message);
    assert!(!format!("{error:?} {error} {}", error.hint()).contains("my-private-value-1"));
}

#[tokio::test]
async fn an_answer_that_is_none_is_named_for_what_it_is() {
    let class = |outcome: Result<ModelResponse, CallError>| outcome.unwrap_err().class;
    let html = "<!doctype html><title>Login</title>";
    let cases = [
        (http("200 OK", &["Content-Type: text/html"], html), FailureClass::WrongEndpoint),
        (http("200 OK", &[], ""), FailureClass::EmptyStream),
        (
            http("200 OK", &["Content-Type: application/json"], r#"{"ok":true}"#),
            FailureClass::InvalidResponse,
        ),
        (
            http("200 OK", &["Content-Type: application/json"], r#"{"choices":[]}"#),
            FailureClass::InvalidResponse,
        ),
        (
            http("200 OK", &["Content-Type: application/json"], r#"{"choices":[{"mess"#),
            FailureClass::Connection,
        ),
        (http("200 OK", &["Content-Type: application/json"], "nonsense"), FailureClass::InvalidResponse),
        (http("200 OK", &[], r#"{"error":{"message":"Rate limit","code":429}}"#), FailureClass::RateLimit),
        (http("200 OK", &["Content-Encoding: gzip"], "xx"), FailureClass::MalformedStream),
        (http("200 OK", &[], "data: nonsense\n\n"), FailureClass::MalformedStream),
        (http("200 OK", &[], "data: Error: rate limit exceeded\n\n"), FailureClass::RateLimit),
        (
            http("200 OK", &[], "data: {\"error\":{\"message\":\"boo\",\"type\":\"overloaded_error\"}}\n\n"),
            FailureClass::Overloaded,
        ),
    ];
    for (step, expected) in cases {
        let told = format!("{step:?}");
        assert_eq!(class(answer_to(vec![step]).await), expected, "{told}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_worth_what_was_shown() {
    let cut =
        |steps: Vec<Step>| [stream_head()].into_iter().chain(steps).chain([Step::Close]).collect::<Vec<_>>();
    let error = answer_to(cut(vec![])).await.unwrap_err();
    assert_eq!((error.class, error.retryable()), (FailureClass::Connection, true));

    let answer = answer_to(cut(vec![say("half a sen")])).await.unwrap();
    assert_eq!((answer.content.as_deref(), answer.finish_reason), (Some("half a sen"), FinishReason::Length));
    assert!(answer.interrupted_stream.unwrap().dropped_calls.is_empty());

    let error =
        answer_to(cut(vec![say("I will"), tool_delta("{\"command\": \"rm -rf /tmp/a")])).await.unwrap_err();
    assert!(error.tool_in_flight && error.retryable());
    assert_eq!((error.streamed_text.as_str(), error.dropped_calls), ("I will", vec!["terminal".to_owned()]));
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let other = Server::script(vec![streamed([say("stolen")])]);
    let location = format!("Location: {}/chat/completions", other.route().base_url);
    for status in ["301 Moved", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let error = error_of(status, &[&location], "").await;
        assert_eq!(error.class, FailureClass::WrongEndpoint);
        assert!(error.message.contains("redirects to http://127.0.0.1:"), "{}", error.message);
    }
    assert_eq!(other.requests.try_iter().count(), 0);
}

#[tokio::test]
async fn a_redirect_within_the_host_repeats_the_request() {
    let server = Server::script(vec![
        vec![http("308 Moved", &["Location: /v2/chat/completions"], "")],
        streamed([say("moved")]),
    ]);
    let answer = Client::new().call(&server.route(), &mut Seen::default()).await.unwrap();
    assert_eq!(answer.content.as_deref(), Some("moved"));
    let requests: Vec<_> = server.requests.try_iter().collect();
    assert!(
        requests[1].head.starts_with("POST /v2/chat/completions") && requests[1].body == requests[0].body
    );
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let port = {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        taken.local_addr().unwrap().port()
    };
    let mut route = Server::script(vec![]).route();
    for host in ["127.0.0.1", "localhost"] {
        route.base_url = format!("http://{host}:{port}/v1");
        let error = Client::new().call(&route, &mut Seen::default()).await.unwrap_err();
        assert_eq!(error.class, FailureClass::Connection);
        assert!(
            error.message.starts_with(&format!("could not connect to {host}:{port}: ")),
            "{}",
            error.message
        );
        assert!(error.to_string().contains("(provider custom, model fake, at "), "{error}");
        assert!(error.hint().contains("running"), "{}", error.hint());
    }
}

#[tokio::test]
async fn localhost_reaches_a_server_of_this_machine() {
    let server = Server::script(vec![streamed([say("hi")])]);
    let mut route = server.route();
    route.base_url = route.base_url.replace("127.0.0.1", "localhost");
    assert!(Client::new().call(&route, &mut Seen::default()).await.is_ok());
}

#[tokio::test]
async fn silence_ends_the_attempt_and_is_announced_before() {
    let server = Server::script(vec![vec![stream_head(), chunk(": ping\n\n"), Step::AwaitClose]]);
    let mut route = server.route();
    route.timeouts.stream_stale = StaleLimit::Fixed(Duration::from_millis(200));
    let client = Client { provider: provider_with(Duration::from_millis(80)), ..Client::new() };
    let mut seen = Seen::default();
    let error = client.call(&route, &mut seen).await.unwrap_err();
    assert_eq!(error.class, FailureClass::Stale);
    assert!(!seen.0.is_empty() && seen.0.iter().all(|delta| delta == "wait"), "{:?}", seen.0);
    assert!(was_closed(server.closed).await, "the connection stayed open");
}

#[tokio::test]
async fn the_whole_call_has_a_limit_of_its_own() {
    let server = Server::script(vec![vec![stream_head(), tool_delta("{"), Step::AwaitClose]]);
    let mut route = server.route();
    route.timeouts.whole = Duration::from_millis(150);
    let error = Client::new().call(&route, &mut Seen::default()).await.unwrap_err();
    assert_eq!((error.class, error.tool_in_flight), (FailureClass::Timeout, true));
}

#[tokio::test]
async fn a_server_that_forgets_to_end_after_its_reason_is_not_waited_for() {
    let mut steps = vec![stream_head(), say("hi")];
    steps.push(stop().remove(0));
    steps.push(Step::AwaitClose);
    let server = Server::script(vec![steps]);
    let mut route = server.route();
    route.timeouts.stream_stale = StaleLimit::Fixed(Duration::from_millis(100));
    let answer = Client::new().call(&route, &mut Seen::default()).await.unwrap();
    assert_eq!((answer.content.as_deref(), answer.finish_reason), (Some("hi"), FinishReason::Stop));
}

/// Cancels when a piece of text has come.
struct CancelOnText(CancellationToken, Option<Moment>);

impl StreamSink for CancelOnText {
    fn delta(&mut self, delta: crate::provider::StreamDelta<'_>) {
        if matches!(delta, crate::provider::StreamDelta::Text(_)) {
            self.0.cancel();
            self.1 = Some(Moment::now());
        }
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_within_the_limit() {
    let server = Server::script(vec![vec![stream_head(), say("hi"), Step::AwaitClose]]);
    let client = Client::new();
    let mut sink = CancelOnText(client.cancel.clone(), None);
    let error = client.call(&server.route(), &mut sink).await.unwrap_err();
    assert!(was_closed(server.closed).await, "the connection stayed open");
    assert!(sink.1.unwrap().elapsed() < PROMPTLY, "{:?}", sink.1.unwrap().elapsed());
    assert_eq!((error.class, error.streamed_text.as_str()), (FailureClass::Cancelled, "hi"));
}

#[tokio::test]
async fn cancelling_before_an_answer_closes_the_connection_too() {
    let server = Server::script(vec![vec![Step::AwaitClose]]);
    let client = Client::new();
    let route = server.route();
    let cancel = client.cancel.clone();
    let mut seen = Seen::default();
    let call = client.call(&route, &mut seen);
    let Server { requests, closed, .. } = server;
    let trigger = async {
        tokio::task::spawn_blocking(move || requests.recv()).await.unwrap().unwrap();
        cancel.cancel();
        Moment::now()
    };
    let (outcome, at) = tokio::join!(call, trigger);
    assert_eq!(outcome.unwrap_err().class, FailureClass::Cancelled);
    assert!(was_closed(closed).await, "the connection stayed open");
    assert!(at.elapsed() < PROMPTLY, "{:?}", at.elapsed());
}

#[tokio::test]
async fn a_line_without_end_is_cut_off_at_its_cap() {
    let piece = "x".repeat(1 << 20);
    let steps = [stream_head(), chunk("data: ")].into_iter().chain((0..17).map(|_| chunk(&piece))).collect();
    let error = answer_to(steps).await.unwrap_err();
    assert_eq!(error.class, FailureClass::MalformedStream);
    assert!(error.message.contains("16 MiB"), "{}", error.message);
}

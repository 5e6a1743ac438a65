//! Drives one exchange: sends the request, reads the answer as a stream or whole, and turns whatever
//! goes wrong into a classified failure.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hermes_core::{Clock, Role};
use hermes_runtime::Redactor;
use reqwest::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::chat::assembly::{Assembly, Circumstances, Ending, Fault, Unanswered};
use crate::chat::request;
use crate::failure::body::{ErrorFacts, html_title};
use crate::failure::classify::classify;
use crate::failure::{CallError, FailureClass, retry_after};
use crate::http::Http;
use crate::provider::{CallRequest, ModelResponse, Provider, StreamSink};
use crate::resolve::endpoint;
use crate::route::Route;
use crate::sse::{SseParser, without_bom};
use crate::watch::{Halt, Watch};

/// Most bytes of one answer, streamed or not (spec 30 §22).
const MAX_BODY_BYTES: usize = 64 << 20;
/// Most bytes of an error that are read; its text is cut to one line anyway.
const MAX_ERROR_BYTES: usize = 256 << 10;
/// After a finish reason only counts and `[DONE]` can follow: a server that forgets them is not waited for.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// After `[DONE]` the end of the body is awaited that long, so that the connection can be used again.
const AFTER_DONE: Duration = Duration::from_millis(250);
/// An error's body must come soon.
const ERROR_BODY: Duration = Duration::from_secs(10);
/// For limits that go by size.
const BYTES_PER_TOKEN: usize = 4;

/// Speaks `chat_completions`.
#[derive(Debug)]
pub(crate) struct ChatCompletions {
    http: Arc<Http>,
    redactor: Redactor,
    clock: Arc<dyn Clock>,
    notice_every: Duration,
}

impl ChatCompletions {
    pub(crate) fn new(
        http: Arc<Http>,
        redactor: Redactor,
        clock: Arc<dyn Clock>,
        notice_every: Duration,
    ) -> Self {
        Self { http, redactor, clock, notice_every }
    }
}

#[async_trait]
impl Provider for ChatCompletions {
    async fn call(
        &self,
        mut request: CallRequest<'_>,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, CallError> {
        let route = request.route;
        let config_error =
            |message: &str| CallError::new(FailureClass::Config, message, route, &self.redactor);
        let url = endpoint(&route.base_url, "/chat/completions")
            .map_err(|error| config_error(&format!("base_url `{}`: {error}", route.base_url)))?;
        let headers = headers(route)
            .map_err(|name| config_error(&format!("header `{name}` has a value that HTTP does not allow")))?;
        let client = self
            .http
            .client_for(&url)
            .map_err(|error| config_error(&format!("cannot build an HTTP client: {error}")))?;

        let body = Bytes::from(request::body(&mut request));
        let limits = route.timeouts;
        let stale = if request.stream { limits.stream_stale } else { limits.whole_answer_stale };
        let stale = stale.for_tokens(body.len() / BYTES_PER_TOKEN);
        let mut exchange = Exchange {
            watch: Watch::start(cancel, limits.whole, stale, self.notice_every),
            assembly: Assembly::default(),
            sink,
            streaming: request.stream,
            streamed: false,
        };
        let response = match exchange.send(client, &url, &headers, &body).await {
            Ok(response) => response,
            Err(fault) => return Err(self.failed(Unanswered::before_anything(fault), None, route)),
        };
        if !response.status().is_success() {
            let asked = retry_after::parse(response.headers(), self.clock.now());
            let fault = exchange.refusal(response).await;
            return Err(self.failed(Unanswered::before_anything(fault), asked, route));
        }
        let status = response.status().as_u16();
        let ending = exchange.read(response).await;
        let about = Circumstances {
            model: &route.model,
            streamed: exchange.streamed,
            may_misreport_stop: misreports_stop(&request),
        };
        exchange.assembly.conclude(ending, about, exchange.sink).map_err(|mut unanswered| {
            // An answer had begun, so what failed is the stream, and not the way to the server.
            unanswered.fault.status.get_or_insert(status);
            self.failed(unanswered, None, route)
        })
    }
}

impl ChatCompletions {
    fn failed(&self, unanswered: Unanswered, retry_after: Option<Duration>, route: &Route) -> CallError {
        let Unanswered { fault, streamed_text, tool_in_flight, dropped_calls } = unanswered;
        CallError {
            status: fault.status,
            retry_after,
            streamed_text,
            tool_in_flight,
            dropped_calls,
            ..CallError::new(fault.class, &fault.message, route, &self.redactor)
        }
    }
}

/// One exchange under way.
struct Exchange<'a> {
    watch: Watch,
    assembly: Assembly,
    sink: &'a mut dyn StreamSink,
    /// A stream was asked for.
    streaming: bool,
    /// The answer came as one.
    streamed: bool,
}

/// What a body turned out to be.
enum Shape {
    /// Not enough has come to tell.
    Unknown,
    Events(SseParser),
    /// One JSON value, or a web page.
    Whole,
}

impl Exchange<'_> {
    async fn send(
        &mut self,
        client: &Client,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response, Fault> {
        let mut may_resend = true;
        loop {
            let request = client.post(url.clone()).headers(headers.clone()).body(body.clone()).send();
            match self.watch.until(request, self.sink).await {
                Err(halt) => return Err(halted(halt)),
                Ok(Ok(response)) => return Ok(response),
                // An idle connection that the server had closed: nothing was answered, so a fresh
                // one is tried once, at once.
                Ok(Err(error))
                    if may_resend && error.is_request() && !error.is_connect() && !error.is_timeout() =>
                {
                    tracing::debug!(
                        host = url.host_str(),
                        "the connection was closed before an answer; sending again"
                    );
                    may_resend = false;
                }
                Ok(Err(error)) => return Err(transport_fault(error, url)),
            }
        }
    }

    /// Reads the body of an answer that is an HTTP error.
    async fn refusal(&mut self, mut response: Response) -> Fault {
        let status = response.status().as_u16();
        let location = response
            .headers()
            .get(LOCATION)
            .filter(|_| response.status().is_redirection())
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        self.watch.progress();
        self.watch.shorten(ERROR_BODY);
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BYTES {
            match self.watch.until(response.chunk(), self.sink).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Err(Halt::Cancelled) => return halted(Halt::Cancelled),
                // The status alone says enough.
                Ok(_) | Err(_) => break,
            }
        }
        let mut facts = ErrorFacts::from_body(Some(status), &body);
        if let Some(location) = location {
            facts.message = format!("the server redirects to {location}");
            facts.is_html = false;
        }
        self.fault_of(&facts)
    }

    fn fault_of(&self, facts: &ErrorFacts) -> Fault {
        Fault { class: classify(facts, self.streaming), status: facts.status, message: facts.line() }
    }

    /// Reads an answer to its end, as whatever it turns out to be.
    async fn read(&mut self, mut response: Response) -> Ending {
        if let Some(coding) = response.headers().get(CONTENT_ENCODING).filter(|coding| *coding != "identity")
        {
            return Ending::Broken(Fault::new(
                FailureClass::MalformedStream,
                format!(
                    "the server compressed its answer ({}), which was not asked for",
                    coding.to_str().unwrap_or("?")
                ),
            ));
        }
        let is_json = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.to_ascii_lowercase().contains("application/json"));
        let mut shape = if self.streaming && !is_json { Shape::Unknown } else { Shape::Whole };
        let mut total = 0;
        let mut body: Vec<u8> = Vec::new();
        loop {
            let bytes = match self.watch.until(response.chunk(), self.sink).await {
                Err(Halt::Stale(_)) if self.assembly.is_finished() => return Ending::Done,
                Err(halt) => return Ending::Broken(halted(halt)),
                Ok(Err(error)) => return Ending::Broken(broken_body(error)),
                Ok(Ok(None)) => break,
                Ok(Ok(Some(bytes))) => bytes,
            };
            total += bytes.len();
            if total > MAX_BODY_BYTES {
                return Ending::Broken(Fault::new(
                    FailureClass::MalformedStream,
                    format!("the answer is larger than {} MiB", MAX_BODY_BYTES >> 20),
                ));
            }
            if let Shape::Events(parser) = &mut shape {
                if let ControlFlow::Break(ending) = self.events(parser, &bytes) {
                    return self.ended(ending, &mut response).await;
                }
                continue;
            }
            body.extend_from_slice(&bytes);
            if matches!(shape, Shape::Whole) {
                // Bytes of a whole answer are part of it, unlike those of keep-alives.
                self.watch.progress();
            } else if let Some(first) = without_bom(&body).trim_ascii_start().first() {
                if matches!(first, b'{' | b'[' | b'<') {
                    shape = Shape::Whole;
                } else {
                    let mut parser = SseParser::default();
                    self.streamed = true;
                    let head = std::mem::take(&mut body);
                    if let ControlFlow::Break(ending) = self.events(&mut parser, &head) {
                        return self.ended(ending, &mut response).await;
                    }
                    shape = Shape::Events(parser);
                }
            }
        }
        match shape {
            Shape::Events(mut parser) => {
                let mut ending = None;
                let flow = parser.finish(&mut |payload| self.payload(payload, &mut ending));
                if flow.is_break() { ending.unwrap_or(Ending::Eof) } else { Ending::Eof }
            }
            Shape::Unknown | Shape::Whole => self.whole(&body),
        }
    }

    /// Takes bytes of a stream; breaks with the stream's ending.
    fn events(&mut self, parser: &mut SseParser, bytes: &[u8]) -> ControlFlow<Ending> {
        let mut ending = None;
        match parser.push(bytes, &mut |payload| self.payload(payload, &mut ending)) {
            Err(_) => ControlFlow::Break(Ending::Broken(Fault::new(
                FailureClass::MalformedStream,
                "a line of the stream is longer than 16 MiB",
            ))),
            Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
            Ok(ControlFlow::Break(())) => ControlFlow::Break(ending.unwrap_or(Ending::Eof)),
        }
    }

    /// Takes one payload of a stream.
    fn payload(&mut self, payload: &[u8], ending: &mut Option<Ending>) -> ControlFlow<()> {
        if payload == b"[DONE]" {
            *ending = Some(Ending::Done);
            return ControlFlow::Break(());
        }
        let text = String::from_utf8_lossy(payload);
        let Ok(event) = serde_json::from_str::<Value>(&hermes_core::scrub_surrogates(&text)) else {
            *ending = Some(Ending::Broken(self.not_json(&text)));
            return ControlFlow::Break(());
        };
        match self.assembly.event(&event, self.sink) {
            Ok(progress) => {
                if progress {
                    self.watch.progress();
                }
                if self.assembly.is_finished() {
                    self.watch.shorten(AFTER_FINISH);
                }
                ControlFlow::Continue(())
            }
            Err(facts) => {
                *ending = Some(Ending::Broken(self.fault_of(&facts)));
                ControlFlow::Break(())
            }
        }
    }

    /// A payload that is not JSON may be an error in words.
    fn not_json(&self, text: &str) -> Fault {
        let facts = ErrorFacts { message: text.to_owned(), ..ErrorFacts::default() };
        match classify(&facts, self.streaming) {
            FailureClass::Unknown => {
                let start: String = text.chars().take(80).collect();
                Fault::new(
                    FailureClass::MalformedStream,
                    format!("the stream holds something that is not JSON: {start}"),
                )
            }
            class => Fault::new(class, text),
        }
    }

    /// After `[DONE]`: lets the body come to its end, so that the connection goes back to the pool.
    async fn ended(&mut self, ending: Ending, response: &mut Response) -> Ending {
        if matches!(ending, Ending::Done) {
            let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
            // Whether it came or not, the answer is whole.
            let _ = tokio::time::timeout(AFTER_DONE, rest).await;
        }
        ending
    }

    /// Takes a whole body: a JSON answer, or something else.
    fn whole(&mut self, body: &[u8]) -> Ending {
        let text = String::from_utf8_lossy(without_bom(body));
        let text = text.trim();
        if text.is_empty() {
            return Ending::Eof;
        }
        if text.starts_with('<') {
            let title = html_title(text).unwrap_or_else(|| "without a title".to_owned());
            let message = format!("the server answered with a web page: {title}");
            return Ending::Broken(Fault::new(FailureClass::WrongEndpoint, message));
        }
        let answer = match serde_json::from_str::<Value>(&hermes_core::scrub_surrogates(text)) {
            Ok(answer) => answer,
            Err(error) if error.is_eof() => {
                return Ending::Broken(Fault::new(FailureClass::Connection, "the answer was cut off"));
            }
            Err(_) => {
                let start: String = text.chars().take(80).collect();
                let message = format!("the answer is not JSON: {start}");
                return Ending::Broken(Fault::new(FailureClass::InvalidResponse, message));
            }
        };
        match self.assembly.whole(&answer, self.sink) {
            Ok(()) => Ending::Done,
            Err(facts) => {
                let fault = self.fault_of(&facts);
                let says_nothing = fault.class == FailureClass::Unknown;
                Ending::Broken(if says_nothing && facts.message.is_empty() {
                    Fault::new(
                        FailureClass::InvalidResponse,
                        "the server's answer has no `choices` with a message",
                    )
                } else if says_nothing {
                    Fault { class: FailureClass::InvalidResponse, ..fault }
                } else {
                    fault
                })
            }
        }
    }
}

fn headers(route: &Route) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = &route.credential {
        let value = HeaderValue::from_str(&format!("Bearer {}", key.expose().trim()));
        let mut value = value.map_err(|_| AUTHORIZATION.to_string())?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &route.extra_headers {
        let bad = |_| name.clone();
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| name.clone())?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(bad)?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// GLM served by Ollama says `stop` when it ran out of room, after tool results (spec 10 §8). No
/// other backend may be treated like that.
fn misreports_stop(request: &CallRequest<'_>) -> bool {
    let route = request.route;
    let is_ollama = route.provider.contains("ollama") || route.host().ends_with(":11434");
    let after_tools = request.messages.last().is_some_and(|message| message.role == Role::Tool);
    is_ollama && after_tools && route.model_contains(&["glm"])
}

fn halted(halt: Halt) -> Fault {
    match halt {
        Halt::Cancelled => Fault::new(FailureClass::Cancelled, "the call was cancelled"),
        Halt::Stale(limit) => {
            Fault::new(FailureClass::Stale, format!("the model sent nothing for {} s", seconds(limit)))
        }
        Halt::TooLong(limit) => {
            Fault::new(FailureClass::Timeout, format!("the call took longer than {} s", seconds(limit)))
        }
    }
}

fn seconds(limit: Duration) -> String {
    if limit.subsec_millis() == 0 {
        limit.as_secs().to_string()
    } else {
        format!("{:.1}", limit.as_secs_f64())
    }
}

/// Why no answer came at all.
fn transport_fault(error: reqwest::Error, url: &Url) -> Fault {
    let host = url.host_str().unwrap_or_default();
    let place = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let is_connect = error.is_connect();
    let is_timeout = error.is_timeout();
    let cause = root_cause(&error.without_url());
    let lower = cause.to_lowercase();
    if lower.contains("certificate") {
        return Fault::new(
            FailureClass::Certificate,
            format!("the certificate of {place} is not accepted: {cause}"),
        );
    }
    if is_timeout {
        return Fault::new(FailureClass::Timeout, format!("could not connect to {place} in time"));
    }
    if is_connect {
        return Fault::new(FailureClass::Connection, format!("could not connect to {place}: {cause}"));
    }
    Fault::new(FailureClass::Connection, format!("the connection to {place} broke: {cause}"))
}

fn broken_body(error: reqwest::Error) -> Fault {
    let cause = root_cause(&error.without_url());
    Fault::new(FailureClass::Connection, format!("the stream broke: {cause}"))
}

/// The innermost cause: the layers above it only say that something failed.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

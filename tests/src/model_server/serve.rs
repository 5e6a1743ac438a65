//! The HTTP side of the scripted server: hyper on one thread.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::State;
use super::reply::{Completion, Reply};

/// Time for written bytes to reach the client before a connection is cut.
const FLUSH: std::time::Duration = std::time::Duration::from_millis(50);

type Body = BoxBody<Bytes, io::Error>;

pub(super) fn run(listener: TcpListener, state: Arc<State>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the listener is non-blocking");
        let mut tasks = tokio::task::JoinSet::new();
        let mut stopped = stopped;
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    let _ = stream.set_nodelay(true);
                    let state = Arc::clone(&state);
                    tasks.spawn(async move {
                        let service = service_fn(move |request| answer(Arc::clone(&state), request));
                        // A client that goes away is part of many tests.
                        let _ = hyper::server::conn::http1::Builder::new()
                            .serve_connection(TokioIo::new(stream), service)
                            .await;
                    });
                }
                Some(_) = tasks.join_next() => {}
            }
        }
    });
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if request.uri().path().ends_with("/models") {
        let models = json!({ "object": "list", "data": [{ "id": "fake", "object": "model", "context_length": 200_000 }] });
        return Ok(respond(200, "application/json", models.to_string()));
    }
    if !request.uri().path().ends_with("/chat/completions") {
        return Ok(respond(
            404,
            "application/json",
            json!({ "error": { "message": "no such path" } }).to_string(),
        ));
    }
    let authorization =
        request.headers().get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let Ok(body) = request.into_body().collect().await else {
        return Ok(respond(400, "text/plain", "the body broke off".into()));
    };
    let body: Arc<str> = String::from_utf8_lossy(&body.to_bytes()).into();
    let delay = state.first_byte_delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    Ok(match state.take(Arc::clone(&body), authorization) {
        Reply::Status { status, content_type, body, headers } => {
            let mut response = respond(status, content_type, body);
            for (name, value) in headers {
                if let Ok(value) = value.parse() {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
        Reply::Completion(completion) => complete(&completion, &body),
    })
}

fn complete(completion: &Completion, request: &str) -> Response<Body> {
    let serial = request.len();
    let usage = usage(request, completion);
    if !request.contains("\"stream\":true") || completion.ignore_stream {
        return respond(200, "application/json", completion.whole(serial, &usage));
    }
    let events = completion.events(serial, &usage);
    if completion.cut_after.is_none() && completion.stall.is_none() && completion.delay.is_none() {
        let mut whole = String::new();
        for event in &events {
            whole.extend(["data: ", event, "\n\n"]);
        }
        whole.push_str("data: [DONE]\n\n");
        return respond(200, "text/event-stream", whole);
    }
    let (sender, receiver) = mpsc::channel::<Result<Bytes, io::Error>>(16);
    let completion = completion.clone();
    spawn(async move {
        if let Some(stall) = completion.stall {
            tokio::time::sleep(stall).await;
        }
        for (index, event) in events.into_iter().enumerate() {
            if completion.cut_after == Some(index) {
                // What was sent must leave the socket before it is torn down.
                tokio::time::sleep(FLUSH).await;
                let _ = sender.send(Err(io::Error::other("cut by the script"))).await;
                return;
            }
            if let Some(delay) = completion.delay {
                tokio::time::sleep(delay).await;
            }
            if sender.send(Ok(format!("data: {event}\n\n").into())).await.is_err() {
                return;
            }
        }
        let _ = sender.send(Ok("data: [DONE]\n\n".into())).await;
    });
    let frames = ReceiverStream::new(receiver).map(|chunk| chunk.map(Frame::data));
    let mut response = Response::new(StreamBody::new(frames).boxed());
    let content_type = hyper::header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert("content-type", content_type);
    response
}

/// Four characters a token, as rough as it is stable.
fn usage(request: &str, completion: &Completion) -> Value {
    let prompt = request.len() / 4;
    let arguments: usize = completion.calls.iter().map(|call| call.arguments.len()).sum();
    let output = ((completion.text.len() + arguments) / 4).max(1);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": { "cached_tokens": 0 },
    })
}

fn respond(status: u16, content_type: &'static str, body: String) -> Response<Body> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::OK);
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static(content_type));
    response
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server's runtime ends with its thread, and its tasks with it"
)]
fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}

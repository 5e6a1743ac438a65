//! A scripted HTTP server on this machine: for each request it receives, the next script.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::mode::ApiMode;
use crate::route::{CallTimeouts, Route, StaleLimit};

/// What the server does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Waits until the client closes the connection, and reports it.
    AwaitClose,
    /// Closes the connection.
    Close,
}

/// One request, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: String,
}

#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    pub(crate) requests: Receiver<Recorded>,
    pub(crate) closed: Receiver<()>,
}

impl Server {
    pub(crate) fn script(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, requests) = channel();
        let (closes, closed) = channel();
        let scripts = Arc::new(Mutex::new(scripts.into_iter()));
        // Ends with the process: a test's listener is not worth a shutdown of its own.
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (seen, closes, scripts) = (seen.clone(), closes.clone(), Arc::clone(&scripts));
                let stream = stream.unwrap();
                thread::spawn(move || {
                    serve(connection, &stream, &seen, &closes, &mut || scripts.lock().unwrap().next());
                });
            }
        });
        Self { address, requests, closed }
    }

    /// A route to the server, with limits that no test waits for.
    pub(crate) fn route(&self) -> Route {
        let limit = StaleLimit::Fixed(Duration::from_mins(1));
        Route {
            provider: "custom".into(),
            model: "fake".into(),
            base_url: format!("http://{}/v1", self.address),
            api_mode: ApiMode::ChatCompletions,
            timeouts: CallTimeouts {
                whole: Duration::from_mins(1),
                stream_stale: limit,
                whole_answer_stale: limit,
            },
            ..Route::offline()
        }
    }
}

fn serve(
    connection: usize,
    stream: &TcpStream,
    seen: &Sender<Recorded>,
    closes: &Sender<()>,
    next: &mut dyn FnMut() -> Option<Vec<Step>>,
) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read_request(connection, &mut reader) {
        // A receiver that is gone belongs to a test that has seen enough.
        let _ = seen.send(request);
        let Some(steps) = next() else { return };
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if writer.write_all(&bytes).and_then(|()| writer.flush()).is_err() {
                        return;
                    }
                }
                Step::AwaitClose => {
                    let mut byte = [0];
                    while matches!(reader.read(&mut byte), Ok(1..)) {}
                    let _ = closes.send(());
                    return;
                }
                Step::Close => return,
            }
        }
    }
}

fn read_request(connection: usize, reader: &mut BufReader<&TcpStream>) -> Option<Recorded> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
        })
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Recorded { connection, head, body: String::from_utf8(body).unwrap() })
}

/// A whole response.
pub(crate) fn http(status: &str, headers: &[&str], body: &str) -> Step {
    let headers: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
    Step::Send(
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes(),
    )
}

/// The head of a streamed response.
pub(crate) fn stream_head() -> Step {
    Step::Send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
    )
}

/// One chunk of a streamed response.
pub(crate) fn chunk(text: &str) -> Step {
    Step::Send(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

/// One event of a streamed response.
pub(crate) fn event(json: &str) -> Step {
    chunk(&format!("data: {json}\n\n"))
}

/// A text delta.
pub(crate) fn say(text: &str) -> Step {
    event(&serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string())
}

/// The finish reason, `[DONE]` and the end of the body.
pub(crate) fn stop() -> Vec<Step> {
    vec![
        event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#),
        chunk("data: [DONE]\n\n"),
        Step::Send(b"0\r\n\r\n".to_vec()),
    ]
}

/// A streamed response of these steps that ends well.
pub(crate) fn streamed(steps: impl IntoIterator<Item = Step>) -> Vec<Step> {
    [stream_head()].into_iter().chain(steps).chain(stop()).collect()
}

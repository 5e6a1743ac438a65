//! A model server on loopback that answers by script and checks what it is sent.
//!
//! It runs on a thread of its own, so that tests can be plain functions and drive real processes.
//! Every request is held against the protocol: one system row, alternating roles, paired tool
//! calls, no internal fields, and a history that only grows, byte for byte.

mod check;
mod reply;
mod serve;

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use check::Violation;
pub use reply::{Call, Reply};

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Position over all requests of this server, from 0.
    pub index: usize,
    /// The body, byte for byte.
    pub body: Arc<str>,
    pub authorization: Option<String>,
}

impl ModelRequest {
    /// The body as a tree.
    ///
    /// # Panics
    /// When the body is not JSON, which is a failure of the code under test.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("request bodies are JSON")
    }

    /// The content of the last user row.
    pub fn last_user(&self) -> String {
        let json = self.json();
        let rows = json["messages"].as_array().cloned().unwrap_or_default();
        let last = rows.iter().rev().find(|row| row["role"] == "user");
        last.and_then(|row| row["content"].as_str()).unwrap_or_default().to_owned()
    }

    /// Tool results after the last user row.
    pub fn results_since_user(&self) -> usize {
        let json = self.json();
        let rows = json["messages"].as_array().cloned().unwrap_or_default();
        rows.iter().rev().take_while(|row| row["role"] != "user").filter(|row| row["role"] == "tool").count()
    }

    /// What the last tool result says, as the model got it; empty without one.
    pub fn last_result(&self) -> String {
        let json = self.json();
        let rows = json["messages"].as_array().cloned().unwrap_or_default();
        let last = rows.iter().rev().find(|row| row["role"] == "tool");
        last.and_then(|row| row["content"].as_str()).unwrap_or_default().to_owned()
    }

    /// The id of the background process that a result named last.
    pub fn process_id(&self) -> Option<String> {
        self.body.rmatch_indices("proc_").find_map(|(at, _)| {
            let id = self.body.get(at..at + 17)?;
            id.strip_prefix("proc_")?.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| id.to_owned())
        })
    }

    /// Whether the request offers tools: title and summary calls do not.
    pub fn has_tools(&self) -> bool {
        self.body.contains("\"tools\":[")
    }
}

type Script = dyn Fn(&ModelRequest) -> Reply + Send + Sync;

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<State>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

pub(crate) struct State {
    script: Box<Script>,
    first_byte_delay: Duration,
    checks: bool,
    log: Mutex<Log>,
    arrived: Condvar,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Log {
    requests: Vec<ModelRequest>,
    violations: Vec<Violation>,
    conversations: check::Conversations,
}

impl ModelServer {
    /// Answers each request with what `script` says.
    pub fn start(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::launch(Box::new(script), Duration::ZERO, true)
    }

    /// Answers the first request with the first reply, and so on; the last one repeats.
    pub fn sequence(replies: Vec<Reply>) -> Self {
        assert!(!replies.is_empty(), "a sequence needs a reply");
        Self::start(move |request| {
            let index = request.index.min(replies.len() - 1);
            replies.get(index).cloned().expect("bounded by the length")
        })
    }

    /// For measurements: waits before its first byte, and neither records nor checks.
    pub fn for_bench(
        first_byte_delay: Duration,
        script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::launch(Box::new(script), first_byte_delay, false)
    }

    fn launch(script: Box<Script>, first_byte_delay: Duration, checks: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a fresh socket can be made non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(State {
            script,
            first_byte_delay,
            checks,
            log: Mutex::default(),
            arrived: Condvar::new(),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let serving = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("model-server".into())
            .spawn(move || serve::run(listener, serving, stopped))
            .expect("a thread can be started");
        Self { address, state, stop: Some(stop), thread: Some(thread) }
    }

    /// What goes into `model.base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// A `config.yaml` that uses this server.
    pub fn config(&self) -> String {
        format!(
            "model:\n  provider: custom\n  base_url: {}\n  api_key: test-key-0123456789\n  default: fake\n",
            self.base_url()
        )
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.log().requests.clone()
    }

    /// Waits until `count` requests came; panics after 30 seconds.
    pub fn wait_for_requests(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut log = self.state.log();
        while log.requests.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "only {} of {count} requests came", log.requests.len());
            (log, _) = self.state.arrived.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What was wrong with the requests so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.state.log().violations.clone()
    }

    /// Panics when any request broke the protocol.
    pub fn assert_clean(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "requests broke the protocol: {violations:#?}");
    }

    /// Distinct system prompts over the requests with tools.
    pub fn system_prompts(&self) -> Vec<String> {
        let mut prompts: Vec<String> = self
            .requests()
            .iter()
            .filter(|request| request.has_tools())
            .filter_map(|request| request.json()["messages"][0]["content"].as_str().map(str::to_owned))
            .collect();
        prompts.sort();
        prompts.dedup();
        prompts
    }
}

impl State {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records and checks a request, and says how to answer it.
    pub(crate) fn take(&self, body: Arc<str>, authorization: Option<String>) -> Reply {
        if !self.checks {
            let request = ModelRequest { index: 0, body, authorization };
            return (self.script)(&request);
        }
        let mut log = self.log();
        let request = ModelRequest { index: log.requests.len(), body, authorization };
        let found = log.conversations.check(&request);
        log.violations.extend(found);
        log.requests.push(request.clone());
        drop(log);
        self.arrived.notify_all();
        (self.script)(&request)
    }

    pub(crate) fn first_byte_delay(&self) -> Duration {
        self.first_byte_delay
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server's thread was already printed.
            let _ = thread.join();
        }
    }
}

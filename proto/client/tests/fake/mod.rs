//! A daemon that answers from a script, on a real socket, and that can be killed.
//!
//! It runs on a runtime of its own: dropping that runtime closes every connection at once, which is
//! what a client sees of a SIGKILL.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use hermes_client::{Connector, Identity, Launch, Place};
use hermes_proto::v1::{self, control_server, sessions_server, turns_server};
use tokio::sync::mpsc::UnboundedSender;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

/// What one attach answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttachScript {
    pub(crate) frames: Vec<v1::AttachFrame>,
    /// The stream stays open after its frames; else it ends.
    pub(crate) stay: bool,
}

/// What one submit answers.
#[derive(Debug, Clone)]
pub(crate) enum SubmitScript {
    Answer(v1::SubmitResponse),
    Refuse(Status),
    /// The request is taken, and no answer ever comes.
    Hang,
}

/// What the daemon answers, and what it was asked.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) hello: v1::HelloResponse,
    pub(crate) active_turns: u32,
    pub(crate) attaches: VecDeque<AttachScript>,
    pub(crate) submits: VecDeque<SubmitScript>,
    pub(crate) turn: Option<v1::GetTurnResponse>,
    pub(crate) stored: Vec<v1::Row>,
    pub(crate) asked_attach: Vec<v1::AttachRequest>,
    pub(crate) asked_submit: Vec<v1::SubmitRequest>,
    /// Told of every call by its name.
    pub(crate) calls: Option<UnboundedSender<&'static str>>,
}

#[derive(Debug, Clone)]
struct Fake(Arc<Mutex<Script>>);

/// A running fake. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct FakeDaemon {
    runtime: Option<tokio::runtime::Runtime>,
    script: Arc<Mutex<Script>>,
}

impl FakeDaemon {
    /// Serves `script` at `socket`; the socket takes connections when this returns.
    pub(crate) fn start(socket: &Path, script: Script) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _ = std::fs::remove_file(socket);
        let listener = {
            let _entered = runtime.enter();
            tokio::net::UnixListener::bind(socket).unwrap()
        };
        let script = Arc::new(Mutex::new(script));
        let fake = Fake(script.clone());
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(control_server::ControlServer::new(fake.clone()))
                .add_service(sessions_server::SessionsServer::new(fake.clone()))
                .add_service(turns_server::TurnsServer::new(fake))
                .serve_with_incoming(UnixListenerStream::new(listener)),
        );
        Self { runtime: Some(runtime), script }
    }

    pub(crate) fn asked<T>(&self, read: impl FnOnce(&Script) -> T) -> T {
        read(&self.script.lock().unwrap())
    }

    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for FakeDaemon {
    fn drop(&mut self) {
        self.end();
    }
}

impl Fake {
    fn called(&self, name: &'static str) -> std::sync::MutexGuard<'_, Script> {
        let script = self.0.lock().unwrap();
        if let Some(calls) = &script.calls {
            let _ = calls.send(name);
        }
        script
    }
}

#[tonic::async_trait]
impl control_server::Control for Fake {
    type WatchStream = tokio_stream::Empty<Result<v1::ProfileEvent, Status>>;
    type LogsStream = tokio_stream::Empty<Result<v1::LogLine, Status>>;

    async fn hello(&self, _: Request<v1::HelloRequest>) -> Result<Response<v1::HelloResponse>, Status> {
        Ok(Response::new(self.called("hello").hello.clone()))
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::StatusResponse>, Status> {
        let active_turns = self.called("status").active_turns;
        Ok(Response::new(v1::StatusResponse { active_turns, ..Default::default() }))
    }

    async fn shutdown(
        &self,
        _: Request<v1::ShutdownRequest>,
    ) -> Result<Response<v1::ShutdownResponse>, Status> {
        drop(self.called("shutdown"));
        Ok(Response::new(v1::ShutdownResponse::default()))
    }

    async fn watch(&self, _: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("watch"))
    }

    async fn logs(&self, _: Request<v1::LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        Err(Status::unimplemented("logs"))
    }

    async fn config_get(
        &self,
        _: Request<v1::ConfigGetRequest>,
    ) -> Result<Response<v1::ConfigGetResponse>, Status> {
        Err(Status::unimplemented("config_get"))
    }

    async fn config_show(
        &self,
        _: Request<v1::ConfigShowRequest>,
    ) -> Result<Response<v1::ConfigShowResponse>, Status> {
        Err(Status::unimplemented("config_show"))
    }
}

type Frames = std::pin::Pin<Box<dyn Stream<Item = Result<v1::AttachFrame, Status>> + Send>>;

#[tonic::async_trait]
impl sessions_server::Sessions for Fake {
    type AttachStream = Frames;

    async fn create(
        &self,
        _: Request<v1::CreateSessionRequest>,
    ) -> Result<Response<v1::SessionDetail>, Status> {
        Err(Status::unimplemented("create"))
    }

    async fn open(&self, _: Request<v1::OpenSessionRequest>) -> Result<Response<v1::SessionDetail>, Status> {
        Err(Status::unimplemented("open"))
    }

    async fn list(
        &self,
        _: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        Err(Status::unimplemented("list"))
    }

    async fn get(
        &self,
        request: Request<v1::GetSessionRequest>,
    ) -> Result<Response<v1::GetSessionResponse>, Status> {
        let after = request.into_inner().after_message_id;
        // One row at a time, so that a reader has to ask again.
        let mut rest: VecDeque<v1::Row> =
            self.called("get").stored.iter().filter(|row| row.id > after).cloned().collect();
        let rows = rest.pop_front().into_iter().collect();
        Ok(Response::new(v1::GetSessionResponse { rows, more_rows: !rest.is_empty(), ..Default::default() }))
    }

    async fn search(&self, _: Request<v1::SearchRequest>) -> Result<Response<v1::SearchResponse>, Status> {
        Err(Status::unimplemented("search"))
    }

    async fn attach(&self, request: Request<v1::AttachRequest>) -> Result<Response<Frames>, Status> {
        let mut script = self.called("attach");
        script.asked_attach.push(request.into_inner());
        let Some(next) = script.attaches.pop_front() else {
            return Err(Status::not_found("no such session"));
        };
        let frames = tokio_stream::iter(next.frames.into_iter().map(Ok));
        let frames: Frames =
            if next.stay { Box::pin(frames.chain(tokio_stream::pending())) } else { Box::pin(frames) };
        Ok(Response::new(frames))
    }
}

#[tonic::async_trait]
impl turns_server::Turns for Fake {
    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        let next = {
            let mut script = self.called("submit");
            script.asked_submit.push(request.into_inner());
            script.submits.pop_front()
        };
        match next {
            Some(SubmitScript::Answer(answer)) => Ok(Response::new(answer)),
            Some(SubmitScript::Refuse(status)) => Err(status),
            Some(SubmitScript::Hang) => std::future::pending().await,
            None => Err(Status::invalid_argument("no submit was expected")),
        }
    }

    async fn steer(&self, _: Request<v1::SteerRequest>) -> Result<Response<v1::SteerResponse>, Status> {
        Err(Status::unimplemented("steer"))
    }

    async fn interrupt(
        &self,
        _: Request<v1::InterruptRequest>,
    ) -> Result<Response<v1::InterruptResponse>, Status> {
        drop(self.called("interrupt"));
        Ok(Response::new(v1::InterruptResponse { status: "interrupted".into() }))
    }

    async fn get(&self, _: Request<v1::GetTurnRequest>) -> Result<Response<v1::GetTurnResponse>, Status> {
        let turn = self.called("turn").turn.clone();
        turn.map(Response::new).ok_or_else(|| Status::not_found("no such turn"))
    }
}

/// A daemon that introduces itself with this epoch, at this client's version.
pub(crate) fn hello(epoch: &str) -> v1::HelloResponse {
    v1::HelloResponse {
        protocol: hermes_proto::PROTOCOL,
        version: "1.0.0".into(),
        epoch: epoch.into(),
        profile: "default".into(),
        scope: "admin".into(),
        pid: std::process::id(),
        on_demand: true,
        ..Default::default()
    }
}

/// A connector for a home in `dir`, whose `hermesd` is whatever lies in that folder.
pub(crate) fn connector(dir: &Path) -> Connector {
    let place = Place {
        root: dir.to_owned(),
        profile: "default".into(),
        socket: dir.join("hermesd.sock"),
        daemon_json: dir.join("daemon.json"),
        gateway_lock: dir.join("gateway.lock"),
        agent_log: dir.join("agent.log"),
    };
    let identity = Identity { client: "test".into(), version: "1.0.0".into() };
    Connector::new(place, identity, Launch { client_exe: Some(dir.join("client")), search_path: None })
}

/// A `hermesd` that always loses the profile's lock, so that the test's own fake is the one that serves.
pub(crate) fn install_losing_hermesd(dir: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let program = dir.join("hermesd");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

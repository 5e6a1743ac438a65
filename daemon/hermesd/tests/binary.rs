//! The real binary: what it says, with which code it ends, and what it leaves behind.
//!
//! Readiness comes over a notify socket of the test's own, so nothing here sleeps or polls.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use hermes_proto::v1 as wire;
use hermes_proto::v1::control_client::ControlClient;
use hermes_proto::v1::sessions_client::SessionsClient;
use hermes_proto::v1::turns_client::TurnsClient;
use hermes_proto::{MAX_MESSAGE_BYTES, PROTOCOL};
use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::UnixStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// A daemon that says nothing for so long has failed the test.
const PATIENCE: Duration = Duration::from_secs(30);

struct Home {
    dir: tempfile::TempDir,
    notify: UnixDatagram,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let notify = UnixDatagram::bind(dir.path().join("notify.sock")).unwrap();
        notify.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { dir, notify }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.root()).unwrap();
        std::fs::write(self.file(name), text).unwrap();
    }

    fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.file(name)).unwrap()).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermesd"));
        command
            .args(args)
            .env_clear()
            .env("HERMES_HOME", self.root())
            .env("HOME", self.dir.path())
            .env("TMPDIR", self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a daemon that is expected not to come up.
    fn fails(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a daemon until it says that it is ready.
    fn start(&self, args: &[&str]) -> Daemon {
        let child =
            self.command(args).env("NOTIFY_SOCKET", self.dir.path().join("notify.sock")).spawn().unwrap();
        let daemon = Daemon { child };
        assert!(self.heard("READY=1"), "the daemon did not become ready");
        daemon
    }

    /// Whether the next words to the service manager hold this one.
    fn heard(&self, word: &str) -> bool {
        let mut buffer = [0; 4096];
        let length = self.notify.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).lines().any(|line| line == word)
    }

    fn socket(&self) -> PathBuf {
        PathBuf::from(self.json("run/daemon.json")["socket"].as_str().unwrap())
    }
}

struct Daemon {
    child: Child,
}

impl Daemon {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    fn end(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }

    fn stop(self) -> i32 {
        self.signal(Signal::SIGTERM);
        self.end()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn connect(socket: PathBuf) -> Channel {
    Endpoint::from_static("http://hermesd")
        .connect_with_connector(tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        }))
        .await
        .unwrap()
}

fn hello(protocol: u32) -> wire::HelloRequest {
    wire::HelloRequest { protocol, client: "test".into(), version: "1".into() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_version_names_binary_and_protocol() {
    let output = Home::new().fails(&["--version"]);
    assert_eq!(
        text(&output.stdout),
        format!("hermesd {} (protocol {PROTOCOL})\n", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_running_daemon_is_announced_and_a_stopped_one_leaves_no_trace() {
    let home = Home::new();
    let daemon = home.start(&["run"]);
    let announced = home.json("run/daemon.json");
    assert_eq!(announced["pid"], daemon.child.id());
    assert_eq!(announced["protocol"], PROTOCOL);
    assert_eq!(announced["on_demand"], false);
    assert_eq!(home.json("gateway.pid")["pid"], daemon.child.id());
    assert_eq!(home.json("gateway_state.json")["gateway_state"], "running");
    let socket = home.socket();
    assert_eq!(socket, home.root().canonicalize().unwrap().join("run/hermesd.sock"));

    daemon.signal(Signal::SIGTERM);
    assert!(home.heard("STOPPING=1"));
    assert_eq!(daemon.end(), 0);
    assert!(!home.file("run/daemon.json").exists() && !socket.exists() && !home.file("gateway.pid").exists());
    let state = home.json("gateway_state.json");
    assert_eq!((&state["gateway_state"], &state["exit_reason"]), (&"stopped".into(), &"SIGTERM".into()));
}

#[test]
fn a_second_daemon_for_a_profile_is_refused_and_names_the_first() {
    let home = Home::new();
    let daemon = home.start(&["run"]);
    let refused = home.fails(&["run"]);
    assert_eq!(refused.status.code(), Some(1));
    let words = text(&refused.stderr);
    assert!(words.contains(&format!("pid {}", daemon.child.id())), "{words}");
    assert_eq!(home.json("run/daemon.json")["pid"], daemon.child.id(), "the first one is untouched");
    assert_eq!(daemon.stop(), 0);
}

#[test]
fn a_killed_daemon_does_not_keep_the_next_one_from_starting() {
    let home = Home::new();
    let daemon = home.start(&["run"]);
    daemon.signal(Signal::SIGKILL);
    drop(daemon);
    assert!(home.file("run/daemon.json").exists(), "a killed daemon leaves its files");
    let next = home.start(&["run"]);
    assert_eq!(home.json("run/daemon.json")["pid"], next.child.id());
    assert_eq!(next.stop(), 0);
}

#[test]
fn broken_settings_end_the_start_with_file_line_and_reason() {
    let home = Home::new();
    home.write("config.yaml", "model:\n  provider: [unclosed\n");
    let refused = home.fails(&["run"]);
    assert_eq!(refused.status.code(), Some(78));
    let words = text(&refused.stderr);
    let place = format!("{}:", home.file("config.yaml").display());
    assert!(words.contains(&place), "{words}");
    let log = std::fs::read_to_string(home.file("logs/errors.log")).unwrap();
    assert!(log.contains(&place), "{log}");
    assert_eq!(home.json("gateway_state.json")["gateway_state"], "startup_failed");
}

#[test]
fn a_home_that_cannot_be_used_is_a_configuration_error() {
    let home = Home::new();
    std::fs::write(home.root(), "I am a file").unwrap();
    let refused = home.fails(&["run"]);
    assert_eq!(refused.status.code(), Some(78));
    let words = text(&refused.stderr);
    assert!(words.contains("is not a folder") && words.contains("HERMES_HOME"), "{words}");
}

#[test]
fn a_log_level_that_does_not_exist_is_a_configuration_error() {
    let refused = Home::new().fails(&["run", "--log-level", "loud"]);
    assert_eq!(refused.status.code(), Some(78));
    assert!(text(&refused.stderr).contains("`loud`"));
}

#[test]
fn a_home_with_a_long_path_is_served_elsewhere() {
    let home = Home::new();
    let deep = home.dir.path().join("d".repeat(120));
    let mut command = home.command(&["run", "--home", deep.to_str().unwrap()]);
    command.env("NOTIFY_SOCKET", home.dir.path().join("notify.sock"));
    let daemon = Daemon { child: command.spawn().unwrap() };
    assert!(home.heard("READY=1"));
    let announced: serde_json::Value =
        serde_json::from_slice(&std::fs::read(deep.join("run/daemon.json")).unwrap()).unwrap();
    let socket = Path::new(announced["socket"].as_str().unwrap());
    assert!(socket.as_os_str().len() <= 100 && socket.exists(), "{}", socket.display());
    assert_eq!(daemon.stop(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_words_tell_versions_scope_and_skew() {
    let home = Home::new();
    let daemon = home.start(&["run"]);
    let mut control = ControlClient::new(connect(home.socket()).await);
    let answer = control.hello(hello(PROTOCOL)).await.unwrap().into_inner();
    assert_eq!(
        (answer.protocol, answer.scope.as_str(), answer.profile.as_str()),
        (PROTOCOL, "admin", "default")
    );
    assert_eq!(answer.pid, daemon.child.id());
    assert_eq!(answer.epoch, home.json("run/daemon.json")["epoch"].as_str().unwrap());

    let skew = control.hello(hello(PROTOCOL + 1)).await.unwrap_err();
    assert_eq!(skew.code(), Code::FailedPrecondition);
    assert!(skew.message().contains("update the daemon"), "{skew}");

    let status = control.status(wire::StatusRequest {}).await.unwrap().into_inner();
    assert_eq!((status.state.as_str(), status.clients, status.active_turns), ("running", 1, 0));
    drop(control);
    assert_eq!(daemon.stop(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_with_their_reason() {
    let home = Home::new();
    let daemon = home.start(&["run"]);
    let channel = connect(home.socket()).await;
    let mut turns = TurnsClient::new(channel.clone());
    let request = |text: String| wire::SubmitRequest {
        session_id: "20260101_000000_00000000".into(),
        text,
        ..Default::default()
    };

    let refused = turns.submit(wire::SubmitRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("session_id:"), "{refused}");

    let refused = turns.submit(request("hello".into())).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("20260101_000000_00000000"), "{refused}");

    let refused = turns.submit(request("x".repeat(MAX_MESSAGE_BYTES))).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("16 MiB"), "{refused}");

    let mut sessions = SessionsClient::new(channel);
    let open = wire::OpenSessionRequest { reference: "latest".into(), ..Default::default() };
    assert_eq!(sessions.open(open).await.unwrap_err().code(), Code::NotFound);
    drop((turns, sessions));
    assert_eq!(daemon.stop(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_ask_for_a_restart_and_open_streams_hear_of_it() {
    let home = Home::new();
    let daemon = home.start(&["run"]);
    let mut control = ControlClient::new(connect(home.socket()).await);
    let mut watch = control.watch(wire::WatchRequest {}).await.unwrap().into_inner();
    control.shutdown(wire::ShutdownRequest { restart: true, drain_s: None }).await.unwrap();
    let notice = watch.message().await.unwrap().unwrap();
    let Some(wire::profile_event::Payload::Notice(words)) = notice.payload else { panic!("{notice:?}") };
    assert!(words.contains("restarts"), "{words}");
    assert_eq!(watch.message().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(daemon.end(), 75);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_and_settings_can_be_read_and_hold_no_secret() {
    let home = Home::new();
    home.write("config.yaml", "model:\n  provider: custom\n  api_key: sk-very-secret-value-1234567890\n");
    let daemon = home.start(&["run"]);
    let mut control = ControlClient::new(connect(home.socket()).await);
    let shown =
        control.config_show(wire::ConfigShowRequest {}).await.unwrap().into_inner().value.unwrap().raw;
    assert!(shown.contains("custom") && !shown.contains("very-secret"), "{shown}");
    let one = |key: &str| wire::ConfigGetRequest { key: key.into() };
    let provider = control.config_get(one("model.provider")).await.unwrap().into_inner();
    assert_eq!(provider.value.unwrap().raw, "\"custom\"");
    assert_eq!(control.config_get(one("no.such.key")).await.unwrap().into_inner().value, None);

    let mut lines = control.logs(wire::LogsRequest { limit: 100, follow: false }).await.unwrap().into_inner();
    let mut ready = false;
    while let Some(line) = lines.message().await.unwrap() {
        ready |= line.line.contains("ready");
    }
    assert!(ready, "the log tells that the daemon is ready");
    drop((control, lines));
    assert_eq!(daemon.stop(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_daemon_that_a_client_started_ends_by_itself() {
    let home = Home::new();
    home.write("config.yaml", "daemon:\n  idle_exit: 1\n");
    let daemon = home.start(&["run", "--on-demand"]);
    assert_eq!(home.json("run/daemon.json")["on_demand"], true);
    // While a client is connected it stays; it ends once the client has left.
    let mut control = ControlClient::new(connect(home.socket()).await);
    assert!(control.hello(hello(PROTOCOL)).await.unwrap().into_inner().on_demand);
    drop(control);
    assert!(home.heard("STOPPING=1"));
    assert_eq!(daemon.end(), 0);
    assert_eq!(home.json("gateway_state.json")["exit_reason"], "idle");
}

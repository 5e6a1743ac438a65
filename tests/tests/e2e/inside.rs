//! From inside `terminal`: whatever the agent's own commands try in order to free it is refused or stays unapplied,
//! and the user is told.

use std::path::Path;

use hermes_client::{NewTurn, SessionWatch, TurnRun, TurnStep, WatchOptions};
use hermes_proto::v1::{self, event::Payload};
use hermes_tests::{ModelServer, Reply, TestHome, binary, connector, wait_until};
use pretty_assertions::assert_eq;
use serde_json::json;

/// What the model does when it is told so: one command.
const RUN: &str = "run: ";

/// A home whose model runs what it is told, with our binaries in the commands' PATH.
struct Inside {
    home: TestHome,
    server: ModelServer,
}

impl Inside {
    fn new() -> Self {
        let server = ModelServer::start(|request| match request.last_user().strip_prefix(RUN) {
            Some(command) if request.results_since_user() == 0 => {
                Reply::call("terminal", &json!({ "command": command, "timeout": 50 }))
            }
            Some(_) => Reply::text("I tried"),
            None => Reply::text("an answer from inside"),
        });
        let home = TestHome::with_config(&server.config());
        home.write_file("precious/a.txt", "theirs");
        Self { home, server }
    }

    /// Runs a command in the terminal of a turn without approvals, and gives what it printed.
    fn run(&self, command: &str) -> String {
        self.home.cli(["-z", &format!("{RUN}{}", with_path(command)), "--yolo"]).success();
        self.last_result()
    }

    /// The newest answer of the terminal, of the outer conversation.
    fn last_result(&self) -> String {
        self.server.requests().last().unwrap().last_result()
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.home.dir().join("config.yaml")).unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.dir().join("logs/agent.log")).unwrap_or_default()
    }

    fn is_unharmed(&self) -> bool {
        self.home.work().join("precious/a.txt").exists()
    }

    async fn warnings(&self) -> Vec<String> {
        let client = connector(&self.home).ensure().await.unwrap();
        client.status().await.unwrap().warnings
    }
}

/// The command, with our binaries in its PATH.
fn with_path(command: &str) -> String {
    let folder = binary("hermes-cli").parent().map(|folder| folder.display().to_string()).unwrap();
    format!("export PATH=\"{folder}:$PATH\"; {command}")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_client_of_the_agent_may_talk_and_not_decide() {
    let inside = Inside::new();
    let said = inside.run("hermes-cli -z hello; echo code $?");
    assert!(said.contains("an answer from inside") && said.contains("code 0"), "{said}");

    let said = inside.run("hermes-cli -z 'run: touch owned' --yolo; echo code $?");
    assert!(said.contains("may not switch approvals off") && !said.contains("code 0"), "{said}");
    assert!(!inside.home.work().join("owned").exists());

    // The parent's yolo is not the child's.
    inside.run("hermes-cli -z 'run: rm -rf precious'");
    assert!(inside.is_unharmed());

    // What a rule knows by its words is not even run; from a file it is, and the daemon refuses.
    let said = inside.run("hermes-cli daemon stop");
    assert!(said.contains("blocked"), "{said}");
    let before = inside.config();
    inside.home.write_file(
        "try.sh",
        "hermes-cli config set approvals.mode off; echo code $?\nhermes-cli approvals list; hermes-cli approvals accept --yes\n\
         hermes-cli daemon stop; hermes-cli daemon restart\nhermes-cli -r latest -z hello; echo code $?\n",
    );
    let said = inside.run("sh try.sh 2>&1");
    for refused in ["change the settings", "what the agent may do", "stop or restart", "which is not its own"]
    {
        assert!(said.contains(refused), "{refused} is missing in {said}");
    }
    assert!(!said.contains("code 0"), "{said}");
    assert_eq!(inside.config(), before);
    inside.server.assert_clean();
}

#[test]
fn a_client_that_drops_its_mark_and_its_parents_is_known_all_the_same() {
    let inside = Inside::new();
    let home = inside.home.dir();
    inside.run(&format!(
        "env -i PATH=\"$PATH\" HERMES_HOME={} setsid --fork sh -c 'hermes-cli config set approvals.mode off > set.new 2>&1; \
         echo code $? >> set.new; mv set.new set.out'; until [ -e set.out ]; do sleep 0.05; done",
        home.display()
    ));
    let said = read(&inside.home.work().join("set.out"));
    assert!(said.contains("may not change the settings") && !said.contains("code 0"), "{said}");
    assert!(!inside.config().contains("approvals"), "{}", inside.config());
}

/// Answers a question over the socket with nothing but Python: HTTP/2 frames by hand, headers without compression.
const ANSWER: &str = r#"
import socket, struct, sys
path, session, request = sys.argv[1:4]
def field(number, text):
    return bytes([number << 3 | 2, len(text)]) + text.encode()
message = field(1, session) + field(2, request) + field(3, "always")
body = b"\0" + struct.pack(">I", len(message)) + message
def header(name, value):
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
headers = b"".join(header(*pair) for pair in [
    (":method", "POST"), (":scheme", "http"), (":path", "/hermes.v1.Prompts/Answer"), (":authority", "x"),
    ("content-type", "application/grpc"), ("te", "trailers")])
def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload
s = socket.socket(socket.AF_UNIX)
s.settimeout(10)
s.connect(path)
s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, headers) + frame(0, 1, 1, body))
data = b""
while True:
    # Frames up to the headers that end stream 1.
    data += s.recv(65536)
    at, ended = 0, False
    while at + 9 <= len(data):
        size = int.from_bytes(data[at:at + 3], "big")
        ended |= data[at + 3] == 1 and data[at + 4] & 1
        at += 9 + size
    if ended:
        break
print("answered by the daemon")
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_script_cannot_answer_the_question_that_waits() {
    if !hermes_tests::is_installed("python3") {
        return;
    }
    let inside = Inside::new();
    inside.home.write_file("answer.py", ANSWER);
    let connector = connector(&inside.home);
    let client = connector.ensure().await.unwrap();
    let cwd = Some(inside.home.work().display().to_string());
    let options = v1::SessionOptions { cwd, ..v1::SessionOptions::default() };
    let request = v1::CreateSessionRequest { options: Some(options), title: None };
    let id = client.create_session(request).await.unwrap().summary.unwrap().id;
    let options = WatchOptions { can_answer: vec!["approval".into()], ..WatchOptions::default() };
    let watch = SessionWatch::attach(&connector, client.clone(), &id, options).await.unwrap().0;
    let mut run = TurnRun::submit(watch, NewTurn::new(format!("{RUN}rm -rf precious"))).await.unwrap();
    let request_id = loop {
        match run.next().await.unwrap() {
            TurnStep::Event(event) => {
                if let Some(Payload::ApprovalRequest(asked)) = event.payload {
                    break asked.request_id;
                }
            }
            TurnStep::Ended(end) => panic!("nobody was asked: {:?}", end.result),
            TurnStep::Reattached(_) => {}
        }
    };
    let socket = inside.home.dir().join("run/hermesd.sock");
    let command = format!("python3 answer.py {} {id} {request_id}", socket.display());
    let said = tokio::task::block_in_place(|| inside.run(&command));
    assert!(said.contains("answered by the daemon"), "{said}");
    assert!(inside.is_unharmed());
    assert!(inside.log().contains("Prompts/Answer"), "the log tells of the attempt");
    // The question still waits, for a person's answer.
    let answer = v1::AnswerRequest { session_id: id, request_id, answer: "deny".into() };
    assert_eq!(client.answer_prompt(answer).await.unwrap().status, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_the_settings_waits_and_is_told_until_a_person_accepts_it() {
    let inside = Inside::new();
    let config = inside.home.dir().join("config.yaml");
    tokio::task::block_in_place(|| {
        inside.run(&format!("printf 'approvals:\\n  mode: off\\n' >> {}", config.display()))
    });
    assert!(inside.config().contains("mode: off"));
    let warnings = inside.warnings().await;
    assert!(warnings.iter().any(|warning| warning.contains("`approvals.mode`")), "{warnings:?}");
    tokio::task::block_in_place(|| {
        let denied = inside.home.cli(["-q", "run: rm -rf precious"]);
        assert!(inside.is_unharmed(), "{denied:?}");
        assert!(denied.stderr.contains("approvals accept"), "the user was not told: {denied:?}");
        // Also after a restart.
        inside.home.cli(["daemon", "restart"]).success();
        inside.home.cli(["-z", "run: rm -rf precious"]);
        assert!(inside.is_unharmed());
        inside.home.cli(["approvals", "accept", "--yes"]).success();
        inside.home.cli(["-z", "run: rm -rf precious"]).success();
        assert!(!inside.is_unharmed(), "accepted by a person, it holds");
    });
    assert!(inside.warnings().await.iter().all(|warning| !warning.contains("approvals.mode")));
}

#[test]
fn a_daemon_that_tools_start_refuses_to_serve() {
    let inside = Inside::new();
    inside.home.cli(["daemon", "start"]).success();
    let old = inside.home.daemon_pid().unwrap();
    let script = format!(
        "kill -9 {old}\nwhile kill -0 {old} 2>/dev/null; do sleep 0.05; done\n\
         hermesd run --home {home} > run.new 2>&1; echo code $? >> run.new; mv run.new run.out\n",
        home = inside.home.dir().display()
    );
    inside.home.write_file("restart.sh", script);
    inside.home.write_file("away.sh", "setsid --fork sh restart.sh < /dev/null > /dev/null 2>&1\n");
    let command = with_path("sh away.sh; until [ -e run.out ]; do sleep 0.05; done");
    let mut outer = inside.home.spawn_cli(["-z", &format!("{RUN}{command}"), "--yolo"]);
    let out = inside.home.work().join("run.out");
    wait_until("the daemon to be refused", || out.exists());
    let _ = outer.kill();
    let _ = outer.wait();
    let said = read(&out);
    assert!(
        said.contains("not to be started by the agent's own tools") && said.contains("code 77"),
        "{said}"
    );
    // A person's client starts one, and it goes by the accepted settings.
    inside.home.cli(["-z", "run: rm -rf precious"]);
    assert!(inside.is_unharmed());
}

#[test]
fn what_waits_for_the_next_daemon_is_confined_there_too() {
    let inside = Inside::new();
    let script = "touch waiting; until [ -e next ]; do sleep 0.05; done\n\
                  hermes-cli config set approvals.mode off > wait.new 2>&1; echo code $? >> wait.new; mv wait.new wait.out\n";
    inside.home.write_file("wait.sh", script);
    inside.run(&format!(
        "env -i PATH=\"$PATH\" HERMES_HOME={} setsid --fork sh wait.sh < /dev/null > /dev/null 2>&1; \
         until [ -e waiting ]; do sleep 0.05; done",
        inside.home.dir().display()
    ));
    let first = inside.home.daemon_pid().unwrap();
    inside.home.cli(["daemon", "restart"]).success();
    assert_ne!(inside.home.daemon_pid(), Some(first));
    inside.home.write_file("next", "");
    let out = inside.home.work().join("wait.out");
    wait_until("the script to have tried", || out.exists());
    let said = read(&out);
    assert!(said.contains("may not change the settings") && !said.contains("code 0"), "{said}");
}

#[test]
fn what_ends_the_daemon_at_once_and_drops_every_mark_is_confined_too() {
    let inside = Inside::new();
    inside.home.cli(["daemon", "start"]).success();
    let old = inside.home.daemon_pid().unwrap();
    let script = format!(
        "kill -9 {old}\nwhile kill -0 {old} 2>/dev/null; do sleep 0.05; done\n\
         until [ -e next ]; do sleep 0.05; done\n\
         {{ hermes-cli config set approvals.mode off; echo code $?; }} > kill.new 2>&1; mv kill.new kill.out\n"
    );
    inside.home.write_file("kill.sh", script);
    let command = with_path(&format!(
        "env -i PATH=\"$PATH\" HERMES_HOME={} setsid --fork sh kill.sh < /dev/null > /dev/null 2>&1; sleep 30",
        inside.home.dir().display()
    ));
    let mut outer = inside.home.spawn_cli(["-z", &format!("{RUN}{command}"), "--yolo"]);
    wait_until("a daemon that was killed", || inside.home.daemon_pid() != Some(old) || !is_alive(old));
    let _ = outer.kill();
    let _ = outer.wait();
    inside.home.cli(["daemon", "start"]).success();
    inside.home.write_file("next", "");
    let out = inside.home.work().join("kill.out");
    wait_until("the script to have tried", || out.exists());
    let said = read(&out);
    assert!(said.contains("may not change the settings") && !said.contains("code 0"), "{said}");
    assert!(!inside.config().contains("approvals"), "{}", inside.config());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the attacker opens the database with a program of their own")]
fn what_was_accepted_cannot_be_forgotten_in_favour_of_the_file() {
    let inside = Inside::new();
    inside.home.cli(["daemon", "start"]).success();
    inside.home.cli(["daemon", "stop"]).success();
    rusqlite::Connection::open(inside.home.database())
        .unwrap()
        .execute("DELETE FROM policy_accepted", [])
        .unwrap();
    let config = inside.config();
    inside.home.write_config(&format!("{config}approvals:\n  mode: off\n"));
    let denied = inside.home.cli(["-q", "run: rm -rf precious"]);
    assert!(inside.is_unharmed() && denied.stderr.contains("approvals accept"), "{denied:?}");
}

fn is_alive(pid: u32) -> bool {
    let stat = read(Path::new(&format!("/proc/{pid}/stat")));
    !stat.is_empty() && !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

#[test]
fn a_client_of_one_turn_is_told_of_the_edit_that_waits() {
    let inside = Inside::new();
    inside.home.cli(["daemon", "start"]).success();
    let config = inside.config();
    inside.home.write_config(&format!("{config}approvals:\n  mode: off\n"));
    let told = inside.home.cli(["-q", "run: rm -rf precious"]);
    assert!(inside.is_unharmed() && told.stderr.contains("approvals accept"), "{told:?}");
    // What is narrower holds at once, also for the very next client.
    inside.home.write_config(&format!("{config}approvals:\n  deny: ['touch *']\n"));
    inside.home.cli(["-z", "run: touch mine"]).success();
    assert!(!inside.home.work().join("mine").exists());
}

#[test]
fn the_daemons_own_environment_holds_what_it_starts_by_and_nothing_else() {
    let inside = Inside::new();
    let mut start = inside.home.command("hermes-cli");
    start.args(["daemon", "start"]).env("OUTER_TOKEN", "planted0123456789");
    hermes_tests::home::run(start, None).success();
    let pid = inside.home.daemon_pid().unwrap();
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ).replace('\0', "\n");
    assert!(environ.contains("HERMES_HOME=") && !environ.contains("OUTER_TOKEN"), "{environ}");
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let names: Vec<_> = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("memfd:environment")), "{names:?}");
}

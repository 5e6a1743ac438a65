//! Tool × surface: where nobody is there who may answer, nothing dangerous happens.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hermes_client::{NewTurn, SessionWatch, TurnRun, TurnStep, WatchOptions};
use hermes_proto::v1::{self, event::Payload};
use hermes_tests::{ModelRequest, ModelServer, Reply, TestHome, binary, connector};
use serde_json::{Value, json};

/// A dangerous thing that a tool could do: its calls, given a path outside and what the model has seen.
type Deed = (&'static str, fn(&str, &ModelRequest) -> (&'static str, Value));

const DEEDS: [Deed; 9] = [
    ("terminal", |_, _| ("terminal", json!({ "command": "rm -rf precious" }))),
    ("background", |_, _| ("terminal", json!({ "command": "rm -rf precious", "background": true }))),
    ("pty", |_, _| ("terminal", json!({ "command": "rm -rf precious", "pty": true }))),
    ("process", |_, request| match request.process_id() {
        None => ("terminal", json!({ "command": "bash", "background": true })),
        Some(id) => ("process", json!({ "action": "submit", "session_id": id, "data": "rm -rf precious" })),
    }),
    ("process of another spelling", |_, request| match request.process_id() {
        None => ("terminal", json!({ "command": "env -u NOTHING bash", "background": true })),
        Some(id) => ("process", json!({ "action": "submit", "session_id": id, "data": "rm -rf precious" })),
    }),
    ("write outside", |outside, _| ("write_file", json!({ "path": outside, "content": "mine" }))),
    ("write a hook", |_, _| ("write_file", json!({ "path": ".git/hooks/pre-commit", "content": "mine" }))),
    ("patch outside", |outside, _| {
        ("patch", json!({ "path": outside, "old_string": "theirs", "new_string": "mine" }))
    }),
    ("patch of several files", |outside, _| {
        let patch = format!(
            "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Delete File: {outside}\n*** End Patch\n"
        );
        ("patch", json!({ "mode": "patch", "patch": patch }))
    }),
];

/// The prompt under which the model starts a client from inside its terminal.
const FROM_INSIDE: &str = "from inside";

/// A home with things to lose, and a model that does the deed when it is told anything.
struct Cell {
    home: TestHome,
    server: ModelServer,
    outside: PathBuf,
}

impl Cell {
    fn new((name, call): Deed) -> Self {
        let place: Arc<OnceLock<String>> = Arc::default();
        let known = Arc::clone(&place);
        let rounds = if name.starts_with("process") { 2 } else { 1 };
        let server = ModelServer::start(move |request| {
            let done = request.results_since_user();
            if request.last_user() == FROM_INSIDE {
                // The first is refused whole; the second runs, with nobody to ask.
                let client = binary("hermes-cli").display().to_string();
                let client = format!("{client} -z go --yolo; {client} -z go");
                return match done {
                    0 => Reply::call("terminal", &json!({ "command": client })),
                    _ => Reply::text("tried"),
                };
            }
            if done >= rounds {
                return Reply::text("that is all");
            }
            let (tool, arguments) = call(known.get().unwrap(), request);
            Reply::call(tool, &arguments)
        });
        let home = TestHome::with_config(&format!("{}approvals:\n  timeout: 1\n", server.config()));
        home.write_file("precious/a.txt", "theirs");
        home.write_file(".git/hooks/README", "");
        let outside = home.work().parent().unwrap().join("outside.txt");
        std::fs::write(&outside, "theirs").unwrap();
        place.set(outside.display().to_string()).unwrap();
        Self { home, server, outside }
    }

    fn assert_unharmed(&self, what: &str) {
        let work = self.home.work();
        let content = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(content(&work.join("precious/a.txt")), "theirs", "{what}");
        assert_eq!(content(&self.outside), "theirs", "{what}");
        assert!(!work.join(".git/hooks/pre-commit").exists(), "{what}");
        assert!(!work.join("new.txt").exists(), "{what}");
    }

    /// What the model was told of its last call.
    fn last_result(&self) -> String {
        self.server.requests().last().unwrap().last_result()
    }

    async fn new_session(&self) -> String {
        let client = connector(&self.home).ensure().await.unwrap();
        let cwd = Some(self.home.work().display().to_string());
        let options = v1::SessionOptions { cwd, ..v1::SessionOptions::default() };
        let request = v1::CreateSessionRequest { options: Some(options), title: None };
        client.create_session(request).await.unwrap().summary.unwrap().id
    }

    async fn watch(&self, id: &str, can_answer: &[&str]) -> SessionWatch {
        let connector = connector(&self.home);
        let client = connector.ensure().await.unwrap();
        let can_answer = can_answer.iter().map(|kind| (*kind).to_owned()).collect();
        let options = WatchOptions { can_answer, ..WatchOptions::default() };
        SessionWatch::attach(&connector, client, id, options).await.unwrap().0
    }
}

#[test]
fn a_one_shot_denies() {
    for deed in DEEDS {
        let cell = Cell::new(deed);
        cell.home.cli(["-z", "go"]).success();
        cell.assert_unharmed(deed.0);
        assert!(cell.last_result().contains("nobody"), "{}: {}", deed.0, cell.last_result());
    }
}

#[tokio::test]
async fn a_turn_that_nobody_watches_is_denied() {
    for deed in DEEDS {
        let cell = Cell::new(deed);
        let id = cell.new_session().await;
        let client = connector(&cell.home).ensure().await.unwrap();
        let request = v1::SubmitRequest { session_id: id.clone(), text: "go".into(), ..Default::default() };
        let turn = client.submit(request).await.unwrap();
        let mut watch = cell.watch(&id, &[]).await;
        finish(&mut watch, &turn.turn_id).await;
        cell.assert_unharmed(deed.0);
    }
}

/// Follows until the turn has ended, which it may have done before.
async fn finish(watch: &mut SessionWatch, turn_id: &str) {
    loop {
        let request =
            v1::GetTurnRequest { session_id: watch.session_id().to_owned(), turn_id: turn_id.to_owned() };
        let turn = watch.client().turn(request).await.unwrap();
        if turn.result.is_some() || turn.state != "running" {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_cannot_approve_is_not_asked() {
    for deed in DEEDS {
        let cell = Cell::new(deed);
        let id = cell.new_session().await;
        let watch = cell.watch(&id, &["clarify"]).await;
        let mut run = TurnRun::submit(watch, NewTurn::new("go")).await.unwrap();
        loop {
            match run.next().await.unwrap() {
                TurnStep::Ended(_) => break,
                TurnStep::Event(event) => {
                    assert!(!matches!(event.payload, Some(Payload::ApprovalRequest(_))), "{}", deed.0);
                }
                TurnStep::Reattached(_) => {}
            }
        }
        cell.assert_unharmed(deed.0);
        assert!(cell.last_result().contains("nobody"), "{}: {}", deed.0, cell.last_result());
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_it_is_asked_has_not_agreed() {
    for deed in DEEDS {
        let cell = Cell::new(deed);
        let id = cell.new_session().await;
        let watch = cell.watch(&id, &["approval"]).await;
        let mut run = TurnRun::submit(watch, NewTurn::new("go")).await.unwrap();
        let turn_id = run.turn_id().to_owned();
        loop {
            match run.next().await.unwrap() {
                TurnStep::Event(event) if matches!(event.payload, Some(Payload::ApprovalRequest(_))) => break,
                TurnStep::Ended(end) => panic!("{}: nobody was asked: {:?}", deed.0, end.result),
                TurnStep::Event(_) | TurnStep::Reattached(_) => {}
            }
        }
        drop(run);
        let mut watch = cell.watch(&id, &[]).await;
        finish(&mut watch, &turn_id).await;
        cell.assert_unharmed(deed.0);
        assert!(cell.last_result().contains("timed out"), "{}: {}", deed.0, cell.last_result());
    }
}

#[test]
fn a_client_from_inside_the_terminal_denies() {
    for deed in DEEDS {
        let cell = Cell::new(deed);
        cell.home.cli(["-z", FROM_INSIDE, "--yolo"]).success();
        let requests = cell.server.requests();
        let ran =
            requests.iter().any(|request| request.last_user() == "go" && request.results_since_user() > 0);
        assert!(ran, "{}: the inner client did not even try", deed.0);
        cell.assert_unharmed(deed.0);
    }
}

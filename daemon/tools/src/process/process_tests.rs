//! Tests of `terminal` in the background and of `process`, through the dispatcher and with real processes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use async_trait::async_trait;
use hermes_core::{ClientEnv, SystemClock};
use hermes_runtime::{
    LocalBackend, LocalBackendInput, ProcessesInput, Secret, SecretScope, Tasks, TerminalBackend,
    TerminalSettings,
};
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::ports::{
    ApproveAnswer, ApproveRequest, Ask, ProcessNotice, Question, QuestionAnswer, SudoRequest, Wake,
};
use crate::testing::{Bench, call};
use crate::{ToolServices, terminal_tools};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// A bench with real processes, in a folder that several daemons can use one after the other.
struct Live {
    bench: Bench,
    tasks: Tasks,
    heard: Arc<Heard>,
    asked: Arc<Asked>,
}

/// Remembers notices.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<ProcessNotice>>);

#[async_trait]
impl Wake for Heard {
    async fn notice(&self, notice: ProcessNotice) -> bool {
        self.0.lock().unwrap().push(notice);
        true
    }
}

/// Gives the next of its passwords.
#[derive(Debug, Default)]
struct Asked {
    passwords: Mutex<Vec<&'static str>>,
    requests: Mutex<Vec<SudoRequest>>,
    approvals: Mutex<Vec<String>>,
}

#[async_trait]
impl Ask for Asked {
    async fn approve(&self, request: ApproveRequest, _: &CancellationToken) -> ApproveAnswer {
        self.approvals.lock().unwrap().push(request.subject);
        ApproveAnswer::Nobody
    }

    async fn question(&self, _: Question, _: &CancellationToken) -> QuestionAnswer {
        QuestionAnswer::Nobody
    }

    async fn sudo_password(&self, request: SudoRequest, _: &CancellationToken) -> Option<Secret> {
        self.requests.lock().unwrap().push(request);
        self.passwords.lock().unwrap().pop().map(Secret::from)
    }
}

impl Live {
    fn new(home: &Path) -> Self {
        Self::with(home, |_| {})
    }

    fn with(home: &Path, change: impl FnOnce(&mut ToolServices)) -> Self {
        let backend: Arc<dyn TerminalBackend> = Arc::new(LocalBackend::new(LocalBackendInput {
            temp_dir: std::env::temp_dir(),
            settings: TerminalSettings { auto_source_bashrc: false, ..TerminalSettings::default() },
            secrets: SecretScope::empty(),
        }));
        let (tasks, heard, asked) = (Tasks::new(), Arc::new(Heard::default()), Arc::new(Asked::default()));
        let redactor = hermes_runtime::Redactor::new(true, &SecretScope::empty());
        let processes = Processes::new(ProcessesInput {
            folder: home.join("processes"),
            register: home.join("processes.json"),
            backend: Arc::clone(&backend),
            tasks: tasks.clone(),
            clock: Arc::new(SystemClock),
            listener: Arc::new(ProcessNotices::new(Arc::clone(&heard) as Arc<dyn Wake>, redactor)),
            grace: Duration::from_millis(300),
        });
        let tools = terminal_tools().into_iter().chain(process_tools(&processes)).collect();
        let bench = Bench::with(tools, |services| {
            services.backend = backend;
            services.processes = processes;
            services.ask = Arc::clone(&asked) as Arc<dyn Ask>;
            change(services);
        });
        Self { bench: Bench { yolo: true, ..bench }, tasks, heard, asked }
    }

    /// A session whose `sudo` is a script that knows the password `right word`.
    fn with_sudo(home: &Path, change: impl FnOnce(&mut ToolServices)) -> Self {
        let mut live = Self::with(home, change);
        let script = live.bench.outside.join("bin/sudo");
        std::fs::create_dir(script.parent().unwrap()).unwrap();
        std::fs::write(&script, SUDO).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", script.parent().unwrap().display());
        live.bench.reopen(ClientEnv::filter([("PATH".to_owned(), path)]));
        live
    }

    async fn json(&self, name: &str, arguments: Value) -> Value {
        self.bench.json(name, arguments).await
    }

    async fn start(&self, arguments: Value) -> String {
        let mut arguments = arguments;
        arguments["background"] = true.into();
        let value = self.json("terminal", arguments).await;
        value["session_id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
    }

    async fn process(&self, action: &str, id: &str) -> Value {
        self.json("process", json!({ "action": action, "session_id": id })).await
    }

    /// Waits until the log has `text`.
    async fn prints(&self, id: &str, text: &str) {
        // Not through the tool, whose guardrail stops who asks the same thing again and again.
        let processes = &self.bench.dispatcher.services().processes;
        let output = || processes.output(self.bench.workspace.shell(), id, 10_000).unwrap().text;
        self.until(text, async || output().contains(text)).await;
    }

    async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !holds().await {
            assert!(tokio::time::Instant::now() < deadline, "not in time: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Like `sudo` without a terminal: it wants a line of its own every time, and runs the rest.
const SUDO: &str = r#"#!/bin/bash
read_line=
while [[ $1 == -* ]]; do
  case $1 in
    -n) exit 1;;
    -p) shift;;
    -S) read_line=1;;
  esac
  shift
done
[ -n "$read_line" ] || { echo "sudo: a terminal is required to read the password" >&2; exit 1; }
IFS= read -r line
[ "$line" = "right word" ] || { echo "Sorry, try again." >&2; echo "sudo: 1 incorrect password attempt" >&2; exit 1; }
exec "$@"
"#;

/// A server as `npm run dev` starts one: a shell, a program, and its child, which talks over its input.
const SERVER: &str = r#"node -e '
const { spawn } = require("child_process");
const worker = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
console.log("ready " + worker.pid);
process.stdin.on("data", text => console.log("got " + String(text).trim()));
process.stdin.on("end", () => console.log("input ended"));
setInterval(() => {}, 1000);
'"#;

fn alive(pid: i64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn worker(log: &Value) -> i64 {
    let output = log["output"].as_str().unwrap();
    output.lines().find_map(|line| line.strip_prefix("ready ")).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_server_is_started_polled_asked_and_killed_with_its_children() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::new(home.path());
    let id = live.start(json!({ "command": SERVER })).await;
    live.prints(&id, "ready").await;
    let polled = live.process("poll", &id).await;
    assert_eq!(polled["status"], "running");
    assert!(polled["new_output"].as_str().unwrap().starts_with("ready "));
    let worker = worker(&live.process("log", &id).await);
    let sent = live.json("process", json!({ "action": "submit", "session_id": id, "data": "hello" })).await;
    assert_eq!(sent, json!({ "session_id": id, "status": "ok", "bytes_written": 6 }));
    live.prints(&id, "got hello").await;
    assert_eq!(live.process("poll", &id).await["new_output"], "got hello\n");
    let waited = live.json("process", json!({ "action": "wait", "session_id": id, "timeout": 1 })).await;
    assert_eq!(waited["status"], "timeout");
    assert!(waited["timeout_note"].as_str().unwrap().starts_with("it still runs after 1 s"));
    assert!(alive(worker));
    let killed = live.process("kill", &id).await;
    assert_eq!((&killed["status"], &killed["completion_reason"]), (&json!("killed"), &json!("killed")));
    assert_eq!(killed["termination_source"], "process.kill");
    assert!(!alive(worker));
    assert_eq!(live.process("kill", &id).await["status"], "already_exited");
    assert_eq!(live.heard.0.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn after_a_restart_it_is_listed_polled_and_killed() {
    let home = tempfile::tempdir().unwrap();
    let first = Live::new(home.path());
    let id = first.start(json!({ "command": SERVER })).await;
    first.prints(&id, "ready").await;
    let worker = worker(&first.process("log", &id).await);
    first.tasks.stop();
    assert!(first.tasks.wait(PATIENCE).await);
    drop(first);

    let second = Live::new(home.path());
    second.bench.dispatcher.services().processes.readopt().await;
    let list = second.json("process", json!({ "action": "list" })).await;
    let process = &list["processes"][0];
    assert_eq!(
        (&process["session_id"], &process["status"], &process["detached"]),
        (&json!(id), &json!("running"), &json!(true))
    );
    second.prints(&id, "input ended").await;
    assert!(second.process("poll", &id).await["new_output"].as_str().unwrap().contains("ready"));
    let refused = second.json("process", json!({ "action": "submit", "session_id": id, "data": "x" })).await;
    assert_eq!(
        refused["error"],
        format!("the stdin of {id} is closed: it was closed when the daemon that started the process ended")
    );
    let killed = second.process("kill", &id).await;
    assert_eq!((&killed["status"], &killed["exit_code"]), (&json!("killed"), &json!(null)));
    assert!(killed["detached_note"].as_str().unwrap().starts_with("its exit code is not known"));
    assert!(!alive(worker));
}

#[test]
fn what_a_backslash_continues_is_one_line() {
    for (data, rest) in
        [("a\nb", "b"), ("a\n", ""), ("rm \\\n", "rm \\\n"), ("a\nrm \\\n-r", "rm \\\n-r"), ("a\\\\\n", "")]
    {
        assert_eq!(unended(data), rest, "{data:?}");
    }
}

#[tokio::test]
async fn a_line_is_judged_whole_or_not_written() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::new(home.path());
    let id = live.start(json!({ "command": "bash" })).await;
    let long = format!("rm{}", " ".repeat(PENDING_BYTES));
    let write = json!({ "action": "write", "session_id": id, "data": long });
    let refused = live.json("process", write).await.to_string();
    assert!(refused.contains("is not written to a shell"), "{refused}");
    let sent = live
        .json("process", json!({ "action": "submit", "session_id": id, "data": "echo $((6 * 7))" }))
        .await;
    assert_eq!(sent["status"], "ok", "{sent}");
    live.prints(&id, "42").await;
    live.process("kill", &id).await;
}

#[tokio::test]
async fn every_action_answers_in_its_shape() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::new(home.path());
    let started = live
        .json(
            "terminal",
            json!({ "command": "seq 1 300; read x; echo $x; exit 3", "background": true, "workdir": "/" }),
        )
        .await;
    let id = started["session_id"].as_str().unwrap();
    live.prints(id, "300").await;
    let list = live.json("process", json!({ "action": "list" })).await;
    let log =
        live.json("process", json!({ "action": "log", "session_id": id, "offset": 298, "limit": 5 })).await;
    let last = live.process("log", id).await;
    assert_eq!(
        (&last["offset"], &last["lines"], &last["total_lines"]),
        (&json!(100), &json!(200), &json!(300))
    );
    let write = live.json("process", json!({ "action": "write", "session_id": id, "data": "end\n" })).await;
    let wait = live.process("wait", id).await;
    let late = live.process("close", id).await;
    live.process("poll", id).await;
    let poll = live.process("poll", id).await;
    let unknown = live.process("poll", "proc_000000000000").await;
    let nameless = live.json("process", json!({ "action": "kill" })).await;
    let all = json!({
        "started": started, "list": list, "log": log, "write": write, "wait": wait, "late": late,
        "poll": poll, "unknown": unknown, "nameless": nameless,
    });
    let mut text = serde_json::to_string_pretty(&all).unwrap().replace(id, "$ID");
    for (name, shown) in [("pid", "$PID"), ("started_at", "$TIME"), ("uptime_seconds", "$S")] {
        text = text
            .lines()
            .map(|line| match line.split_once(&format!("\"{name}\": ")) {
                Some((before, after)) => {
                    format!("{before}\"{name}\": {shown}{}", if after.ends_with(',') { "," } else { "" })
                }
                None => line.to_owned(),
            })
            .collect::<Vec<String>>()
            .join("\n");
    }
    insta::assert_snapshot!("actions", text);
}

#[tokio::test]
async fn an_end_is_told_to_the_session_once() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::new(home.path());
    let arguments = json!({ "command": "echo almost; exit 4", "background": true, "notify_on_complete": true, "watch_patterns": ["x"] });
    let started = live.json("terminal", arguments).await;
    assert_eq!(
        (&started["notify_on_complete"], &started["watch_patterns_ignored"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(started["hint"], json!(null));
    live.until("a notice", async || !live.heard.0.lock().unwrap().is_empty()).await;
    let heard = live.heard.0.lock().unwrap().clone();
    let id = started["session_id"].as_str().unwrap();
    let text = format!(
        "[Background process {id} has ended with exit code 4: echo almost; exit 4]\nThe end of its output:\nalmost"
    );
    let expected = ProcessNotice {
        session_id: live.bench.workspace.session_id().clone(),
        principal: hermes_core::Principal::Owner,
        id: format!("{id}:exit"),
        text,
    };
    assert_eq!(heard, [expected]);
}

#[tokio::test]
async fn where_nobody_can_be_woken_it_is_said_at_once() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::new(home.path());
    let arguments = json!({ "command": "true", "background": true, "notify_on_complete": true });
    let cx = crate::CallCx { wakeable: false, ..live.bench.cx() };
    let result = live.bench.dispatcher.call(cx, &call("terminal", &arguments.to_string())).await;
    let value: Value = serde_json::from_str(&result.content).unwrap();
    assert!(value["notify_unsupported"].as_str().unwrap().contains("process"));
    assert_eq!(value["notify_on_complete"], json!(null));
    live.process("wait", value["session_id"].as_str().unwrap()).await;
    assert_eq!(live.heard.0.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn what_detaches_itself_is_watched_all_the_same() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::new(home.path());
    let id = live.start(json!({ "command": "cd / && sleep 100 &" })).await;
    let shown = live.json("process", json!({ "action": "list" })).await;
    assert_eq!(shown["processes"][0]["command"], "cd / && sleep 100 &");
    let wait = live.json("process", json!({ "action": "wait", "session_id": id, "timeout": 1 })).await;
    assert_eq!(wait["status"], "timeout");
    assert_eq!(live.process("kill", &id).await["status"], "killed");
}

#[tokio::test]
async fn a_foreground_command_can_have_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::new(home.path());
    let command =
        "test -t 0 && test -t 1 && printf '\\e[31mred\\e[0m\\n'; tty >/dev/tty; cat; export A=1; cd /";
    let value = live.json("terminal", json!({ "command": command, "pty": true })).await;
    let output = value["output"].as_str().unwrap();
    assert!(output.starts_with("red\n/dev/pts/"), "{value}");
    assert_eq!((&value["exit_code"], &value["cwd"]), (&json!(0), &json!("/")));
    assert_eq!(live.json("terminal", json!({ "command": "echo $A; tty" })).await["output"], "1\nnot a tty\n");
}

#[tokio::test]
async fn what_a_shell_is_told_is_judged_with_the_line_that_it_completes() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::new(home.path());
    let shell = live.start(json!({ "command": "bash --norc" })).await;
    let reader = live.start(json!({ "command": "cat" })).await;
    let live = Live { bench: Bench { yolo: false, ..live.bench }, ..live };
    let write = |id: &str, data: &str| json!({ "action": "write", "session_id": id, "data": data });
    // Nobody answers, so what is asked about does not happen.
    for _ in 0..2 {
        let refused = live.json("process", write(&shell, "rm -rf ~\n")).await;
        assert_eq!(refused["status"], "blocked", "{refused}");
    }
    let passed = live.json("process", write(&reader, "rm -rf ~\n")).await;
    assert_eq!(passed["status"], "ok", "{passed}");
    let asked = live.asked.approvals.lock().unwrap().clone();
    assert!(asked.iter().all(|subject| subject == "rm -rf ~\n"), "{asked:?}");
    let live = Live { bench: Bench { yolo: true, ..live.bench }, ..live };
    live.json("process", write(&shell, "rm -rf ")).await;
    let tool = process_tools(&live.bench.dispatcher.services().processes);
    drop(tool);
    let live = Live { bench: Bench { yolo: false, ..live.bench }, ..live };
    let refused = live.json("process", write(&shell, "~\n")).await;
    assert_eq!(refused["status"], "blocked", "{refused}");
    for id in [shell, reader] {
        live.process("kill", &id).await;
    }
}

#[tokio::test]
async fn a_password_that_a_person_gives_reaches_every_sudo_and_is_shown_to_nobody() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::with_sudo(home.path(), |_| {});
    live.asked.passwords.lock().unwrap().push("right word");
    let command = "sudo echo one; for i in 2 3; do sudo echo $i; done; echo piped | sudo cat; (sudo echo sub); \
                   cat; env | grep -c right; declare -p | grep _hermes_sudo_line";
    let value = live.json("terminal", json!({ "command": command })).await;
    let expected = "one\n2\n3\npiped\nsub\n0\ndeclare -- _hermes_sudo_line=\"[redacted]\"\n";
    assert_eq!((&value["output"], &value["exit_code"]), (&json!(expected), &json!(0)));
    // It is remembered, and stays out of what the next command finds.
    let next =
        live.json("terminal", json!({ "command": "sudo echo again; declare -F | grep -c hermes" })).await;
    assert_eq!(next["output"], "again\n1\n");
    let none = live.json("terminal", json!({ "command": "set | grep -c -e right -e _hermes" })).await;
    assert_eq!(none["output"], "0\n");
    assert_eq!(live.asked.requests.lock().unwrap().len(), 1);
    let id = live.start(json!({ "command": "sudo cat" })).await;
    live.json("process", json!({ "action": "submit", "session_id": id, "data": "typed" })).await;
    live.prints(&id, "typed").await;
    assert_eq!(live.process("log", &id).await["output"], "typed");
    live.process("kill", &id).await;
    let id = live
        .start(
            json!({ "command": "sudo echo on a terminal; echo next; read -r x; echo \"$x\"", "pty": true }),
        )
        .await;
    live.prints(&id, "next").await;
    live.json("process", json!({ "action": "submit", "session_id": id, "data": "typed" })).await;
    live.process("wait", &id).await;
    assert_eq!(live.process("log", &id).await["output"], "on a terminal\nnext\ntyped");
}

#[tokio::test]
async fn a_wrong_password_is_forgotten_and_one_that_is_missing_is_explained() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::with_sudo(home.path(), |_| {});
    live.asked.passwords.lock().unwrap().push("wrong word");
    let value = live.json("terminal", json!({ "command": "sudo id" })).await;
    assert_eq!((&value["sudo_auth_failed"], &value["sudo_cache_cleared"]), (&json!(true), &json!(true)));
    assert!(live.bench.workspace.sudo_password().is_none());
    let value = live.json("terminal", json!({ "command": "sudo id" })).await;
    assert_eq!(value["output"], "sudo: a terminal is required to read the password\n");
    assert_eq!(value["hint"], sudo::HINT);
    assert_eq!(live.asked.requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn no_sudo_of_the_agents_own_gets_the_password() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::with_sudo(home.path(), |_| {});
    live.asked.passwords.lock().unwrap().push("right word");
    let own = live.bench.write("own/sudo", "#!/bin/sh\nrev\n");
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = "export PATH=\"$PWD/own:$PATH\"; sudo echo real";
    let value = live.json("terminal", json!({ "command": command })).await;
    assert_eq!(value["output"], "real\n");
}

#[tokio::test]
async fn a_configured_password_asks_nobody() {
    let home = tempfile::tempdir().unwrap();
    let live = Live::with_sudo(home.path(), |services| {
        services.child_env.secrets = SecretScope::from_pairs([("SUDO_PASSWORD", "right word")]);
    });
    let value = live.json("terminal", json!({ "command": "sudo echo yes" })).await;
    assert_eq!(value["output"], "yes\n");
    assert!(live.asked.requests.lock().unwrap().is_empty());
    let unused = live.json("terminal", json!({ "command": "echo sudo x; cat" })).await;
    assert_eq!(unused["output"], "sudo x\n");
}

#[test]
fn schemas_are_short() {
    let settings = ToolSettings::default();
    let processes = Bench::new().dispatcher.services().processes.clone();
    let tools = terminal_tools().into_iter().chain(process_tools(&processes));
    let text: Vec<String> = tools
        .map(|tool| {
            let schema = tool.schema(&settings);
            format!("{}: {}\n{}", schema.name, schema.description, schema.parameters)
        })
        .collect();
    insta::assert_snapshot!("schemas", text.join("\n\n"));
}

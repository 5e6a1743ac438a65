//! A server in the background: started, asked, taken over by the next daemon, ended with all its children.

use std::path::Path;

use hermes_tests::{ModelRequest, ModelServer, Reply, TestHome, wait_until};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// Says that it is ready, answers each line on its standard input, and has a child that would live for ever.
const SERVER: &str = r#"
echo $$ > server.pid
sleep 1000 &
echo $! > child.pid
echo ready on port 0
while read -r line; do echo "answer to $line"; done
echo standard input is closed
sleep 1000
"#;

/// A model that makes the call that the prompt spells, then says so. `$PROC` stands for the process.
fn obedient(request: &ModelRequest) -> Reply {
    if request.results_since_user() > 0 {
        return Reply::text("done");
    }
    let last = request.last_user();
    let (tool, arguments) = last.split_once(' ').unwrap();
    let arguments = arguments.replace("$PROC", &request.process_id().unwrap_or_default());
    Reply::call(tool, &serde_json::from_str(&arguments).unwrap())
}

struct Bench {
    server: ModelServer,
    home: TestHome,
}

impl Bench {
    /// Makes one call in the one session and returns its result. Nobody need agree to anything.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let prompt = format!("{tool} {arguments}");
        let first = self.server.requests().is_empty();
        let mut arguments = vec!["-z", prompt.as_str(), "--yolo"];
        if !first {
            arguments.extend(["-r", "latest"]);
        }
        self.home.cli(arguments).success();
        let requests = self.server.requests();
        let last = requests.iter().rev().find(|request| request.has_tools()).unwrap().last_result();
        serde_json::from_str(&last).unwrap()
    }

    fn process(&self, action: &str) -> Value {
        self.call("process", &json!({ "action": action, "session_id": "$PROC" }))
    }

    fn pid(&self, file: &str) -> u32 {
        wait_until("the server's pid", || read(&self.home.work().join(file)).is_some());
        read(&self.home.work().join(file)).unwrap()
    }

    /// Polls until the process has printed `text`.
    fn wait_for(&self, text: &str) {
        wait_until(text, || self.process("log").to_string().contains(text));
    }
}

fn read(path: &Path) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

#[test]
fn a_background_server_is_asked_and_ended_also_by_the_next_daemon() {
    let server = ModelServer::start(obedient);
    let home = TestHome::with_config(&server.config());
    home.write_file("server.sh", SERVER);
    let bench = Bench { server, home };
    let started = bench.call("terminal", &json!({ "command": "bash server.sh", "background": true }));
    assert!(started["session_id"].as_str().unwrap().starts_with("proc_"), "{started}");
    bench.wait_for("ready on port 0");

    bench
        .call("process", &json!({ "action": "submit", "session_id": "$PROC", "data": "the first question" }));
    bench.wait_for("answer to the first question");
    let (parent, child) = (bench.pid("server.pid"), bench.pid("child.pid"));

    bench.home.cli(["daemon", "restart"]).success();
    assert!(runs(parent) && runs(child), "a restart of the daemon ended the server");
    let listed = bench.call("process", &json!({ "action": "list" }));
    assert!(listed.to_string().contains("detached"), "{listed}");
    bench.wait_for("standard input is closed");
    let refused =
        bench.call("process", &json!({ "action": "submit", "session_id": "$PROC", "data": "more" }));
    assert!(refused["error"].as_str().unwrap().contains("stdin"), "{refused}");

    let killed = bench.process("kill");
    assert_eq!(killed["status"], "killed", "{killed}");
    wait_until("the whole tree to be gone", || !runs(parent) && !runs(child));
}

#[test]
fn a_background_server_is_ended_with_its_children_in_one_life() {
    let server = ModelServer::start(obedient);
    let home = TestHome::with_config(&server.config());
    // A child in a session of its own is still the server's.
    home.write_file("server.sh", SERVER.replace("sleep 1000 &", "setsid sleep 1000 &"));
    let bench = Bench { server, home };
    bench.call("terminal", &json!({ "command": "bash server.sh", "background": true }));
    let (parent, child) = (bench.pid("server.pid"), bench.pid("child.pid"));
    let killed = bench.process("kill");
    assert_eq!(killed["status"], "killed", "{killed}");
    wait_until("the whole tree to be gone", || !runs(parent) && !runs(child));
}

//! A planted secret does not reach the model: not from `.env`, not from the daemon's environment, by no tool.

use std::os::unix::fs::PermissionsExt as _;

use hermes_tests::{ModelRequest, ModelServer, Reply, TestHome};
use serde_json::{Value, json};

/// In the profile's `.env`, under a name that no list knows.
const IN_FILE: &str = "plantedFileSecret0123456789";
/// In the environment that the daemon is started in.
const IN_ENVIRONMENT: &str = "plantedEnvironmentSecret0123456789";

/// Everything that the requests carry back of what tools gave.
fn sent(server: &ModelServer) -> String {
    server.requests().iter().map(|request| request.body.to_string()).collect()
}

fn planted(server: &ModelServer) -> TestHome {
    let home = TestHome::with_config(&server.config());
    let path = home.dir().join(".env");
    std::fs::write(&path, format!("DEPLOY_PASSPHRASE={IN_FILE}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    home
}

/// Runs one turn with these calls, in a daemon that was started in an environment with secrets.
fn run(calls: Vec<(&'static str, Value)>) -> String {
    let server = ModelServer::start(move |request: &ModelRequest| {
        let Some((tool, arguments)) = calls.get(request.results_since_user()) else {
            return Reply::text("done");
        };
        let text = arguments.to_string().replace("$PROC", &request.process_id().unwrap_or_default());
        Reply::call(tool, &serde_json::from_str(&text).unwrap())
    });
    let home = planted(&server);
    let mut start = home.command("hermes-cli");
    start.args(["daemon", "start"]);
    start.env("OUTER_PASSPHRASE", IN_ENVIRONMENT).env("OPENAI_API_KEY", IN_ENVIRONMENT);
    hermes_tests::home::run(start, None).success();
    home.cli(["-z", "go", "--yolo"]).success();
    let text = sent(&server);
    assert!(!text.contains(IN_FILE), "the secret of .env was sent");
    assert!(!text.contains(IN_ENVIRONMENT), "the secret of the environment was sent");
    text
}

fn terminal(command: &str) -> (&'static str, Value) {
    ("terminal", json!({ "command": command }))
}

#[test]
fn environments_of_the_command_and_of_its_parents_hold_no_secret() {
    let text = run(vec![
        terminal("env; echo the end of env"),
        terminal("cat /proc/self/environ | tr '\\0' '\\n'"),
        terminal("cat /proc/$PPID/environ | tr '\\0' '\\n'; echo read it"),
        terminal(
            "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ | grep -a planted && cat $p/comm; done; echo looked",
        ),
        terminal("declare -p; export -p; set"),
    ]);
    assert!(text.contains("the end of env") && text.contains("looked"));
}

#[test]
fn files_with_secrets_are_not_shown_by_any_tool() {
    let text = run(vec![
        ("read_file", json!({ "path": "../home/.env" })),
        ("search_files", json!({ "pattern": "PASSPHRASE", "path": "../home" })),
        ("search_files", json!({ "pattern": "planted", "path": "../home/.env" })),
        terminal("cat ../home/.env"),
        terminal("grep -r planted ../home/.env; cp ../home/.env copy.txt"),
        ("read_file", json!({ "path": "copy.txt" })),
        ("search_files", json!({ "pattern": "PASS", "path": "copy.txt" })),
        ("read_file", json!({ "path": "/proc/self/environ" })),
    ]);
    assert!(text.contains("DEPLOY_PASSPHRASE"), "the copy was not even read");
}

#[test]
fn a_background_process_shows_no_secret() {
    run(vec![
        (
            "terminal",
            json!({ "command": "env; cat ../home/.env; read line; echo $line; cat ../home/.env", "background": true }),
        ),
        ("process", json!({ "action": "submit", "session_id": "$PROC", "data": "go on" })),
        ("process", json!({ "action": "wait", "session_id": "$PROC", "timeout": 10 })),
        ("process", json!({ "action": "log", "session_id": "$PROC" })),
        ("process", json!({ "action": "list" })),
    ]);
}

#[test]
fn a_crash_shows_no_secret() {
    run(vec![
        terminal("python3 -c 'import os; s=open(\"../home/.env\").read(); raise ValueError(s)'; echo"),
        terminal("bash -c 'set -x; X=$(cat ../home/.env); declare -p X; false $X'"),
        terminal("cat ../home/.env >&2; exit 3"),
    ]);
}

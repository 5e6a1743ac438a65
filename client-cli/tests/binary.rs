//! The real binary, as far as it goes without a daemon.

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a temp folder can be made");
    Command::new(env!("CARGO_BIN_EXE_hermes-cli"))
        .args(args)
        .env_clear()
        .env("HERMES_HOME", home.path().join("home"))
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn version_needs_no_home_and_no_daemon() {
    let ended = run(&["--version"]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let shown = text(&ended.stdout);
    assert!(shown.starts_with(concat!("hermes-cli ", env!("CARGO_PKG_VERSION"))), "{shown}");
    assert!(shown.contains("build: ") && shown.contains("home: "), "{shown}");
}

#[test]
fn an_unknown_command_ends_in_two_with_the_near_miss() {
    let ended = run(&["sesions"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(text(&ended.stderr).contains("'sessions'"), "{}", text(&ended.stderr));
    assert_eq!(text(&ended.stdout), "");
}

#[test]
fn without_a_daemon_program_the_error_says_where_it_was_sought() {
    let ended = run(&["-z", "hello", "--stdin", "ignore", "-p", "nobody"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("no profile `nobody`"), "{}", text(&ended.stderr));
}

#[test]
fn json_readers_get_an_object_also_when_nothing_began() {
    let ended = run(&["-z", "  ", "--stdin", "ignore", "--output-format", "json"]);
    assert_eq!(ended.status.code(), Some(2));
    let object: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("one JSON object");
    assert_eq!(object["failed"], serde_json::json!(true));
    assert_eq!(object["error"], serde_json::json!("the prompt is empty"));
}

#[test]
fn settings_commands_need_no_daemon() {
    let ended = run(&["config", "path"]);
    assert_eq!(ended.status.code(), Some(0));
    assert!(text(&ended.stdout).trim_end().ends_with("home/config.yaml"), "{}", text(&ended.stdout));
    let ended = run(&["config", "get", "no.such.key"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("`no.such.key` is not set"), "{}", text(&ended.stderr));
}

#[test]
fn a_usage_file_that_cannot_be_written_hides_neither_the_failure_nor_its_exit_code() {
    let ended = run(&[
        "-z",
        " ",
        "--stdin",
        "ignore",
        "--usage-file",
        "/nowhere/usage.json",
        "--output-format",
        "json",
    ]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(text(&ended.stdout).contains("the prompt is empty"), "{}", text(&ended.stdout));
    assert!(text(&ended.stderr).contains("/nowhere/usage.json"), "{}", text(&ended.stderr));
}

#[test]
fn status_names_the_settings_file_of_this_call() {
    let ended = run(&["--config", "/nowhere/other.yaml", "status", "--json"]);
    assert!(text(&ended.stdout).contains("\"config\":\"/nowhere/other.yaml\""), "{}", text(&ended.stdout));
}

//! Tests of `terminal` through the dispatcher.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{EffectDisposition, ToolStatus};
use hermes_runtime::{CommandOutput, LocalBackend, LocalBackendInput, SecretScope, TerminalSettings};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::testing::{Bench, SECRET};
use crate::{file_tools, terminal_tools};

fn bench() -> Bench {
    Bench { yolo: true, ..Bench::new() }
}

fn output(exit_code: i32, text: &str) -> CommandOutput {
    CommandOutput {
        output: text.to_owned(),
        exit_code,
        timed_out: exit_code == 124,
        interrupted: exit_code == 130,
        cwd: std::env::temp_dir(),
        cwd_note: None,
        omitted_chars: 0,
        full_log: None,
        duration: Duration::ZERO,
    }
}

#[tokio::test]
async fn a_command_gets_the_sessions_directory_environment_and_limits() {
    let bench = bench();
    let result = bench.call("terminal", json!({ "command": "make test" })).await;
    let value: Value = serde_json::from_str(&result.content).unwrap();
    assert_eq!(value, json!({ "output": "done\n", "exit_code": 0, "error": null }));
    assert_eq!((result.status, result.effect), (ToolStatus::Ok, EffectDisposition::Done));
    let specs = bench.backend.specs.lock().unwrap();
    let spec = specs.first().unwrap();
    assert_eq!((spec.command.as_str(), &spec.cwd), ("make test", &bench.root));
    assert_eq!((spec.timeout, spec.output_cap_chars), (Duration::from_mins(3), 50_000));
    assert!(spec.env.iter().any(|(name, value)| name == "HERMES_TOOL_CHILD" && value == OsStr::new("s1")));
    assert!(!spec.env.iter().any(|(_, value)| value == OsStr::new(SECRET)));
}

#[tokio::test]
async fn exit_codes_are_told_with_their_meaning() {
    for (command, exit_code, meaning, status, effect) in [
        ("grep x y", 1, json!("no match; not an error"), ToolStatus::Ok, EffectDisposition::Done),
        ("make", 2, json!(null), ToolStatus::Error, EffectDisposition::Done),
        ("sleep 999", 124, json!(null), ToolStatus::Timeout, EffectDisposition::Unknown),
        ("sleep 999", 130, json!(null), ToolStatus::Cancelled, EffectDisposition::Unknown),
    ] {
        let bench = bench();
        *bench.backend.answer.lock().unwrap() = Some(output(exit_code, ""));
        let result = bench.call("terminal", json!({ "command": command })).await;
        let value: Value = serde_json::from_str(&result.content).unwrap();
        assert_eq!((&value["exit_code"], &value["exit_code_meaning"]), (&json!(exit_code), &meaning));
        assert_eq!((result.status, result.effect), (status, effect), "{command}");
    }
}

#[tokio::test]
async fn a_command_moves_the_session_and_a_workdir_does_not() {
    let bench = bench();
    std::fs::create_dir(bench.root.join("(日本) it's")).unwrap();
    let temp = std::env::temp_dir();
    *bench.backend.answer.lock().unwrap() = Some(output(0, ""));
    let value = bench.json("terminal", json!({ "command": "pwd", "workdir": "(日本) it's" })).await;
    assert_eq!((&value["cwd"], bench.workspace.cwd()), (&json!(null), bench.root.clone()));
    assert_eq!(bench.backend.specs.lock().unwrap()[0].cwd, bench.root.join("(日本) it's"));
    let value = bench.json("terminal", json!({ "command": "cd /tmp" })).await;
    assert_eq!((&value["cwd"], bench.workspace.cwd()), (&json!(temp), temp.clone()));
}

#[tokio::test]
async fn what_cannot_run_says_why_in_the_shape_of_a_result() {
    let bench = bench();
    let mut texts = Vec::new();
    for arguments in [
        json!({ "command": " " }),
        json!({ "command": "a\0b" }),
        json!({ "command": "x", "timeout": 601 }),
        json!({ "command": "x", "timeout": 0 }),
        json!({ "command": "x", "workdir": "none" }),
        json!({ "command": "x", "workdir": "a\0b" }),
        json!({ "command": "npm run dev" }),
        json!({ "command": "sleep 9 &" }),
        json!({ "command": "nohup x" }),
        json!({ "command": 5 }),
        json!({}),
    ] {
        let value = bench.json("terminal", arguments).await;
        texts.push(format!("{} {}", value["exit_code"], value["error"].as_str().unwrap()));
    }
    let text = texts.join("\n").replace(bench.root.to_str().unwrap(), "$ROOT");
    insta::assert_snapshot!("not_run", text);
    assert!(bench.backend.specs.lock().unwrap().is_empty());
}

#[tokio::test]
async fn output_shows_no_secret() {
    let bench = bench();
    *bench.backend.answer.lock().unwrap() = Some(output(0, &format!("TOKEN\n{SECRET}\n")));
    let result = bench.call("terminal", json!({ "command": "env" })).await;
    assert!(!result.content.contains(SECRET), "{}", result.content);
}

#[tokio::test]
async fn previews_are_one_short_line() {
    let bench = bench();
    let preview = |command: &str| {
        let call = crate::testing::call("terminal", &json!({ "command": command }).to_string());
        bench.dispatcher.preview(&bench.tools, &call)
    };
    assert_eq!(preview("ls -l"), "ls -l");
    assert_eq!(preview("cd x\nmake"), "cd x …");
    assert_eq!(preview(&"y".repeat(500)).chars().count(), 122);
}

#[tokio::test]
async fn real_commands_run_on_the_local_backend() {
    let tools = file_tools().into_iter().chain(terminal_tools()).collect();
    let bench = Bench::with(tools, |services| {
        services.backend = Arc::new(LocalBackend::new(LocalBackendInput {
            temp_dir: std::env::temp_dir(),
            settings: TerminalSettings { auto_source_bashrc: false, ..TerminalSettings::default() },
            secrets: SecretScope::empty(),
        }));
    });
    let bench = Bench { yolo: true, ..bench };
    bench.write("sub/a.txt", "hello\n");
    let value = bench.json("terminal", json!({ "command": "export GREETING=hi; cd sub && cat a.txt" })).await;
    assert_eq!(
        value,
        json!({ "output": "hello\n", "exit_code": 0, "error": null, "cwd": bench.root.join("sub") })
    );
    let value = bench.json("terminal", json!({ "command": "echo $GREETING $PWD; exit 3" })).await;
    assert_eq!(value["output"], format!("hi {}\n", bench.root.join("sub").display()));
    assert_eq!(value["exit_code"], 3);
    assert_eq!(bench.json("read_file", json!({ "path": "a.txt" })).await["content"], "1|hello");
    bench.dispatcher.services().backend.close().await;
}

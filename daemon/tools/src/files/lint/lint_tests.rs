//! Tests of checks through the tools that write.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use hermes_core::ClientEnv;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::testing::Bench;

#[test]
fn only_errors_that_were_not_there_are_new() {
    let errors = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let before = errors(&["line 3: bad token"]);
    assert_eq!(new_ones(&errors(&["line 9: bad token"]), &before), errors(&[]));
    assert_eq!(
        new_ones(&errors(&["line 9: bad token", "line 12: bad token", "line 13: other"]), &before),
        errors(&["line 12: bad token", "line 13: other"]),
    );
}

/// A bench whose commands look for programs in a folder with these shell scripts.
fn bench_with(programs: &[(&str, &str)]) -> Bench {
    let mut bench = Bench::new();
    let folder = bench.outside.join("bin");
    fs::create_dir(&folder).unwrap();
    for (name, script) in programs {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", folder.display());
    bench.reopen(ClientEnv::filter([("PATH".to_owned(), path)]));
    bench
}

async fn lint_of(bench: &Bench, path: &str, old: &str, new: &str) -> Value {
    bench.json("patch", json!({ "path": path, "old_string": old, "new_string": new })).await["lint"].clone()
}

#[tokio::test]
async fn python_is_checked_and_old_errors_are_told_apart() {
    let bench = Bench::new();
    bench.write("a.py", "x = 1\ny = 2\n");
    assert_eq!(lint_of(&bench, "a.py", "x = 1", "x = 3").await, json!({ "status": "ok" }));
    let broken = lint_of(&bench, "a.py", "y = 2", "y = (2").await;
    assert_eq!(broken["status"], "error", "{broken}");
    let still = lint_of(&bench, "a.py", "x = 3", "x = 4").await;
    assert_eq!(still["note"], "it did not parse before the edit either", "{still}");
    let written = bench.json("write_file", json!({ "path": "b.py", "content": "def f(:\n" })).await;
    assert_eq!(
        (&written["bytes_written"], &written["lint"]["status"]),
        (&json!(8), &json!("error")),
        "{written}"
    );
}

#[tokio::test]
async fn a_program_checks_what_it_gets_and_sees_only_the_sessions_environment() {
    // `env` tells what it was given; the text comes on standard input.
    let bench = bench_with(&[(
        "gofmt",
        "env > \"$0.env\"; if grep -q broken; then echo '<standard input>:2:1: expected declaration' >&2; exit 2; fi",
    )]);
    bench.write("a.go", "package a\n");
    assert_eq!(lint_of(&bench, "a.go", "package a", "package b").await, json!({ "status": "ok" }));
    assert_eq!(
        lint_of(&bench, "a.go", "package b\n", "package b\nbroken\n").await,
        json!({ "status": "error", "message": "line 2: expected declaration" }),
    );
    assert_eq!(
        lint_of(&bench, "a.go", "package b\n", "package c\n").await["note"],
        "it did not parse before the edit either",
    );
    let environment = fs::read_to_string(bench.outside.join("bin/gofmt.env")).unwrap();
    let names: Vec<&str> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert!(
        names.contains(&"HERMES_TOOL_CHILD") && !names.iter().any(|name| name.contains("CARGO")),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_or_cannot_run_is_skipped() {
    let bench = bench_with(&[("tsc", "echo 'cannot find module' >&2; exit 1")]);
    bench.write("a.go", "package a\n");
    bench.write("a.ts", "let a = 1\n");
    // The folders that every PATH ends with may have the program.
    let skipped = lint_of(&bench, "a.go", "package a", "package b").await;
    assert!(matches!(skipped["status"].as_str(), Some("skipped" | "ok")), "{skipped}");
    assert_eq!(
        lint_of(&bench, "a.ts", "let a", "let b").await,
        json!({ "status": "skipped", "reason": "tsc cannot check: cannot find module" }),
    );
}

#[tokio::test]
async fn a_program_that_the_agent_could_have_written_is_not_run() {
    let mut bench = Bench::new();
    let program = bench.write("bin/gofmt", "#!/bin/sh\ntouch \"$0.ran\"\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = program.parent().unwrap().display().to_string();
    bench.reopen(ClientEnv::filter([("PATH".to_owned(), path)]));
    bench.write("a.go", "package a\n");
    assert_eq!(
        lint_of(&bench, "a.go", "package a", "package b").await,
        json!({ "status": "skipped", "reason": "gofmt stands in the working directory" }),
    );
    assert!(!bench.root.join("bin/gofmt.ran").exists());
}

#[tokio::test]
async fn a_check_that_is_cut_off_leaves_no_process() {
    let bench = bench_with(&[("gofmt", "sleep 300 & echo $! > \"$0.pid\"; wait")]);
    bench.write("a.go", "package a\n");
    let pid_file = bench.outside.join("bin/gofmt.pid");
    let call =
        bench.call("patch", json!({ "path": "a.go", "old_string": "package a", "new_string": "package b" }));
    let stop = async {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')) {
            assert!(Instant::now() < deadline, "the check did not begin");
            tokio::task::yield_now().await;
        }
        bench.cancel.cancel();
    };
    let (result, ()) = tokio::join!(call, stop);
    assert_eq!(bench.read("a.go"), "package b\n", "{}", result.content);
    let pid = fs::read_to_string(&pid_file).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while is_running(pid.trim()) {
        assert!(Instant::now() < deadline, "the check's child still runs");
        tokio::task::yield_now().await;
    }
}

/// A zombie runs no more.
fn is_running(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

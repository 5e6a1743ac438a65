//! Paths and files that are made to do harm, for every file tool: each is answered at once, and nothing on disk
//! is another afterwards.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::symlink;
use std::time::Duration;

use hermes_core::ToolStatus;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::testing::Bench;

/// A call that ends by itself; what does not is a failure.
async fn answer(bench: &Bench, tool: &str, arguments: Value) -> (ToolStatus, Value) {
    let call = bench.call(tool, arguments.clone());
    let result = tokio::time::timeout(Duration::from_mins(1), call).await;
    let result = result.unwrap_or_else(|_| panic!("{tool} {arguments} does not end"));
    (result.status, serde_json::from_str(&result.content).unwrap_or(Value::Null))
}

/// Every way to hand a path to a file tool.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let patch = |text: String| ("patch", json!({ "mode": "patch", "patch": text }));
    vec![
        ("read_file", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": "x" })),
        ("patch", json!({ "path": path, "old_string": "a", "new_string": "b" })),
        patch(format!("*** Update File: {path}\n-a\n+b\n")),
        patch(format!("*** Delete File: {path}\n")),
        patch(format!("*** Move File: {path} -> elsewhere\n")),
    ]
}

#[tokio::test]
async fn pipes_sockets_devices_and_the_secrets_of_processes_are_refused_by_every_tool() {
    let bench = Bench::new();
    nix::unistd::mkfifo(&bench.root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(bench.root.join("sock")).unwrap();
    for (name, target) in [
        ("to_pipe", "pipe"),
        ("to_environ", "/proc/self/environ"),
        ("to_zero", "/dev/zero"),
        ("hop", "to_environ"),
        ("proc", "/proc/self"),
    ] {
        symlink(target, bench.root.join(name)).unwrap();
    }
    let up = "../".repeat(30);
    let paths = [
        "pipe",
        "sock",
        "to_pipe",
        "to_environ",
        "to_zero",
        "hop",
        "proc/environ",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/proc/self/environ",
        "/proc/1/environ",
        "/proc/thread-self/environ",
        "/proc/self/mem",
        "/proc/1/cmdline",
        "/proc/self/../self/environ",
        &format!("{up}proc/self/environ"),
        "/proc//self/./environ",
    ];
    for path in paths {
        for (tool, arguments) in calls(path) {
            let (status, value) = answer(&bench, tool, arguments).await;
            assert!(status != ToolStatus::Ok && value["error"].is_string(), "{tool} {path}: {value}");
        }
    }
    let root = std::fs::read_dir(&bench.root).unwrap().count();
    assert_eq!(root, 7);
    assert_eq!(std::fs::read_link(bench.root.join("hop")).unwrap().to_str(), Some("to_environ"));
}

#[tokio::test]
async fn a_search_neither_waits_for_a_pipe_nor_shows_an_environment() {
    let bench = Bench::new();
    nix::unistd::mkfifo(&bench.root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("/proc/self/environ", bench.root.join("environ")).unwrap();
    bench.write("a.txt", "PATH\n");
    for path in [".", "pipe", "environ", "/dev/zero", "/proc/self/environ", "/proc/self", "/proc/1/environ"] {
        let (_, value) =
            answer(&bench, "search_files", json!({ "pattern": "PATH|HOME", "path": path })).await;
        let hits = value["total_count"].as_u64().unwrap_or(0);
        assert!(hits == u64::from(path == "."), "{path}: {value}");
    }
}

#[tokio::test]
async fn paths_that_cannot_be_are_errors() {
    let bench = Bench::new();
    let long = format!("{}end", "a/".repeat(2046));
    let name = "n".repeat(4096);
    for path in [long.as_str(), name.as_str(), "a\0b", "", "   "] {
        for (tool, arguments) in calls(path) {
            let (status, value) = answer(&bench, tool, arguments).await;
            assert!(status != ToolStatus::Ok && value["error"].is_string(), "{tool} {path:.20}: {value}");
        }
    }
    assert_eq!(std::fs::read_dir(&bench.root).unwrap().count(), 0);
}

#[tokio::test]
async fn a_path_that_climbs_is_judged_where_it_leads() {
    let bench = Bench::new();
    std::fs::write(bench.outside.join("notes.txt"), "a\n").unwrap();
    let (_, value) = answer(&bench, "read_file", json!({ "path": "../outside/notes.txt" })).await;
    assert_eq!(value["content"], "1|a");
    let edit = json!({ "path": "../outside/notes.txt", "old_string": "a", "new_string": "b" });
    let (_, value) = answer(&bench, "patch", edit).await;
    // Outside the session's directory somebody would have to be asked.
    assert!(
        value["error"].is_string() || value["_warning"].as_str().is_some_and(|it| it.contains("leads out")),
        "{value}"
    );
    let home = bench.root.parent().unwrap().join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id_rsa"), "key\n").unwrap();
    for (tool, arguments) in calls("../home/.ssh/id_rsa") {
        let (status, value) = answer(&bench, tool, arguments).await;
        assert!(status != ToolStatus::Ok, "{tool}: {value}");
    }
    assert_eq!(std::fs::read_to_string(home.join(".ssh/id_rsa")).unwrap(), "key\n");
}

#[tokio::test]
async fn a_file_of_five_gigabytes_is_read_at_its_start_and_far_inside() {
    const GIB: u64 = 1024 * 1024 * 1024;
    let bench = Bench::new();
    let path = bench.root.join("huge.log");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all("line at the start\n".repeat(1000).as_bytes()).unwrap();
    // The rest is a hole: it reads as zeros and takes no space.
    file.set_len(5 * GIB).unwrap();
    file.seek(SeekFrom::Start(GIB / 2)).unwrap();
    file.write_all(b"\nline far inside\nand the next\n").unwrap();
    drop(file);
    let (_, value) = answer(&bench, "read_file", json!({ "path": "huge.log" })).await;
    assert_eq!(value["read_lines"], 500);
    assert_eq!((&value["total_is_lower_bound"], &value["file_size"]), (&json!(true), &json!(5 * GIB)));
    let (_, value) =
        answer(&bench, "read_file", json!({ "path": "huge.log", "offset": 1002, "limit": 2 })).await;
    assert_eq!(value["content"], "1002|line far inside\n1003|and the next");
    assert_eq!(value["total_is_lower_bound"], true);
    let (status, value) =
        answer(&bench, "patch", json!({ "path": "huge.log", "old_string": "start", "new_string": "end" }))
            .await;
    assert!(
        status == ToolStatus::Error && value["error"].as_str().unwrap().contains("more than the"),
        "{value}"
    );
    // It is renamed without being read.
    let patch = json!({ "mode": "patch", "patch": "*** Move File: huge.log -> old.log\n" });
    let (_, value) = answer(&bench, "patch", patch).await;
    assert_eq!(value["success"], true, "{value}");
    assert_eq!(std::fs::metadata(bench.root.join("old.log")).unwrap().len(), 5 * GIB);
}

#[tokio::test]
async fn a_line_of_two_hundred_megabytes_is_cut() {
    let bench = Bench::new();
    let mut file = std::fs::File::create(bench.root.join("wide.txt")).unwrap();
    file.write_all("x".repeat(5000).as_bytes()).unwrap();
    file.set_len(200 * 1024 * 1024).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(b"\nlast\n").unwrap();
    drop(file);
    let (_, value) = answer(&bench, "read_file", json!({ "path": "wide.txt" })).await;
    let content = value["content"].as_str().unwrap();
    assert!(content.contains("[line cut: more than") && content.len() < 3000, "{value}");
    let (_, value) = answer(&bench, "read_file", json!({ "path": "wide.txt", "offset": 2 })).await;
    assert_eq!(value["content"], "2|last");
}

#[tokio::test]
async fn a_mark_is_written_by_no_tool() {
    let bench = Bench::new();
    bench.write("a.txt", "a\n");
    let mark = "key = «redacted:sk-ant-…»";
    for (tool, arguments) in [
        ("write_file", json!({ "path": "a.txt", "content": mark })),
        ("write_file", json!({ "path": "new.txt", "content": mark })),
        ("patch", json!({ "path": "a.txt", "old_string": "a", "new_string": mark })),
        ("patch", json!({ "mode": "patch", "patch": format!("*** Add File: new.txt\n+{mark}\n") })),
        ("patch", json!({ "mode": "patch", "patch": format!("*** Update File: a.txt\n-a\n+{mark}\n") })),
    ] {
        let (status, value) = answer(&bench, tool, arguments).await;
        assert!(
            status != ToolStatus::Ok && value["error"].as_str().unwrap().contains("secret"),
            "{tool}: {value}"
        );
    }
    assert_eq!(bench.read("a.txt"), "a\n");
    assert_eq!(std::fs::read_dir(&bench.root).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_that_may_not_be_read_is_not_shown_by_an_edit() {
    let mut bench = Bench::new();
    // Nothing is asked, so that only what is never allowed stands in the way.
    bench.yolo = true;
    bench.write(".env", "PLAIN=visible-value\n");
    for (tool, arguments) in calls(".env").into_iter().filter(|(tool, _)| *tool == "patch") {
        let (_, value) = answer(&bench, tool, arguments).await;
        assert!(!value.to_string().contains("visible-value"), "{tool}: {value}");
    }
}

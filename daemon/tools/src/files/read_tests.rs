//! Tests of `read_file` through the dispatcher.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::testing::{Bench, SECRET};
use hermes_core::{EffectDisposition, ToolStatus};

#[tokio::test]
async fn a_small_file_is_shown_with_numbers() {
    let bench = Bench::new();
    let path = bench.write("notes.txt", "one\ntwo\n\nfour");
    let result = bench.call("read_file", json!({ "path": "notes.txt" })).await;
    assert_eq!((result.status, result.effect), (ToolStatus::Ok, EffectDisposition::None));
    assert_eq!(result.summary.as_deref(), Some("4 lines"));
    let value: serde_json::Value = serde_json::from_str(&result.content).unwrap();
    assert_eq!(
        value,
        json!({
            "path": path.to_str().unwrap(),
            "content": "1|one\n2|two\n3|\n4|four",
            "read_lines": 4,
            "total_lines": 4,
            "file_size": 13,
            "truncated": false,
        }),
    );
}

#[tokio::test]
async fn a_window_says_how_to_go_on() {
    let bench = Bench::new();
    let text = (1..=30).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    bench.write("long.txt", text);
    let value = bench.json("read_file", json!({ "path": "long.txt", "offset": "11", "limit": 2 })).await;
    assert_eq!(value["content"], "11|11\n12|12");
    assert_eq!((&value["truncated"], &value["next_offset"]), (&json!(true), &json!(13)));
    assert_eq!(value["hint"], "lines 11-12 of 30; go on with offset=13");
    let past = bench.json("read_file", json!({ "path": "long.txt", "offset": 99 })).await;
    assert_eq!(
        (&past["content"], &past["hint"]),
        (&json!("30|30"), &json!("the file has only 30 lines; this is the last"))
    );
    let zero = bench.json("read_file", json!({ "path": "long.txt", "offset": -3, "limit": 0 })).await;
    assert_eq!(zero["content"], "1|1");
    let empty = bench.write("empty", "");
    let value = bench.json("read_file", json!({ "path": empty })).await;
    assert_eq!((&value["content"], &value["hint"]), (&json!(""), &json!("the file is empty")));
}

#[tokio::test]
async fn a_full_answer_ends_at_a_line_and_a_huge_line_is_clamped() {
    let bench = Bench::new();
    bench.settings.send_modify(|settings| {
        Arc::make_mut(settings).file_read_max_chars.0 = 1000;
    });
    bench.write("wide.txt", format!("{}\n", "x".repeat(400)).repeat(5));
    let value = bench.json("read_file", json!({ "path": "wide.txt" })).await;
    assert_eq!((&value["read_lines"], &value["truncated_by"]), (&json!(2), &json!("bytes")));
    assert_eq!((&value["next_offset"], &value["total_lines"]), (&json!(3), &json!(5)));
    bench.write("one.txt", "y".repeat(5000));
    let value = bench.json("read_file", json!({ "path": "one.txt" })).await;
    let content = value["content"].as_str().unwrap();
    assert!(content.ends_with("… [line cut: 5000 bytes in all]") && content.len() < 1100, "{content}");
    assert_eq!(value["hint"], "1 long line is cut");
}

#[tokio::test]
async fn line_ends_marks_and_odd_bytes_are_told() {
    let bench = Bench::new();
    bench.write("dos.txt", b"\xEF\xBB\xBFa\r\nb\r\n");
    let value = bench.json("read_file", json!({ "path": "dos.txt" })).await;
    assert_eq!((&value["content"], &value["line_endings"]), (&json!("1|a\n2|b"), &json!("crlf")));
    bench.write("latin.txt", b"caf\xe9 au lait, every day\n");
    let value = bench.json("read_file", json!({ "path": "latin.txt" })).await;
    assert_eq!(value["content"], "1|caf\u{fffd} au lait, every day");
    assert!(value["note"].as_str().unwrap().contains("no UTF-8"));
}

#[tokio::test]
async fn what_is_no_text_is_refused_with_its_kind() {
    let bench = Bench::new();
    bench.write("photo.PNG", "text inside");
    bench.write("data.zip", "x");
    bench.write("blob", b"\x7fELF\x02\x01\x01\0\0\0\0");
    bench.write("wide", b"\xFF\xFEa\0b\0");
    std::fs::create_dir(bench.root.join("folder")).unwrap();
    let mut texts = Vec::new();
    for path in ["photo.PNG", "data.zip", "blob", "wide", "folder", "a\0b", " "] {
        texts.push(bench.error("read_file", json!({ "path": path })).await);
    }
    insta::assert_snapshot!("unreadable", texts.join("\n"));
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_not_opened() {
    let bench = Bench::new();
    nix::unistd::mkfifo(&bench.root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(bench.root.join("sock")).unwrap();
    for path in ["pipe", "sock", "/dev/zero", "/dev/stdin"] {
        let result = bench.call("read_file", json!({ "path": path })).await;
        assert_eq!(result.status, ToolStatus::Blocked, "{}", result.content);
    }
}

#[tokio::test]
async fn a_missing_file_names_its_neighbours() {
    let bench = Bench::new();
    bench.write("config.yaml", "");
    let value = bench.json("read_file", json!({ "path": "config.yml" })).await;
    assert_eq!(value["similar_files"], json!([bench.root.join("config.yaml")]));
    let error = bench.error("read_file", json!({ "path": "none/x" })).await;
    assert_eq!(error, "$DIR/work/none/x does not exist (its folder does not exist either)");
}

#[tokio::test]
async fn links_lead_where_they_point() {
    let bench = Bench::new();
    let target = bench.write("real.txt", "content");
    symlink("real.txt", bench.root.join("link")).unwrap();
    symlink("loop", bench.root.join("loop")).unwrap();
    let value = bench.json("read_file", json!({ "path": "link" })).await;
    assert_eq!(value["path"], target.to_str().unwrap());
    let error = bench.error("read_file", json!({ "path": "loop" })).await;
    assert!(error.contains("links"), "{error}");
}

#[tokio::test]
async fn an_unchanged_file_is_not_sent_twice() {
    let bench = Bench::new();
    bench.write("a.txt", "one\n");
    let read = json!({ "path": "a.txt" });
    bench.json("read_file", read.clone()).await;
    let again = bench.json("read_file", read.clone()).await;
    assert_eq!((&again["status"], &again["content_returned"]), (&json!("unchanged"), &json!(false)));
    let third = bench.json("read_file", read.clone()).await;
    assert_eq!(third["already_read"], 3);
    bench.json("write_file", json!({ "path": "a.txt", "content": "two\n" })).await;
    assert_eq!(bench.json("read_file", read.clone()).await["content"], "1|two");
    bench.workspace.forget_reads();
    assert_eq!(bench.json("read_file", read).await["content"], "1|two");
}

#[tokio::test]
async fn a_spilled_read_can_be_read_again() {
    let mut bench = Bench::new();
    bench.write("a.txt", "some line\n".repeat(1000));
    bench.batch_used = 199_000;
    let spilled = bench.call("read_file", json!({ "path": "a.txt" })).await;
    assert!(spilled.content.starts_with("<persisted-output>"));
    bench.batch_used = 0;
    // The guardrail of the turn has its own opinion on results that come again.
    bench.guard = Arc::default();
    assert!(bench.json("read_file", json!({ "path": "a.txt" })).await["content"].is_string());
}

#[tokio::test]
async fn secrets_are_marked_and_the_lines_keep_their_numbers() {
    let bench = Bench::new();
    bench.write("deploy.sh", format!("a\nexport TOKEN={SECRET}\nb\n"));
    let value = bench.json("read_file", json!({ "path": "deploy.sh" })).await;
    let content = value["content"].as_str().unwrap();
    assert!(!content.contains(SECRET) && content.contains("«redacted:"), "{content}");
    assert!(content.starts_with("1|a\n2|") && content.ends_with("\n3|b"), "{content}");
    assert_eq!(value["redacted"], 1);
}

#[tokio::test]
async fn a_two_gigabyte_file_costs_little() {
    let bench = Bench::new();
    let path = bench.root.join("huge.txt");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all("first line\nsecond line\n".repeat(4000).as_bytes()).unwrap();
    // The rest is a hole: it reads as zeros and takes no space.
    file.set_len(2 * 1024 * 1024 * 1024).unwrap();
    drop(file);
    let value = bench.json("read_file", json!({ "path": "huge.txt", "limit": 2 })).await;
    assert_eq!(value["content"], "1|first line\n2|second line");
    assert_eq!(
        (&value["total_is_lower_bound"], &value["file_size"]),
        (&json!(true), &json!(2_147_483_648_u64))
    );
}

#[tokio::test]
async fn the_kernels_files_without_a_size_are_read() {
    if cfg!(target_os = "linux") {
        let bench = Bench::new();
        let value = bench.json("read_file", json!({ "path": "/proc/meminfo", "limit": 1 })).await;
        assert!(value["content"].as_str().unwrap().starts_with("1|MemTotal"), "{value}");
    }
}

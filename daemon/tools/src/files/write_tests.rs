//! Tests of `write_file` through the dispatcher.

use std::os::unix::fs::symlink;

use hermes_core::{EffectDisposition, ToolStatus};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::testing::Bench;

#[tokio::test]
async fn a_new_file_comes_with_its_folders() {
    let bench = Bench::new();
    let result = bench.call("write_file", json!({ "path": "a/b/c.txt", "content": "x\n" })).await;
    assert_eq!((result.status, result.effect), (ToolStatus::Ok, EffectDisposition::Done));
    let path = bench.root.join("a/b/c.txt");
    let value: serde_json::Value = serde_json::from_str(&result.content).unwrap();
    assert_eq!(
        value,
        json!({ "bytes_written": 2, "resolved_path": path, "files_modified": [path], "dirs_created": true }),
    );
    assert_eq!(result.inline_diff.as_deref(), Some("--- a/a/b/c.txt\n+++ b/a/b/c.txt\n@@ -0,0 +1 @@\n+x\n"));
    assert_eq!(bench.read("a/b/c.txt"), "x\n");
}

#[tokio::test]
async fn line_ends_and_byte_order_mark_of_the_old_file_stay() {
    let bench = Bench::new();
    bench.write("dos.txt", b"\xEF\xBB\xBFa\r\nb\r\n");
    bench.json("write_file", json!({ "path": "dos.txt", "content": "c\nd\n" })).await;
    assert_eq!(std::fs::read(bench.root.join("dos.txt")).unwrap(), b"\xEF\xBB\xBFc\r\nd\r\n");
    bench.write("unix.txt", "a\nb\n");
    bench.json("write_file", json!({ "path": "unix.txt", "content": "c\r\n" })).await;
    assert_eq!(bench.read("unix.txt"), "c\r\n");
}

#[tokio::test]
async fn a_link_stays_and_its_target_is_written() {
    let bench = Bench::new();
    bench.write("real.txt", "old");
    symlink("real.txt", bench.root.join("link")).unwrap();
    symlink("later.txt", bench.root.join("dangling")).unwrap();
    bench.json("write_file", json!({ "path": "link", "content": "new" })).await;
    bench.json("write_file", json!({ "path": "dangling", "content": "born" })).await;
    assert!(bench.root.join("link").is_symlink() && bench.root.join("dangling").is_symlink());
    assert_eq!((bench.read("real.txt"), bench.read("later.txt")), ("new".to_owned(), "born".to_owned()));
}

#[tokio::test]
async fn what_must_not_be_written_is_refused_and_nothing_changes() {
    let bench = Bench::new();
    bench.write("keep.json", "{}");
    std::fs::create_dir(bench.root.join("folder")).unwrap();
    bench.write("file", "x");
    let mut texts = Vec::new();
    for (path, content) in [
        ("keep.json", "{\"a\": 1,}"),
        ("new.yaml", "a: [1, 2\nb: 3"),
        ("new.toml", "a = "),
        ("keep.json", "1|{\n2|}\n"),
        ("x.txt", "key = «redacted:sk-…»"),
        (
            "x.txt",
            "The file has not changed since you read these lines; use the content of that earlier result.",
        ),
        ("folder", "x"),
        ("file/below", "x"),
        ("new_folder/", "x"),
        ("a\0b", "x"),
    ] {
        texts.push(bench.error("write_file", json!({ "path": path, "content": content })).await);
    }
    insta::assert_snapshot!("unwritable", texts.join("\n"));
    assert_eq!(bench.read("keep.json"), "{}");
    let mut names: Vec<String> = std::fs::read_dir(&bench.root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["file", "folder", "keep.json"]);
}

#[tokio::test]
async fn a_checked_syntax_is_reported() {
    let bench = Bench::new();
    let value = bench.json("write_file", json!({ "path": "a.json", "content": "{}" })).await;
    assert_eq!(value["lint"], json!({ "status": "ok" }));
    let value = bench.json("write_file", json!({ "path": "tsconfig.json", "content": "{ // x\n}" })).await;
    assert_eq!(value["lint"], json!(null));
}

#[tokio::test]
async fn the_most_serious_warning_is_given() {
    let bench = Bench::new();
    let write = |path: &'static str| bench.json("write_file", json!({ "path": path, "content": "new\n" }));
    bench.write("unread.txt", "a\nb\n");
    assert_eq!(write("unread.txt").await["_warning"], "you had not read this file in this session");
    assert_eq!(write("unread.txt").await["_warning"], json!(null));
    assert_eq!(write("fresh.txt").await["_warning"], json!(null));

    bench.write("part.txt", "a\nb\n");
    bench.json("read_file", json!({ "path": "part.txt", "limit": 1 })).await;
    assert_eq!(write("part.txt").await["_warning"], "you had read only a part of this file");

    bench.write("changed.txt", "a\n");
    bench.json("read_file", json!({ "path": "changed.txt" })).await;
    bench.write("changed.txt", "longer than before\n");
    let warning = write("changed.txt").await["_warning"].clone();
    assert!(warning.as_str().unwrap().contains("changed on disk"), "{warning}");

    let other = hermes_core::SessionId::parse("other").unwrap();
    bench.write("shared.txt", "a\n");
    bench.json("read_file", json!({ "path": "shared.txt" })).await;
    bench.dispatcher.services().files.note_write(&bench.root.join("shared.txt"), &other);
    let warning = write("shared.txt").await["_warning"].clone();
    assert!(warning.as_str().unwrap().contains("another session"), "{warning}");
}

#[tokio::test]
async fn a_failed_write_leaves_the_old_file() {
    let bench = Bench::new();
    // A path whose last part is longer than a name may be cannot be created.
    let long = "x".repeat(300);
    let error = bench.error("write_file", json!({ "path": long, "content": "x" })).await;
    assert!(error.starts_with("cannot") && error.contains("too long"), "{error}");
    assert_eq!(std::fs::read_dir(&bench.root).unwrap().count(), 0);
}

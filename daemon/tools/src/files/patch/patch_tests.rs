//! Tests of `patch` through the dispatcher.

use hermes_core::{EffectDisposition, ToolStatus};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::testing::{Bench, SECRET};

const CODE: &str = "fn a() {\n    one();\n}\n\nfn b() {\n    one();\n}\n";

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "x.txt", "old_string": old, "new_string": new })
}

#[tokio::test]
async fn an_edit_gives_its_diff() {
    let bench = Bench::new();
    let path = bench.write("x.txt", CODE);
    let result = bench.call("patch", edit("fn a() {\n    one();", "fn a() {\n    two();")).await;
    let diff =
        "--- a/x.txt\n+++ b/x.txt\n@@ -1,5 +1,5 @@\n fn a() {\n-    one();\n+    two();\n }\n \n fn b() {\n";
    let value: Value = serde_json::from_str(&result.content).unwrap();
    assert_eq!(
        value,
        json!({ "success": true, "diff": diff, "resolved_path": path, "files_modified": [path] }),
    );
    assert_eq!((result.status, result.effect), (ToolStatus::Ok, EffectDisposition::Done));
    assert_eq!((result.inline_diff.as_deref(), result.summary.as_deref()), (Some(diff), Some("+1 -1")));
    assert_eq!(bench.read("x.txt"), CODE.replacen("one", "two", 1));
}

#[tokio::test]
async fn several_places_are_an_error_or_all_replaced() {
    let bench = Bench::new();
    bench.write("x.txt", CODE);
    let value = bench.json("patch", edit("one();", "two();")).await;
    assert_eq!(value["matches"], 2);
    assert!(value["error"].as_str().unwrap().contains("is 2 times in"), "{value}");
    assert!(value["error"].as_str().unwrap().contains("at lines 2, 6."), "{value}");
    assert_eq!(bench.read("x.txt"), CODE);
    let mut all = edit("one();", "two();");
    all["replace_all"] = json!(true);
    assert_eq!(bench.json("patch", all).await["replacements"], 2);
    assert_eq!(bench.read("x.txt"), CODE.replace("one", "two"));
}

#[tokio::test]
async fn a_text_that_is_not_there_shows_what_is() {
    let bench = Bench::new();
    bench.write("x.txt", CODE);
    let value = bench.json("patch", edit("fn a(b) {\n  one();", "x")).await;
    assert_eq!(value["closest"][0], "1|fn a() {\n2|    one();\n3|}\n4|");
    assert_eq!(value["_hint"], "Read the lines and copy them exactly, without their numbers");
    bench.json("patch", edit("fn a(b) {\n  one();", "x")).await;
    let third = bench.json("patch", edit("fn a(b) {\n  one();", "x")).await;
    assert!(third["_hint"].as_str().unwrap().starts_with("This is failure 3"), "{third}");
    assert_eq!(bench.read("x.txt"), CODE);
}

#[tokio::test]
async fn an_edit_sent_twice_is_applied_once() {
    let bench = Bench::new();
    bench.write("x.txt", "use std::fmt;\n");
    let add = edit("use std::fmt;\n", "use std::fmt;\nuse std::io;\n");
    bench.json("patch", add.clone()).await;
    let result = bench.call("patch", add).await;
    let value: Value = serde_json::from_str(&result.content).unwrap();
    assert_eq!((&value["success"], &value["already_applied"]), (&json!(true), &json!(true)));
    assert_eq!(result.effect, EffectDisposition::None);
    assert_eq!(bench.read("x.txt"), "use std::fmt;\nuse std::io;\n");
}

#[tokio::test]
async fn senseless_edits_are_refused() {
    let bench = Bench::new();
    bench.write("x.txt", "«redacted:sk-…»");
    let mut texts = Vec::new();
    let mut patch_text = edit("a", "b");
    patch_text["mode"] = json!("patch");
    for arguments in [
        edit("", "x"),
        edit("x", "x"),
        edit("a", "«redacted:sk-…»"),
        edit("1|a\n2|b\n", "c"),
        json!({ "path": "none.txt", "old_string": "a", "new_string": "b" }),
        json!({ "path": ".", "old_string": "a", "new_string": "b" }),
        patch_text,
    ] {
        texts.push(bench.error("patch", arguments).await);
    }
    insta::assert_snapshot!("senseless", texts.join("\n"));
}

#[tokio::test]
async fn other_bytes_stay_as_they_are() {
    let bench = Bench::new();
    bench.write("x.txt", b"\xEF\xBB\xBFcaf\xe9 one\r\ntwo\r\n");
    let value = bench.json("patch", edit("one\ntwo", "1\n2")).await;
    assert_eq!(value["success"], true, "{value}");
    assert_eq!(std::fs::read(bench.root.join("x.txt")).unwrap(), b"\xEF\xBB\xBFcaf\xe9 1\r\n2\r\n");
}

#[tokio::test]
async fn a_broken_syntax_is_told_not_refused() {
    let bench = Bench::new();
    bench.write("a.json", "{\"a\": 1}");
    let cut = json!({ "path": "a.json", "old_string": "1}", "new_string": "1" });
    let value = bench.json("patch", cut).await;
    assert_eq!((&value["success"], &value["lint"]["status"]), (&json!(true), &json!("error")));
    let more = json!({ "path": "a.json", "old_string": "1", "new_string": "2" });
    let value = bench.json("patch", more).await;
    assert_eq!(value["lint"]["note"], "it did not parse before the edit either");
}

#[tokio::test]
async fn a_diff_shows_no_secret() {
    let bench = Bench::new();
    bench.write("x.txt", format!("key = \"{SECRET}\"\nname = \"a\"\n"));
    let result = bench.call("patch", edit("name = \"a\"", "name = \"b\"")).await;
    assert!(!result.content.contains(SECRET) && !result.inline_diff.unwrap().contains(SECRET));
    assert!(bench.read("x.txt").contains(SECRET));
}

#[tokio::test]
async fn a_huge_file_is_not_loaded() {
    let bench = Bench::new();
    let path = bench.write("x.txt", "start\n");
    std::fs::File::options().write(true).open(path).unwrap().set_len(2 * 1024 * 1024 * 1024).unwrap();
    let error = bench.error("patch", edit("start", "end")).await;
    assert!(error.contains("more than the"), "{error}");
}

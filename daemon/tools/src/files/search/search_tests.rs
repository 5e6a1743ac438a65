//! Tests of `search_files` through the dispatcher.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::testing::{Bench, SECRET};

fn tree() -> Bench {
    let bench = Bench::new();
    bench.write("src/main.rs", "fn main() {\n    run();\n}\n");
    bench.write("src/lib.rs", "pub fn run() {}\n// run later\n");
    bench.write("docs/guide.md", "how to run\n");
    bench.write(".hidden/secret.txt", "only here: zebra\n");
    bench
}

async fn search(bench: &Bench, arguments: Value) -> Value {
    bench.json("search_files", arguments).await
}

#[tokio::test]
async fn few_hits_are_a_list_and_many_are_text() {
    let bench = tree();
    let value = search(&bench, json!({ "pattern": r"run\b" })).await;
    assert_eq!(
        value,
        json!({
            "total_count": 4,
            "matches": [
                { "path": "docs/guide.md", "line": 1, "content": "how to run" },
                { "path": "src/lib.rs", "line": 1, "content": "pub fn run() {}" },
                { "path": "src/lib.rs", "line": 2, "content": "// run later" },
                { "path": "src/main.rs", "line": 2, "content": "    run();" },
            ],
        }),
    );
    bench.write("src/more.rs", "run\r\n");
    let value = search(&bench, json!({ "pattern": "run$|run[( ]" })).await;
    assert_eq!(
        value["matches_text"],
        "docs/guide.md\n  1: how to run\nsrc/lib.rs\n  1: pub fn run() {}\n  2: // run later\nsrc/main.rs\n  2:     \
         run();\nsrc/more.rs\n  1: run",
    );
}

#[tokio::test]
async fn context_is_marked_and_gaps_are_shown() {
    let bench = Bench::new();
    bench.write("a.txt", "1\nx\n3\n4\n5\n6\nx\n");
    let value = search(&bench, json!({ "pattern": "x", "context": 1 })).await;
    assert_eq!(value["matches_text"], "a.txt\n  1- 1\n  2: x\n  3- 3\n  --\n  6- 6\n  7: x");
}

#[tokio::test]
async fn pages_follow_one_another_and_the_total_is_true() {
    let bench = Bench::new();
    for file in 0..100 {
        bench.write(&format!("f{file:03}.txt"), "hit\nmiss\nhit\n");
    }
    let mut seen = Vec::new();
    let mut offset = 0;
    loop {
        let value = search(&bench, json!({ "pattern": "^hit", "limit": 37, "offset": offset })).await;
        assert_eq!(value["total_count"], 200);
        let mut file = String::new();
        for line in value["matches_text"].as_str().unwrap().lines() {
            match line.strip_prefix("  ") {
                Some(hit) => seen.push(format!("{file} {hit}")),
                None => file = line.to_owned(),
            }
        }
        match value["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    let want: Vec<String> =
        (0..100).flat_map(|file| [1, 3].map(|line| format!("f{file:03}.txt {line}: hit"))).collect();
    assert_eq!(seen, want);
    let far = search(&bench, json!({ "pattern": "^hit", "limit": 2, "offset": 150 })).await;
    assert_eq!(far["matches"][0]["path"], "f075.txt");
}

#[tokio::test]
async fn a_deep_offset_into_one_large_file_holds_nothing_before_it() {
    let bench = Bench::new();
    bench.write("big.txt", "hit\n".repeat(20_000));
    let value = search(&bench, json!({ "pattern": "hit", "limit": 2, "offset": 15_000 })).await;
    assert_eq!((&value["matches"][0]["line"], &value["total_count"]), (&json!(15_001), &json!(20_000)));
    assert_eq!(value["next_offset"], 15_002);
}

#[tokio::test]
async fn files_and_counts() {
    let bench = tree();
    let files = search(&bench, json!({ "pattern": "run", "output_mode": "files_only" })).await;
    assert_eq!(files, json!({ "total_count": 3, "files": ["docs/guide.md", "src/lib.rs", "src/main.rs"] }),);
    let counts =
        search(&bench, json!({ "pattern": "run", "output_mode": "count", "file_glob": "*.rs" })).await;
    assert_eq!(counts, json!({ "total_count": 3, "counts": { "src/lib.rs": 2, "src/main.rs": 1 } }));
    let paged =
        search(&bench, json!({ "pattern": "run", "output_mode": "files_only", "limit": 1, "offset": 1 }))
            .await;
    assert_eq!((&paged["files"], &paged["next_offset"]), (&json!(["src/lib.rs"]), &json!(2)));
}

#[tokio::test]
async fn hidden_and_ignored_files_come_only_when_nothing_else_matches() {
    let bench = tree();
    std::fs::create_dir(bench.root.join(".git")).unwrap();
    bench.write(".gitignore", "build/\n");
    bench.write("build/out.txt", "generated quagga\n");
    bench.write(".git/objects.txt", "zebra quagga\n");
    for (pattern, path) in [("zebra", ".hidden/secret.txt"), ("quagga", "build/out.txt")] {
        let value = search(&bench, json!({ "pattern": pattern })).await;
        assert_eq!((&value["total_count"], &value["matches"][0]["path"]), (&json!(1), &json!(path)));
        assert!(value["note"].as_str().unwrap().contains("hidden or git-ignored"), "{value}");
    }
    bench.write("seen.txt", "zebra\n");
    let value = search(&bench, json!({ "pattern": "zebra", "limit": 9 })).await;
    assert_eq!((&value["total_count"], &value["note"]), (&json!(1), &json!(null)));
    let inside = search(&bench, json!({ "pattern": "quagga", "path": "build" })).await;
    assert_eq!(inside["matches"][0]["path"], "build/out.txt");
}

#[tokio::test]
async fn what_cannot_match_is_explained() {
    let bench = tree();
    let value = search(&bench, json!({ "pattern": r"fn main\(\) \{\n    run" })).await;
    assert!(value["note"].as_str().unwrap().contains("line by line"), "{value}");
    let error = bench.error("search_files", json!({ "pattern": "(unclosed" })).await;
    assert!(
        error.starts_with("the pattern is not a valid regex: ") && error.contains("unclosed group"),
        "{error}"
    );
    let error = bench.error("search_files", json!({ "pattern": "x", "file_glob": "a[" })).await;
    assert!(error.starts_with("file_glob is not a valid glob"), "{error}");
    let value = search(&bench, json!({ "pattern": "x", "path": "scr" })).await;
    assert_eq!(value["error"].as_str().map(|error| error.ends_with("scr does not exist")), Some(true));
    let error = bench.error("search_files", json!({ "pattern": "" })).await;
    assert_eq!(error, "the pattern is empty");
}

#[tokio::test]
async fn binary_files_long_lines_pipes_and_links_do_no_harm() {
    let bench = Bench::new();
    bench.write("blob", format!("needle\n{}\0", "x\n".repeat(200_000)));
    bench.write("wide.min.js", format!("{}needle{}", "a".repeat(3000), "b".repeat(3000)));
    bench.write("endless.txt", "x".repeat(20 * 1024 * 1024));
    nix::unistd::mkfifo(&bench.root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("..", bench.root.join("up")).unwrap();
    let value = search(&bench, json!({ "pattern": "needle" })).await;
    assert_eq!((&value["total_count"], &value["_omitted"]), (&json!(1), &json!({ "binary_files": 1 })));
    let shown = value["matches"][0]["content"].as_str().unwrap();
    assert!(shown.contains("needle") && shown.chars().count() <= 500, "{shown}");
    assert_eq!(value["warning"], "1 file with lines too long to search");
}

#[tokio::test]
async fn a_single_file_is_searched() {
    let bench = tree();
    let value = search(&bench, json!({ "pattern": "run", "path": "src/lib.rs" })).await;
    assert_eq!((&value["total_count"], &value["matches"][0]["path"]), (&json!(2), &json!("src/lib.rs")));
    let hidden = search(&bench, json!({ "pattern": "zebra", "path": ".hidden/secret.txt" })).await;
    assert_eq!((&hidden["total_count"], &hidden["note"]), (&json!(1), &json!(null)));
}

#[tokio::test]
async fn secrets_in_hits_are_marked() {
    let bench = Bench::new();
    bench.write("a.sh", format!("export TOKEN={SECRET}\n"));
    let result = bench.call("search_files", json!({ "pattern": "TOKEN" })).await;
    assert!(!result.content.contains(SECRET) && result.content.contains("«redacted:"), "{}", result.content);
}

#[tokio::test]
async fn the_same_search_again_and_again_is_stopped() {
    let mut bench = tree();
    let same = json!({ "pattern": "run" });
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        // The guardrail of the turn has its own opinion on repetitions.
        bench.guard = Arc::default();
        let value = search(&bench, same.clone()).await;
        outcomes.push((value["_warning"].is_string(), value["error"].is_string()));
    }
    assert_eq!(outcomes, [(false, false), (false, false), (true, false), (false, true)]);
    bench.json("write_file", json!({ "path": "n", "content": "" })).await;
    assert_eq!(search(&bench, same).await["total_count"], 4);
}

#[tokio::test]
async fn names_are_found_newest_first_with_their_segments() {
    let bench = tree();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    for (name, age) in [("src/main.rs", 0), ("src/lib.rs", 5)] {
        File::options()
            .write(true)
            .open(bench.root.join(name))
            .unwrap()
            .set_modified(old + Duration::from_secs(age))
            .unwrap();
    }
    bench.write("deep/src/x.rs", "");
    let find = |pattern: &'static str| search(&bench, json!({ "pattern": pattern, "target": "files" }));
    assert_eq!(find("*.rs").await["files"], json!(["deep/src/x.rs", "src/lib.rs", "src/main.rs"]));
    assert_eq!(find("/src/*.rs").await["files"], json!(["src/lib.rs", "src/main.rs"]));
    let folders = find("src").await;
    let mut names: Vec<&str> =
        folders["files"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["deep/src/", "src/"]);
    let hidden = find("secret.*").await;
    assert_eq!((&hidden["files"], hidden["note"].is_string()), (&json!([".hidden/secret.txt"]), true));
    let loose = find("GUIDE").await;
    assert_eq!(loose["files"], json!(["docs/guide.md"]));
    assert_eq!(loose["note"], "nothing is called GUIDE; these names contain it");
    assert_eq!(find("*.nothing").await, json!({ "total_count": 0, "files": [] }));
}

#[tokio::test]
async fn hits_in_protected_files_are_dropped_and_counted() {
    let bench = Bench::new();
    bench.write(".env", "PASSWORD=swordfish\n");
    bench.write("a.txt", "swordfish\n");
    let value = search(&bench, json!({ "pattern": "swordfish" })).await;
    assert_eq!((&value["total_count"], &value["_omitted"]), (&json!(1), &json!(null)));
    let value = search(&bench, json!({ "pattern": "PASSWORD" })).await;
    assert_eq!((&value["total_count"], &value["_omitted"]), (&json!(0), &json!({ "protected_files": 1 })));
}

//! A plan's parallel segments come to the same as running the calls one after the other (spec 40 §3.4).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use futures_util::future::join_all;
use hermes_core::{ToolCall, ToolCallId};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::Bench;

/// A small tree that batches work on.
fn tree() -> Bench {
    let bench = Bench::new();
    for (name, content) in [
        ("a.txt", "alpha\nbeta\ngamma\n"),
        ("b.txt", "one\ntwo\nthree\n"),
        ("dir/c.txt", "alpha\ntwo\n"),
        ("dir/d.md", "# title\nalpha\n"),
        ("dir/sub/e.txt", "beta\n"),
        (".gitignore", "*.log\n"),
        ("dir/x.log", "alpha\n"),
    ] {
        bench.write(name, content);
    }
    bench
}

const PATHS: [&str; 13] = [
    "a.txt",
    "b.txt",
    "dir/c.txt",
    "dir/d.md",
    "dir/sub/e.txt",
    "dir/x.log",
    "a.tx",
    "new.txt",
    "new/f.txt",
    "new/g.txt",
    "dir/../b.txt",
    ".gitignore",
    "dir",
];

const WORDS: [&str; 5] = ["alpha", "beta", "two", "title", "nothing"];

fn any_path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&PATHS[..])
}

fn any_word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&WORDS[..])
}

fn any_call() -> impl Strategy<Value = (&'static str, Value)> {
    let read = (any_path(), 0..3_u32).prop_map(|(path, offset)| {
        (
            "read_file",
            if offset == 0 { json!({ "path": path }) } else { json!({ "path": path, "offset": offset }) },
        )
    });
    let write = (any_path(), any_word()).prop_map(|(path, word)| {
        ("write_file", json!({ "path": path, "content": format!("{word}\nbeta\n") }))
    });
    let edit = (any_path(), any_word(), any_word(), any::<bool>()).prop_map(|(path, old, new, all)| {
        ("patch", json!({ "path": path, "old_string": old, "new_string": new, "replace_all": all }))
    });
    let section = prop_oneof![
        (any_path(), any_word(), any_word())
            .prop_map(|(path, old, new)| format!("*** Update File: {path}\n-{old}\n+{new}\n")),
        any_path().prop_map(|path| format!("*** Delete File: {path}\n")),
        (any_path(), any_word()).prop_map(|(path, word)| format!("*** Add File: {path}\n+{word}\n")),
        (any_path(), any_path()).prop_map(|(from, to)| format!("*** Move File: {from} -> {to}\n")),
    ];
    let patch = prop::collection::vec(section, 1..3)
        .prop_map(|sections| ("patch", json!({ "mode": "patch", "patch": sections.concat() })));
    let search =
        (any_word(), prop::sample::select(&[".", "dir", "dir/sub", "a.txt", "missing"][..]), any::<bool>())
            .prop_map(|(word, path, names)| {
                let target = if names { "files" } else { "content" };
                (
                    "search_files",
                    json!({ "pattern": if names { "*.txt" } else { word }, "path": path, "target": target }),
                )
            });
    let broken = Just(("read_file", json!("no object")));
    prop_oneof![6 => read, 3 => write, 3 => edit, 3 => patch, 3 => search, 1 => broken]
}

fn calls_of(batch: &[(&'static str, Value)]) -> Vec<ToolCall> {
    batch
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| ToolCall {
            id: ToolCallId::new(format!("call_{at}")),
            name: (*name).to_owned(),
            arguments: arguments.to_string(),
            provider_data: None,
        })
        .collect()
}

/// Runs the batch as the engine does: segment after segment, the calls of a parallel one at once.
async fn by_segments(bench: &Bench, calls: &[ToolCall]) -> Vec<CallResult> {
    let mut results = Vec::new();
    for segment in bench.dispatcher.plan(&bench.tools, &bench.workspace, calls) {
        let calls = &calls[segment.calls];
        // As the engine does: where the guard's word on one call can depend on another, they do not run at once.
        let ordered = bench.dispatcher.needs_order(&bench.guard, &bench.tools, calls.iter());
        if !segment.parallel || ordered {
            for call in calls {
                results.push(bench.dispatcher.call(bench.cx(), call).await);
            }
            continue;
        }
        for eight in calls.chunks(8) {
            let mut begun = Vec::new();
            for call in eight {
                begun.push(bench.dispatcher.begin(&bench.cx(), call).await);
            }
            // The last one is asked first, so that the order of the work is another one than that of the calls.
            let works: Vec<_> = begun.into_iter().map(|begun| bench.dispatcher.work(begun)).rev().collect();
            let mut worked = join_all(works).await;
            worked.reverse();
            for (call, worked) in eight.iter().zip(worked) {
                results.push(bench.dispatcher.settle(&bench.cx(), call, worked).await);
            }
        }
    }
    results
}

async fn one_by_one(bench: &Bench, calls: &[ToolCall]) -> Vec<CallResult> {
    let mut results = Vec::new();
    for call in calls {
        results.push(bench.dispatcher.call(bench.cx(), call).await);
    }
    results
}

/// The results without what differs between two places and moments.
fn told(bench: &Bench, results: &[CallResult]) -> Vec<(String, String)> {
    let folder = bench.root.parent().unwrap().display().to_string();
    results
        .iter()
        .map(|result| {
            let mut value: Value = serde_json::from_str(&result.content).unwrap_or(Value::Null);
            // Newest first: two files of one tick of the clock stand in either order.
            if let Some(Value::Array(files)) = value.get_mut("files") {
                files.sort_by_key(ToString::to_string);
            }
            (format!("{:?} {:?}", result.status, result.effect), value.to_string().replace(&folder, "$DIR"))
        })
        .collect()
}

fn picture(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                found.insert(name, None);
                open.push(path);
            } else {
                found.insert(name, Some(fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// What the session still knows afterwards, asked by calls whose answers tell it.
async fn memory(bench: &Bench) -> Vec<(String, String)> {
    let mut asked = Vec::new();
    for path in ["a.txt", "b.txt", "dir/c.txt", "dir/d.md", "dir/sub/e.txt", "new.txt"] {
        asked.push(bench.call("read_file", json!({ "path": path })).await);
        asked.push(
            bench.call("patch", json!({ "path": path, "old_string": "qqqq", "new_string": "x" })).await,
        );
    }
    told(bench, &asked)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn segments_come_to_the_same_as_one_call_after_the_other(batch in prop::collection::vec(any_call(), 1..14)) {
        let calls = calls_of(&batch);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let (parallel, sequential) = runtime.block_on(async {
            let (at_once, in_order) = (tree(), tree());
            let parallel = by_segments(&at_once, &calls).await;
            let sequential = one_by_one(&in_order, &calls).await;
            (
                (told(&at_once, &parallel), picture(&at_once.root), memory(&at_once).await),
                (told(&in_order, &sequential), picture(&in_order.root), memory(&in_order).await),
            )
        });
        prop_assert_eq!(parallel.0, sequential.0);
        prop_assert_eq!(parallel.1, sequential.1);
        prop_assert_eq!(parallel.2, sequential.2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_equal_reads_at_once_the_first_gets_the_lines() {
    let bench = tree();
    let read = ("read_file", json!({ "path": "a.txt" }));
    let calls = calls_of(&[read.clone(), read.clone(), read, ("search_files", json!({ "pattern": "x" }))]);
    let mut begun = Vec::new();
    for call in &calls {
        begun.push(bench.dispatcher.begin(&bench.cx(), call).await);
    }
    let works: Vec<_> = begun.into_iter().map(|begun| bench.dispatcher.work(begun)).rev().collect();
    let mut results = Vec::new();
    for (call, worked) in calls.iter().zip(join_all(works).await.into_iter().rev()) {
        results.push(bench.dispatcher.settle(&bench.cx(), call, worked).await);
    }
    let texts: Vec<&str> = results.iter().map(|result| result.content.as_str()).collect();
    assert!(texts[0].contains("1|alpha"), "{texts:?}");
    assert!(texts[1].contains("unchanged"), "{texts:?}");
    assert!(texts[2].contains("already_read"), "{texts:?}");
}

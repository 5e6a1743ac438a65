//! Tests of V4A patches through the dispatcher.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use hermes_core::{EffectDisposition, ToolStatus};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::testing::{Bench, SECRET};
use crate::tool::OwnedEffect;

fn patch(text: &str) -> Value {
    json!({ "mode": "patch", "patch": text })
}

#[tokio::test]
async fn the_result_tells_what_became_of_each_file() {
    let bench = Bench::new();
    for (name, content) in [("a.json", "{\"a\": 1}\n"), ("b.txt", "b\n"), ("c.txt", "  c\n")] {
        bench.write(name, content);
    }
    let text = "*** Update File: a.json\n-{\"a\": 1}\n+{\"a\": 1\n*** Move File: b.txt -> d.txt\n*** Update File: c.txt\n-c\n+C\n\
                *** Add File: e.txt\n+e\n";
    let result = bench.call("patch", patch(text)).await;
    let value: Value = serde_json::from_str(&result.content).unwrap();
    let path = |name: &str| bench.root.join(name).display().to_string();
    assert_eq!(value["success"], true, "{value}");
    assert_eq!(value["files_modified"], json!([path("a.json"), path("c.txt")]));
    assert_eq!(value["files_created"], json!([path("d.txt"), path("e.txt")]));
    assert_eq!(value["files_deleted"], json!([path("b.txt")]));
    assert_eq!(
        value["matches"],
        json!([{ "path": "c.txt", "match_strategy": "line_trimmed", "match_line": 1 }])
    );
    assert_eq!(value["lint"]["a.json"]["status"], "error");
    assert_eq!((result.status, result.effect), (ToolStatus::Ok, EffectDisposition::Done));
    assert_eq!(result.summary.as_deref(), Some("+3 -2"));
    assert!(value["diff"].as_str().unwrap().contains("+++ b/c.txt\n@@ -1 +1 @@\n-  c\n+  C\n"), "{value}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_all_as_they_were() {
    let bench = Bench::new();
    bench.write("a.txt", "a\n");
    bench.write("b.txt", "b\n");
    // Its name is too long for the file system, which only the attempt shows.
    let long = "x".repeat(300);
    let text = format!(
        "*** Update File: a.txt\n-a\n+A\n*** Delete File: b.txt\n*** Add File: new/{long}\n+x\n*** Add File: z.txt\n+z\n"
    );
    let result = bench.call("patch", patch(&text)).await;
    assert!(result.content.contains("all files are as they were"), "{}", result.content);
    assert_eq!(result.effect, EffectDisposition::None);
    assert_eq!((bench.read("a.txt"), bench.read("b.txt")), ("a\n".to_owned(), "b\n".to_owned()));
    let mut names: Vec<_> = std::fs::read_dir(&bench.root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.txt", "b.txt"]);
}

#[tokio::test]
async fn every_header_path_is_an_effect() {
    let bench = Bench::new();
    let tool = bench.dispatcher.registry().get("patch").unwrap();
    let text = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Move to: b\n*** Move File: /c -> ~/d\nnonsense\n*** Add File: e/f\n";
    let effects = tool.effect(&patch(text), &bench.workspace).unwrap();
    let home = bench.root.parent().unwrap().join("home");
    let write = |path: std::path::PathBuf| OwnedEffect::Write { path };
    let root = &bench.root;
    assert_eq!(
        effects,
        [
            write(root.join("a")),
            write(root.join("b")),
            write("/c".into()),
            write(home.join("d")),
            write(root.join("e/f"))
        ],
    );
    assert!(tool.effect(&patch("*** Add File: a/../../b\n+x"), &bench.workspace).is_err());
}

#[tokio::test]
async fn guarded_paths_are_refused_whatever_their_place_in_the_patch() {
    let bench = Bench::new();
    bench.write("a.txt", "a\n");
    for header in [
        "*** Add File: ~/.ssh/authorized_keys\n+key",
        "*** Move File: a.txt -> ~/.ssh/authorized_keys",
        "*** Move File: a.txt -> /etc/cron.d/x",
        "*** Delete File: ~/.hermes/config.yaml",
    ] {
        let text = format!("*** Update File: a.txt\n-a\n+A\n{header}\n");
        let value = bench.json("patch", patch(&text)).await;
        assert!(value["error"].is_string(), "{header}: {value}");
        assert_eq!(bench.read("a.txt"), "a\n");
    }
    // A link into a guarded place is followed before anything is written.
    let ssh = bench.root.parent().unwrap().join("home/.ssh");
    std::fs::create_dir_all(&ssh).unwrap();
    symlink(&ssh, bench.root.join("innocent")).unwrap();
    let value = bench.json("patch", patch("*** Add File: innocent/authorized_keys\n+key")).await;
    assert!(value["error"].is_string(), "{value}");
    assert_eq!(std::fs::read_dir(&ssh).unwrap().count(), 0);
}

#[tokio::test]
async fn links_are_written_through_and_not_moved_or_deleted() {
    let bench = Bench::new();
    bench.write("real.txt", "a\n");
    symlink("real.txt", bench.root.join("link")).unwrap();
    bench.json("patch", patch("*** Update File: link\n-a\n+b\n")).await;
    assert!(bench.root.join("link").is_symlink());
    assert_eq!(bench.read("real.txt"), "b\n");
    for text in ["*** Delete File: link\n", "*** Move File: link -> other\n"] {
        let error = bench.error("patch", patch(text)).await;
        assert!(error.contains("is a symbolic link"), "{error}");
    }
    assert_eq!(bench.read("real.txt"), "b\n");
}

#[tokio::test]
async fn what_may_not_be_read_does_not_get_a_name_under_which_it_may() {
    let bench = Bench { yolo: true, ..Bench::new() };
    bench.write(".env", "KEY=1\n");
    let error = bench.error("patch", patch("*** Move File: .env -> notes.txt\n")).await;
    assert!(error.contains("nothing was changed") && error.contains(".env"), "{error}");
    assert_eq!(bench.read(".env"), "KEY=1\n");
    assert!(!bench.root.join("notes.txt").exists());
}

#[tokio::test]
async fn a_moved_file_keeps_its_mode_and_any_content() {
    let bench = Bench::new();
    let path = bench.write("run", b"\x7fELF\0\0");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    let inode = std::fs::metadata(&path).unwrap().ino();
    bench.json("patch", patch("*** Move File: run -> bin/run\n")).await;
    let moved = std::fs::metadata(bench.root.join("bin/run")).unwrap();
    assert_eq!((moved.mode() & 0o777, moved.ino()), (0o750, inode));
    bench.write("a.sh", "a\n");
    std::fs::set_permissions(bench.root.join("a.sh"), std::fs::Permissions::from_mode(0o751)).unwrap();
    bench.json("patch", patch("*** Update File: a.sh\n*** Move to: b.sh\n-a\n+b\n")).await;
    assert_eq!(std::fs::metadata(bench.root.join("b.sh")).unwrap().mode() & 0o777, 0o751);
    assert_eq!(bench.read("b.sh"), "b\n");
}

#[tokio::test]
async fn other_sessions_writes_and_own_reads_are_remembered_through_a_patch() {
    let bench = Bench::new();
    let path = bench.write("a.txt", "a\nb\n");
    bench.json("read_file", json!({ "path": "a.txt" })).await;
    bench.dispatcher.services().files.note_write(&path, &hermes_core::SessionId::parse("other").unwrap());
    let value = bench.json("patch", patch("*** Update File: a.txt\n-a\n+A\n")).await;
    assert!(value["_warning"].as_str().unwrap().starts_with("a.txt: another session wrote"), "{value}");
    let value = bench.json("patch", patch("*** Update File: a.txt\n-A\n+B\n*** Move to: b.txt\n")).await;
    assert_eq!(value["_warning"], json!(null));
    let value = bench.json("read_file", json!({ "path": "b.txt" })).await;
    assert_eq!(value["content"], "1|B\n2|b");
}

#[tokio::test]
async fn a_secret_in_context_stays_and_is_not_shown() {
    let bench = Bench::new();
    bench.write("conf.txt", format!("a = 1\nkey = {SECRET}\nb = 2\n"));
    let shown = bench.json("read_file", json!({ "path": "conf.txt" })).await;
    let marked =
        shown["content"].as_str().unwrap().lines().nth(1).unwrap().strip_prefix("2|").unwrap().to_owned();
    assert!(marked.contains("«redacted:"), "{marked}");
    let text = format!("*** Update File: conf.txt\n {marked}\n-b = 2\n+b = 3\n");
    let result = bench.call("patch", patch(&text)).await;
    assert!(!result.content.contains(SECRET), "{}", result.content);
    assert_eq!(bench.read("conf.txt"), format!("a = 1\nkey = {SECRET}\nb = 3\n"));
    for text in [format!("-{marked}\n+key = 1\n"), format!(" b = 3\n+{marked}\n"), format!("+{marked}\n")] {
        let error = bench.error("patch", patch(&format!("*** Update File: conf.txt\n{text}"))).await;
        assert!(error.contains("stands for a secret"), "{error}");
    }
    // The same in replace mode.
    let edit = json!({
        "path": "conf.txt", "old_string": format!("a = 1\n{marked}"), "new_string": format!("a = 2\n{marked}"),
    });
    let result = bench.call("patch", edit).await;
    assert!(
        !result.content.contains(SECRET) && result.content.contains("\"success\":true"),
        "{}",
        result.content
    );
    assert_eq!(bench.read("conf.txt"), format!("a = 2\nkey = {SECRET}\nb = 3\n"));
    let edit = json!({ "path": "conf.txt", "old_string": marked, "new_string": "key = 1" });
    assert!(bench.error("patch", edit).await.contains("stands for a secret"));
}

#[tokio::test]
async fn two_patches_over_the_same_files_do_not_wait_for_each_other() {
    let bench = Bench::new();
    bench.write("a.txt", "0\n");
    bench.write("b.txt", "0\n");
    let both = |first: &str, second: &str| {
        patch(&format!("*** Update File: {first}\n@@\n+x\n*** Update File: {second}\n@@\n+x\n"))
    };
    for _ in 0..20 {
        tokio::join!(
            bench.call("patch", both("a.txt", "b.txt")),
            bench.call("patch", both("b.txt", "a.txt")),
        );
    }
    assert_eq!((bench.read("a.txt").lines().count(), bench.read("b.txt").lines().count()), (41, 41));
}

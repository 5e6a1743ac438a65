//! What a turn did to files is undone, and the undo too.

use hermes_tests::model_server::Call;
use hermes_tests::{ModelServer, Reply, TestHome};
use pretty_assertions::assert_eq;
use serde_json::json;

/// A turn that replaces `old.txt`, makes `new.txt` and patches `code.rs`.
fn three_files() -> (ModelServer, TestHome) {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::calls(vec![
            Call::new("read_file", &json!({ "path": "old.txt" })),
            Call::new("write_file", &json!({ "path": "old.txt", "content": "by the agent\n" })),
            Call::new("write_file", &json!({ "path": "made/new.txt", "content": "new\n" })),
            Call::new("patch", &json!({ "path": "code.rs", "old_string": "fn a()", "new_string": "fn b()" })),
        ]),
        _ => Reply::text("done"),
    });
    let home = TestHome::with_config(&server.config());
    home.write_file("old.txt", "by hand\n");
    home.write_file("code.rs", "fn a() {}\n");
    home.cli(["-z", "go"]).success();
    (server, home)
}

fn read(home: &TestHome, name: &str) -> Option<String> {
    std::fs::read_to_string(home.work().join(name)).ok()
}

fn all(home: &TestHome) -> [Option<String>; 3] {
    ["old.txt", "made/new.txt", "code.rs"].map(|name| read(home, name))
}

fn texts(texts: [Option<&str>; 3]) -> [Option<String>; 3] {
    texts.map(|text| text.map(str::to_owned))
}

/// The command that takes the undo back, as it is told.
fn way_back(stdout: &str) -> String {
    let line = stdout.lines().find(|line| line.starts_with("take it back: ")).unwrap();
    line.rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn a_turn_is_undone_and_the_undo_is_undone() {
    let (server, home) = three_files();
    let after = texts([Some("by the agent\n"), Some("new\n"), Some("fn b() {}\n")]);
    assert_eq!(all(&home), after);

    let list = home.cli(["undo", "--list"]).success().stdout;
    assert!(list.lines().nth(1).unwrap().contains("write_file old.txt"), "{list}");
    let diff = home.cli(["undo", "--diff", "--file", "code.rs"]).success().stdout;
    assert!(diff.contains("-fn a() {}\n+fn b() {}\n") && !diff.contains("old.txt"), "{diff}");
    let plan = home.cli(["undo", "--dry-run"]).success().stdout;
    assert!(plan.contains("restore  ") && plan.contains("new.txt (the agent made it)"), "{plan}");
    // Nobody can be asked, so nothing happens without a word.
    let refused = home.cli(["undo"]).expect_code(2);
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    assert_eq!(all(&home), after);

    let undone = home.cli(["undo", "--yes"]).success().stdout;
    assert!(undone.contains("2 restored, 1 removed"), "{undone}");
    assert_eq!(all(&home), texts([Some("by hand\n"), None, Some("fn a() {}\n")]));
    assert!(!home.work().join("made").exists());
    let nothing = home.cli(["undo", "--yes"]).expect_code(1);
    assert!(nothing.stderr.contains("nothing to undo"), "{}", nothing.stderr);

    home.cli(["undo", "--yes", &way_back(&undone)]).success();
    assert_eq!(all(&home), after);
    server.assert_clean();
}

#[test]
fn an_edit_by_hand_is_kept_and_named_also_after_a_restart() {
    let (_server, home) = three_files();
    home.write_file("code.rs", "fn b() {} // mine\n");
    home.kill_daemon("KILL");
    let undone = home.cli(["undo", "--yes"]).success().stdout;
    assert!(undone.contains("keep     ") && undone.contains("code.rs: was edited since"), "{undone}");
    assert!(undone.contains("1 restored, 1 removed, 1 kept"), "{undone}");
    assert_eq!(all(&home), texts([Some("by hand\n"), None, Some("fn b() {} // mine\n")]));

    // Unless everything is asked for, and then that can be taken back too.
    let id = undone.lines().next().unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let over = home.cli(["undo", "--yes", "--all", &id]).success().stdout;
    assert_eq!(read(&home, "code.rs").as_deref(), Some("fn a() {}\n"));
    home.cli(["undo", "--yes", &way_back(&over)]).success();
    assert_eq!(read(&home, "code.rs").as_deref(), Some("fn b() {} // mine\n"));
}

#[test]
fn while_a_turn_runs_nothing_is_undone() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::call("write_file", &json!({ "path": "a.txt", "content": "x" })),
        _ => Reply::text("never")
            .with(|completion| completion.stall = Some(std::time::Duration::from_mins(10))),
    });
    let home = TestHome::with_config(&server.config());
    let mut running = home.spawn_cli(["-z", "go"]);
    server.wait_for_requests(2);
    let refused = home.cli(["undo", "--yes"]).expect_code(1);
    assert!(refused.stderr.contains("a turn of this session is running"), "{}", refused.stderr);
    assert!(home.work().join("a.txt").exists());
    running.kill().unwrap();
    running.wait().unwrap();
    hermes_tests::home::wait_until("the turn to be stopped", || home.cli(["undo", "--yes"]).code == Some(0));
    assert!(!home.work().join("a.txt").exists());
}

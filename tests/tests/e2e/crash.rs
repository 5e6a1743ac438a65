//! The daemon is killed at random moments of long turns, and keeps its promises.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};

use hermes_tests::{ModelServer, Reply, TestHome};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// Kills per test run; the issue's fifty are split over two tests that run side by side.
const KILLS: u64 = 25;

fn rounds(limit: usize) -> ModelServer {
    ModelServer::start(move |request| {
        if request.last_user().starts_with("go on") {
            return Reply::text("going on");
        }
        match request.results_since_user() {
            done if done >= limit => Reply::text(format!("done {done}")),
            round => Reply::call("read_file", &json!({ "path": format!("f{}.txt", round % 5) })),
        }
    })
}

/// Row ids that a client was told of.
fn reported_rows(lines: &[String]) -> HashSet<i64> {
    lines
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|event| event.pointer("/payload/message_id").or(event.get("message_id"))?.as_i64())
        .collect()
}

fn open(home: &TestHome) -> Connection {
    Connection::open_with_flags(home.database(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn kill_at_random_moments(seed: u64) {
    let server = rounds(50);
    let home = TestHome::with_config(&server.config());
    for index in 0..5 {
        home.write_file(&format!("f{index}.txt"), format!("file {index}"));
    }
    let mut random = seed;
    for kill in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let round = usize::try_from((random >> 33) % 50).unwrap() + 1;
        let before = server.requests().len();
        let mut child = home.spawn_cli(["-q", "read them", "--output-format", "stream-json"]);
        let stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).collect::<Vec<String>>()
        });
        server.wait_for_requests(before + round);
        home.kill_daemon("KILL");
        let output = hermes_tests::home::finish(child, None);
        let lines = reader.join().unwrap();
        assert_ne!(output.code, Some(0), "kill {kill}: a turn that was cut off is no success: {lines:?}");

        let session = lines
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find_map(|event| event["session_id"].as_str().map(str::to_owned))
            .expect("the client was told its session");
        let next = home.cli(["-r", &session, "-z", "go on"]).success();
        assert_eq!(next.stdout, "going on\n", "kill {kill}");
        let told = format!("{}{}{}", lines.join("\n"), output.stderr, next.stderr);
        assert!(
            told.contains("interrupt") || told.contains("cut off"),
            "kill {kill}: nobody was told: {told}"
        );

        let database = open(&home);
        let integrity: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(integrity, "ok");
        for id in reported_rows(&lines) {
            let found: i64 = database
                .query_row("SELECT count(*) FROM messages WHERE id = ?1", [id], |row| row.get(0))
                .unwrap();
            assert_eq!(found, 1, "kill {kill}: row {id} was reported and is lost");
        }
        let running: i64 = database
            .query_row("SELECT count(*) FROM turns WHERE state = 'running'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(running, 0, "kill {kill}");
    }
    server.assert_clean();
}

#[test]
fn kills_at_random_moments_lose_no_reported_row_and_leave_a_legal_history() {
    kill_at_random_moments(0x1234_5678_9abc_def0);
}

#[test]
fn kills_at_other_random_moments_lose_no_reported_row_and_leave_a_legal_history() {
    kill_at_random_moments(0x0fed_cba9_8765_4321);
}

#[test]
fn a_command_that_the_crash_cut_off_is_told_as_unknown_and_not_run_again() {
    let server = ModelServer::start(|request| {
        if request.last_user().starts_with("go on") {
            return Reply::text("I will look first");
        }
        Reply::call("terminal", &json!({ "command": "echo ran >> ran.txt; sleep 30" }))
    });
    let home = TestHome::with_config(&server.config());
    let child = home.spawn_cli(["-q", "run it", "--yolo"]);
    hermes_tests::home::wait_until("the command to run", || home.work().join("ran.txt").exists());
    home.kill_daemon("KILL");
    hermes_tests::home::finish(child, None);
    home.cli(["-r", "latest", "-z", "go on"]).success();
    server.assert_clean();
    assert_eq!(std::fs::read_to_string(home.work().join("ran.txt")).unwrap(), "ran\n");
    let body = server.requests().last().unwrap().body.to_string();
    assert!(body.contains("inspect") || body.contains("unknown"), "the model is not told: {body}");
    let database = open(&home);
    let effect: String = database
        .query_row(
            "SELECT effect_disposition FROM messages WHERE role = 'tool' AND tool_name = 'terminal'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(effect, "unknown");
}

//! What goes wrong ends in a message that says what happened and what to do, the right exit code,
//! and no lost row.

use std::time::Duration;

use hermes_tests::model_server::Call;
use hermes_tests::{ModelServer, Reply, TestHome};
use pretty_assertions::assert_eq;
use serde_json::json;

/// The user's message is in the session exactly once, whatever became of its turn.
fn user_rows(home: &TestHome, text: &str) -> usize {
    let shown = home.cli(["sessions", "show", "latest", "--json"]).success().json();
    let rows = shown["rows"].as_array().cloned().unwrap_or_default();
    rows.iter().filter(|row| row["role"] == "user" && row["content"] == text).count()
}

#[test]
fn an_unreachable_server() {
    let home = TestHome::with_config(
        "model: {provider: custom, base_url: 'http://127.0.0.1:9/v1', default: fake}\nagent: {api_max_retries: 1}\n",
    );
    let output = home.cli(["-z", "hello"]).expect_code(2);
    assert!(output.stderr.contains("127.0.0.1:9"), "{}", output.stderr);
    assert_eq!(output.stdout, "");
    assert_eq!(user_rows(&home, "hello"), 1);
}

#[test]
fn a_wrong_key() {
    let server =
        ModelServer::start(|_| Reply::error(401, "Incorrect API key provided: test-key-0123456789."));
    let home = TestHome::with_config(&server.config());
    let output = home.cli(["-z", "hello"]);
    assert!(matches!(output.code, Some(1 | 2)), "{output:?}");
    assert!(output.stderr.contains("key"), "{}", output.stderr);
    assert!(!output.stderr.contains("test-key-0123456789"), "the key leaked: {}", output.stderr);
    assert_eq!(server.requests().len(), 1, "a wrong key is not retried");
    assert_eq!(user_rows(&home, "hello"), 1);
}

#[test]
fn a_server_that_answers_html() {
    let page = format!("<html><head><title>Welcome to the proxy</title></head>{}</html>", "x".repeat(20_000));
    let server = ModelServer::start(move |_| Reply::html(200, &page));
    let home = TestHome::with_config(&format!("{}agent: {{api_max_retries: 1}}\n", server.config()));
    let output = home.cli(["-z", "hello"]).expect_code(2);
    assert!(output.stderr.contains("Welcome to the proxy"), "{}", output.stderr);
    assert!(output.stderr.len() < 1_500, "{}", output.stderr);
}

#[test]
fn a_rate_limit_is_waited_out() {
    let server = ModelServer::sequence(vec![
        Reply::error(429, "slow down").retry_after("1"),
        Reply::error(503, "overloaded").retry_after("0"),
        Reply::text("at last"),
    ]);
    let home = TestHome::with_config(&server.config());
    let output = home.cli(["-z", "hello"]).success();
    assert_eq!(output.stdout, "at last\n");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_rate_limit_without_end_exits_75() {
    let server = ModelServer::start(|_| Reply::error(429, "quota exceeded").retry_after("0"));
    let home = TestHome::with_config(&format!("{}agent: {{api_max_retries: 2}}\n", server.config()));
    let output = home.cli(["-z", "hello"]).expect_code(75);
    assert!(output.stderr.contains("quota exceeded"), "{}", output.stderr);
}

#[test]
fn a_stream_cut_before_any_text_is_simply_tried_again() {
    let server = ModelServer::start(|request| {
        let reply = Reply::text("whole answer");
        if request.index == 0 { reply.with(|c| c.cut_after = Some(1)) } else { reply }
    });
    let home = TestHome::with_config(&server.config());
    assert_eq!(home.cli(["-z", "hello"]).success().stdout, "whole answer\n");
    server.assert_clean();
}

#[test]
fn a_stream_cut_in_the_middle_of_an_answer_is_continued() {
    let server = ModelServer::start(|request| {
        if request.index == 0 {
            // The role event, then two pieces of 24 characters.
            Reply::text("The first half of it is this, and then it breaks off")
                .with(|c| c.cut_after = Some(3))
        } else {
            Reply::text(" and the rest.")
        }
    });
    let home = TestHome::with_config(&server.config());
    let output = home.cli(["-z", "hello"]).success();
    assert!(output.stdout.starts_with("The first half"), "{}", output.stdout);
    assert!(output.stdout.ends_with("and the rest.\n"), "{}", output.stdout);
    let shown = home.cli(["sessions", "show", "latest", "--json"]).success().json();
    let answers = shown["rows"].as_array().unwrap().iter().filter(|row| row["role"] == "assistant").count();
    assert_eq!(answers, 1, "the stored transcript keeps one joined answer");
}

#[test]
fn arguments_that_are_not_json_are_never_run_and_the_model_is_told() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::calls(vec![Call {
            name: "write_file".into(),
            arguments: "{\"path\": \"x.txt\", \"content\": }".into(),
        }]),
        _ => Reply::text("understood"),
    });
    let home = TestHome::with_config(&server.config());
    assert_eq!(home.cli(["-z", "hello"]).success().stdout, "understood\n");
    assert!(!home.work().join("x.txt").exists());
    assert_eq!(server.requests().len(), 4, "two silent retries, then the error result");
    server.assert_clean();
}

#[test]
fn a_call_cut_off_by_the_length_limit_is_never_run() {
    let server = ModelServer::start(|_| {
        let call =
            Call { name: "write_file".into(), arguments: "{\"path\":\"x.txt\",\"content\":\"ab".into() };
        Reply::calls(vec![call]).with(|completion| completion.finish = Some("length"))
    });
    let home = TestHome::with_config(&server.config());
    let output = home.cli(["-z", "hello"]).expect_code(2);
    assert!(output.stderr.contains("nothing of it was executed"), "{}", output.stderr);
    assert!(!home.work().join("x.txt").exists());
    server.assert_clean();
}

#[test]
fn a_tool_that_does_not_exist_is_named_and_the_turn_goes_on() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::call("teleport", &json!({ "to": "mars" })),
        _ => Reply::text("staying here"),
    });
    let home = TestHome::with_config(&server.config());
    assert_eq!(home.cli(["-z", "hello"]).success().stdout, "staying here\n");
    let json = server.requests().last().unwrap().json().to_string();
    assert!(json.contains("teleport") && json.contains("read_file"), "the valid names are listed");
    server.assert_clean();
}

#[test]
fn files_that_are_missing_binary_or_huge_give_bounded_results() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::calls(
            ["missing.txt", "binary.bin", "pipe", "huge.txt", "."]
                .iter()
                .map(|path| Call::new("read_file", &json!({ "path": path })))
                .collect(),
        ),
        _ => Reply::text("seen"),
    });
    let home = TestHome::with_config(&server.config());
    home.write_file("binary.bin", [0_u8, 1, 2, 3, 255, 254].repeat(1000));
    let huge = std::fs::File::create(home.work().join("huge.txt")).unwrap();
    huge.set_len(2 * 1024 * 1024 * 1024).unwrap();
    std::process::Command::new("mkfifo").arg(home.work().join("pipe")).status().unwrap();
    assert_eq!(home.cli(["-z", "hello"]).success().stdout, "seen\n");
    server.assert_clean();
    let json = server.requests().last().unwrap().json();
    let results: Vec<&str> = json["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["role"] == "tool")
        .map(|row| row["content"].as_str().unwrap())
        .collect();
    assert_eq!(results.len(), 5);
    for result in results {
        assert!(result.contains("\"error\""), "{result}");
        assert!(result.len() < 5_000, "{} bytes", result.len());
    }
}

#[test]
fn a_prompt_of_five_megabytes_arrives_whole() {
    let server = ModelServer::start(|request| Reply::text(format!("{} bytes", request.last_user().len())));
    let home = TestHome::with_config(&server.config());
    let prompt = "word ".repeat(1024 * 1024);
    let file = home.write_file("prompt.txt", &prompt);
    let output = home.cli(["-Q", "--query-file", file.to_str().unwrap()]).success();
    assert_eq!(output.stdout, format!("{} bytes\n", prompt.trim().len()));
}

#[test]
fn too_much_on_standard_input_is_refused_with_the_way_out() {
    let home = TestHome::new();
    let output = home.cli_with_stdin(["-z", "-"], &vec![b'x'; 2 * 1024 * 1024]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("--query-file"), "{}", output.stderr);
}

#[test]
fn a_home_that_is_not_a_directory() {
    let home = TestHome::new();
    std::fs::write(home.dir(), "a file").unwrap();
    let output = home.cli(["-z", "hello"]);
    assert!(matches!(output.code, Some(1 | 78)), "{output:?}");
    assert!(output.stderr.contains(&home.dir().display().to_string()), "{}", output.stderr);
}

#[test]
fn a_home_whose_socket_path_is_too_long_still_works() {
    let home = TestHome::new();
    let deep = home.work().join("d".repeat(100)).join("e".repeat(60));
    std::fs::create_dir_all(&deep).unwrap();
    let mut command = home.command("hermes-cli");
    command.env("HERMES_HOME", &deep).args(["-z", "hello"]);
    let output = hermes_tests::home::run(command, None).success();
    assert!(!output.stdout.is_empty());
    let mut stop = home.command("hermes-cli");
    stop.env("HERMES_HOME", &deep).args(["daemon", "stop"]);
    hermes_tests::home::run(stop, None).success();
}

#[test]
fn wrong_words_on_the_command_line() {
    let home = TestHome::new();
    let unknown = home.cli(["sesions", "list"]).expect_code(2);
    assert!(unknown.stderr.contains("sessions"), "{}", unknown.stderr);
    home.cli(["-z", "hello", "--max-turns", "0"]).expect_code(2);
    home.cli(["-z", "hello", "--no-such-flag"]).expect_code(2);
    assert_eq!(home.daemon_pid(), None, "nothing was started for it");
}

#[test]
fn an_interrupted_one_shot_exits_130_and_closes_its_transcript() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::call("read_file", &json!({ "path": "a.txt" })),
        _ => Reply::text("never").with(|c| c.stall = Some(Duration::from_mins(10))),
    });
    let home = TestHome::with_config(&server.config());
    home.write_file("a.txt", "hi");
    let child = home.spawn_cli(["-z", "hello"]);
    server.wait_for_requests(2);
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let output = hermes_tests::home::finish(child, None);
    assert_eq!(output.code, Some(130), "{output:?}");
    let shown = home.cli(["sessions", "show", "latest", "--json"]).success().json();
    let roles: Vec<&str> =
        shown["rows"].as_array().unwrap().iter().map(|row| row["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
}

#[test]
fn a_lost_one_shot_client_stops_its_turn() {
    let server =
        ModelServer::start(|_| Reply::text("never").with(|c| c.stall = Some(Duration::from_mins(10))));
    let home = TestHome::with_config(&server.config());
    let mut child = home.spawn_cli(["-z", "hello"]);
    server.wait_for_requests(1);
    child.kill().unwrap();
    child.wait().unwrap();
    hermes_tests::home::wait_until("the turn to be stopped", || {
        let list = home.cli(["sessions", "list", "--json"]).success().json();
        list.to_string().contains("\"running\":false")
    });
}

#[test]
fn file_tools_do_not_open_the_database_and_so_leave_its_locks_alone() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 if request.last_user() == "look" => Reply::calls(vec![
            Call::new("search_files", &json!({ "pattern": "SQLite", "path": "../home" })),
            Call::new("read_file", &json!({ "path": "../home/state.db-shm" })),
            Call::new("read_file", &json!({ "path": "link" })),
        ]),
        _ => Reply::text("answered"),
    });
    let home = TestHome::with_config(&server.config());
    home.cli(["-z", "first"]).success();
    std::fs::hard_link(home.dir().join("state.db-shm"), home.work().join("link")).unwrap();
    home.cli(["-z", "look"]).success();

    // Another program looks into the database and leaves: with the daemon's locks gone it would take the
    // write-ahead log with it.
    let peek =
        rusqlite::Connection::open_with_flags(home.database(), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)
            .unwrap();
    peek.query_row("SELECT count(*) FROM messages", [], |_| Ok(())).unwrap();
    drop(peek);
    home.cli(["-z", "after the look"]).success();
    home.kill_daemon("KILL");
    let list = home.cli(["sessions", "list", "--json"]).success().stdout;
    assert!(list.contains("after the look"), "{list}");
}

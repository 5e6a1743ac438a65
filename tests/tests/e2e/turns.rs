//! Turns with a model: answers, tools, output formats.

use hermes_tests::{ModelRequest, ModelServer, Reply, TestHome};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// Answers `echo: ` and the last user row.
fn echo(request: &ModelRequest) -> Reply {
    Reply::text(format!("echo: {}", request.last_user()))
}

#[test]
fn a_one_shot_prints_the_answer_and_nothing_else() {
    let server = ModelServer::start(echo);
    let home = TestHome::with_config(&server.config());
    let output = home.cli(["-z", "hello"]).success();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("echo: hello\n", ""));
    let request = server.requests().first().cloned().unwrap();
    assert_eq!(request.authorization.as_deref(), Some("Bearer test-key-0123456789"));
    server.assert_clean();
}

#[test]
fn fifty_rounds_of_a_tool_read_fifty_files_with_one_system_prompt() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        50 => Reply::text("done 50"),
        round => Reply::call("read_file", &json!({ "path": format!("f{round}.txt") })),
    });
    let home = TestHome::with_config(&server.config());
    for index in 0..50 {
        home.write_file(&format!("f{index}.txt"), format!("content of file {index}\n"));
    }
    let output = home.cli(["-z", "read them all"]).success();
    assert_eq!(output.stdout, "done 50\n");
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| request.has_tools()).count(), 51);
    assert_eq!(server.system_prompts().len(), 1);
    server.assert_clean();

    let last = requests.last().unwrap().json();
    let results: Vec<String> = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["role"] == "tool")
        .map(|row| row["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(results.len(), 50);
    for (index, result) in results.iter().enumerate() {
        assert!(result.contains(&format!("content of file {index}")), "{result}");
    }
}

#[test]
fn several_calls_at_once_are_answered_in_the_models_order() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::calls(
            (0..5)
                .map(|index| {
                    hermes_tests::model_server::Call::new(
                        "read_file",
                        &json!({ "path": format!("f{index}.txt") }),
                    )
                })
                .collect(),
        ),
        _ => Reply::text("read"),
    });
    let home = TestHome::with_config(&server.config());
    for index in 0..5 {
        home.write_file(&format!("f{index}.txt"), format!("number {index}"));
    }
    home.cli(["-z", "go"]).success();
    server.assert_clean();
    let json = server.requests().last().unwrap().json();
    let rows = json["messages"].as_array().unwrap().clone();
    let results: Vec<&Value> = rows.iter().filter(|row| row["role"] == "tool").collect();
    for (index, row) in results.iter().enumerate() {
        assert!(row["content"].as_str().unwrap().contains(&format!("number {index}")));
    }
}

#[test]
fn json_output_is_one_document_with_the_result() {
    let server = ModelServer::start(echo);
    let home = TestHome::with_config(&server.config());
    let result = home.cli(["-z", "hello", "--output-format", "json"]).success().json();
    assert_eq!(result["final_response"], "echo: hello");
    assert_eq!(result["completed"], true);
    assert_eq!(result["turn_exit_reason"], "text_response(finish_reason=stop)");
    assert_eq!(result["api_calls"], 1);
    assert!(result["usage"]["input_tokens"].as_u64().unwrap() > 0);
    assert!(result["session_id"].as_str().unwrap().len() > 16);
}

#[test]
fn stream_json_prints_one_event_a_line_and_the_result_last() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::call("read_file", &json!({ "path": "a.txt" })),
        _ => Reply::text("it says hi"),
    });
    let home = TestHome::with_config(&server.config());
    home.write_file("a.txt", "hi");
    let output = home.cli(["-q", "read a.txt", "--output-format", "stream-json"]).success();
    let types: Vec<String> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    for expected in ["session", "tool.start", "tool.complete", "message.delta", "message.complete"] {
        assert!(types.iter().any(|name| name == expected), "{expected} is missing in {types:?}");
    }
    assert_eq!(types.last().map(String::as_str), Some("result"));
}

#[test]
fn standard_input_joins_the_prompt_or_is_the_prompt() {
    let server = ModelServer::start(echo);
    let home = TestHome::with_config(&server.config());
    let both = home.cli_with_stdin(["-z", "summarise"], b"line of input\n").success();
    assert!(both.stdout.contains("summarise") && both.stdout.contains("line of input"), "{}", both.stdout);
    let alone = home.cli_with_stdin(["-z", "-"], b"only input").success();
    assert_eq!(alone.stdout, "echo: only input\n");
}

#[test]
fn the_budget_ends_in_a_summary_and_says_how_to_raise_it() {
    let server = ModelServer::start(|request| {
        if request.has_tools() {
            Reply::call("read_file", &json!({ "path": format!("f{}.txt", request.index) }))
        } else {
            Reply::text("so far I read two files")
        }
    });
    let home = TestHome::with_config(&server.config());
    let output = home.cli(["-z", "go", "--max-turns", "2"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stdout.contains("so far I read two files"), "{output:?}");
    assert!(output.stderr.contains("max_turns") || output.stderr.contains("--max-turns"), "{output:?}");
    assert_eq!(server.requests().len(), 3);
    server.assert_clean();
}

#[test]
fn dangerous_commands_and_outside_writes_need_yolo_and_ordinary_ones_do_not() {
    let target = tempfile::tempdir().unwrap();
    let outside = target.path().join("x.txt");
    let server = {
        let outside = outside.clone();
        ModelServer::start(move |request| match request.results_since_user() {
            0 => Reply::calls(vec![
                hermes_tests::model_server::Call::new("terminal", &json!({ "command": "touch ran.txt" })),
                hermes_tests::model_server::Call::new("terminal", &json!({ "command": "rm -rf old" })),
                hermes_tests::model_server::Call::new(
                    "write_file",
                    &json!({ "path": outside, "content": "x" }),
                ),
                hermes_tests::model_server::Call::new(
                    "write_file",
                    &json!({ "path": "inside.txt", "content": "fine" }),
                ),
            ]),
            _ => Reply::text("done"),
        })
    };
    let home = TestHome::with_config(&server.config());
    home.write_file("old/a.txt", "a");
    home.cli(["-z", "go"]).success();
    assert!(home.work().join("ran.txt").exists() && home.work().join("old").exists() && !outside.exists());
    assert_eq!(std::fs::read_to_string(home.work().join("inside.txt")).unwrap(), "fine");

    home.cli(["-z", "go", "--yolo"]).success();
    assert!(!home.work().join("old").exists() && outside.exists());
    server.assert_clean();
}

#[test]
fn terminal_keeps_its_directory_and_exports_within_a_session() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::call("terminal", &json!({ "command": "mkdir -p sub && cd sub && export WORD=kept" })),
        1 => Reply::call("terminal", &json!({ "command": "pwd; echo \"word=$WORD\"" })),
        _ => Reply::text("done"),
    });
    let home = TestHome::with_config(&server.config());
    home.cli(["-z", "go", "--yolo"]).success();
    let json = server.requests().last().unwrap().json();
    let last = json["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(last.contains("/work/sub") && last.contains("word=kept"), "{last}");
}

#[test]
fn a_timed_out_client_exits_124_and_the_turn_is_stopped() {
    let server = ModelServer::start(|_| {
        Reply::text("never").with(|completion| completion.stall = Some(std::time::Duration::from_mins(10)))
    });
    let home = TestHome::with_config(&server.config());
    home.cli(["-z", "hello", "--timeout", "1"]).expect_code(124);
    hermes_tests::home::wait_until("the turn to be stopped", || {
        let list = home.cli(["sessions", "list", "--json"]).success().json();
        list.to_string().contains("\"running\":false")
    });
}

#[test]
fn a_project_file_that_leads_out_of_the_project_is_not_sent() {
    let server = ModelServer::start(echo);
    let home = TestHome::with_config(&server.config());
    let outside = home.dir().join("private.txt");
    std::fs::write(&outside, "my private notes").unwrap();
    std::os::unix::fs::symlink(&outside, home.work().join("AGENTS.md")).unwrap();
    home.write_file("CLAUDE.md", "Be brief.");
    home.cli(["-z", "hello"]).success();
    let body = server.requests().first().unwrap().body.to_string();
    assert!(!body.contains("my private notes") && body.contains("Be brief."), "{body}");
}

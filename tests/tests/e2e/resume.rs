//! Sessions that go on: after the client, after the daemon.

use hermes_tests::{ModelRequest, ModelServer, Reply, TestHome};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn read_then_answer(request: &ModelRequest) -> Reply {
    match request.results_since_user() {
        0 if request.last_user().starts_with("read") => Reply::call("read_file", &json!({ "path": "a.txt" })),
        _ => Reply::text(format!("answer to: {}", request.last_user())),
    }
}

fn first_session(home: &TestHome) -> Value {
    let list = home.cli(["sessions", "list", "--json"]).success().json();
    let sessions = list.get("sessions").unwrap_or(&list).as_array().cloned().unwrap();
    assert_eq!(sessions.len(), 1, "{list}");
    sessions.into_iter().next().unwrap()
}

#[test]
fn a_session_goes_on_with_the_same_bytes_after_a_restart() {
    let server = ModelServer::start(read_then_answer);
    let home = TestHome::with_config(&server.config());
    home.write_file("a.txt", "hi");
    home.write_file("AGENTS.md", "Be brief.");
    home.cli(["-z", "read a.txt and tell me"]).success();
    let id = first_session(&home)["id"].as_str().unwrap().to_owned();

    // Neither the project's rules nor the settings may change a prompt that was sent.
    home.write_file("AGENTS.md", "Be verbose.");
    home.cli(["daemon", "restart"]).success();
    let output = home.cli(["-r", &id, "-z", "and now?"]).success();
    assert_eq!(output.stdout, "answer to: and now?\n");
    server.assert_clean();
    assert_eq!(server.system_prompts().len(), 1);

    let requests = server.requests();
    let (before, after) = (&requests[requests.len() - 2], &requests[requests.len() - 1]);
    assert_eq!(before.json()["tools"], after.json()["tools"]);
    let shared = before.body.bytes().zip(after.body.bytes()).take_while(|(a, b)| a == b).count();
    let messages_end = before.body.rfind("],\"tools\"").unwrap();
    assert!(shared >= messages_end, "shared {shared} of {messages_end} bytes");
}

#[test]
fn the_list_has_title_counts_and_tokens() {
    let server = ModelServer::start(read_then_answer);
    let home = TestHome::with_config(&server.config());
    home.write_file("a.txt", "hi");
    home.cli(["-z", "read a.txt and tell me"]).success();
    let session = first_session(&home);
    assert_eq!(session["title"], "read a.txt and tell me");
    assert_eq!(session["message_count"], 4);
    assert_eq!(session["tool_call_count"], 1);
    assert_eq!(session["model"], "fake");
    assert!(session.to_string().contains("input_tokens"), "{session}");
}

#[test]
fn sessions_are_found_by_prefix_title_and_latest() {
    let server = ModelServer::start(read_then_answer);
    let home = TestHome::with_config(&server.config());
    home.cli(["-z", "about apples"]).success();
    let id = first_session(&home)["id"].as_str().unwrap().to_owned();
    let (prefix, _) = id.split_at(id.len() - 4);
    for reference in [prefix, "about apples", "latest"] {
        let output = home.cli(["-r", reference, "-z", "more"]).success();
        assert_eq!(output.stdout, "answer to: more\n", "{reference}");
    }
    home.cli(["-c", "-z", "more"]).success();
    assert_eq!(first_session(&home)["message_count"], 10);
    server.assert_clean();
}

#[test]
fn an_ambiguous_prefix_lists_candidates_and_an_unknown_session_is_said() {
    let server = ModelServer::start(read_then_answer);
    let home = TestHome::with_config(&server.config());
    home.cli(["-z", "one"]).success();
    home.cli(["-z", "two"]).success();
    let ambiguous = home.cli(["-r", "2", "-z", "which?"]).expect_code(1);
    assert!(ambiguous.stderr.matches("20").count() >= 2, "{}", ambiguous.stderr);
    let unknown = home.cli(["-r", "nothing-like-it", "-z", "hello"]).expect_code(1);
    assert!(unknown.stderr.contains("nothing-like-it"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("sessions list"), "{}", unknown.stderr);
}

#[test]
fn show_prints_the_transcript() {
    let server = ModelServer::start(read_then_answer);
    let home = TestHome::with_config(&server.config());
    home.write_file("a.txt", "the file's text");
    home.cli(["-z", "read a.txt"]).success();
    let shown = home.cli(["sessions", "show", "latest"]).success();
    for text in ["read a.txt", "read_file", "answer to"] {
        assert!(shown.stdout.contains(text), "{text} is missing in {}", shown.stdout);
    }
    let json = home.cli(["sessions", "show", "latest", "--json"]).success().json();
    assert!(json.to_string().contains("the file's text"), "{json}");
}

#[test]
fn a_session_goes_on_with_another_model_when_that_is_asked_for() {
    let server = ModelServer::start(read_then_answer);
    let home = TestHome::with_config(&server.config());
    home.cli(["-z", "one"]).success();
    home.cli(["-r", "latest", "-m", "other", "-z", "two"]).success();
    let bodies: Vec<Value> = server.requests().iter().map(ModelRequest::json).collect();
    let models: Vec<&str> = bodies.iter().filter_map(|body| body["model"].as_str()).collect();
    assert_eq!(models, ["fake", "other"]);
    assert_eq!(bodies[1]["messages"].as_array().unwrap().len(), 4, "the history is kept");
    server.assert_clean();
}

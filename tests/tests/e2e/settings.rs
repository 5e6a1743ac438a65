//! Settings: what is wrong is named with file and line, and the daemon never guesses.

use hermes_tests::TestHome;
use pretty_assertions::assert_eq;

#[test]
fn broken_yaml_names_file_and_line() {
    let home = TestHome::with_config("model:\n  provider: custom\n   base_url: x\n");
    let check = home.cli(["config", "check"]).expect_code(3);
    let said = format!("{}{}", check.stdout, check.stderr);
    assert!(said.contains("config.yaml") && said.contains('3'), "{said}");
    let run = home.cli(["-z", "hello"]);
    assert!(matches!(run.code, Some(1 | 78)), "{run:?}");
    assert!(run.stderr.contains("config.yaml"), "{}", run.stderr);
    let daemon = {
        let mut command = home.command("hermesd");
        command.args(["run", "--home"]).arg(home.dir());
        hermes_tests::home::run(command, None)
    };
    assert_eq!(daemon.code, Some(78), "{daemon:?}");
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_one_and_a_bad_value_keeps_the_default() {
    let home = TestHome::with_config("agent:\n  max_turn: 5\n  max_turns: -3\n");
    let check = home.cli(["config", "check"]).expect_code(3);
    let said = format!("{}{}", check.stdout, check.stderr);
    assert!(said.contains("agent.max_turn") && said.contains("max_turns"), "{said}");
    assert!(said.contains("-3"), "{said}");
    let get = home.cli(["config", "get", "agent.max_turns"]).success();
    assert_eq!(get.stdout.trim(), "90");
}

#[test]
fn paths_and_values_are_printed_plain() {
    let home = TestHome::with_config("agent:\n  max_turns: 7\n");
    let path = home.cli(["config", "path"]).success();
    assert_eq!(path.stdout.trim(), home.dir().join("config.yaml").display().to_string());
    assert_eq!(home.cli(["config", "get", "agent.max_turns"]).success().stdout.trim(), "7");
    home.cli(["config", "get", "no.such.key"]).expect_code(1);
}

#[test]
fn keys_are_masked_and_origins_are_told() {
    let home = TestHome::with_config("model:\n  provider: custom\n  api_key: sk-verysecretkey0123456789\n");
    let show = home.cli(["config", "show", "--origin"]).success();
    assert!(!show.stdout.contains("verysecretkey"), "{}", show.stdout);
    assert!(show.stdout.contains("config.yaml"), "{}", show.stdout);
}

#[test]
fn a_provider_that_is_configured_by_half_is_an_error_not_offline() {
    let home = TestHome::with_config("model: {provider: custom, default: fake}\n");
    let output = home.cli(["-z", "hello"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("base_url"), "{}", output.stderr);
}

#[test]
fn an_unknown_profile_lists_the_known_ones() {
    let home = TestHome::new();
    let output = home.cli(["-p", "nobody", "-z", "hello"]).expect_code(1);
    assert!(output.stderr.contains("nobody"), "{}", output.stderr);
}

#[test]
fn a_model_that_is_set_after_the_first_look_is_used_at_once() {
    let home = TestHome::new();
    let first = home.cli(["-z", "hello"]).success();
    assert!(first.stdout.contains("No model is configured"), "{}", first.stdout);
    let server = hermes_tests::ModelServer::start(|_| hermes_tests::Reply::text("from the model"));
    home.write_config(&server.config());
    assert_eq!(home.cli(["-z", "hello"]).success().stdout, "from the model\n");
    // A session that began without a model goes on with the one there is now.
    home.cli(["daemon", "restart"]).success();
    let sessions = home.cli(["sessions", "list", "--json"]).success().json();
    let offline = sessions.as_array().unwrap().iter().find(|session| session["model"] == "offline").unwrap();
    let resumed = home.cli(["-r", offline["id"].as_str().unwrap(), "-z", "and now?"]).success();
    assert_eq!(resumed.stdout, "from the model\n");
    server.assert_clean();
}

//! A new user: no model, no key, no network.

use hermes_tests::TestHome;

#[test]
fn without_a_model_the_real_folder_is_listed_and_setting_a_model_is_explained() {
    let home = TestHome::new();
    home.write_file("notes.txt", "buy milk\n");
    home.write_file("src/main.rs", "fn main() {}\n");
    let output = home.cli(["-q", "What is in this folder?"]).success();
    assert!(output.stdout.contains("notes.txt") && output.stdout.contains("src/"), "{}", output.stdout);
    assert!(output.stdout.contains("config.yaml"), "{}", output.stdout);
    assert!(output.stderr.contains("hermes-cli -r "), "the resume line is missing: {}", output.stderr);
}

#[test]
fn the_home_and_its_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = TestHome::new();
    home.cli(["-z", "hello"]).success();
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.dir()), 0o700);
    assert_eq!(mode(home.dir().join("run")), 0o700);
    assert_eq!(mode(home.database()), 0o600);
    assert_eq!(mode(home.dir().join("run/daemon.json")), 0o600);
}

#[test]
fn a_second_daemon_is_refused_and_names_the_first() {
    let home = TestHome::new();
    home.cli(["daemon", "start"]).success();
    let pid = home.daemon_pid().unwrap();
    let mut second = home.command("hermesd");
    second.args(["run", "--home"]).arg(home.dir());
    let output = hermes_tests::home::run(second, None);
    assert_ne!(output.code, Some(0));
    assert!(output.stderr.contains(&pid.to_string()), "{}", output.stderr);
}

#[test]
fn the_daemon_can_be_started_stopped_and_looked_at() {
    let home = TestHome::new();
    let stopped = home.cli(["daemon", "status"]);
    assert_ne!(stopped.code, Some(0), "{}", stopped.stdout);
    home.cli(["daemon", "start"]).success();
    let first = home.daemon_pid().unwrap();
    home.cli(["daemon", "status"]).success();
    home.cli(["status"]).success();
    home.cli(["daemon", "restart"]).success();
    let second = home.daemon_pid().unwrap();
    assert_ne!(first, second);
    home.cli(["daemon", "stop"]).success();
    assert_eq!(home.daemon_pid(), None);
}

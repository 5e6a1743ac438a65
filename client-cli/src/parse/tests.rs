//! Tables of command lines.

use clap::CommandFactory as _;
use pretty_assertions::assert_eq;

use super::*;
use crate::args::{ConfigCommand, DaemonCommand, OutputFormat, SessionsCommand, StdinMode};

fn read(line: &str) -> Result<Invocation, Answer> {
    read_words(&line.split_whitespace().collect::<Vec<_>>())
}

fn read_words(words: &[&str]) -> Result<Invocation, Answer> {
    parse(std::iter::once("hermes-cli").chain(words.iter().copied()).map(OsString::from).collect())
}

fn chat(line: &str) -> ChatFlags {
    match read(line).unwrap().action {
        Action::Chat(flags) => *flags,
        other => panic!("{line}: {other:?}"),
    }
}

fn usage(line: &str) -> String {
    match read(line) {
        Err(Answer::Usage(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "flags with a value are optional")]
fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[test]
fn the_command_line_is_well_formed() {
    CommandLine::command().debug_assert();
    let mut known: Vec<String> =
        CommandLine::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    known.push("help".into());
    assert_eq!(known, COMMANDS);
}

#[test]
fn a_chats_flags_stand_before_or_after_its_word_and_the_later_one_wins() {
    assert_eq!(chat("-m a -q hi"), chat("chat -m a -q hi"));
    assert_eq!(chat("-m a chat -q hi"), chat("-q hi -m a"));
    assert_eq!(chat("-m a chat -m b").model, text("b"));
    assert_eq!(
        chat("-m a --yolo chat -q x"),
        ChatFlags { model: text("a"), yolo: true, query: text("x"), ..Default::default() }
    );
}

#[test]
fn the_profile_stands_anywhere() {
    for line in [
        "-p work sessions list",
        "sessions -p work list",
        "sessions list --profile work",
        "sessions list -p work",
    ] {
        assert_eq!(read(line).unwrap().global.profile, text("work"), "{line}");
    }
}

#[test]
fn a_prompt_may_begin_with_a_dash() {
    let words = ["-z", "- fix the bug"];
    let Action::Chat(flags) = read_words(&words).unwrap().action else { panic!() };
    assert_eq!(flags.oneshot, text("- fix the bug"));
    assert_eq!(chat("-q -").query, text("-"));
}

#[test]
fn continue_takes_a_title_but_not_a_command() {
    let cases = [
        ("-c", Some("")),
        ("-c chat", Some("")),
        ("-c chat -q hi", Some("")),
        ("--continue -q hi", Some("")),
        ("-c=chat", Some("chat")),
        ("-c build", Some("build")),
        ("--continue=build chat", Some("build")),
        ("-q hi", None),
    ];
    for (line, expected) in cases {
        assert_eq!(chat(line).continue_last.as_deref(), expected, "{line}");
    }
}

#[test]
fn every_flag_of_a_run_is_read() {
    let line = "-Q -q hi --output-format stream-json --usage-file u -m m --provider p -t a,b -r ID \
                --max-turns 3 --yolo --timeout 2.5 --stdin ignore --no-restore-cwd --source tool";
    assert_eq!(
        chat(line),
        ChatFlags {
            version: false,
            oneshot: None,
            query: text("hi"),
            query_file: None,
            quiet: true,
            output_format: Some(OutputFormat::StreamJson),
            usage_file: Some("u".into()),
            model: text("m"),
            provider: text("p"),
            toolsets: text("a,b"),
            resume: text("ID"),
            continue_last: None,
            max_turns: Some(3),
            yolo: true,
            timeout: Some(2.5),
            stdin: Some(StdinMode::Ignore),
            no_restore_cwd: true,
            source: text("tool"),
        }
    );
}

#[test]
fn commands_are_told_apart() {
    type IsIt = fn(&Command) -> bool;
    let cases: [(&str, IsIt); 10] = [
        ("sessions list --json --limit 5", |command| {
            matches!(command, Command::Sessions(SessionsCommand::List { json: true, limit: 5, .. }))
        }),
        ("sessions show abc", |command| matches!(command, Command::Sessions(SessionsCommand::Show { .. }))),
        ("daemon run", |command| matches!(command, Command::Daemon(DaemonCommand::Run))),
        ("daemon stop --now", |command| {
            matches!(command, Command::Daemon(DaemonCommand::Stop { now: true }))
        }),
        ("status --json", |command| matches!(command, Command::Status { json: true })),
        ("version", |command| matches!(command, Command::Version)),
        ("config", |command| matches!(command, Command::Config { command: None })),
        ("config get a.b", |command| {
            matches!(command, Command::Config { command: Some(ConfigCommand::Get { .. }) })
        }),
        ("logs errors -n 3 -f", |command| matches!(command, Command::Logs(flags) if flags.tail.follow)),
        ("daemon logs", |command| matches!(command, Command::Daemon(DaemonCommand::Logs(_)))),
    ];
    for (line, is_it) in cases {
        match read(line).unwrap().action {
            Action::Command(command) => assert!(is_it(&command), "{line}: {command:?}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn the_version_flag_needs_nothing_else() {
    for line in ["-V", "--version", "chat -V", "-p work -V", "-V -q hi"] {
        assert!(matches!(read(line).unwrap().action, Action::ShowVersion), "{line}");
    }
}

#[test]
fn an_unknown_command_is_a_usage_error_with_the_near_miss() {
    let text = usage("sesions list");
    assert!(text.contains("'sesions'") && text.contains("'sessions'"), "{text}");
    assert!(text.contains("to send a prompt"), "{text}");
}

#[test]
fn a_first_word_is_never_a_prompt() {
    assert!(usage("hello").contains("'hello'"));
    let Err(Answer::Usage(text)) = read_words(&["what is in this folder?"]) else { panic!() };
    assert!(text.contains("to send a prompt"), "{text}");
}

#[test]
fn flags_that_contradict_each_other_are_named() {
    assert!(usage("-z a -q b").contains("-z and -q"));
    assert!(usage("-z a chat --query-file f").contains("-z and --query-file"));
    assert!(usage("-r a -c b").contains("-r and -c"));
    assert!(usage("-q hi sessions list").contains("chat"));
    assert!(usage("--max-turns 0 -q hi").contains("--max-turns"));
    assert!(usage("--timeout 0 -q hi").contains("--timeout"));
}

#[test]
fn bare_parents_show_their_help() {
    for line in ["sessions", "daemon", "--help", "chat --help", "help"] {
        assert!(matches!(read(line), Err(Answer::Help(_))), "{line}: {:?}", read(line));
    }
}

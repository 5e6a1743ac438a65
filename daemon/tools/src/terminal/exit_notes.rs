//! What an exit code means where it is no failure, or a well-known one (spec 40 §6.1).

use super::lexer::simple_commands;

/// A note on `exit_code` of `command`: that of its last simple command, whose code the shell gives.
pub(super) fn meaning(command: &str, exit_code: i32) -> Option<&'static str> {
    let commands = simple_commands(command);
    let last = commands.last()?;
    match (last.program(), exit_code) {
        ("grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack", 1) => Some("no match; not an error"),
        ("diff" | "cmp", 1) => Some("the files differ; not an error"),
        ("find", 1) => Some("some directories could not be read"),
        ("test" | "[" | "[[", 1) => Some("the condition is false; not an error"),
        ("curl", 6) => Some("the host name could not be resolved"),
        ("curl", 7) => Some("the connection was refused or failed"),
        ("curl", 22) => Some("the server answered with an HTTP error"),
        ("curl", 28) => Some("the transfer timed out"),
        ("git", 1) => Some("often no error: `git diff --exit-code` and `git grep` use 1 for an answer"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_command_decides() {
        assert_eq!(meaning("cat x | grep y", 1), Some("no match; not an error"));
        assert_eq!(meaning("grep y x | wc -l", 1), None);
        assert_eq!(meaning("/usr/bin/diff a b", 1), Some("the files differ; not an error"));
        assert_eq!(meaning("grep y x", 2), None);
        assert_eq!(meaning("[ -f x ]", 1), Some("the condition is false; not an error"));
        assert_eq!(meaning("", 1), None);
    }
}

//! Lists of commands that people write: `approvals.deny` and `command_allowlist`.

use super::globs;
use super::simple::Simple;

/// Signs that join commands or redirect them: an entry of an allow-list never matches a command with one.
const JOINING: [&str; 8] = ["\n", ";", "&", "|", "<", ">", "`", "$("];

/// A command, whole and in parts, ready to be held against globs.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Words {
    whole: String,
    /// Each single command as it is called, and with its program's bare name.
    parts: Vec<String>,
    compound: bool,
}

impl Words {
    pub(super) fn new(command: &str, simples: &[Simple]) -> Self {
        let whole = command.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut parts = Vec::new();
        for simple in simples.iter().filter(|simple| !simple.program.is_empty()) {
            for line in [simple.line(), simple.bare_line()] {
                if !parts.contains(&line) {
                    parts.push(line);
                }
            }
        }
        Self { compound: JOINING.iter().any(|sign| command.trim().contains(sign)), whole, parts }
    }

    /// The entry that forbids this command.
    pub(in crate::policy) fn denied_by<'a>(&self, deny: &'a [String]) -> Option<&'a str> {
        let entry = deny.iter().find(|entry| {
            let glob = entry.trim().to_lowercase();
            !glob.is_empty()
                && (self.parts.iter().map(String::as_str).chain([self.whole.as_str()]))
                    .any(|line| covers(&glob, &line.to_lowercase()))
        });
        entry.map(String::as_str)
    }

    /// Whether an entry allows this command: exactly, or by a glob; ids of rules are the caller's.
    pub(in crate::policy) fn allowed_by(&self, allow: &[String]) -> bool {
        !self.compound
            && allow
                .iter()
                .map(|entry| entry.trim())
                .any(|entry| !entry.is_empty() && covers(entry, &self.whole))
    }

    /// Whether the text is made of several commands.
    pub(in crate::policy) fn is_compound(&self) -> bool {
        self.compound
    }
}

/// A glob covers a line; `git push *` also covers `git push` alone.
fn covers(glob: &str, line: &str) -> bool {
    globs::matches(glob, line) || glob.strip_suffix(" *").is_some_and(|bare| bare == line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::commands::expand::Arg;

    fn words(command: &str, simples: &[&[&str]]) -> Words {
        let simples: Vec<Simple> = simples
            .iter()
            .map(|words| {
                let mut simple = Simple::default();
                simple.set_words(&words.iter().map(|word| Arg::known(word)).collect::<Vec<_>>());
                simple
            })
            .collect();
        Words::new(command, &simples)
    }

    #[test]
    fn a_denied_command_is_found_in_any_place_and_spelling() {
        let deny = ["Git Push *".to_owned()];
        for (command, simples) in [
            ("git push", [["git", "push"].as_slice()].as_slice()),
            ("GIT PUSH origin", &[&["GIT", "PUSH", "origin"]]),
            (
                "sudo /usr/bin/git push x",
                &[&["sudo", "/usr/bin/git", "push", "x"], &["/usr/bin/git", "push", "x"]],
            ),
            ("ls && git push x", &[&["ls"], &["git", "push", "x"]]),
        ] {
            assert!(words(command, simples).denied_by(&deny).is_some(), "{command}");
        }
        assert_eq!(words("git status", &[&["git", "status"]]).denied_by(&deny), None);
    }

    #[test]
    fn an_allowed_command_stands_alone() {
        let allow = ["podman *".to_owned(), "make deploy".to_owned()];
        let allowed = |command: &str| words(command, &[]).allowed_by(&allow);
        assert!(allowed("podman run x") && allowed("make deploy"));
        for command in [
            "podman run x; rm y",
            "podman run x | sh",
            "podman run $(x)",
            "podman run x > y",
            "make deploy x",
        ] {
            assert!(!allowed(command), "{command}");
        }
    }
}

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
            for line in [simple.line(), simple.bare_line(), plain_line(simple)] {
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
                && (self.parts.iter().map(String::as_str).chain([self.whole.as_str()])).any(|line| {
                    let line = line.to_lowercase();
                    covers(&glob, &line) || covers(&with_sorted_letters(&glob), &with_sorted_letters(&line))
                })
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

/// The command without the options that stand before its subcommand: `git -C x push` is `git push`.
fn plain_line(simple: &Simple) -> String {
    let valued = match simple.program.as_str() {
        "git" => ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"].as_slice(),
        "docker" | "podman" => &["-H", "--host", "--context", "--config", "-l", "--log-level"],
        "kubectl" | "helm" | "oc" => {
            &["-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s"]
        }
        "npm" | "pnpm" | "yarn" => &["--prefix", "-C", "--dir", "--filter", "--cwd", "-w"],
        "gh" => &["-R", "--repo"],
        "aws" | "gcloud" | "az" => &["--profile", "--region", "--project", "--output", "--subscription"],
        _ => &[],
    };
    let mut rest = simple.args.as_slice();
    while let Some((first, behind)) = rest.split_first().filter(|(first, _)| first.text.starts_with('-')) {
        let taken = usize::from(valued.contains(&first.text.as_str()));
        rest = behind.get(taken..).unwrap_or_default();
    }
    let words = rest.iter().map(super::expand::Arg::shown);
    std::iter::once(simple.program.replace(super::scope::UNKNOWN, "…"))
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// With the short options behind the program in one bundle and one order: `rm -r -f x` and `rm -fr x` are `rm -fr x`.
fn with_sorted_letters(line: &str) -> String {
    let mut words = line.split(' ');
    let program = words.next().unwrap_or_default();
    let mut letters: Vec<char> = Vec::new();
    let mut rest: Vec<&str> = Vec::new();
    for word in words {
        let bundle = word.strip_prefix('-').filter(|bundle| bundle.chars().all(|c| c.is_ascii_alphabetic()));
        let long = match word {
            "--recursive" => Some("r"),
            "--force" => Some("f"),
            _ => None,
        };
        match bundle.filter(|bundle| !bundle.is_empty()).or(long) {
            Some(bundle) if rest.is_empty() => letters.extend(bundle.chars()),
            _ => rest.push(word),
        }
    }
    letters.sort_unstable();
    letters.dedup();
    let mut line = program.to_owned();
    if !letters.is_empty() {
        line.push_str(" -");
        line.extend(letters);
    }
    for word in rest {
        line.push(' ');
        line.push_str(word);
    }
    line
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
            ("git -C sub --no-pager push", &[&["git", "-C", "sub", "--no-pager", "push"]]),
        ] {
            assert!(words(command, simples).denied_by(&deny).is_some(), "{command}");
        }
        assert_eq!(words("git status", &[&["git", "status"]]).denied_by(&deny), None);
        let deny = ["rm -rf *".to_owned()];
        for words_of in [
            ["rm", "-fr", "x"].as_slice(),
            &["rm", "-r", "-f", "x"],
            &["/bin/rm", "--recursive", "--force", "x"],
        ] {
            assert!(words(&words_of.join(" "), &[words_of]).denied_by(&deny).is_some(), "{words_of:?}");
        }
        assert_eq!(words("rm x", &[&["rm", "x"]]).denied_by(&deny), None);
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

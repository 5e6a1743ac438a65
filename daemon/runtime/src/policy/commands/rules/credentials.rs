//! Reading credentials: the same places that the file tools never read.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::places::shaped;
use super::super::report::Report;
use super::super::simple::{Simple, Stdin};
use super::super::syntax::Operator;
use super::whose;

/// Programs that look at names and properties, never at contents, or whose arguments are no files.
const BLIND: &[&str] = &[
    "",
    "ls",
    "stat",
    "test",
    "[",
    "du",
    "chmod",
    "chown",
    "chgrp",
    "rm",
    "unlink",
    "touch",
    "mkdir",
    "rmdir",
    "cd",
    "pushd",
    "find",
    "fd",
    "realpath",
    "readlink",
    "dirname",
    "basename",
    "which",
    "type",
    "command",
    "builtin",
    "git",
    "echo",
    "printf",
    "ssh",
    "ssh-add",
    "ssh-keygen",
    "ssh-copy-id",
    "export",
    "declare",
    "local",
    "unset",
    "set",
    "alias",
    "trap",
    "tree",
    "exa",
    "eza",
    "man",
    "kill",
    "pkill",
    "pgrep",
    "sudo",
    "doas",
    "env",
    "nohup",
    "time",
    "timeout",
    "nice",
    "exec",
    "xargs",
    "eval",
    "bash",
    "sh",
    "zsh",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "true",
    "false",
    "logger",
    "tee",
    "hermes-cli",
    "hermes",
    "gh",
    "make",
    "cargo",
    "npm",
    "yarn",
    "pnpm",
];

/// Programs whose first operand is a pattern or a program text.
const PATTERN_FIRST: [&str; 18] = [
    "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "gsed", "awk", "gawk", "mawk", "jq", "yq", "tr",
    "expr", "sd", "zgrep", "comby",
];

/// Programs that take whole folders.
const COLLECTORS: [&str; 14] = [
    "cp", "tar", "bsdtar", "zip", "7z", "7za", "rsync", "scp", "cpio", "pax", "rclone", "restic", "borg",
    "mv",
];

/// Programs that run a script file whose text nobody sees.
const RUNS_FILES: [&str; 8] = ["bash", "sh", "zsh", "python", "python3", "perl", "ruby", "node"];

/// Stores of credentials: the program, and the words that make it show one.
const STORES: &[(&str, &[&str])] = &[
    ("gpg", &["--export-secret-keys", "--export-secret-subkeys"]),
    ("security", &["find-generic-password", "find-internet-password", "dump-keychain", "export"]),
    ("secret-tool", &["lookup", "search"]),
    ("keyctl", &["read", "print", "pipe"]),
    ("pass", &["show", "-c"]),
    ("op", &["read", "item"]),
    ("bw", &["get", "list", "export"]),
    ("vault", &["read", "kv"]),
    ("gh", &["token", "--show-token"]),
    ("gcloud", &["print-access-token", "print-identity-token"]),
    ("kubectl", &["secret", "secrets"]),
    ("git", &["credential", "credential-store", "credential-cache"]),
    ("docker-credential-desktop", &["get"]),
    ("doppler", &["secrets"]),
    ("getent", &["shadow"]),
];

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    if STORES.iter().any(|(program, words)| simple.program == *program && simple.has_arg(words)) {
        report.ask("read.secret", "reads credentials from a store", super::shape_exact(simple));
    }
    if simple.program == "ps" && shows_environments(simple) {
        report.ask("read.secret", "shows the environments of other processes", super::shape_exact(simple));
    }
    let cwd = simple.cwd.as_deref();
    let mut found: Vec<String> = Vec::new();
    let mut look = |text: &str, arg: &Arg| {
        let open = arg.glob || arg.has_unknown();
        for candidate in candidates(text) {
            if !candidate.is_empty() && facts.secret(candidate, cwd, open) {
                found.push(shaped(&Arg { text: candidate.to_owned(), ..arg.clone() }, cwd));
            }
        }
    };
    for redirect in simple.redirects.iter().filter(|redirect| redirect.operator == Operator::Read) {
        look(&redirect.target.text, &redirect.target);
    }
    if let Stdin::File(file) = &simple.stdin {
        look(&file.text, file);
    }
    if simple.program == "xargs"
        && let Some(file) = simple.options("IEdLnPsa", &["arg-file"]).value(&["a", "arg-file"])
    {
        look(&file.text, file);
    }
    let parent = simple.args.iter().any(|arg| arg.text.starts_with("/proc/\u{1}"));
    let searches = simple.is(&PATTERN_FIRST);
    let skips_first = searches
        && !simple
            .args
            .iter()
            .any(|arg| matches!(arg.text.as_str(), "-e" | "-f" | "--regexp" | "--file" | "--expression"));
    let mut operands = 0;
    if !simple.is(BLIND) {
        for arg in &simple.args {
            if !arg.text.starts_with('-') {
                operands += 1;
                if skips_first && operands == 1 {
                    continue;
                }
            }
            look(&arg.text, arg);
        }
    } else if simple.is(&RUNS_FILES) || simple.is(&["tee"]) {
        for arg in simple.args.iter().filter(|arg| !arg.text.contains(char::is_whitespace)) {
            look(&arg.text, arg);
        }
    }
    let recursive_search = searches
        && (matches!(simple.program.as_str(), "rg" | "ag" | "ack")
            || simple.args.iter().any(|arg| {
                matches!(arg.text.as_str(), "--recursive" | "--dereference-recursive")
                    || (arg.text.starts_with('-')
                        && !arg.text.starts_with("--")
                        && arg.text.contains(['r', 'R']))
            }));
    if simple.is(&COLLECTORS) || recursive_search {
        let skip = usize::from(searches);
        let folders = simple.args.iter().filter(|arg| !arg.text.starts_with('-')).skip(skip);
        let destination = usize::from(simple.is(&["cp", "mv", "rsync", "scp"]));
        let folders: Vec<&Arg> = folders.collect();
        let sources = folders.len().saturating_sub(destination);
        for arg in folders.into_iter().take(sources) {
            if !arg.has_unknown() && facts.holds_secrets(arg.text.trim_end_matches("/*"), cwd) {
                found.push(shaped(arg, cwd));
            }
        }
    }
    found.sort();
    found.dedup();
    if !found.is_empty() || parent {
        let places = found.join(", ");
        let shape = format!("{}{} {places}", whose(simple), simple.program);
        let shown = if parent { "/proc/$PPID".to_owned() } else { places };
        report.ask("read.secret", format!("reads credentials or secrets ({shown})"), shape);
    }
}

/// `ps e` and its spellings: other processes with their environments.
fn shows_environments(simple: &Simple) -> bool {
    let mut value = false;
    simple.args.iter().any(|arg| {
        let text = arg.text.as_str();
        let is_value = std::mem::replace(
            &mut value,
            text.starts_with('-')
                && text.ends_with(['o', 'O', 'p', 'C', 'u', 'U', 'g', 'G', 't', 'q', 's'])
                && !text.starts_with("--"),
        );
        text.contains("environ")
            || text == "-E"
            || (!is_value
                && !text.is_empty()
                && text.chars().all(|c| c.is_ascii_alphabetic())
                && text.contains('e'))
    })
}

/// The parts of an argument that may be a file's name: `of=x`, `@x`, `name=@x`, `file://x`.
fn candidates(text: &str) -> [&str; 4] {
    if text.starts_with("--env-file") {
        return [""; 4];
    }
    let plain = text.trim_start_matches(['@', '<']);
    let value = text.split_once('=').map_or("", |(_, value)| value.trim_start_matches(['@', '<', '"']));
    let value = value.split_once('@').map_or(value, |(_, file)| file);
    let url = text.strip_prefix("file://").unwrap_or("");
    // `UNIX-CONNECT:/path`.
    let address = text
        .find(":/")
        .and_then(|at| text.get(at + 1..))
        .filter(|path| !path.starts_with("//"))
        .unwrap_or("");
    [if text.starts_with('-') { short_value(text) } else { plain }, value, url, address]
}

/// `-d@file`, `-Kfile`.
fn short_value(text: &str) -> &str {
    text.split_once('@').map_or_else(
        || {
            text.char_indices()
                .nth(2)
                .and_then(|(at, _)| text.get(at..))
                .filter(|_| !text.starts_with("--"))
                .unwrap_or("")
        },
        |(_, file)| file,
    )
}

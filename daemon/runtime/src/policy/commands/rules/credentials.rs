//! Reading credentials: the same places that the file tools never read.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::places::shaped;
use super::super::report::Report;
use super::super::simple::{Simple, Stdin};
use super::super::syntax::Operator;
use super::remote::DOWNLOADERS;
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
const COLLECTORS: [&str; 15] = [
    "ln", "cp", "tar", "bsdtar", "zip", "7z", "7za", "rsync", "scp", "cpio", "pax", "rclone", "restic",
    "borg", "mv",
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
    ("gh", &["token", "--show-token", "-t"]),
    ("npm", &["_authToken", "_auth"]),
    (
        "aws",
        &[
            "export-credentials",
            "get-session-token",
            "get-secret-value",
            "--with-decryption",
            "get-login-password",
        ],
    ),
    ("az", &["get-access-token"]),
    ("heroku", &["config", "auth:token"]),
    ("keyring", &["get"]),
    ("kwallet-query", &["-r"]),
    ("rclone", &["dump"]),
    ("sops", &["-d", "--decrypt", "decrypt"]),
    ("ejson", &["decrypt"]),
    ("gcloud", &["print-access-token", "print-identity-token", "access"]),
    ("kubectl", &["secret", "secrets", "--raw"]),
    ("git", &["credential", "credential-store", "credential-cache"]),
    ("docker-credential-desktop", &["get"]),
    ("doppler", &["secrets"]),
    ("getent", &["shadow"]),
];

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    if STORES.iter().any(|(program, words)| simple.program == *program && simple.has_arg(words)) {
        report.ask("read.secret", "reads credentials from a store", super::shape_exact(simple));
    }
    let exports = simple.is(&["gpg", "gpg2"])
        && simple
            .args
            .iter()
            .any(|arg| arg.text.starts_with("--export-secret") || arg.text.starts_with("--delete-secret"));
    let passes = simple.program == "pass"
        && !simple.args.is_empty()
        && !matches!(
            simple.arg(0),
            "ls" | "find" | "git" | "insert" | "generate" | "version" | "help" | "init"
        );
    let machine = simple.is(&DOWNLOADERS)
        && simple.args.iter().any(|arg| {
            ["169.254.169.254", "169.254.170.2", "metadata.google.internal", "100.100.100.200"]
                .iter()
                .any(|host| arg.text.contains(host))
        });
    if exports || passes || machine {
        report.ask("read.secret", "reads credentials from a store", super::shape_exact(simple));
    }
    environment_away(simple, report);
    served(simple, facts, report);
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
    if simple.is(&["lftp", "smbclient", "ncftpput", "ftp"]) {
        for arg in &simple.args {
            for word in arg.text.split([' ', ';', '"', '\'']) {
                look(word, arg);
            }
        }
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
        let destination = usize::from(simple.is(&["cp", "mv", "rsync", "scp", "ln"]));
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

/// The environment, handed to a program of the network.
fn environment_away(simple: &Simple, report: &mut Report) {
    const SHOWS: [&str; 6] = ["env", "printenv", "set", "export", "declare", "compgen"];
    if !simple.is(&DOWNLOADERS) && !simple.is(&["socat", "telnet", "ftp", "mail", "sendmail"]) {
        return;
    }
    let piped = matches!(&simple.stdin, Stdin::Pipe(programs) if programs.iter().any(|program| SHOWS.contains(&program.as_str())));
    // `curl -d "$(env)"`: the substitution ran right before.
    let substituted = simple.args.iter().any(Arg::has_unknown)
        && report.simples.last().is_some_and(|before| {
            before.subshell && before.args.iter().all(|arg| arg.text.starts_with('-')) && before.is(&SHOWS)
        });
    if piped || substituted {
        report.ask("read.secret", "sends the environment to the network", super::shape_exact(simple));
    }
}

/// A web server on a folder that holds credentials.
fn served(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let python = simple
        .args
        .iter()
        .zip(simple.args.iter().skip(1))
        .any(|(m, module)| m.text == "-m" && module.text == "http.server");
    let folder = if python {
        let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
        pairs
            .filter(|(option, _)| matches!(option.text.as_str(), "-d" | "--directory"))
            .map(|(_, folder)| folder.text.clone())
            .next_back()
    } else if simple.is(&["serve", "http-server", "live-server", "miniserve", "webfsd", "darkhttpd"]) {
        simple.args.iter().find(|arg| !arg.text.starts_with('-')).map(|arg| arg.text.clone())
    } else if simple.program == "php" && simple.has_arg(&["-S"]) {
        let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
        pairs.filter(|(option, _)| option.text == "-t").map(|(_, folder)| folder.text.clone()).next_back()
    } else {
        return;
    };
    if facts.holds_secrets(&folder.unwrap_or_else(|| ".".to_owned()), simple.cwd.as_deref()) {
        report.ask(
            "read.secret",
            "lets others read a folder that holds credentials",
            super::shape_exact(simple),
        );
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

/// The parts of an argument that may be a file's name: `of=x`, `@x`, `name=@x`, `file://x`, `OPEN:x`.
fn candidates(text: &str) -> Vec<&str> {
    if text.starts_with("--env-file") {
        return Vec::new();
    }
    let value = text.split_once('=').map_or("", |(_, value)| value.trim_start_matches(['@', '<', '"']));
    let value = value.split_once('@').map_or(value, |(_, file)| file);
    let mut found =
        vec![if text.starts_with('-') { short_value(text) } else { text.trim_start_matches(['@', '<']) }];
    found.push(value);
    // `x=@"file";type=y`.
    found.push(value.split([';', '"', ',']).next().unwrap_or_default());
    // `name@file`; an address of mail or of ssh names no file here.
    found.push(text.split_once('@').map_or("", |(_, file)| file));
    if text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) {
        let path = text.get(5..).unwrap_or_default();
        found.push(path.strip_prefix("//localhost").or_else(|| path.strip_prefix("//")).unwrap_or(path));
    }
    // `UNIX-CONNECT:/path`, `OPEN:file,creat`, `{a,b}` of curl.
    if let Some((kind, path)) = text.split_once(':')
        && kind.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
        && !path.starts_with("//")
    {
        found.push(path.split(',').next().unwrap_or_default());
    }
    if let Some(list) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        found.extend(list.split(','));
    }
    found
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

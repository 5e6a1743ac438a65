//! Which program runs: one that is not known before the run, one that stays behind, one with more rights.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::inner::is_shell;
use super::super::report::Report;
use super::super::scope::{PARENT, UNKNOWN};
use super::super::simple::{Simple, Stdin};
use super::shape_exact;

/// Programs that an alias may stand for without a question: they only show things.
const HARMLESS: [&str; 20] = [
    "ls", "exa", "eza", "grep", "egrep", "fgrep", "rg", "cd", "echo", "cat", "bat", "head", "tail", "less",
    "wc", "diff", "pwd", "date", "tree", "du",
];

/// Programs that do other things when an argument turns out to be an option.
const TOUCHY: [&str; 12] = [
    "git",
    "dd",
    "find",
    "systemctl",
    "docker",
    "podman",
    "kubectl",
    "chmod",
    "chown",
    "sudo",
    "xargs",
    "env",
];

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let called = &simple.called;
    let unknown = called.text.contains([UNKNOWN, PARENT])
        || called.glob
        || called.unsure
        || called.process
        || called.splits;
    if unknown && !called.text.is_empty() {
        report.ask(
            "program.unknown",
            format!("runs a program that is not known before the run ({})", called.shown()),
            shape_exact(simple),
        );
    } else if !simple.program.is_ascii() && !called.text.contains('/') {
        report.ask(
            "program.lookalike",
            format!("runs `{}`, whose name is not plain letters", called.text),
            shape_exact(simple),
        );
    }
    let after_options = simple.args.iter().take_while(|arg| arg.text != "--");
    if simple.is(&TOUCHY) && after_options.clone().any(|arg| opens(arg, simple)) {
        report.ask(
            "program.arguments",
            format!("runs {} with arguments that are not known before the run", simple.program),
            shape_exact(simple),
        );
    }
    disguised(simple, report);
    privileges(simple, facts, report);
    stays_behind(simple, report);
    if simple.program == "alias" {
        for arg in &simple.args {
            let Some((name, value)) = arg.text.split_once('=') else { continue };
            let program = value.split_whitespace().next().unwrap_or_default();
            if !HARMLESS.contains(&program) {
                report.ask(
                    "program.alias",
                    format!("makes `{name}` another word for `{value}`"),
                    shape_exact(simple),
                );
            }
        }
    }
}

/// Whether an argument could be an option of a program for which that matters.
fn opens(arg: &Arg, simple: &Simple) -> bool {
    if !(arg.splits || arg.is_blank()) || arg.text.starts_with(|c: char| c != UNKNOWN) {
        return false;
    }
    match simple.program.as_str() {
        // Where its subcommand is known, only some take dangerous options, and the rules for those ask.
        "git" => {
            let sub =
                simple.args.iter().find(|arg| !arg.text.starts_with('-')).map_or("", |arg| arg.text.as_str());
            // A quoted one in the place of a name is taken for a name.
            sub.starts_with(UNKNOWN)
                || arg.splits
                    && matches!(sub, "push" | "clean" | "reset" | "branch" | "config" | "clone" | "rebase")
        }
        "find" => arg.splits && simple.args.first().is_none_or(|first| first != arg),
        "docker" | "podman" | "kubectl" | "systemctl" | "sudo" | "env" => {
            simple.args.first() == Some(arg)
                && !matches!(simple.via.last().map(String::as_str), Some("xargs"))
        }
        "xargs" => true,
        _ => arg.splits,
    }
}

/// A program of the system under another name.
fn disguised(simple: &Simple, report: &mut Report) {
    const FOLDERS: [&str; 6] = ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/"];
    const NAMES: [&str; 22] = [
        "rm",
        "dd",
        "sh",
        "bash",
        "dash",
        "zsh",
        "sudo",
        "kill",
        "pkill",
        "killall",
        "shutdown",
        "reboot",
        "chmod",
        "chown",
        "mv",
        "curl",
        "wget",
        "nc",
        "ssh",
        "git",
        "docker",
        "hermes-cli",
    ];
    if simple.is(&["cp", "ln", "mv", "install"]) {
        let hides = |arg: &&Arg| {
            FOLDERS
                .iter()
                .any(|folder| arg.text.strip_prefix(folder).is_some_and(|name| NAMES.contains(&name)))
        };
        if let Some(arg) = simple.args.iter().find(hides) {
            report.ask("program.alias", format!("gives {} another name", arg.text), shape_exact(simple));
        }
    }
}

fn privileges(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    if !simple.is(&["sudo", "sudoedit", "doas"]) {
        return;
    }
    // Options end at the first word without a dash.
    let mut options = Vec::new();
    let mut args = simple.args.iter();
    while let Some(arg) = args.next() {
        let Some(rest) = arg.text.strip_prefix('-').filter(|rest| !rest.is_empty() && *rest != "-") else {
            break;
        };
        if !rest.starts_with('-') && rest.ends_with(['u', 'g', 'h', 'p', 'C', 'T', 'r', 't', 'U', 'D', 'R']) {
            args.next();
        }
        options.push(rest);
    }
    let short =
        |letter: char| options.iter().any(|option| !option.starts_with('-') && option.contains(letter));
    let long = |name: &str| {
        options
            .iter()
            .filter_map(|option| option.strip_prefix('-'))
            .any(|given| given.len() > 1 && name.starts_with(given))
    };
    // A password that the session has, or a rule that wants none, must not make every later `sudo` a matter of course.
    if simple.args.iter().any(|arg| !arg.text.starts_with('-')) {
        report.ask("sudo.root", "runs with an administrator's rights", shape_exact(simple));
    }
    if short('S') || long("stdin") {
        if facts.sudo_password_known {
            report.ask("sudo.flags", "gives sudo a password on its input", shape_exact(simple));
        } else {
            report
                .block("block.sudo_guessing", "gives sudo a password on its input, while none is configured");
        }
    }
    if short('A')
        || long("askpass")
        || short('s')
        || long("shell")
        || short('i')
        || long("login")
        || short('a')
    {
        report.ask(
            "sudo.flags",
            "opens a shell, or asks for a password by a program, with sudo",
            shape_exact(simple),
        );
    }
    if simple.program == "sudoedit" || short('e') || long("edit") {
        report.ask("sudo.flags", "edits a file with an administrator's rights", shape_exact(simple));
    }
}

/// Processes that outlive the command, so that nobody sees what they do later.
fn stays_behind(simple: &Simple, report: &mut Report) {
    let detaches = simple.is(&["setsid", "nohup", "disown", "daemonize", "daemon", "start-stop-daemon"])
        || (simple.orphaned && simple.via.is_empty() && !simple.program.is_empty());
    if detaches {
        report.ask("run.detached", "leaves a process behind that outlives this command", shape_exact(simple));
    }
    if simple.background && is_shell(&simple.program) && matches!(simple.stdin, Stdin::Pipe(_)) {
        report.ask(
            "run.detached",
            "leaves a shell behind that reads its commands from a pipe",
            shape_exact(simple),
        );
    }
}

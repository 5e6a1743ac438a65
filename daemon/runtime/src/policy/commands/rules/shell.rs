//! The shell's own commands and variables that run what looks like data.

use super::super::CommandFacts;
use super::super::report::Report;
use super::super::scope::UNKNOWN;
use super::super::simple::Simple;
use super::{injects, shape_exact};

/// Commands of the shell that take names of variables, in which an index is computed.
const NAMING: [&str; 13] = [
    "read",
    "unset",
    "let",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "mapfile",
    "readarray",
    "wait",
    "getopts",
    "printf",
];

pub(super) fn judge(simple: &Simple, _facts: &CommandFacts<'_>, report: &mut Report) {
    let set = simple.assigns.iter().any(|(_, value)| injects(&value.text));
    let tests = simple.is(&["test", "["]) && simple.has_arg(&["-v", "-R"]);
    let writes = simple.program != "printf" || simple.arg(0).starts_with("-v");
    let named = (tests || (simple.is(&NAMING) && writes)) && simple.args.iter().any(|arg| injects(&arg.text));
    if set || named {
        report.ask("syntax.arithmetic", "computes a text that contains a command", shape_exact(simple));
    }
    for (name, value) in &simple.assigns {
        let runs = value.text.contains("$(") || value.text.contains('`') || value.text.contains(UNKNOWN);
        match name.as_str() {
            "BASH_CMDS" | "BASH_ALIASES" => {
                report.ask("program.alias", "makes a word stand for another program", shape_exact(simple));
            }
            "PS0" | "PS1" | "PS2" if runs => {
                report.ask("environment.loaded", "sets a prompt that runs commands", shape_exact(simple));
            }
            _ => {}
        }
    }
    let short = |letter: char| {
        simple.args.iter().any(|arg| {
            arg.text
                .strip_prefix('-')
                .is_some_and(|bundle| !bundle.starts_with('-') && bundle.contains(letter))
        })
    };
    let odd = match simple.program.as_str() {
        "complete" | "compgen" => {
            short('C')
                || simple.args.iter().any(|arg| arg.text.contains(['`', UNKNOWN]) || arg.text.contains("$("))
        }
        "enable" => short('f'),
        "hash" => short('p'),
        "mapfile" | "readarray" => short('C'),
        _ => false,
    };
    if odd {
        let what = format!("makes {} run another program or text", simple.program);
        report.ask("tool.runs", what, shape_exact(simple));
    }
    // `/proc/self/exe` is the program that calls it, whatever its name; a loader runs what it is given.
    let called = simple.called.text.as_str();
    let disguised = (called.starts_with("/proc/") && simple.program == "exe")
        || simple.program == "ld.so"
        || ["ld-linux", "ld-musl", "ld-2."].iter().any(|loader| simple.program.starts_with(loader));
    if disguised && !simple.has_arg(&["--version", "--help", "--list"]) {
        report.ask("program.alias", "runs a program by another name", shape_exact(simple));
    }
}

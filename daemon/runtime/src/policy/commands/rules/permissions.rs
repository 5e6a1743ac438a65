//! Permissions and owners.

use super::super::CommandFacts;
use super::super::places::WriteRisk;
use super::super::report::Report;
use super::super::scope::UNKNOWN;
use super::super::simple::Simple;
use super::shape;

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    match simple.program.as_str() {
        "chmod" | "gchmod" => chmod(simple, facts, report),
        "chown" | "gchown" | "chgrp" => {
            let options = simple.options("", &["from", "reference"]);
            let to_root = options
                .operand(0)
                .split([':', '.'])
                .next()
                .is_some_and(|owner| matches!(owner, "root" | "0"));
            if to_root && options.has("R", "recursive") {
                report.ask(
                    "permissions.chown_root",
                    "gives a folder with all it contains to root",
                    shape(simple, &options),
                );
            }
        }
        "setfacl" | "chattr" | "chflags" => {
            let options = simple.options("mxM", &[]);
            report.ask(
                "permissions.attributes",
                "changes access lists or attributes of files",
                shape(simple, &options),
            );
        }
        _ => {}
    }
}

fn chmod(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let options = simple.options("", &["reference"]);
    // A mode such as `-w` looks like an option.
    let mode = options.operand(0);
    let opens = mode.starts_with(UNKNOWN)
        || if mode.chars().all(|c| c.is_ascii_digit()) && !mode.is_empty() {
            let digits: Vec<u32> = mode.chars().filter_map(|c| c.to_digit(8)).collect();
            let others = digits.last().copied().unwrap_or(0);
            let special =
                if digits.len() >= 4 { digits.iter().rev().nth(3).copied().unwrap_or(0) } else { 0 };
            others & 2 != 0 || special & 6 != 0
        } else {
            mode.split(',').any(opens_symbolic)
        };
    if opens {
        report.ask(
            "permissions.open",
            format!("lets everybody write, or run as the owner ({mode})"),
            shape(simple, &options),
        );
    }
    for target in options.operands.iter().skip(1) {
        if matches!(
            facts.write_risk(target, simple.cwd.as_deref()),
            Some(WriteRisk::Hermes | WriteRisk::System)
        ) {
            report.ask(
                "permissions.system",
                format!("changes the rights of {}", target.shown()),
                shape(simple, &options),
            );
        }
    }
}

/// `o+w`, `a=rw`, `u+s`.
fn opens_symbolic(clause: &str) -> bool {
    let Some(at) = clause.find(['+', '=']) else { return false };
    let (who, rights) = clause.split_at_checked(at).unwrap_or((clause, ""));
    (who.contains(['o', 'a']) && rights.contains('w'))
        || rights.contains('s')
        || clause == "=rw"
        || clause == "=rwx"
}

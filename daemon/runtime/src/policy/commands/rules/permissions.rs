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
            let vital = options.operands.iter().skip(1).any(|target| {
                let cwd = simple.cwd.as_deref();
                facts.is_vital(target, cwd).is_some() || facts.holds_secrets(&target.text, cwd)
            });
            if vital && options.has("R", "recursive") {
                report.ask(
                    "permissions.system",
                    "gives away a whole home or system folder",
                    shape(simple, &options),
                );
            }
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
    let dashed = simple.args.iter().find(|arg| {
        arg.text
            .strip_prefix('-')
            .is_some_and(|mode| !mode.is_empty() && mode.chars().all(|c| "rwxXst".contains(c)))
    });
    let mode = dashed.map_or_else(|| options.operand(0), |arg| arg.text.as_str());
    let targets = options.operands.iter().skip(usize::from(dashed.is_none()));
    let cwd = simple.cwd.as_deref();
    let shows = shows_to_others(mode);
    for target in targets.clone() {
        if shows && facts.secret(&target.text, cwd, target.glob) {
            report.ask("permissions.secret", "lets others read credentials", shape(simple, &options));
        }
        let vital = facts.is_vital(target, cwd).is_some() || facts.holds_secrets(&target.text, cwd);
        if options.has("R", "recursive") && vital {
            report.ask(
                "permissions.system",
                "changes the rights of a whole home or system folder",
                shape(simple, &options),
            );
        }
    }
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
    for target in targets {
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

/// Whether a mode lets the group or everybody read.
fn shows_to_others(mode: &str) -> bool {
    if !mode.is_empty() && mode.chars().all(|c| c.is_ascii_digit()) {
        return mode.chars().rev().take(2).filter_map(|c| c.to_digit(8)).any(|digit| digit & 4 != 0);
    }
    mode.split(',').any(|clause| {
        clause.find(['+', '=']).and_then(|at| clause.split_at_checked(at)).is_some_and(|(who, rights)| {
            rights.contains('r') && (who.is_empty() || who.contains(['g', 'o', 'a']))
        })
    })
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

//! The rules: each looks at one command and says what is dangerous about it.
//!
//! Ids of rules are stable: people write them into `command_allowlist`, and approvals are kept by them.

mod credentials;
mod delete;
mod disks;
mod environment;
mod files;
mod git;
mod inline;
mod own;
mod packages;
mod permissions;
mod power;
mod programs;
mod remote;
mod sequences;
mod services;
mod shell;
mod sql;
mod system;
mod tools;
mod writes;

use super::CommandFacts;
use super::places::shaped;
use super::report::Report;
use super::scope::UNKNOWN;
use super::simple::{Options, Simple, Stdin};
use super::syntax::{Command, Item, Kind, Piece, Script};

pub(super) use sequences::judge as judge_sequence;

/// One rule, or several on one subject.
type Rule = fn(&Simple, &CommandFacts<'_>, &mut Report);

const RULES: [Rule; 18] = [
    programs::judge,
    environment::judge,
    writes::judge,
    credentials::judge,
    own::judge,
    delete::judge,
    permissions::judge,
    disks::judge,
    power::judge,
    services::judge,
    git::judge,
    remote::judge,
    tools::judge,
    inline::judge,
    sql::judge,
    shell::judge,
    packages::judge,
    system::judge,
];

/// Holds one command against all rules.
pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    report.context = context(simple, facts, &report.simples);
    for rule in RULES {
        rule(simple, facts, report);
    }
    report.context.clear();
}

/// What makes two commands of the same words different: what they read, the environment, and where links lead.
fn context(simple: &Simple, facts: &CommandFacts<'_>, before: &[Simple]) -> String {
    let cwd = simple.cwd.as_deref();
    let mut parts: Vec<String> = Vec::new();
    parts.extend(simple.assigns.iter().map(|(name, value)| format!(" with {name}={}", value.text)));
    parts.extend(simple.environment.iter().map(|pair| format!(" with {pair}")));
    match &simple.stdin {
        Stdin::Inherited => {}
        Stdin::Text(text) => parts.push(format!(" <<< {text}")),
        Stdin::Pipe(_) if simple.fed_by.is_empty() => parts.push(UNKNOWN.to_string()),
        Stdin::Pipe(_) => parts.push(format!(" after {}", simple.fed_by)),
        Stdin::File(file) => parts.push(format!(" < {}", shaped(file, cwd))),
    }
    // What `<(…)` runs stands among the earlier commands.
    if simple.args.iter().any(|arg| arg.process) {
        parts.extend(
            before.iter().filter(|inner| inner.subshell).map(|inner| format!(" of {}", inner.raw_line())),
        );
    }
    for arg in simple.args.iter().filter(|arg| !arg.text.starts_with('-')) {
        let leads = facts.leads_to(&arg.text, cwd);
        parts.extend(leads.map(|leads| format!(" ({} is {leads})", arg.text)));
    }
    parts.concat()
}

/// Whether a text, computed as a number or taken for a variable, would run a command: `a[$(command)]`.
pub(super) fn injects(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| {
        let (before, behind) = text.split_at_checked(at).unwrap_or((text, ""));
        before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && (behind.contains("$(") || behind.contains('`') || behind.contains("${"))
    })
}

/// Program, options and operands with absolute places, for an approval.
fn shape(simple: &Simple, options: &Options) -> String {
    let mut shape = whose(simple);
    shape.push_str(&simple.program);
    for part in [options.sorted()].into_iter().filter(|part| !part.is_empty()) {
        shape.push(' ');
        shape.push_str(&part);
    }
    let mut operands: Vec<String> =
        options.operands.iter().map(|arg| shaped(arg, simple.cwd.as_deref())).collect();
    operands.sort();
    for operand in operands {
        shape.push(' ');
        shape.push_str(&operand);
    }
    shape
}

/// The whole command and where it runs, for what no place tells apart. Unknown parts make it good for once only.
fn shape_exact(simple: &Simple) -> String {
    let mut line = simple.called.text.clone();
    for arg in &simple.args {
        line.push(' ');
        line.push_str(&arg.text);
    }
    format!("{}{line} in {}", whose(simple), simple.cwd.as_deref().unwrap_or("\0"))
}

/// In whose name, or where, the command runs when that is not simply here.
fn whose(simple: &Simple) -> String {
    const OTHERS: [&str; 10] =
        ["sudo", "doas", "su", "pkexec", "ssh", "runuser", "chroot", "nsenter", "docker", "systemd-run"];
    let mut whose = String::new();
    for outer in simple.via.iter().filter(|outer| OTHERS.contains(&outer.as_str())) {
        whose.push_str(outer);
        whose.push(' ');
    }
    whose
}

/// A function that starts itself twice, or beside itself.
pub(super) fn is_fork_bomb(name: &str, body: &Command) -> bool {
    fn script(name: &str, body: &Script) -> bool {
        body.items.iter().any(|item| of_item(name, item))
    }
    fn calls(name: &str, command: &Command) -> bool {
        matches!(&command.kind, Kind::Simple { words, .. } if words.first().is_some_and(|word| {
            word.source == name || matches!(word.pieces.as_slice(), [Piece::Quoted(text)] if text == name)
        }))
    }
    fn of_item(name: &str, item: &Item) -> bool {
        item.chain.iter().any(|pipeline| {
            let own = pipeline.commands.iter().filter(|command| calls(name, command)).count();
            own > 1
                || (own == 1 && item.background)
                || pipeline.commands.iter().any(|command| inside(name, command))
        })
    }
    fn inside(name: &str, command: &Command) -> bool {
        match &command.kind {
            Kind::Group { body, .. } | Kind::For { body, .. } | Kind::Count { body, .. } => {
                script(name, body)
            }
            Kind::Loop { condition, body } => script(name, condition) || script(name, body),
            Kind::If { arms, otherwise } => {
                arms.iter().any(|(condition, body)| script(name, condition) || script(name, body))
                    || otherwise.as_ref().is_some_and(|body| script(name, body))
            }
            Kind::Beside(inner) => calls(name, inner) || inside(name, inner),
            _ => false,
        }
    }
    inside(name, body)
}

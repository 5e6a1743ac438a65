//! What a shell command would do, judged before it runs (spec 40 §8.2–8.4).
//!
//! A text is read as bash reads it ([`syntax`]), walked without running anything ([`walk`]) while variables, functions
//! and substitutions are followed as far as they are known ([`expand`]), unwrapped (`sudo`, `xargs`, `bash -c`;
//! [`inner`]), and every command that comes out is held against the rules ([`rules`]). What is not known counts
//! against the command: an unknown program is asked about, a text that cannot be read does not run. Texts that are
//! only data, such as a pattern or a message, never become commands.

mod assign;
mod builtins;
mod code;
mod decoders;
mod expand;
mod globs;
mod inner;
mod lists;
mod outputs;
mod places;
mod report;
mod rules;
mod scope;
mod simple;
mod syntax;
mod text;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;
use crate::paths::PathPolicy;

pub(super) use lists::Words;
use scope::Scope;
use walk::{Surroundings, Walker};

/// What must be known about the machine and the session to judge a command. Nothing else is looked at, but for
/// links on the disk, which `paths` follows.
#[derive(Debug, Clone, Copy)]
pub struct CommandFacts<'a> {
    /// Where the command starts; absolute.
    pub cwd: &'a Path,
    /// The session's working directory, in which writing needs no approval.
    pub workspace: &'a Path,
    pub user_home: &'a Path,
    /// The profile's home.
    pub hermes_home: &'a Path,
    /// The home of all profiles.
    pub hermes_root: &'a Path,
    pub temp_dir: &'a Path,
    /// A password for sudo is configured, so that giving one is no guessing.
    pub sudo_password_known: bool,
    /// This process.
    pub daemon_pid: u32,
    pub paths: &'a PathPolicy,
}

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandVerdict {
    /// Never, whatever is approved or configured. `reason` is told to the model.
    Blocked {
        rule: &'static str,
        reason: String,
    },
    /// A person must agree. `vague` when some finding rests on what only the run will know, so that an approval is
    /// good for once only.
    Flagged {
        findings: Vec<Finding>,
        vague: bool,
    },
    Clear,
}

/// A verdict, and what lists of globs are held against.
#[derive(Debug, Clone)]
pub(super) struct Examined {
    pub(super) verdict: CommandVerdict,
    pub(super) words: Words,
}

/// Judges one command. Public for benches.
pub fn command_verdict(command: &str, facts: &CommandFacts<'_>) -> CommandVerdict {
    examine(command, facts).verdict
}

/// How the names of our own shell variables and functions begin.
const OWN_VARIABLES: &str = "_hermes_";

/// Judges one command.
pub(super) fn examine(command: &str, facts: &CommandFacts<'_>) -> Examined {
    let mut walker = Walker::new(facts);
    let readings = text::readings(command, &mut walker.report);
    let variables = BTreeMap::new();
    for (index, reading) in readings.iter().enumerate() {
        let blocked_before = walker.report.blocked.clone();
        let mut scope = Scope::new(&facts.cwd.to_string_lossy(), variables.clone());
        walker.text(reading, &mut scope, &Surroundings::default());
        walker.late_scripts();
        // Another reading than the shell's own need not make sense.
        let unreadable = walker.report.blocked.as_ref().is_some_and(|(rule, _)| rule.starts_with("syntax."));
        if index > 0 && unreadable && blocked_before.is_none() {
            walker.report.blocked = None;
        }
    }
    rules::judge_sequence(&mut walker.report);
    if command.contains(OWN_VARIABLES) {
        let description =
            "reads what Hermes keeps in the shell that runs the command, such as a password for sudo";
        walker.report.ask("own.internals", description, command.to_owned());
    }
    let words = Words::new(command, &walker.report.simples);
    let report = walker.report;
    let verdict = match report.blocked {
        Some((rule, reason)) => CommandVerdict::Blocked { rule, reason },
        None if report.findings.is_empty() => CommandVerdict::Clear,
        None => CommandVerdict::Flagged { findings: report.findings, vague: report.vague },
    };
    Examined { verdict, words }
}

//! The agent's own daemon, clients and settings.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::report::Report;
use super::super::scope::UNKNOWN;
use super::super::simple::Simple;
use super::shape_exact;

/// Names of our programs, and of the service.
const OURS: [&str; 5] = ["hermesd", "hermes-cli", "hermes", "hermes-gateway", "hermes-tui"];

/// What only shows something.
const SHOWING: [&str; 8] = ["status", "version", "list", "show", "get", "path", "check", "help"];

pub(super) fn is_our_name(name: &str) -> bool {
    let name = name.trim_end_matches(".service");
    OURS.contains(&name)
        || name.starts_with("hermesd")
        || name.starts_with("hermes-")
        || name.starts_with("hermes@")
}

/// Whether a pattern of `pkill` would find us: it looks for the pattern anywhere in a name or a command line.
pub(super) fn matches_us(pattern: &str) -> bool {
    let plain = pattern.trim_start_matches('^').trim_end_matches('$').to_lowercase();
    if plain.contains("hermes") {
        return true;
    }
    let as_glob: String = plain.replace(".*", "*").chars().map(|c| if c == '.' { '?' } else { c }).collect();
    // An empty pattern fits everything.
    plain.is_empty()
        || OURS
            .iter()
            .any(|name| name.contains(&plain) || super::super::globs::matches(&format!("*{as_glob}*"), name))
}

pub(super) fn judge(simple: &Simple, _facts: &CommandFacts<'_>, report: &mut Report) {
    match simple.program.as_str() {
        "hermesd" => {
            if simple.args.iter().any(|arg| arg.text.contains("replace")) {
                report.block("block.own_daemon", "replaces the agent's own daemon");
            } else if !simple.has_arg(&["--version", "--help", "-V", "-h"]) {
                report.ask("own.daemon", "starts another daemon of the agent", shape_exact(simple));
            }
        }
        "hermes-cli" | "hermes" | "hermes-tui" | "hermes-gateway" => client(simple, report),
        "systemctl" | "service" | "launchctl" | "rc-service" | "initctl" | "sv" => {
            let acts = simple.args.iter().any(|arg| {
                const ACTS: [&str; 18] = [
                    "stop",
                    "restart",
                    "kill",
                    "disable",
                    "mask",
                    "try-restart",
                    "reload-or-restart",
                    "reload",
                    "isolate",
                    "bootout",
                    "unload",
                    "remove",
                    "kickstart",
                    "edit",
                    "set-property",
                    "revert",
                    "clean",
                    "freeze",
                ];
                ACTS.contains(&arg.text.as_str())
            });
            let ours = |arg: &Arg| {
                let text = arg.text.to_lowercase();
                let pattern =
                    text.contains(['*', '?', '[']) && super::super::globs::matches(&text, "hermesd.service");
                text.contains("hermes") || pattern
            };
            if acts && simple.args.iter().any(ours) {
                report.block("block.own_daemon", "stops, restarts or changes the agent's own service");
            }
        }
        _ => {}
    }
}

fn client(simple: &Simple, report: &mut Report) {
    let options =
        simple.options("zpmPs", &["profile", "model", "provider", "session", "home", "prompt", "query"]);
    let command = options.operand(0);
    let action = options.operand(1);
    let asks_help = simple.has_arg(&["--help", "-h", "--version", "-V"]);
    if simple.args.iter().any(|arg| arg.text == "--yolo" || arg.text.starts_with("--yol")) {
        return report.ask("own.yolo", "starts the agent again without approvals", shape_exact(simple));
    }
    if asks_help {
        return;
    }
    let shows = SHOWING.contains(&action)
        || (action.is_empty() && !matches!(command, "update" | "setup" | "login" | ""));
    match command {
        "daemon" | "gateway"
            if !SHOWING.contains(&action) && !action.is_empty() && !action.starts_with(UNKNOWN) =>
        {
            if action == "start" || action == "run" {
                report.ask("own.daemon", "starts another daemon of the agent", shape_exact(simple));
            } else {
                report.block("block.own_daemon", "stops, restarts or changes the agent's own daemon");
            }
        }
        "config" | "status" | "version" | "help" | "logs" | "daemon"
            if shows || matches!(command, "status" | "version" | "help" | "logs") => {}
        "sessions" if matches!(action, "" | "list" | "show" | "search") => {}
        "config" => report.ask("own.config", "changes the agent's settings", shape_exact(simple)),
        "approvals" => {
            report.ask("own.approvals", "changes what the agent may do without asking", shape_exact(simple));
        }
        _ => report.ask("own.client", "starts one of the agent's own clients", shape_exact(simple)),
    }
}

//! Ending processes, and the machine.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::globs;
use super::super::inner::is_shell;
use super::super::report::Report;
use super::super::scope::PARENT;
use super::super::simple::Simple;
use super::own::{is_our_name, matches_us};
use super::{shape, shape_exact};

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    match simple.program.as_str() {
        "shutdown" | "reboot" | "halt" | "poweroff" if !simple.has_arg(&["--help", "-c", "--version"]) => {
            report.block("block.power", "switches the machine off or restarts it");
        }
        "init" | "telinit" if simple.has_arg(&["0", "6"]) => {
            report.block("block.power", "switches the machine off or restarts it");
        }
        "kill" => kill(simple, facts, report),
        "pkill" => pkill(simple, facts, report),
        "killall" | "killall5" | "skill" | "slay" => killall(simple, report),
        "fuser" if simple.args.iter().any(|arg| arg.text.starts_with('-') && arg.text.contains('k')) => {
            report.ask("process.kill", "ends processes that use a file or a port", shape_exact(simple));
        }
        "xkill" | "tskill" | "taskkill" => {
            report.ask("process.kill", "ends processes", shape_exact(simple));
        }
        _ => {}
    }
}

fn kill(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let mut operands = Vec::new();
    let mut args = simple.args.iter();
    let mut first = true;
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        if first {
            match text {
                "-l" | "-L" | "--list" | "--table" => return,
                "-s" | "-n" | "--signal" => {
                    args.next();
                    first = false;
                    continue;
                }
                _ => {}
            }
            // The first word with a dash is the signal, what follows are processes and groups.
            if text.starts_with('-') && text != "--" && !simple.args.get(1..).unwrap_or_default().is_empty() {
                first = false;
                continue;
            }
        }
        if text == "--" {
            first = false;
            continue;
        }
        first = false;
        operands.push(arg);
    }
    for operand in operands {
        let text = operand.text.as_str();
        let number = text.trim_start_matches('-');
        if text == "-1" || text == "-0" {
            return report.block("block.kill_all", "ends every process of the user");
        }
        if text.contains(PARENT) || is_our_name(text) || number == facts.daemon_pid.to_string() {
            return report.block("block.own_daemon", "ends the agent's own daemon");
        }
        if number == "1" {
            return report.block("block.power", "ends the system's first process");
        }
        if operand.has_unknown() || operand.splits || operand.glob {
            report.ask(
                "process.kill",
                "ends processes that are not known before the run",
                shape_exact(simple),
            );
        }
    }
}

fn pkill(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let options = simple.options(
        "gGPstuUFr",
        &["signal", "parent", "session", "terminal", "euid", "uid", "group", "pidfile"],
    );
    let Some(pattern) = options.operands.first() else {
        if !simple.args.is_empty() && options.has("uUgPstG", "uid") {
            report.block(
                "block.own_daemon",
                "ends all processes of a user or a terminal, the agent's own daemon too",
            );
        } else if !simple.args.is_empty() && !options.has("V", "version") && !options.has("h", "help") {
            report.ask(
                "process.pkill",
                "ends processes that are not known before the run",
                shape(simple, &options),
            );
        }
        return;
    };
    if matches_us(&pattern.text) && !pattern.has_unknown() {
        return report.block("block.own_daemon", "ends the agent's own processes");
    }
    // What the user's session, and with it the daemon, rests on; and all shells at once.
    const VITAL: [&str; 14] = [
        "systemd",
        "dbus",
        "dbus-daemon",
        "dbus-broker",
        "Xorg",
        "Xwayland",
        "gnome-shell",
        "plasmashell",
        "kwin",
        "sshd",
        "login",
        "sway",
        "tmux",
        "init",
    ];
    let vital = options.operands.iter().any(|pattern| VITAL.contains(&pattern.text.as_str()))
        || options.operands.iter().any(|pattern| is_shell(&pattern.text));
    // `-f` looks at whole command lines, and so at the folder that the daemon stands in.
    if options.has("f", "full") {
        let home = facts.user_home.to_string_lossy();
        let places = [
            "/usr/local/bin/hermesd".to_owned(),
            "/usr/bin/hermesd".to_owned(),
            format!("{home}/.local/bin/hermesd"),
            format!("{home}/.cargo/bin/hermesd"),
        ];
        let plain = pattern.text.trim_start_matches('^');
        if plain.starts_with('/') && places.iter().any(|place| place.contains(plain)) {
            return report.block("block.own_daemon", "ends the agent's own processes");
        }
    }
    let open = vital
        || options.has("F", "pidfile")
        || pattern.has_unknown()
        || pattern.text.contains(['*', '+', '[', '(', '|', '?', '^', '$'])
        || options.has("v", "inverse");
    let hard = options.shorts.contains(&'9')
        || simple.args.iter().any(|arg| {
            let text = arg.text.to_uppercase();
            matches!(
                text.as_str(),
                "-KILL" | "-SIGKILL" | "--SIGNAL=KILL" | "--SIGNAL=9" | "KILL" | "SIGKILL"
            )
        })
        || options.value(&["signal"]).is_some_and(|signal| signal.text == "9");
    if open || hard {
        report.ask("process.pkill", "ends every process whose name fits a pattern", shape(simple, &options));
    }
}

fn killall(simple: &Simple, report: &mut Report) {
    let options = simple.options("sutoyZ", &["signal", "user", "older-than", "younger-than"]);
    let ours = |operand: &Arg| {
        is_our_name(&operand.text.to_lowercase())
            || operand.glob && globs::matches(&operand.text.to_lowercase(), "hermesd")
    };
    if options.operands.iter().any(ours)
        || (options.has("r", "regexp") && options.operands.iter().any(|operand| matches_us(&operand.text)))
    {
        return report.block("block.own_daemon", "ends the agent's own processes");
    }
    if simple.program == "killall5"
        || (options.operands.is_empty() && options.value(&["u", "user"]).is_some())
    {
        return report.block("block.kill_all", "ends every process of a user");
    }
    let hard = options.shorts.contains(&'9')
        || options.value(&["s", "signal"]).is_some_and(|signal| signal.text == "9")
        || simple
            .args
            .iter()
            .any(|arg| arg.text.to_uppercase().trim_start_matches('-').trim_start_matches("SIG") == "KILL");
    let open = options.operands.iter().any(Arg::has_unknown);
    if hard || open || options.has("r", "regexp") || simple.is(&["skill", "slay"]) {
        report.ask("process.killall", "ends every process of a name at once", shape(simple, &options));
    }
}

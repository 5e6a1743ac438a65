//! Code that comes from elsewhere, and connections that let somebody in.

use super::super::CommandFacts;
use super::super::decoders::DECODERS;
use super::super::expand::Arg;
use super::super::inner::{FOREIGN_SHELLS, invocation, is_shell, is_stdin};
use super::super::report::Report;
use super::super::scope::UNKNOWN;
use super::super::simple::{Simple, Stdin};
use super::inline::{interpreter, reads_program_from_stdin};
use super::shape_exact;

/// Programs that fetch from the network.
pub(super) const DOWNLOADERS: [&str; 14] = [
    "curl", "wget", "aria2c", "fetch", "http", "https", "xh", "lynx", "w3m", "ftp", "scp", "nc", "ncat",
    "ssh",
];

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    fed_by_pipe(simple, report);
    sourced(simple, report);
    connections(simple, facts, report);
}

fn is_interpreter(simple: &Simple) -> bool {
    is_shell(&simple.program)
        || FOREIGN_SHELLS.contains(&simple.program.as_str())
        || interpreter(&simple.program).is_some()
}

/// A program text that comes through a pipe.
fn fed_by_pipe(simple: &Simple, report: &mut Report) {
    let Stdin::Pipe(programs) = &simple.stdin else { return };
    let shell = is_shell(&simple.program) || FOREIGN_SHELLS.contains(&simple.program.as_str());
    let reads = if shell { invocation(simple).reads_stdin } else { reads_program_from_stdin(simple) };
    let through = simple.is(&["source", "."]) && simple.args.first().is_some_and(|arg| is_stdin(&arg.text));
    if !reads && !through {
        return;
    }
    let from = |known: &[&str]| programs.iter().any(|program| known.contains(&program.as_str()));
    let (rule, what) = if from(&DOWNLOADERS) {
        ("run.remote", "runs what it downloads, unseen")
    } else if from(&DECODERS) {
        ("run.decoded", "runs a text that is decoded first, unseen")
    } else {
        ("run.piped", "runs whatever another command prints")
    };
    report.ask(rule, what, shape_exact(simple));
}

/// `source <(…)`, `bash <(…)`, `eval "$(…)"`.
fn sourced(simple: &Simple, report: &mut Report) {
    let downloads = || report.simples.iter().any(|before| before.is(&DOWNLOADERS));
    let sources = simple.is(&["source", "."]);
    if (sources || is_interpreter(simple)) && simple.args.iter().any(|arg| arg.process) {
        let rule = if downloads() { "run.remote" } else { "run.piped" };
        return report.ask(rule, "runs whatever another command prints", shape_exact(simple));
    }
    let unknown = simple.args.iter().any(|arg| arg.text.contains(UNKNOWN));
    if simple.program == "eval" && unknown {
        let (rule, what) = if downloads() {
            ("run.remote", "runs what it downloads, unseen")
        } else {
            ("code.unknown", "runs a text that is not known before the run")
        };
        return report.ask(rule, what, shape_exact(simple));
    }
    if sources && simple.args.first().is_some_and(Arg::is_blank) {
        report.ask("code.unknown", "loads a file that is not known before the run", shape_exact(simple));
    }
}

fn connections(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let any = |has: &dyn Fn(&str) -> bool| simple.args.iter().any(|arg| has(&arg.text.to_lowercase()));
    match simple.program.as_str() {
        "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" => {
            let options = simple.options("pswxXiqwTVoOIPm", &["sh-exec", "exec", "lua-exec"]);
            if options.has("ec", "") || options.longs.iter().any(|long| long.contains("exec")) {
                report.ask(
                    "run.reverse_shell",
                    "lets somebody on the network run commands here",
                    shape_exact(simple),
                );
            }
        }
        "socat" if any(&|arg| arg.contains("exec:") || arg.contains("system:") || arg.contains("shell:")) => {
            report.ask("run.reverse_shell", "connects a program to the network", shape_exact(simple));
        }
        "ssh" | "mosh" | "autossh" | "dbclient" => ssh(simple, report),
        "scp" | "sftp" | "rsync"
            if simple.args.iter().any(|arg| {
                arg.text
                    .split_once(':')
                    .is_some_and(|(host, path)| !host.contains('/') && !path.is_empty() && is_loopback(host))
            }) =>
        {
            report.ask(
                "escape.ssh_localhost",
                "reaches this machine outside the agent's own processes",
                shape_exact(simple),
            );
        }
        "scp" | "sftp" if simple.args.iter().any(|arg| arg.text == "-F") => {
            report.ask(
                "ssh.command",
                "makes ssh obey a file, which may run a local program",
                shape_exact(simple),
            );
        }
        "scp" | "sftp"
            if any(&|arg| arg.contains("proxycommand") || arg.contains("localcommand"))
                || simple.args.iter().any(|arg| arg.text.starts_with("-S")) =>
        {
            report.ask("ssh.command", "makes ssh run a local program", shape_exact(simple));
        }
        "rsync" => {
            let shell = simple.options("eTfB", &["rsh", "rsync-path", "exclude", "include", "filter"]);
            let remote_shell = shell.value(&["e", "rsh"]);
            let odd = remote_shell.is_some_and(|value| {
                let first = value.text.split_whitespace().next().unwrap_or_default();
                first != "ssh" || value.text.to_lowercase().contains("proxycommand")
            });
            if odd || shell.value(&["rsync-path"]).is_some() {
                report.ask(
                    "ssh.command",
                    "makes rsync start a program of the caller's choice",
                    shape_exact(simple),
                );
            }
        }
        "curl" => {
            let config = simple.args.iter().any(|arg| {
                let long = arg.text.split('=').next().unwrap_or_default();
                (long.len() > 5 && "--config".starts_with(long))
                    || long == "--engine"
                    || (arg.text.starts_with('-')
                        && !arg.text.starts_with("--")
                        && arg
                            .text
                            .split(['o', 'd', 'H', 'X', 'A', 'e', 'u', 'b', 'c', 'F', 'T'])
                            .next()
                            .is_some_and(|bundle| bundle.contains('K')))
            });
            if config {
                report.ask("remote.config", "makes curl take its orders from a file", shape_exact(simple));
            }
            let socket = simple.args.iter().any(|arg| {
                arg.text.contains("docker.sock")
                    || arg.text.contains("podman.sock")
                    || arg.text.contains("/hermes") && arg.text.contains(".sock")
            });
            if socket
                || simple
                    .args
                    .iter()
                    .any(|arg| arg.text.starts_with("--unix") || arg.text.starts_with("--abstract"))
            {
                report.ask(
                    "escape.container",
                    "speaks to a service of this machine by its socket",
                    shape_exact(simple),
                );
            }
        }
        "wget"
            if any(&|arg| {
                arg.starts_with("--use-a")
                    || arg == "-e"
                    || arg.starts_with("--ex")
                        && "--execute".starts_with(arg.split('=').next().unwrap_or_default())
                    || arg.starts_with("--config")
            }) =>
        {
            report.ask("remote.config", "makes wget run or obey something else", shape_exact(simple));
        }
        "socat"
            if any(&|arg| {
                arg.contains("docker.sock") || arg.contains("podman.sock") || arg.contains("/bus")
            }) =>
        {
            report.ask(
                "escape.container",
                "speaks to a service of this machine by its socket",
                shape_exact(simple),
            );
        }
        "rsh" | "rlogin" | "pssh" | "parallel-ssh" | "pdsh" | "clush" | "dsh" | "salt"
        | "ansible-console" => {
            report.ask(
                "escape.ssh_localhost",
                "runs something on machines of a list, this one perhaps too",
                shape_exact(simple),
            );
        }
        "openssl" if matches!(simple.arg(0), "s_server") => {
            report.ask("run.exposed", "lets somebody outside reach this machine", shape_exact(simple));
        }
        "openssl" if simple.args.first().is_some_and(|arg| arg.text == "s_client") => {
            if matches!(simple.stdin, Stdin::Pipe(_) | Stdin::File(_)) {
                report.ask(
                    "run.reverse_shell",
                    "connects another program to the network",
                    shape_exact(simple),
                );
            }
        }
        "telnet" if matches!(simple.stdin, Stdin::Pipe(_) | Stdin::File(_)) => {
            report.ask("run.reverse_shell", "connects another program to the network", shape_exact(simple));
        }
        _ => {}
    }
    let _ = facts;
}

/// Whether a host is this machine, in any spelling.
fn is_loopback(host: &str) -> bool {
    let host =
        host.rsplit('@').next().unwrap_or_default().trim_start_matches("ssh://").trim_matches(['[', ']']);
    if let Ok(address) = host.split('%').next().unwrap_or_default().parse::<std::net::Ipv6Addr>() {
        return address.is_loopback()
            || address.is_unspecified()
            || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback());
    }
    let name = host.split(':').next().unwrap_or_default().trim_end_matches('.').to_lowercase();
    let number = name
        .strip_prefix("0x")
        .map(|hex| u32::from_str_radix(hex, 16))
        .or_else(|| {
            name.strip_prefix('0').filter(|rest| !rest.is_empty()).map(|octal| u32::from_str_radix(octal, 8))
        })
        .unwrap_or_else(|| name.parse::<u32>());
    matches!(
        name.as_str(),
        "localhost" | "ip6-localhost" | "ip6-loopback" | "0" | "0.0.0.0" | "localhost.localdomain"
    ) || name.starts_with("127.")
        || name.starts_with("0x7f.")
        || name.starts_with("0177.")
        || name.ends_with(".localhost")
        || number.is_ok_and(|number| number >> 24 == 127 || number == 0)
}

fn ssh(simple: &Simple, report: &mut Report) {
    let options = simple.options("bcDEeFIiJLlmOopQRSWw", &[]);
    let runs = simple.args.iter().any(|arg| {
        let lower = arg.text.to_lowercase();
        lower.contains("proxycommand")
            || lower.contains("localcommand")
            || lower.contains("knownhostscommand")
            || lower.contains("proxyusefdpass")
            || lower.contains("pkcs11provider")
    });
    if runs {
        report.ask("ssh.command", "makes ssh run a local program", shape_exact(simple));
    }
    let host = options.operand(0);
    let named = |text: &str| {
        let lower = text.to_lowercase();
        let value = lower.strip_prefix("-o").unwrap_or(&lower).strip_prefix("hostname").map(str::to_owned);
        value.is_some_and(|value| is_loopback(value.trim_start_matches(['=', ' '])))
    };
    let jumps = options
        .values
        .iter()
        .any(|(name, value)| matches!(name.as_str(), "J" | "W") && value.text.split(',').any(is_loopback));
    let loopback = is_loopback(host) || jumps || simple.args.iter().any(|arg| named(&arg.text));
    let config = options
        .values
        .iter()
        .any(|(name, value)| name == "F" && value.text != "/dev/null" && value.text != "none");
    if config
        || simple.args.iter().any(|arg| {
            let lower = arg.text.to_lowercase();
            lower.starts_with("include") || lower.starts_with("-oinclude") || lower.starts_with("match exec")
        })
    {
        report.ask(
            "ssh.command",
            "makes ssh obey a file, which may run a local program",
            shape_exact(simple),
        );
    }
    if options.has("R", "") {
        report.ask("run.exposed", "lets the other side reach this machine", shape_exact(simple));
    }
    if options.has("f", "") {
        report.ask("run.detached", "leaves a process behind that outlives this command", shape_exact(simple));
    }
    if loopback {
        report.ask(
            "escape.ssh_localhost",
            "runs something on this machine outside the agent's own processes",
            shape_exact(simple),
        );
    } else if host.starts_with(UNKNOWN) {
        report.ask(
            "escape.ssh_localhost",
            "connects to a host that is not known before the run",
            shape_exact(simple),
        );
    }
}

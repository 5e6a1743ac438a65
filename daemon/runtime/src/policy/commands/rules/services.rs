//! Services, containers, schedulers: what runs elsewhere or later.

use super::super::CommandFacts;
use super::super::report::Report;
use super::super::simple::Simple;
use super::shape_exact;

const STOPPING: [&str; 13] = [
    "stop",
    "restart",
    "disable",
    "mask",
    "kill",
    "isolate",
    "try-restart",
    "reload-or-restart",
    "emergency",
    "rescue",
    "default",
    "set-default",
    "edit",
];

pub(super) fn judge(simple: &Simple, _facts: &CommandFacts<'_>, report: &mut Report) {
    let first = simple.args.iter().find(|arg| !arg.text.starts_with('-')).map_or("", |arg| arg.text.as_str());
    match simple.program.as_str() {
        "systemctl" => {
            let power = ["poweroff", "reboot", "halt", "kexec", "soft-reboot", "suspend", "hibernate"];
            let target = simple.args.iter().any(|arg| {
                matches!(
                    arg.text.as_str(),
                    "poweroff.target" | "reboot.target" | "halt.target" | "kexec.target"
                )
            });
            if power.contains(&first) || target {
                report.block("block.power", "switches the machine off or restarts it");
            } else if STOPPING.contains(&first)
                || matches!(first, "link" | "import-environment" | "set-environment")
            {
                report.ask("service.stop", "stops, restarts or changes a service", shape_exact(simple));
            }
        }
        "service" | "rc-service" | "sv" | "initctl" | "supervisorctl" | "s6-svc"
            if simple.has_arg(&["stop", "restart", "disable", "down", "term", "kill", "shutdown"]) =>
        {
            report.ask("service.stop", "stops or restarts a service", shape_exact(simple));
        }
        "launchctl" => {
            if matches!(
                first,
                "stop"
                    | "kickstart"
                    | "bootout"
                    | "unload"
                    | "kill"
                    | "disable"
                    | "remove"
                    | "load"
                    | "bootstrap"
                    | "submit"
            ) {
                report.ask("service.stop", "stops, restarts or installs a service", shape_exact(simple));
            }
        }
        "puppet" | "chef-client" | "ansible-playbook" | "salt-call"
            if simple.program != "puppet" || first == "apply" || first == "agent" =>
        {
            report.ask(
                "service.provision",
                "changes this machine's configuration as a whole",
                shape_exact(simple),
            );
        }
        "docker" | "podman" | "nerdctl" => containers(simple, report),
        "docker-compose" | "podman-compose" => compose(simple, first, report),
        "kubectl" | "oc" | "k3s" | "helm" => {
            let destroys = simple.has_arg(&["delete", "drain", "uninstall"]);
            if destroys || (simple.program == "kubectl" && matches!(first, "exec" | "run")) {
                report.ask("container.cluster", "deletes from, or runs in, a cluster", shape_exact(simple));
            }
        }
        "at" | "batch" | "atd" if !simple.has_arg(&["-l", "-V"]) => {
            report.ask("escape.schedule", "leaves a command that runs later, by itself", shape_exact(simple));
        }
        "crontab" if !(simple.args.len() == 1 && simple.has_arg(&["-l"])) => {
            report.ask("escape.schedule", "changes what runs at fixed times, by itself", shape_exact(simple));
        }
        "systemd-run" | "systemd-nspawn" | "machinectl" | "busctl" | "gdbus" | "dbus-send" => {
            report.ask(
                "escape.service_manager",
                "runs or asks something through the system's own services",
                shape_exact(simple),
            );
        }
        "nsenter" | "unshare" | "chroot" | "runc" | "crun" | "ctr" | "lxc" | "lxc-attach" | "lxc-start"
        | "vagrant" | "qemu-nbd" => {
            report.ask(
                "escape.namespace",
                "runs something in other surroundings than these",
                shape_exact(simple),
            );
        }
        "tmux" | "screen" | "zellij" | "dtach" | "abduco" => {
            let looks = matches!(
                first,
                "ls" | "list-sessions"
                    | "capture-pane"
                    | "capturep"
                    | "list-windows"
                    | "list-panes"
                    | "display-message"
            ) || simple.has_arg(&["-ls", "-list", "-V", "-v"]);
            if !looks {
                report.ask(
                    "escape.terminal",
                    "runs something in another terminal, where nobody watches it",
                    shape_exact(simple),
                );
            }
        }
        "su" | "runuser" | "sg" | "newgrp" | "pkexec" => {
            report.ask("escape.user", "runs something as another user", shape_exact(simple));
        }
        _ => {}
    }
}

fn containers(simple: &Simple, report: &mut Report) {
    let options = simple.options(
        "HcluvepwfmanI",
        &["host", "context", "config", "log-level", "url", "connection", "namespace"],
    );
    let first = options.operand(0);
    let (rule, what) = match first {
        "run" | "exec" | "create" | "start" | "attach" | "cp" => {
            ("escape.container", "runs or reaches into a container")
        }
        "stop" | "restart" | "kill" | "pause" => ("container.stop", "stops or restarts containers"),
        "rm" | "rmi" | "prune" => ("container.remove", "removes containers or images"),
        "container" if simple.has_arg(&["run", "exec", "create", "start", "attach", "cp"]) => {
            ("escape.container", "runs or reaches into a container")
        }
        "system" | "volume" | "image" | "container" | "builder"
            if simple.has_arg(&["prune", "rm", "remove", "kill", "stop", "restart"]) =>
        {
            ("container.remove", "stops or removes containers, images or volumes")
        }
        "compose" => {
            let position = simple.args.iter().position(|arg| arg.text == "compose").map_or(0, |at| at + 1);
            let rest = simple.args.get(position..).unwrap_or_default();
            let sub = rest.iter().find(|arg| !arg.text.starts_with('-')).map_or("", |arg| arg.text.as_str());
            return compose(simple, sub, report);
        }
        _ => return,
    };
    report.ask(rule, what, shape_exact(simple));
}

fn compose(simple: &Simple, _sub: &str, report: &mut Report) {
    let acts = ["restart", "stop", "kill", "down", "rm", "exec", "run"];
    if simple.args.iter().any(|arg| acts.contains(&arg.text.as_str())) {
        report.ask("container.stop", "stops, removes or reaches into containers", shape_exact(simple));
    }
}

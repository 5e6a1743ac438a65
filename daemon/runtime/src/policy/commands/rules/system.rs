//! The machine's settings, its network, what is rented elsewhere, and ways in from outside.

use super::super::CommandFacts;
use super::super::report::Report;
use super::super::simple::Simple;
use super::shape_exact;

/// Clients of clouds and clusters, in which a word can destroy what somebody pays for.
const CLOUDS: [&str; 31] = [
    "aws",
    "gcloud",
    "gsutil",
    "bq",
    "az",
    "doctl",
    "heroku",
    "fly",
    "flyctl",
    "vercel",
    "netlify",
    "wrangler",
    "terraform",
    "tofu",
    "terragrunt",
    "pulumi",
    "cdk",
    "serverless",
    "sls",
    "sam",
    "eksctl",
    "minikube",
    "kind",
    "k3d",
    "virsh",
    "VBoxManage",
    "multipass",
    "rclone",
    "restic",
    "borg",
    "linode-cli",
];

/// Programs that let somebody outside reach this machine.
const EXPOSING: [&str; 20] = [
    "ngrok",
    "cloudflared",
    "localtunnel",
    "lt",
    "bore",
    "frpc",
    "frps",
    "chisel",
    "gost",
    "ttyd",
    "gotty",
    "tmate",
    "sshx",
    "upterm",
    "devtunnel",
    "mosh-server",
    "sshd",
    "dropbear",
    "rathole",
    "teleconsole",
];

/// Programs that open something outside the agent's own processes.
const ELSEWHERE: [&str; 26] = [
    "gnome-terminal",
    "konsole",
    "x-terminal-emulator",
    "xfce4-terminal",
    "tilix",
    "terminator",
    "lxterminal",
    "kgx",
    "gtk-launch",
    "dex",
    "exo-open",
    "kioclient",
    "kioclient5",
    "kioclient6",
    "qdbus",
    "qdbus6",
    "flatpak-spawn",
    "distrobox-host-exec",
    "host-spawn",
    "toolbox",
    "distrobox",
    "run0",
    "buildah",
    "crictl",
    "limactl",
    "lima",
];

/// Programs that act on a process by its number.
const TRACERS: [&str; 20] = [
    "renice",
    "ionice",
    "taskset",
    "chrt",
    "prlimit",
    "cpulimit",
    "gdb",
    "gdbserver",
    "strace",
    "ltrace",
    "lldb",
    "perf",
    "reptyr",
    "gcore",
    "snice",
    "choom",
    "criu",
    "heaptrack",
    "py-spy",
    "rbspy",
];

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let program = simple.program.as_str();
    let operands: Vec<&str> =
        simple.args.iter().map(|arg| arg.text.as_str()).filter(|text| !text.starts_with('-')).collect();
    let first = operands.first().copied().unwrap_or_default();
    let has = |words: &[&str]| operands.iter().any(|word| words.contains(word));
    if CLOUDS.contains(&program) {
        let destroys = operands.iter().take(6).any(|word| {
            let word = word.rsplit(':').next().unwrap_or_default();
            ["delete", "destroy", "terminate", "purge", "undefine", "forget", "prune", "deregister"]
                .iter()
                .any(|start| word.starts_with(start))
                || matches!(word, "rm" | "rb" | "unregistervm")
        });
        let applies = matches!(program, "terraform" | "tofu" | "terragrunt" | "pulumi" | "cdk")
            && has(&["apply", "up", "destroy", "deploy", "import", "taint"]);
        let reaches = has(&["ssh", "exec", "run", "start-session", "shell", "console"])
            && matches!(program, "gcloud" | "heroku" | "fly" | "flyctl" | "minikube" | "multipass" | "aws")
            || simple.has_arg(&["--delete", "create-access-key"]);
        if destroys || applies || (reaches && !has(&["list", "describe"])) {
            report.ask(
                "cloud.change",
                "destroys, changes or enters what runs elsewhere",
                shape_exact(simple),
            );
        }
    }
    if matches!(program, "docker" | "podman" | "nerdctl")
        && (has(&[
            "swarm", "plugin", "stack", "service", "network", "buildx", "machine", "kube", "play", "unshare",
        ]) && has(&[
            "leave", "rm", "remove", "prune", "install", "ssh", "play", "update", "unshare", "stop",
        ]) || has(&["unshare"])
            || first == "play"
            || has(&["system"]) && has(&["reset"])
            || has(&["volume"]) && simple.args.iter().any(|arg| arg.text.contains("device=")))
    {
        report.ask("container.change", "removes or changes what containers rest on", shape_exact(simple));
    }
    if matches!(program, "kubectl" | "oc") && has(&["debug", "attach", "cp"]) {
        report.ask("container.cluster", "reaches into a cluster", shape_exact(simple));
    }
    let system = match program {
        "iptables" | "ip6tables" | "nft" | "ebtables" => {
            !simple.args.is_empty()
                && !simple.has_arg(&["-L", "--list", "-S", "list", "-nL", "-nvL", "--version"])
        }
        "ip" => has(&["add", "del", "delete", "set", "flush", "replace", "change"]),
        "ifconfig" => operands.len() > 1,
        "route" => has(&["add", "del", "delete", "flush"]),
        "nmcli" => has(&["off", "delete", "del", "down", "modify", "add", "connect", "disconnect"]),
        "hostnamectl" | "timedatectl" | "localectl" => operands.iter().any(|word| word.starts_with("set")),
        "date" => simple.args.iter().any(|arg| arg.text.starts_with("-s") || arg.text.starts_with("--set")),
        "hwclock" => simple
            .args
            .iter()
            .any(|arg| arg.text.starts_with('-') && arg.text != "-r" && arg.text != "--show"),
        "sysctl" => {
            operands.iter().any(|word| word.contains('=')) || simple.has_arg(&["-p", "--load", "--system"])
        }
        "dmesg" => simple.has_arg(&["-C", "-c", "--clear", "--read-clear"]),
        "journalctl" => {
            simple.args.iter().any(|arg| arg.text.starts_with("--vacuum") || arg.text == "--rotate")
        }
        "ss" => simple.args.iter().any(|arg| arg.text == "-K" || arg.text == "--kill"),
        "tcpkill" | "arpspoof" | "ettercap" => true,
        "apt" | "apt-get" | "aptitude" => has(&["remove", "purge", "autoremove", "autopurge"]),
        "yum" | "dnf" | "zypper" => has(&["remove", "erase", "autoremove", "rm"]),
        "pacman" => simple.args.iter().any(|arg| arg.text.starts_with("-R")),
        "snap" | "flatpak" => has(&["remove", "uninstall"]) || simple.has_arg(&["--dangerous"]),
        "apk" => has(&["del"]),
        "rustup" => has(&["self"]) && has(&["uninstall"]),
        "nixos-rebuild" | "home-manager" => has(&["switch", "boot"]),
        "mknod" => has(&["b", "c"]),
        "sshfs" | "bindfs" | "fusermount" | "fusermount3" | "mount.nfs" | "mount.cifs" => true,
        _ => false,
    };
    if system {
        report.ask(
            "system.change",
            "changes settings, network or packages of this machine",
            shape_exact(simple),
        );
    }
    if EXPOSING.contains(&program) && !simple.has_arg(&["--version", "--help", "-V"]) {
        report.ask("run.exposed", "lets somebody outside reach this machine", shape_exact(simple));
    }
    let opens = ELSEWHERE.contains(&program)
        || (program == "gio" && matches!(first, "launch" | "mount"))
        || matches!(program, "xdg-open" | "open" | "kde-open")
            && operands.iter().any(|word| {
                [".desktop", ".sh", ".app", ".command", ".terminal", ".jar", ".AppImage"]
                    .iter()
                    .any(|end| word.trim_end_matches('/').ends_with(end))
            });
    if opens {
        report.ask(
            "escape.desktop",
            "starts something outside the agent's own processes",
            shape_exact(simple),
        );
    }
    let stays = match program {
        "pm2" => matches!(first, "start" | "startup" | "save" | "resurrect" | "restart"),
        "forever" => first == "start",
        "supervisord" | "circusd" | "anacron" | "fcron" => true,
        "wget" => simple.has_arg(&["-b", "--background"]),
        "git" | "hub" => first == "maintenance" && has(&["start", "register"]),
        "brew" => first == "services" && has(&["start", "run", "restart"]),
        "systemctl" => {
            (has(&["enable", "start", "reenable"]) && operands.iter().skip(1).any(|unit| unit.contains('/')))
                || has(&["add-wants", "add-requires"])
        }
        _ => false,
    };
    if stays {
        report.ask("escape.schedule", "leaves something behind that runs by itself", shape_exact(simple));
    }
    let pid = facts.daemon_pid.to_string();
    let names_daemon = simple.args.iter().any(|arg| {
        let digits = arg.text.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits == pid
    });
    let attaches = matches!(program, "strace" | "ltrace")
        && simple.args.iter().any(|arg| {
            arg.text.starts_with('-')
                && !arg.text.starts_with("--")
                && arg.text.ends_with('p')
                && arg.text.len() < 6
        });
    // What stands behind `--args` belongs to the program that is debugged.
    let by_number = program == "gdb"
        && operands.iter().skip(1).any(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_digit()))
        && !simple.has_arg(&["--args"]);
    if TRACERS.contains(&program) && (names_daemon || attaches || by_number) {
        report.ask("process.trace", "reaches into a running process", shape_exact(simple));
    }
    if program == "loginctl"
        && operands.iter().any(|word| word.starts_with("terminate-") || word.starts_with("kill-"))
    {
        report.block("block.own_daemon", "ends the session in which the agent's own daemon runs");
    }
    if matches!(program, "systemctl" | "loginctl" | "journalctl")
        && simple.args.iter().any(|arg| {
            arg.text.starts_with("-H")
                || arg.text.starts_with("-M")
                || arg.text.starts_with("--host=")
                || arg.text.starts_with("--machine=")
        })
    {
        report.ask("escape.service_manager", "asks the services of another place", shape_exact(simple));
    }
    if program == "systemctl" {
        units(simple, &operands, report);
    }
}

/// Units that take the machine, or the agent's own daemon, with them.
fn units(simple: &Simple, operands: &[&str], report: &mut Report) {
    let Some((verb, names)) = operands.split_first() else { return };
    let power = |name: &&str| {
        let name =
            name.trim_end_matches(".target").trim_end_matches(".service").trim_start_matches("systemd-");
        [
            "poweroff",
            "reboot",
            "halt",
            "kexec",
            "shutdown",
            "exit",
            "ctrl-alt-del",
            "rescue",
            "emergency",
            "suspend",
            "hibernate",
            "soft-reboot",
            "runlevel0",
            "runlevel1",
            "runlevel6",
        ]
        .contains(&name)
    };
    if matches!(*verb, "start" | "isolate" | "restart") && names.iter().any(power)
        || matches!(*verb, "hybrid-sleep" | "suspend-then-hibernate" | "switch-root" | "rescue" | "emergency")
    {
        report.block("block.power", "switches the machine off or restarts it");
    }
    let ours = |name: &&str| {
        name.starts_with("user@")
            || name.rsplit('.').next().is_some_and(|kind| matches!(kind, "slice" | "scope"))
            || matches!(*name, "default.target" | "basic.target" | "dbus" | "dbus.service" | "dbus.socket")
    };
    if *verb == "exit"
        || (matches!(*verb, "stop" | "restart" | "kill" | "isolate" | "freeze" | "try-restart")
            && names.iter().any(ours))
    {
        report.block("block.own_daemon", "ends the session in which the agent's own daemon runs");
    }
    let _ = simple;
}

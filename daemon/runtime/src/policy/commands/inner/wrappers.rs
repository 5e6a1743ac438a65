//! Programs that run the command in their operands.

use super::super::expand::Arg;
use super::super::simple::{Options, Simple};
use super::{Folder, Inner, command, options_until_operand};

/// A program that runs the command in its operands.
struct Wrapper {
    name: &'static str,
    /// The word that must come first (`run` of `uv run`); empty for none.
    sub: &'static str,
    /// Short options with a value.
    shorts: &'static str,
    /// Long options with a value.
    longs: &'static [&'static str],
    /// Operands before the command.
    skip: usize,
}

const fn wrapper(
    name: &'static str,
    shorts: &'static str,
    longs: &'static [&'static str],
    skip: usize,
) -> Wrapper {
    Wrapper { name, sub: "", shorts, longs, skip }
}

const fn runner(name: &'static str, sub: &'static str) -> Wrapper {
    Wrapper {
        name,
        sub,
        shorts: "pnCd",
        longs: &["with", "python", "project", "directory", "name", "package"],
        skip: 0,
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        "sudo",
        "ughpCTrtUDR",
        &["user", "group", "host", "prompt", "chdir", "role", "type", "other-user", "chroot"],
        0,
    ),
    wrapper("doas", "uC", &[], 0),
    wrapper("pkexec", "", &["user"], 0),
    wrapper("env", "uC", &["unset", "chdir"], 0),
    wrapper("exec", "a", &[], 0),
    wrapper("nohup", "", &[], 0),
    wrapper("setsid", "", &[], 0),
    wrapper("time", "fo", &["format", "output"], 0),
    wrapper("timeout", "ks", &["kill-after", "signal"], 1),
    wrapper("gtimeout", "ks", &["kill-after", "signal"], 1),
    wrapper("nice", "n", &["adjustment"], 0),
    wrapper("ionice", "cnpPu", &["class", "classdata"], 0),
    wrapper("chrt", "pTPD", &[], 1),
    wrapper("taskset", "", &[], 1),
    wrapper("numactl", "Ncmpi", &[], 0),
    wrapper("prlimit", "p", &["pid"], 0),
    wrapper("setarch", "", &[], 0),
    wrapper("linux32", "", &[], 0),
    wrapper("linux64", "", &[], 0),
    wrapper("stdbuf", "ioe", &["input", "output", "error"], 0),
    wrapper("unbuffer", "", &[], 0),
    wrapper("command", "", &[], 0),
    wrapper("builtin", "", &[], 0),
    wrapper("noglob", "", &[], 0),
    wrapper("nocorrect", "", &[], 0),
    wrapper("busybox", "", &[], 0),
    wrapper("toybox", "", &[], 0),
    wrapper("flock", "wEo", &["timeout", "conflict-exit-code"], 1),
    wrapper("chroot", "", &["userspec", "groups"], 1),
    wrapper(
        "unshare",
        "SGRw",
        &["setuid", "setgid", "root", "wd", "propagation", "map-user", "map-group"],
        0,
    ),
    wrapper("nsenter", "tSGrw", &["target", "setuid", "setgid"], 0),
    wrapper("setpriv", "", &["reuid", "regid", "groups", "bounding-set"], 0),
    wrapper("capsh", "", &[], 0),
    wrapper("runcon", "tulr", &[], 1),
    wrapper("fakeroot", "li", &["lib"], 0),
    wrapper("firejail", "", &[], 0),
    wrapper("bwrap", "", &[], 0),
    wrapper("proot", "rbwS", &[], 0),
    wrapper("gosu", "", &[], 1),
    wrapper("su-exec", "", &[], 1),
    wrapper("dbus-run-session", "", &["config-file"], 0),
    wrapper("dbus-launch", "", &[], 0),
    wrapper("xvfb-run", "ensf", &["server-args"], 0),
    wrapper("rlwrap", "", &[], 0),
    wrapper("torsocks", "", &[], 0),
    wrapper("torify", "", &[], 0),
    wrapper("proxychains", "f", &[], 0),
    wrapper("proxychains4", "f", &[], 0),
    wrapper("caffeinate", "tw", &[], 0),
    wrapper("arch", "", &[], 0),
    wrapper("strace", "eoPpsuaIObUX", &[], 0),
    wrapper("ltrace", "eoplsunaAF", &[], 0),
    wrapper("valgrind", "", &[], 0),
    wrapper("entr", "", &[], 0),
    wrapper(
        "systemd-run",
        "puEMHCtGdD",
        &[
            "unit",
            "property",
            "description",
            "slice",
            "uid",
            "gid",
            "nice",
            "working-directory",
            "setenv",
            "on-active",
            "on-calendar",
            "machine",
        ],
        0,
    ),
    wrapper("systemd-inhibit", "", &["what", "who", "why", "mode"], 0),
    wrapper("start-stop-daemon", "xnupckRdrNPI", &["exec", "name", "user", "pidfile", "chuid"], 0),
    wrapper("cgexec", "g", &[], 0),
    wrapper("sem", "jP", &[], 0),
    wrapper("with-lock-ex", "", &[], 1),
    wrapper("coproc", "", &[], 0),
    wrapper("sshpass", "pfdP", &[], 0),
    wrapper("run0", "uD", &["user", "chdir", "property"], 0),
    wrapper("host-spawn", "", &[], 0),
    wrapper("distrobox-host-exec", "", &[], 0),
    wrapper("gpg-agent", "", &["homedir"], 0),
    wrapper("ssh-agent", "atE", &[], 0),
    wrapper("catchsegv", "", &[], 0),
    wrapper("dumb-init", "", &[], 0),
    wrapper("tini", "", &[], 0),
    wrapper("catatonit", "", &[], 0),
    wrapper("ksu", "n", &[], 1),
    wrapper("please", "u", &["user"], 0),
    wrapper("dzdo", "u", &[], 0),
    wrapper("sudo-rs", "u", &["user"], 0),
    wrapper("chronic", "", &[], 0),
    wrapper("ifne", "", &[], 0),
    runner("uv", "run"),
    runner("poetry", "run"),
    runner("pipenv", "run"),
    runner("pdm", "run"),
    runner("hatch", "run"),
    runner("rye", "run"),
    runner("bundle", "exec"),
    runner("mise", "exec"),
    runner("asdf", "exec"),
    runner("nix", "develop"),
    runner("op", "run"),
    runner("aws-vault", "exec"),
    runner("perf", "stat"),
    runner("perf", "record"),
];

/// Programs whose operands are names and texts, never commands.
const DATA: &[&str] = &[
    "echo",
    "printf",
    "cat",
    "ls",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "ack",
    "git",
    "which",
    "type",
    "whereis",
    "man",
    "info",
    "apropos",
    "whatis",
    "apt",
    "apt-get",
    "apt-cache",
    "aptitude",
    "dpkg",
    "yum",
    "dnf",
    "apk",
    "pacman",
    "brew",
    "port",
    "snap",
    "flatpak",
    "pip",
    "pip3",
    "pipx",
    "npm",
    "yarn",
    "pnpm",
    "gem",
    "go",
    "rustup",
    "conda",
    "nix-env",
    "asdf",
    "test",
    "[",
    "sed",
    "awk",
    "gawk",
    "mawk",
    "jq",
    "yq",
    "tr",
    "sort",
    "uniq",
    "head",
    "tail",
    "cut",
    "wc",
    "diff",
    "export",
    "declare",
    "local",
    "typeset",
    "readonly",
    "set",
    "unset",
    "alias",
    "unalias",
    "hash",
    "help",
    "cd",
    "pushd",
    "mkdir",
    "touch",
    "cp",
    "mv",
    "ln",
    "rm",
    "tar",
    "zip",
    "file",
    "stat",
    "dirname",
    "basename",
    "realpath",
    "readlink",
    "ps",
    "pgrep",
    "pkill",
    "killall",
    "kill",
    "case",
    "read",
    "tee",
    "less",
    "more",
    "column",
    "docker",
    "podman",
    "kubectl",
    "gh",
    "glab",
    "hermes-cli",
    "hermes",
    "find",
    "fd",
    "cargo",
    "make",
    "tmux",
    "screen",
    "return",
    "exit",
    "logger",
    "notify-send",
    "say",
    "figlet",
    "shellcheck",
    "shfmt",
    "whoami",
    "id",
    "date",
    "code",
    "open",
    "xdg-open",
    "compgen",
    "systemctl",
    "service",
    "journalctl",
    "curl",
    "wget",
    "ssh",
    "scp",
    "rsync",
    "trap",
    "source",
    ".",
    "eval",
    "xargs",
    "python",
    "python3",
    "node",
    "perl",
    "ruby",
    "php",
    "lua",
    "mdbook",
    "expr",
    "seq",
    "let",
    "complete",
];

/// Programs that make an unknown wrapper worth a look.
const TELLING: [&str; 27] = [
    "rm",
    "dd",
    "shred",
    "wipefs",
    "mkfs",
    "chmod",
    "chown",
    "kill",
    "pkill",
    "killall",
    "shutdown",
    "reboot",
    "poweroff",
    "halt",
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "sudo",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "hermes-cli",
    "systemctl",
];

pub(super) fn wrapped(simple: &Simple) -> Vec<Inner> {
    let known = WRAPPERS.iter().find(|wrapper| {
        wrapper.name == simple.program && (wrapper.sub.is_empty() || simple.has_arg(&[wrapper.sub]))
    });
    let Some(wrapper) = known else { return unknown_wrapper(simple) };
    let sub = simple.args.iter().position(|arg| !wrapper.sub.is_empty() && arg.text == wrapper.sub);
    let args = simple.args.get(sub.map_or(0, |at| at + 1)..).unwrap_or_default();
    let mut words = options_until_operand(args, wrapper.shorts, wrapper.longs);
    words.drain(..wrapper.skip.min(words.len()));
    if wrapper.skip > 0 && words.first().is_some_and(|word| word.text == "--") {
        words.remove(0);
    }
    // `sudo VAR=x command`.
    let assigns = words.iter().take_while(|word| is_assignment(&word.text)).count();
    words.drain(..assigns);
    let options = Options::read(
        args.get(..args.len() - words.len()).unwrap_or_default(),
        wrapper.shorts,
        wrapper.longs,
    );
    let folder = options.value(if wrapper.name == "sudo" {
        &["D", "chdir"]
    } else {
        &["wd", "working-directory", "chdir"]
    });
    if wrapper.name == "setarch" && words.len() > 1 {
        // The name of the machine may be left out.
        let mut both = command(words.get(1..).unwrap_or_default().to_vec());
        both.extend(command(words));
        return both;
    }
    if wrapper.name == "uv" && words.is_empty() && args.iter().any(|word| word.text == "-") {
        words.extend([Arg::known("python3"), Arg::known("-")]);
    }
    in_folder(words, folder.map(|arg| arg.text.clone()))
}

pub(super) fn in_folder(words: Vec<Arg>, folder: Option<String>) -> Vec<Inner> {
    let folder = folder.map_or(Folder::Same, Folder::At);
    if words.is_empty() { Vec::new() } else { vec![Inner::Command { words, stdin: None, folder }] }
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A program that we do not know, with one in its operands that we do.
pub(super) fn unknown_wrapper(simple: &Simple) -> Vec<Inner> {
    if DATA.contains(&simple.program.as_str()) {
        return Vec::new();
    }
    let found = simple.args.iter().position(|arg| {
        let name = arg.text.rsplit('/').next().unwrap_or_default();
        TELLING.contains(&name) || name.starts_with("mkfs.")
    });
    found.map_or_else(Vec::new, |at| command(simple.args.get(at..).unwrap_or_default().to_vec()))
}

pub(super) fn env(simple: &Simple) -> Vec<Inner> {
    let mut words: Vec<Arg> = Vec::new();
    let mut args = simple.args.iter();
    let mut done = false;
    let mut folder = None;
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        if done {
            words.push(arg.clone());
            continue;
        }
        let (long, given) = text.split_once('=').map_or((text, None), |(long, value)| (long, Some(value)));
        let is_long = |name: &str| long.len() > 3 && name.starts_with(long);
        let split = if is_long("--split-string") {
            Some(given.unwrap_or(""))
        } else {
            // `-S`, `-vS`, `-iS…`: what stands behind the letter belongs to it.
            let bundle = text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
            bundle
                .and_then(|bundle| bundle.split_once('S'))
                .filter(|(before, _)| before.chars().all(|c| matches!(c, 'i' | 'v' | '0')))
                .map(|(_, inline)| inline)
        };
        if let Some(inline) = split {
            let mut line = if inline.is_empty() {
                args.next().map_or_else(String::new, |arg| arg.text.clone())
            } else {
                inline.to_owned()
            };
            line = split_escapes(&line);
            for rest in args.by_ref() {
                line.push(' ');
                line.push('\'');
                line.push_str(&rest.text.replace('\'', "'\\''"));
                line.push('\'');
            }
            return vec![Inner::Text { text: line, here: false, positional: None }];
        }
        match text {
            "-u" | "-a" => {
                args.next();
            }
            "-C" => folder = args.next().map(|arg| arg.text.clone()),
            "--" => done = true,
            _ if given.is_none() && (is_long("--unset") || is_long("--argv0")) => {
                args.next();
            }
            _ if is_long("--chdir") => {
                folder = given.map(str::to_owned).or_else(|| args.next().map(|arg| arg.text.clone()));
            }
            _ if text.starts_with("-C") => folder = text.strip_prefix("-C").map(str::to_owned),
            _ if text.starts_with('-') || is_assignment(text) => {}
            _ => {
                words.push(arg.clone());
                done = true;
            }
        }
    }
    in_folder(words, folder)
}

/// The escapes of `env -S` that a shell would read otherwise.
fn split_escapes(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            // A comment ends the text, but not the command.
            (None, '#') if out.is_empty() || out.ends_with(' ') => break,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('_' | 't' | 'n' | 'f' | 'v' | 'r') => out.push(' '),
            // The rest is not read.
            Some('c') | None => break,
            Some(other) => out.extend(['\\', other]),
        }
    }
    out
}

//! Commands and texts that a command runs: wrappers, shells, `find -exec`, `xargs`, `eval`.

use super::CommandFacts;
use super::expand::Arg;
use super::scope::UNKNOWN;
use super::simple::{Options, Simple, Stdin};
use super::syntax;

/// What runs inside.
#[derive(Debug)]
pub(super) enum Inner {
    Command {
        words: Vec<Arg>,
        stdin: Option<Stdin>,
        /// Another working directory; `Some(None)` for one that is not known.
        cwd: Option<Option<String>>,
    },
    Text {
        text: String,
        /// In the shell itself, so that what it sets stays.
        here: bool,
        /// `$0`, `$1` …; `None` when not known.
        positional: Option<Vec<String>>,
    },
}

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

const fn wrapper(name: &'static str, shorts: &'static str, longs: &'static [&'static str], skip: usize) -> Wrapper {
    Wrapper { name, sub: "", shorts, longs, skip }
}

const fn runner(name: &'static str, sub: &'static str) -> Wrapper {
    Wrapper { name, sub, shorts: "pnCd", longs: &["with", "python", "project", "directory", "name", "package"], skip: 0 }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("sudo", "ughpCTrtUDR", &["user", "group", "host", "prompt", "chdir", "role", "type", "other-user", "chroot"], 0),
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
    wrapper("setarch", "", &[], 1),
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
    wrapper("unshare", "SGRw", &["setuid", "setgid", "root", "wd", "propagation", "map-user", "map-group"], 0),
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
    wrapper("systemd-run", "puEMHCtGdD", &["unit", "property", "description", "slice", "uid", "gid", "nice", "working-directory", "setenv", "on-active", "on-calendar", "machine"], 0),
    wrapper("systemd-inhibit", "", &["what", "who", "why", "mode"], 0),
    wrapper("start-stop-daemon", "xnupckRdrNPI", &["exec", "name", "user", "pidfile", "chuid"], 0),
    wrapper("cgexec", "g", &[], 0),
    wrapper("sem", "jP", &[], 0),
    wrapper("with-lock-ex", "", &[], 1),
    wrapper("coproc", "", &[], 0),
    runner("uv", "run"),
    runner("poetry", "run"),
    runner("pipenv", "run"),
    runner("pdm", "run"),
    runner("hatch", "run"),
    runner("rye", "run"),
    runner("conda", "run"),
    runner("mamba", "run"),
    runner("bundle", "exec"),
    runner("mise", "exec"),
    runner("asdf", "exec"),
    runner("pnpm", "exec"),
    runner("yarn", "exec"),
    runner("npm", "exec"),
    runner("nix", "develop"),
    runner("op", "run"),
    runner("aws-vault", "exec"),
    runner("perf", "stat"),
    runner("perf", "record"),
];

/// Shells whose grammar is close enough to bash's for our reading.
pub(super) const SHELLS: [&str; 10] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "ksh93", "yash"];
/// Shells of another grammar.
pub(super) const FOREIGN_SHELLS: [&str; 9] =
    ["fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "powershell", "cmd"];

/// Programs whose operands are names and texts, never commands.
const DATA: &[&str] = &[
    "echo", "printf", "cat", "ls", "grep", "egrep", "fgrep", "rg", "ag", "ack", "git", "which", "type", "whereis", "man",
    "info", "apropos", "whatis", "apt", "apt-get", "apt-cache", "aptitude", "dpkg", "yum", "dnf", "apk", "pacman", "brew", "port",
    "snap", "flatpak", "pip", "pip3", "pipx", "npm", "yarn", "pnpm", "gem", "go", "rustup", "conda", "nix-env", "asdf",
    "test", "[", "sed", "awk", "gawk", "mawk", "jq", "yq", "tr", "sort", "uniq", "head", "tail", "cut", "wc", "diff",
    "export", "declare", "local", "typeset", "readonly", "set", "unset", "alias", "unalias", "hash", "help", "cd", "pushd",
    "mkdir", "touch", "cp", "mv", "ln", "rm", "tar", "zip", "file", "stat", "dirname", "basename", "realpath", "readlink",
    "ps", "pgrep", "pkill", "killall", "kill", "case", "read", "tee", "less", "more", "column", "docker", "podman",
    "kubectl", "gh", "glab", "hermes-cli", "hermes", "find", "fd", "cargo", "make", "tmux", "screen", "return", "exit", "logger",
    "notify-send", "say", "figlet", "shellcheck", "shfmt", "whoami", "id", "date", "code", "open", "xdg-open", "compgen",
    "systemctl", "service", "journalctl", "curl", "wget", "ssh", "scp", "rsync", "trap", "source", ".", "eval", "xargs",
    "python", "python3", "node", "perl", "ruby", "php", "lua", "mdbook", "expr", "seq", "let", "complete",
];

/// Programs that make an unknown wrapper worth a look.
const TELLING: [&str; 27] = [
    "rm", "dd", "shred", "wipefs", "mkfs", "chmod", "chown", "kill", "pkill", "killall", "shutdown", "reboot", "poweroff",
    "halt", "sh", "bash", "zsh", "dash", "ksh", "sudo", "python", "python3", "perl", "ruby", "node", "hermes-cli",
    "systemctl",
];

/// What `simple` runs.
pub(super) fn of(simple: &Simple, facts: &CommandFacts<'_>) -> Vec<Inner> {
    let program = simple.program.as_str();
    if is_shell(program) || FOREIGN_SHELLS.contains(&program) {
        return shell(simple);
    }
    match program {
        "" => Vec::new(),
        "env" => env(simple),
        "command" if simple.args.first().is_some_and(|arg| arg.text.starts_with("-v") || arg.text.starts_with("-V")) => {
            Vec::new()
        }
        "eval" => vec![text(&join(&simple.args), true)],
        "trap" => match simple.args.first() {
            Some(arg) if !arg.text.starts_with('-') && simple.args.len() > 1 => vec![text(&arg.text, false)],
            _ => Vec::new(),
        },
        "alias" => simple
            .args
            .iter()
            .filter_map(|arg| arg.text.split_once('='))
            .filter(|(_, value)| syntax::read(value).is_ok())
            .map(|(_, value)| text(value, false))
            .collect(),
        "xargs" | "gxargs" => xargs(simple),
        "parallel" => parallel(simple),
        "find" | "gfind" | "bfs" => find(simple),
        "fd" | "fdfind" => fd(simple),
        "watch" => {
            let options = Options::read(&simple.args, "n", &["interval"]);
            vec![text(&join(&options_until_operand(&simple.args, "nq", &["interval"])), false)]
                .into_iter()
                .filter(|_| !options.operands.is_empty())
                .collect()
        }
        "ssh" => {
            let rest = options_until_operand(&simple.args, "bcDEeFIiJLlmOopQRSWw", &[]);
            let remote: Vec<Arg> = rest.into_iter().skip(1).collect();
            if remote.is_empty() { Vec::new() } else { vec![text(&join(&remote), false)] }
        }
        "su" | "runuser" | "script" | "sg" => with_c(simple),
        "flock" if simple.has_arg(&["-c", "--command"]) => with_c(simple),
        "hyperfine" => simple.options("wrmMPSn", &["warmup", "runs", "prepare", "cleanup", "setup", "export-json", "export-markdown", "shell"])
            .operands.iter().map(|arg| text(&arg.text, false)).collect(),
        "nodemon" | "watchexec" => simple
            .options("xew", &["exec", "ext", "watch"])
            .value(&["x", "exec"])
            .map(|arg| vec![text(&arg.text, false)])
            .unwrap_or_default(),
        "nix-shell" => simple
            .options("p", &["run", "command"])
            .value(&["run", "command"])
            .map(|arg| vec![text(&arg.text, false)])
            .unwrap_or_default(),
        "npx" | "bunx" | "pnpx" => command(options_until_operand(&simple.args, "pc", &["package", "call"])),
        "git" => git(simple),
        "gdb" => match simple.args.iter().position(|arg| arg.text == "--args") {
            Some(at) => command(simple.args.get(at + 1..).unwrap_or_default().to_vec()),
            None => Vec::new(),
        },
        _ if program.starts_with("ld-linux") || program.starts_with("ld-musl") => {
            command(options_until_operand(&simple.args, "", &["library-path", "preload", "argv0"]))
        }
        _ => wrapped(simple, facts),
    }
}

pub(super) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
        || program.strip_prefix("bash").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '.')))
}

fn command(words: Vec<Arg>) -> Vec<Inner> {
    if words.is_empty() { Vec::new() } else { vec![Inner::Command { words, stdin: None, cwd: None }] }
}

fn text(text: &str, here: bool) -> Inner {
    Inner::Text { text: text.to_owned(), here, positional: None }
}

fn join(args: &[Arg]) -> String {
    args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The arguments from the first operand on.
fn options_until_operand(args: &[Arg], shorts: &str, longs: &[&str]) -> Vec<Arg> {
    let mut rest = args;
    while let Some((first, behind)) = rest.split_first() {
        let text = first.text.as_str();
        if text == "--" {
            return behind.to_vec();
        }
        let takes_value = if let Some(long) = text.strip_prefix("--") {
            longs.contains(&long)
        } else if let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) {
            // Only the last letter of a bundle can take the next word.
            bundle.chars().position(|c| shorts.contains(c)).is_some_and(|at| at + 1 == bundle.chars().count())
        } else if text == "-" {
            false
        } else {
            return rest.to_vec();
        };
        rest = behind.get(usize::from(takes_value)..).unwrap_or_default();
    }
    Vec::new()
}

fn wrapped(simple: &Simple, _facts: &CommandFacts<'_>) -> Vec<Inner> {
    let known = WRAPPERS.iter().find(|wrapper| {
        wrapper.name == simple.program && (wrapper.sub.is_empty() || simple.arg(0) == wrapper.sub)
    });
    let Some(wrapper) = known else { return unknown_wrapper(simple) };
    let args = simple.args.get(usize::from(!wrapper.sub.is_empty())..).unwrap_or_default();
    let mut words = options_until_operand(args, wrapper.shorts, wrapper.longs);
    words.drain(..wrapper.skip.min(words.len()));
    if wrapper.skip > 0 && words.first().is_some_and(|word| word.text == "--") {
        words.remove(0);
    }
    // `sudo VAR=x command`.
    let assigns = words.iter().take_while(|word| is_assignment(&word.text)).count();
    words.drain(..assigns);
    command(words)
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A program that we do not know, with one in its operands that we do.
fn unknown_wrapper(simple: &Simple) -> Vec<Inner> {
    if DATA.contains(&simple.program.as_str()) {
        return Vec::new();
    }
    let found = simple.args.iter().position(|arg| {
        let name = arg.text.rsplit('/').next().unwrap_or_default();
        TELLING.contains(&name) || name.starts_with("mkfs.")
    });
    found.map_or_else(Vec::new, |at| command(simple.args.get(at..).unwrap_or_default().to_vec()))
}

fn env(simple: &Simple) -> Vec<Inner> {
    let mut words: Vec<Arg> = Vec::new();
    let mut args = simple.args.iter();
    let mut done = false;
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        if done {
            words.push(arg.clone());
            continue;
        }
        let split = text
            .strip_prefix("--split-string=")
            .or_else(|| text.strip_prefix("--split-string"))
            .or_else(|| text.strip_prefix("-S"))
            .or_else(|| text.strip_prefix("-vS"))
            .or_else(|| text.strip_prefix("-iS"));
        if let Some(inline) = split {
            let mut line = if inline.is_empty() {
                args.next().map_or_else(String::new, |arg| arg.text.clone())
            } else {
                inline.to_owned()
            };
            for rest in args.by_ref() {
                line.push(' ');
                line.push_str(&format!("'{}'", rest.text.replace('\'', "'\\''")));
            }
            return vec![super::inner::text(&line, false)];
        }
        match text {
            "-u" | "-C" | "--unset" | "--chdir" => {
                args.next();
            }
            "--" => done = true,
            _ if text.starts_with('-') || is_assignment(text) => {}
            _ => {
                words.push(arg.clone());
                done = true;
            }
        }
    }
    command(words)
}

fn shell(simple: &Simple) -> Vec<Inner> {
    let Invocation { text: given, operands, reads_stdin } = invocation(simple);
    let foreign = FOREIGN_SHELLS.contains(&simple.program.as_str());
    let mut found = Vec::new();
    if let Some(code) = given {
        if !foreign || syntax::read(&code.text).is_ok() {
            let open = operands.iter().any(|arg| arg.splits);
            let positional = (!open).then(|| operands.iter().map(|arg| arg.text.clone()).collect());
            found.push(Inner::Text { text: code.text, here: false, positional });
        }
    } else if reads_stdin
        && let Stdin::Text(code) = &simple.stdin
        && (!foreign || syntax::read(code).is_ok())
    {
        found.push(text(code, false));
    }
    found
}

/// How a shell is called.
pub(super) struct Invocation {
    /// The text of `-c`.
    pub(super) text: Option<Arg>,
    /// The script and its arguments, or what stands behind the text.
    pub(super) operands: Vec<Arg>,
    pub(super) reads_stdin: bool,
}

/// Reads a shell's own arguments.
pub(super) fn invocation(simple: &Simple) -> Invocation {
    let mut has_text = false;
    let mut from_stdin = false;
    let mut rest = simple.args.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        let text = first.text.as_str();
        let mut takes = 0;
        if text == "--" || text == "-" {
            rest = behind;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let lower = long.to_lowercase();
            takes = usize::from(matches!(long, "rcfile" | "init-file"));
            has_text |= lower == "command" || lower.starts_with("command=");
            if let Some((_, inline)) = long.split_once('=')
                && lower.starts_with("command=")
            {
                return Invocation { text: Some(Arg { text: inline.to_owned(), ..first.clone() }), operands: behind.to_vec(), reads_stdin: false };
            }
        } else if let Some(bundle) = text.strip_prefix('-').or_else(|| text.strip_prefix('+')) {
            let lower = bundle.to_lowercase();
            let windows = matches!(simple.program.as_str(), "pwsh" | "powershell");
            if windows {
                has_text |= "command".starts_with(lower.as_str()) || "encodedcommand".starts_with(lower.as_str());
            } else {
                has_text |= bundle.contains('c');
                from_stdin |= bundle.contains('s');
                takes = usize::from(bundle.ends_with(['o', 'O']));
            }
        } else if simple.program == "cmd" && text.starts_with('/') {
            has_text |= matches!(text, "/c" | "/k" | "/C" | "/K");
        } else {
            break;
        }
        rest = behind.get(takes..).unwrap_or_default();
        if has_text && matches!(simple.program.as_str(), "cmd" | "pwsh" | "powershell") {
            break;
        }
    }
    if has_text && let Some((text, operands)) = rest.split_first() {
        return Invocation { text: Some(text.clone()), operands: operands.to_vec(), reads_stdin: false };
    }
    let reads_stdin = from_stdin
        || rest.is_empty()
        || matches!(rest.first().map(|arg| arg.text.as_str()), Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"));
    Invocation { text: None, operands: rest.to_vec(), reads_stdin }
}

fn with_c(simple: &Simple) -> Vec<Inner> {
    let mut args = simple.args.iter();
    while let Some(arg) = args.next() {
        let text_of = |inline: &str| text(inline, false);
        if let Some(inline) = arg.text.strip_prefix("--command=") {
            return vec![text_of(inline)];
        }
        let is_c = arg.text == "--command"
            || (arg.text.starts_with('-') && !arg.text.starts_with("--") && arg.text.ends_with('c'));
        if is_c {
            return args.next().map(|code| vec![text_of(&code.text)]).unwrap_or_default();
        }
    }
    match simple.program.as_str() {
        // `sg group command`, `runuser -u user -- command`.
        "sg" => simple.args.get(1).map(|arg| vec![text(&arg.text, false)]).unwrap_or_default(),
        "runuser" => command(options_until_operand(&simple.args, "ugGs", &["user", "group", "shell"])),
        _ => Vec::new(),
    }
}

/// The words of the input, when it is known.
fn input_words(simple: &Simple) -> Option<Vec<Arg>> {
    match &simple.stdin {
        Stdin::Text(text) if !text.contains(UNKNOWN) => {
            Some(text.split([' ', '\t', '\n', '\0']).filter(|word| !word.is_empty()).map(Arg::known).collect())
        }
        _ => None,
    }
}

fn open_word() -> Arg {
    Arg { text: UNKNOWN.to_string(), splits: true, ..Arg::default() }
}

fn xargs(simple: &Simple) -> Vec<Inner> {
    const LONGS: [&str; 9] = [
        "arg-file", "delimiter", "eof", "replace", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var",
    ];
    let words = options_until_operand(&simple.args, "IEdLnPsa", &LONGS);
    if words.is_empty() {
        return Vec::new();
    }
    let options = Options::read(&simple.args, "IEdLnPsa", &LONGS);
    let replaced = options
        .value(&["I", "replace"])
        .map(|arg| arg.text.clone())
        .or_else(|| options.has("i", "").then(|| "{}".to_owned()));
    let input = if options.has("a", "arg-file") { None } else { input_words(simple) };
    let mut words = words;
    match replaced.filter(|mark| !mark.is_empty()) {
        Some(mark) => {
            let value = match input.as_deref() {
                Some([one]) => one.text.clone(),
                Some(many) => many.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "),
                None => UNKNOWN.to_string(),
            };
            for word in &mut words {
                word.text = word.text.replace(&mark, &value);
            }
        }
        None => match input {
            Some(input) => words.extend(input),
            None => words.push(open_word()),
        },
    }
    vec![Inner::Command { words, stdin: Some(Stdin::Inherited), cwd: None }]
}

fn parallel(simple: &Simple) -> Vec<Inner> {
    let words = options_until_operand(&simple.args, "jaNnIPSL", &["jobs", "arg-file", "colsep", "delay", "timeout", "joblog"]);
    let split = words.iter().position(|word| word.text.starts_with(":::")).unwrap_or(words.len());
    let (template, behind) = words.split_at_checked(split).unwrap_or((&words, &[]));
    let values: Vec<Arg> = behind.iter().filter(|word| !word.text.starts_with(":::")).cloned().collect();
    let known = (!values.is_empty()).then_some(values).or_else(|| input_words(simple));
    if template.is_empty() {
        // The values are whole commands.
        return match known {
            Some(values) => values.iter().map(|value| text(&value.text, false)).collect(),
            None => vec![text(&UNKNOWN.to_string(), false)],
        };
    }
    let line = join(template);
    let values: Vec<String> = match known {
        Some(values) => values.into_iter().map(|value| value.text).take(32).collect(),
        None => vec![UNKNOWN.to_string()],
    };
    let has_mark = line.contains("{}");
    values
        .iter()
        .map(|value| {
            text(&if has_mark { line.replace("{}", value) } else { format!("{line} {value}") }, false)
        })
        .collect()
}

fn find(simple: &Simple) -> Vec<Inner> {
    let start = simple.args.iter().find(|arg| !arg.text.starts_with('-')).map_or(".", |arg| arg.text.as_str());
    let found = format!("{}/{UNKNOWN}", start.trim_end_matches('/'));
    let mut inner = Vec::new();
    let mut args = simple.args.iter();
    while let Some(arg) = args.next() {
        if matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            let words: Vec<Arg> = args
                .by_ref()
                .take_while(|word| !matches!(word.text.as_str(), ";" | "+"))
                .map(|word| Arg { text: word.text.replace("{}", &found), ..word.clone() })
                .collect();
            let cwd = arg.text.ends_with("dir").then_some(None);
            if !words.is_empty() {
                inner.push(Inner::Command { words, stdin: None, cwd });
            }
        }
    }
    inner
}

fn fd(simple: &Simple) -> Vec<Inner> {
    let at = simple.args.iter().position(|arg| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
    let Some(words) = at.and_then(|at| simple.args.get(at + 1..)) else { return Vec::new() };
    let mut words: Vec<Arg> =
        words.iter().map(|word| Arg { text: word.text.replace("{}", &UNKNOWN.to_string()), ..word.clone() }).collect();
    words.push(open_word());
    command(words)
}

/// Commands that git runs for us: `bisect run`, `submodule foreach`, `rebase --exec`.
fn git(simple: &Simple) -> Vec<Inner> {
    let rest = options_until_operand(&simple.args, "Cc", &["git-dir", "work-tree", "namespace"]);
    let sub = |at: usize| rest.get(at).map_or("", |arg: &Arg| arg.text.as_str());
    match (sub(0), sub(1)) {
        ("bisect", "run") => command(rest.get(2..).unwrap_or_default().to_vec()),
        ("submodule", "foreach") => {
            let words = options_until_operand(rest.get(2..).unwrap_or_default(), "", &[]);
            if words.is_empty() { Vec::new() } else { vec![text(&join(&words), false)] }
        }
        ("rebase", _) => {
            let options = Options::read(rest.get(1..).unwrap_or_default(), "xsXC", &["exec", "onto", "strategy"]);
            options.value(&["x", "exec"]).map(|arg| vec![text(&arg.text, false)]).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

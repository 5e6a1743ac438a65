//! Programs whose options or scripts start other programs.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::inner::is_stdin;
use super::super::report::Report;
use super::super::scope::UNKNOWN;
use super::super::simple::{Options, Simple, Stdin};
use super::shape_exact;

/// Options that make a program run another one; a long one also counts when cut short or given a value.
const RUNNING: &[(&str, &[&str])] = &[
    ("sort", &["--compress-program"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("ag", &["--pager"]),
    ("ack", &["--pager"]),
    ("bat", &["--pager"]),
    ("man", &["-P", "-H", "--pager", "--html"]),
    (
        "tar",
        &[
            "--to-command",
            "--checkpoint-action",
            "-I",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "-F",
            "--xform",
            "--transform",
        ],
    ),
    ("bsdtar", &["--use-compress-program"]),
    ("gtar", &["--to-command", "--checkpoint-action", "-I", "--use-compress-program"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("split", &["--filter"]),
    ("tcpdump", &["-z"]),
    ("nmap", &["--script", "-iL", "--interactive"]),
    ("make", &["--eval", "-E"]),
    ("gmake", &["--eval", "-E"]),
    ("gcc", &["-wrapper"]),
    ("g++", &["-wrapper"]),
    ("cargo", &["--config"]),
    ("pip", &["--index-url", "--extra-index-url"]),
    ("gdb", &["-p", "--pid", "-ex", "--eval-command", "-x", "--command", "-iex"]),
    ("lldb", &["-p", "--attach-pid", "-o", "--one-line", "-s", "--source"]),
    ("strace", &["-p", "--attach"]),
    ("ltrace", &["-p"]),
    ("perf", &["-p"]),
    ("ex", &["-c", "-S", "--cmd"]),
    ("emacs", &["--eval", "--script", "-f", "--funcall", "--batch"]),
    ("emacsclient", &["--eval", "-e"]),
    ("logrotate", &["-f"]),
    ("mail", &["-E"]),
    ("sysctl", &["-w"]),
    ("busctl", &["call"]),
    ("ansible", &["-m", "-a"]),
    ("fzf", &["--preview", "--bind"]),
    ("less", &["-k", "--lesskey-file"]),
    ("pytest", &["--pdbcls"]),
    ("iptables", &["-F", "--flush"]),
    ("code", &["--install-extension"]),
];

pub(super) fn judge(simple: &Simple, _facts: &CommandFacts<'_>, report: &mut Report) {
    let program = simple.program.as_str();
    let mut ask = || {
        report.ask("tool.runs", format!("makes {program} run another program or text"), shape_exact(simple));
    };
    let listed = RUNNING.iter().filter(|(name, _)| *name == program).flat_map(|(_, options)| options.iter());
    for option in listed {
        let given = simple.args.iter().any(|arg| {
            let text = arg.text.as_str();
            if option.starts_with("--") {
                let name = text.split_once('=').map_or(text, |(name, _)| name);
                name == *option || (name.len() > 5 && option.starts_with(name))
            } else if program == "tar" || program == "gtar" {
                text.starts_with(option) && !text.starts_with("--")
            } else {
                text == *option
                    || (option.len() == 2
                        && text.starts_with(option)
                        && text.len() > 2
                        && !text.starts_with("--")
                        && matches!(program, "man" | "gdb" | "strace" | "zip"))
            }
        });
        // `nmap --script=default` and a preview of fzf are common enough, and still run something.
        let plain = match program {
            "tar" | "gtar" => {
                is_compressor(simple) || (option.ends_with("form") && !transforms_by_command(simple))
            }
            "gdb" => is_plain_debugging(simple),
            "pip" => true,
            _ => false,
        };
        if given && !plain {
            return ask();
        }
    }
    let odd = match program {
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" | "goawk" | "frawk" => awk(simple),
        "sed" | "gsed" => sed(simple),
        "vi" | "vim" | "nvim" | "view" | "gvim" | "vimdiff" => {
            let mut pairs = simple.args.iter().zip(simple.args.iter().skip(1));
            let scripted = pairs.any(|(option, value)| {
                matches!(option.text.as_str(), "-c" | "--cmd" | "-S" | "-s") && runs_in_vim(&value.text)
            });
            scripted || simple.args.iter().any(|arg| arg.text.starts_with('+') && runs_in_vim(&arg.text))
        }
        "ed" | "red" | "ex" => match &simple.stdin {
            Stdin::Text(text) => text.lines().any(|line| line.contains('!')),
            Stdin::Pipe(_) => true,
            _ => false,
        },
        "make" | "gmake"
            if matches!(simple.stdin, Stdin::Text(_) | Stdin::Pipe(_)) && reads_rules(simple) =>
        {
            true
        }
        "make" | "gmake" | "just" => {
            simple.args.iter().any(|arg| {
                let name = arg.text.split_once('=').map_or("", |(name, _)| name).trim_end_matches(':');
                matches!(name, "SHELL" | ".SHELLFLAGS" | "MAKEFLAGS" | "MAKE")
                    || arg.text.starts_with("$(shell")
            }) || program == "just" && simple.has_arg(&["--shell", "-c", "--command"])
        }
        "npm" | "yarn" | "pnpm" => {
            simple.has_arg(&["script-shell"])
                || simple.args.iter().any(|arg| {
                    arg.text.starts_with("--script-shell") || arg.text.starts_with("--node-options")
                })
        }
        "gdb" => !is_plain_debugging(simple),
        "complete" | "compgen" => {
            simple.has_arg(&["-C", "-F"]) || simple.args.iter().any(|arg| arg.text.starts_with("-C"))
        }
        "less" | "more" | "most" => {
            simple.args.iter().any(|arg| arg.text.starts_with('+') && arg.text.contains(['!', '|', UNKNOWN]))
        }
        "bind" => simple.has_arg(&["-x"]),
        "enable" => simple.has_arg(&["-f"]),
        "hash" => simple.has_arg(&["-p"]),
        "trap" => simple.args.iter().any(|arg| arg.text.contains(UNKNOWN)),
        "mapfile" | "readarray" => simple.has_arg(&["-C"]),
        "insmod"
        | "modprobe"
        | "rmmod"
        | "kexec"
        | "bpftrace"
        | "setcap"
        | "visudo"
        | "vipw"
        | "chsh"
        | "passwd"
        | "chpasswd"
        | "useradd"
        | "userdel"
        | "usermod"
        | "groupadd"
        | "adduser"
        | "deluser"
        | "update-alternatives"
        | "ufw"
        | "nft"
        | "xdotool"
        | "ydotool"
        | "wall" => true,
        "dpkg" => simple.has_arg(&["--force-all", "-P", "--purge"]),
        "ptrace" | "gcore" | "reptyr" | "frida" => true,
        "gem" | "luarocks" | "cpan" if simple.has_arg(&["-e"]) => true,
        "ssh-keygen" => simple.has_arg(&["-D"]),
        "ssh-add" => simple.has_arg(&["-s"]),
        "history" => simple.has_arg(&["-c", "-w"]),
        _ => false,
    };
    if odd {
        ask();
    }
}

/// `--transform 's/x/id/e'`: the replacement is run.
fn transforms_by_command(simple: &Simple) -> bool {
    simple.args.iter().any(|arg| {
        let text = arg.text.split_once('=').map_or(arg.text.as_str(), |(_, value)| value);
        text.split(';').any(|script| {
            let Some(delimiter) = script.strip_prefix('s').and_then(|rest| rest.chars().next()) else {
                return false;
            };
            !delimiter.is_alphanumeric()
                && script.matches(delimiter).count() >= 3
                && script.rsplit(delimiter).next().unwrap_or_default().contains('e')
        })
    })
}

/// `gdb -batch -ex run -ex bt`: commands that start the program and show things.
fn is_plain_debugging(simple: &Simple) -> bool {
    // What follows belongs to the program.
    let end = simple.args.iter().position(|arg| arg.text == "--args").unwrap_or(simple.args.len());
    let own = simple.args.get(..end).unwrap_or_default();
    const SHOWING: [&str; 22] = [
        "run",
        "r",
        "bt",
        "backtrace",
        "where",
        "info",
        "print",
        "p",
        "x",
        "list",
        "frame",
        "thread",
        "quit",
        "continue",
        "c",
        "next",
        "step",
        "finish",
        "disassemble",
        "set confirm off",
        "set pagination off",
        "starti",
    ];
    let mut pairs = own.iter().zip(own.iter().skip(1));
    let plain = pairs.all(|(option, value)| {
        let text = option.text.as_str();
        let first = value.text.split([' ', '/']).next().unwrap_or_default();
        !matches!(text, "-ex" | "--ex" | "-eval-command" | "--eval-command")
            || (SHOWING.contains(&first) || SHOWING.contains(&value.text.as_str()))
                && !value.text.contains(['!', '|', '(', UNKNOWN])
    });
    plain
        && !own.iter().any(|arg| {
            let text = arg.text.trim_start_matches('-');
            arg.text.starts_with('-')
                && (text.starts_with("ex=")
                    || text.starts_with("iex")
                    || text.starts_with("ix")
                    || text.starts_with("eval-command=")
                    || text.starts_with('p')
                    || text.starts_with('x')
                    || text.starts_with("command"))
        })
}

/// `tar -I zstd`: a compressor and nothing else.
fn is_compressor(simple: &Simple) -> bool {
    const KNOWN: [&str; 8] = ["zstd", "pigz", "pbzip2", "pixz", "lz4", "xz", "gzip", "brotli"];
    let mut only = true;
    let mut args = simple.args.iter();
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        let value = if matches!(text, "-I" | "--use-compress-program") {
            args.next().map(|arg| arg.text.clone())
        } else {
            let long = text.split_once('=').filter(|(name, _)| name.starts_with("--use"));
            let short = text.strip_prefix("-I").filter(|value| !value.is_empty());
            long.map(|(_, value)| value).or(short).map(str::to_owned)
        };
        match value {
            Some(value) => {
                let mut words = value.split_whitespace();
                only &= words.next().is_some_and(|word| KNOWN.contains(&word))
                    && words.all(|word| word.starts_with('-'));
            }
            // `--transform 's/x/y/e'` runs what it replaces by.
            None if text.starts_with("--to-")
                || text.starts_with("--info-")
                || text.starts_with("--new-vol")
                || (text.starts_with("--tr") || text.starts_with("--xf"))
                    && transforms_by_command(simple)
                || text.starts_with("--checkpoint-")
                || text.starts_with("--rsh")
                || text.contains("script") =>
            {
                return false;
            }
            None => {}
        }
    }
    only
}

fn runs_in_vim(script: &str) -> bool {
    let lower = script.to_lowercase();
    [
        "!",
        "system(",
        "py",
        "lua",
        "perl",
        "ruby",
        "source",
        ":so",
        "term",
        "job_start",
        "writefile",
        "delete(",
        "execute",
    ]
    .iter()
    .any(|mark| lower.contains(mark))
        || script.contains(UNKNOWN)
}

/// `make -f -`: the rules, and so the commands, come from the input.
fn reads_rules(simple: &Simple) -> bool {
    let options = simple.options("fCIjlo", &["file", "makefile", "directory"]);
    options.values.iter().any(|(name, value)| {
        matches!(name.as_str(), "f" | "file" | "makefile") && (value.text == "-" || is_stdin(&value.text))
    })
}

/// The program texts of awk.
fn awk(simple: &Simple) -> bool {
    let options =
        simple.options("Ffviel", &["field-separator", "file", "assign", "source", "include", "load"]);
    let from_file = options.value(&["f", "file"]).is_some();
    let loads = options.values.iter().any(|(name, _)| matches!(name.as_str(), "l" | "load"));
    let mut texts: Vec<&Arg> = options
        .values
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "e" | "source"))
        .map(|(_, value)| value)
        .collect();
    if !from_file && texts.is_empty() {
        texts.extend(options.operands.first());
    }
    loads || texts.iter().any(|text| runs_in_awk(&text.text))
}

/// Whether an awk program runs commands, or writes to files or to the network.
fn runs_in_awk(script: &str) -> bool {
    let mut outside = String::new();
    let mut written = false;
    let mut chars = script.chars().peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        let begins_pattern =
            matches!(last, '(' | ',' | '=' | '~' | '!' | '&' | '|' | '{' | '}' | ';' | '\n' | ' ') && {
                let before = outside.trim_end();
                before.is_empty() || before.ends_with(['(', ',', '=', '~', '!', '&', '|', '{', '}', ';'])
            };
        match c {
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            '"' => {
                // A file or a command beside `>` and `|`.
                let before = outside.trim_end();
                written |= before.ends_with('>') || (before.ends_with('|') && !before.ends_with("||"));
                let mut content = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => {
                            chars.next();
                        }
                        '"' => break,
                        c => content.push(c),
                    }
                }
                written |= content.starts_with("/inet");
                outside.push('"');
            }
            '/' if begins_pattern => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => {
                            chars.next();
                        }
                        '/' => break,
                        _ => {}
                    }
                }
                outside.push('"');
            }
            c => outside.push(c),
        }
        last = c;
    }
    let piped = outside.replace("||", "").contains('|');
    let prints_away = outside.split(['{', '}', ';', '\n']).any(|statement| {
        let statement = statement.trim_start();
        statement.starts_with("print") && {
            // `print $1 > 5` compares nothing: it writes to a file named 5.
            let mut depth = 0_i32;
            statement.chars().any(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                c == '>' && depth <= 0
            })
        }
    });
    written
        || piped
        || prints_away
        || outside.contains("system")
        || outside.contains("@load")
        || outside.contains("@f")
        || script.contains(UNKNOWN) && outside.contains(UNKNOWN)
}

/// Whether a sed script runs commands or writes files.
fn sed(simple: &Simple) -> bool {
    // What stands behind `-i` is the ending of a copy's name.
    let options = simple.options("efli", &["expression", "file", "line-length"]);
    let backup = options.values.iter().any(|(name, _)| name == "i");
    let options = if backup {
        let args: Vec<Arg> = simple.args.iter().map(without_ending).collect();
        Options::read(&args, "efl", &["expression", "file", "line-length"])
    } else {
        options
    };
    let mut scripts: Vec<&Arg> = options
        .values
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "e" | "expression"))
        .map(|(_, value)| value)
        .collect();
    if scripts.is_empty() && options.value(&["f", "file"]).is_none() {
        scripts.extend(options.operands.first());
    }
    scripts.iter().any(|script| runs_in_sed(&script.text))
}

/// The same for a command in one text, split at blanks.
pub(super) fn sed_text_runs(text: &str) -> bool {
    text.split_whitespace().skip(1).any(|word| {
        let word = word.trim_matches(['\'', '"']);
        !word.starts_with('-') && runs_in_sed(word)
    })
}

/// `-i.bak` as `-i`.
fn without_ending(arg: &Arg) -> Arg {
    let bundle = arg.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
    match bundle.and_then(|bundle| bundle.split_once('i')) {
        Some((before, _)) if before.chars().all(|c| matches!(c, 'n' | 'r' | 'E' | 's' | 'u' | 'z')) => {
            Arg { text: format!("-{before}i"), ..arg.clone() }
        }
        _ => arg.clone(),
    }
}

/// Reads a sed script: `e`, `w`, `W`, `r` of commands, and the flags `e` and `w` of a substitution.
fn runs_in_sed(script: &str) -> bool {
    let chars: Vec<char> = script.chars().collect();
    let at = |place: usize| chars.get(place).copied();
    let past = |mut place: usize, delimiter: char| {
        let mut in_set = false;
        while let Some(c) = at(place) {
            match c {
                '\\' => place += 1,
                // A bracket that comes first in a set is a member of it.
                '[' if !in_set => {
                    in_set = true;
                    place += usize::from(at(place + 1) == Some('^'));
                    place += usize::from(at(place + 1) == Some(']'));
                }
                ']' => in_set = false,
                c if c == delimiter && !in_set => return place + 1,
                _ => {}
            }
            place += 1;
        }
        place
    };
    let mut place = 0;
    while let Some(c) = at(place) {
        match c {
            // Addresses.
            '/' => place = past(place + 1, '/'),
            '\\' => place = at(place + 1).map_or(place + 1, |delimiter| past(place + 2, delimiter)),
            's' | 'y' => {
                let Some(delimiter) = at(place + 1) else { return false };
                let middle = past(place + 2, delimiter);
                // In the replacement a bracket is itself.
                let mut end = middle;
                while let Some(c) = at(end) {
                    end += 1;
                    if c == '\\' {
                        end += 1;
                    } else if c == delimiter {
                        break;
                    }
                }
                place = end;
                while let Some(flag) = at(place).filter(char::is_ascii_alphanumeric) {
                    if c == 's' && matches!(flag, 'e' | 'w') {
                        return true;
                    }
                    place += 1;
                }
            }
            'e' | 'w' | 'W' => return true,
            // Text, up to a line's end that is not escaped; a file's name or a comment, up to the line's end.
            'a' | 'i' | 'c' | 'r' | 'R' | '#' => {
                while at(place).is_some_and(|c| c != '\n') {
                    place += if at(place) == Some('\\') && c != '#' { 2 } else { 1 };
                }
            }
            // A label.
            'b' | 't' | 'T' | ':' => {
                while at(place).is_some_and(|c| !matches!(c, '\n' | ';' | '}')) {
                    place += 1;
                }
            }
            _ => place += 1,
        }
    }
    false
}

//! The files that programs write beside the usual ones: outputs, logs, what is packed in place, and what a program of
//! which nothing is known is given.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::places::is_env_file;
use super::super::scope::UNKNOWN;
use super::super::simple::Simple;

/// Options that name a file which the program writes, by program.
const OUTPUTS: &[(&[&str], &[&str])] = &[
    (
        &["curl"],
        &[
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--libcurl",
            "--hsts",
            "--alt-svc",
            "--etag-save",
            "--output",
            "--dump-header",
            "--cookie-jar",
            "--output-dir",
        ],
    ),
    (
        &["wget", "wget2"],
        &[
            "--save-cookies",
            "--warc-file",
            "--hsts-file",
            "--rejected-log",
            "--output-document",
            "--output-file",
            "--directory-prefix",
            "--append-output",
            "-O",
            "-o",
            "-P",
            "-a",
        ],
    ),
    (&["aria2c"], &["-d", "--dir", "-o", "--out", "-l", "--log"]),
    (
        &[
            "axel", "http", "https", "xh", "brotli", "zstd", "shuf", "ptx", "iconv", "uudecode", "base64",
            "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "ld", "as", "strip", "go", "patch",
            "age", "cpio",
        ],
        &["-o", "--output", "-O", "--out-dir"],
    ),
    (&["strace", "ltrace", "time", "perf"], &["-o", "--output"]),
    (&["valgrind"], &["--log-file", "--xml-file", "--massif-out-file", "--callgrind-out-file"]),
    (&["gpg", "gpg2"], &["-o", "--output"]),
    (&["gawk", "awk"], &["-o", "-p", "-d", "--dump-variables", "--profile", "--pretty-print"]),
    (&["tar", "gtar", "bsdtar"], &["-C", "--directory", "--one-top-level", "--index-file", "--volno-file"]),
    (
        &["rsync"],
        &["--log-file", "--write-batch", "--only-write-batch", "--backup-dir", "--temp-dir", "--partial-dir"],
    ),
    (&["ssh"], &["-E"]),
    (&["unzip", "patch", "unar"], &["-d", "-o", "--directory"]),
    (&["csplit"], &["-f", "--prefix"]),
    (&["git"], &["--prefix", "--output-directory", "--work-tree", "-o"]),
    (&["docker", "podman"], &["--output"]),
    (&["pip", "pip3"], &["--log", "-t", "--target", "--prefix", "--root"]),
    (&["python", "python3"], &[]),
    (&["cargo"], &["--target-dir"]),
    (&["sort"], &["--output"]),
    (&["ssh-keygen"], &["-f"]),
    (&["mktemp"], &["-p", "--tmpdir"]),
];

/// Programs that replace what they are given by a packed file.
const PACKERS: [&str; 12] = [
    "gzip",
    "gunzip",
    "bzip2",
    "bunzip2",
    "xz",
    "unxz",
    "lzma",
    "unlzma",
    "compress",
    "uncompress",
    "lzip",
    "pigz",
];

/// The further files that a command writes.
pub(super) fn outputs(simple: &Simple) -> Vec<Arg> {
    let program = simple.program.as_str();
    let mut found = Vec::new();
    for (_, options) in OUTPUTS.iter().filter(|(names, _)| names.contains(&program)) {
        for (at, arg) in simple.args.iter().enumerate() {
            found.extend(options.iter().filter_map(|option| value(simple, at, arg, option)));
        }
    }
    let has = |options: &[&str]| {
        simple.args.iter().any(|arg| {
            options.contains(&arg.text.as_str())
                || (arg.text.starts_with('-')
                    && !arg.text.starts_with("--")
                    && options
                        .iter()
                        .any(|option| option.len() == 2 && arg.text.contains(option.trim_start_matches('-'))))
        })
    };
    let operands: Vec<&Arg> = simple.args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
    let all = || operands.iter().copied().cloned();
    let last = || operands.last().copied().cloned();
    match program {
        _ if PACKERS.contains(&program)
            && !has(&["-c", "--stdout", "-t", "--test", "-l", "--list", "-k", "--keep"]) =>
        {
            found.extend(all());
        }
        "zstd" | "lz4" if has(&["--rm"]) => found.extend(all()),
        "uniq" | "xxd" | "lz4" | "objcopy" | "link" | "comm" if operands.len() > 1 => found.extend(last()),
        "split" | "csplit" if operands.len() > 1 => {
            found.extend(last().map(|arg| Arg { text: arg.text + "*", glob: true, ..Arg::default() }));
        }
        "script" => found.extend(last().filter(|_| !has(&["-c", "--command"]) || operands.len() > 1)),
        "gawk" | "awk" if simple.has_arg(&["inplace"]) => found.extend(all().skip(2)),
        "7z" | "7za" | "7zz" => {
            let folder = simple.args.iter().filter_map(|arg| part(arg, "-o"));
            found.extend(folder);
            if has(&["-sdel"]) {
                found.extend(all().skip(2));
            }
        }
        "zip" if has(&["-m"]) => found.extend(all().skip(1)),
        "tar" | "gtar" if simple.has_arg(&["--remove-files"]) => found.extend(all()),
        "patch" | "unzip" | "cpio" | "pax" | "tar" | "gtar" | "bsdtar" if unpacks_here(simple) => {
            found.push(Arg::known("."));
            let absolute = simple.has_arg(&["--absolute-names", "--absolute-filenames", "-P"])
                || (program.contains("tar") && simple.arg(0).trim_start_matches('-').contains('P'));
            if absolute && program != "unzip" {
                found.push(Arg::known("/"));
            }
        }
        "cpio" | "pax" if has(&["-p", "-w"]) => found.extend(last()),
        "socat" => found.extend(operands.iter().filter_map(|arg| {
            let (kind, path) = arg.text.split_once(':')?;
            let opens = ["open", "file", "create", "gopen"].contains(&kind.to_lowercase().as_str())
                && arg.text.contains(',');
            opens.then(|| Arg::known(path.split(',').next().unwrap_or_default()))
        })),
        "unrar" | "ar" if matches!(simple.arg(0), "x" | "e") => found.extend(all().skip(2)),
        "cp" | "mv" | "install" | "ln" => {}
        "python" | "python3" => found.extend(python(simple)),
        "git" => found.extend(git(simple)),
        "gio" | "kioclient" | "kioclient5" if matches!(simple.arg(0), "copy" | "move" | "save") => {
            found.extend(last());
        }
        "docker" | "podman" if matches!(simple.arg(0), "save" | "export" | "cp") => {
            let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
            found.extend(pairs.filter(|(option, _)| option.text == "-o").map(|(_, file)| file.clone()));
        }
        // What `-O` names after the address stands in the working directory.
        "curl" | "wget" if program == "wget" || has(&["-O", "--remote-name"]) => {
            let names = operands
                .iter()
                .filter_map(|arg| arg.text.rsplit_once('/').filter(|(_, name)| !name.is_empty()));
            found.extend(names.map(|(_, name)| Arg::known(name)));
        }
        _ => {}
    }
    if program == "curl" {
        // `-w '%output{file}…'`.
        let parts = simple.args.iter().filter_map(|arg| arg.text.split_once("%output{"));
        found.extend(
            parts
                .filter_map(|(_, rest)| rest.split_once('}'))
                .map(|(file, _)| Arg::known(file.trim_start_matches('>'))),
        );
    }
    // Names that come from a list or a loop are those of the work, as a rule; what is fetched or unpacked is not.
    if !matches!(program, "curl" | "wget" | "tar" | "unzip") {
        found.retain(|arg| !arg.text.starts_with(UNKNOWN));
    }
    found
}

/// Whether files are unpacked, or changed, in the working directory.
fn unpacks_here(simple: &Simple) -> bool {
    let first = simple.arg(0);
    let bundle = first.trim_start_matches('-');
    simple.cwd.is_some()
        && match simple.program.as_str() {
            "patch" => !simple.args.iter().any(|arg| {
                arg.text.starts_with("-d") || arg.text.starts_with("--dir") || arg.text == "--dry-run"
            }),
            "unzip" => !simple.args.iter().any(|arg| {
                arg.text.starts_with("-d")
                    || arg.text.starts_with("-l")
                    || arg.text == "-t"
                    || arg.text == "-p"
            }),
            "cpio" | "pax" => simple.args.iter().any(|arg| {
                arg.text.starts_with('-')
                    && !arg.text.starts_with("--")
                    && (arg.text.contains('i') && simple.program == "cpio"
                        || arg.text.contains('r') && !arg.text.contains('w'))
            }),
            _ => {
                (bundle.contains('x') && !first.starts_with("--") || simple.has_arg(&["--extract", "--get"]))
                    && !simple.args.iter().any(|arg| {
                        arg.text.starts_with("-C")
                            || arg.text.starts_with("--dir")
                            || arg.text.starts_with("--to-stdout")
                            || arg.text == "-O"
                    })
            }
        }
}

/// The value of an option: in the next word, behind `=`, or right behind a letter.
fn value(simple: &Simple, at: usize, arg: &Arg, option: &str) -> Option<Arg> {
    let text = arg.text.as_str();
    if text == option {
        return simple.args.get(at + 1).cloned().filter(|value| value.text != "-");
    }
    if option.starts_with("--") {
        let (name, value) = text.split_once('=')?;
        let names = name == option || (name.len() > 4 && option.starts_with(name));
        return names.then(|| Arg { text: value.to_owned(), ..arg.clone() });
    }
    let letter = option.strip_prefix('-')?;
    let bundle = text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'))?;
    let (before, inline) = bundle.split_once(letter)?;
    // Only a path behind the letter is a file; other letters may stand before it.
    if inline.is_empty()
        && before.len() < 4
        && matches!(simple.program.as_str(), "wget" | "tar" | "sort" | "strace" | "time" | "gpg")
    {
        return simple.args.get(at + 1).cloned().filter(|value| value.text != "-");
    }
    (before.len() < 4 && inline.contains('/')).then(|| Arg { text: inline.to_owned(), ..arg.clone() })
}

fn part(arg: &Arg, beginning: &str) -> Option<Arg> {
    arg.text
        .strip_prefix(beginning)
        .filter(|text| !text.is_empty())
        .map(|text| Arg { text: text.to_owned(), ..arg.clone() })
}

/// Modules of python that write.
fn python(simple: &Simple) -> Vec<Arg> {
    let Some(at) = simple.args.iter().position(|arg| arg.text == "-m") else { return Vec::new() };
    let rest = simple.args.get(at + 2..).unwrap_or_default();
    let last = rest.last().filter(|arg| !arg.text.starts_with('-')).cloned();
    match simple.arg(at + 1) {
        "zipfile" | "tarfile"
            if rest.iter().any(|arg| matches!(arg.text.as_str(), "-e" | "--extract")) && rest.len() > 2 =>
        {
            last.into_iter().collect()
        }
        "venv" => last.into_iter().collect(),
        "cProfile" | "trace" | "profile" => {
            let pairs = rest.iter().zip(rest.iter().skip(1));
            pairs
                .filter(|(option, _)| matches!(option.text.as_str(), "-o" | "--file" | "--coverdir"))
                .map(|(_, file)| file.clone())
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Where git puts whole trees.
fn git(simple: &Simple) -> Vec<Arg> {
    let operands: Vec<&Arg> = simple.args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
    let word = |at: usize| operands.get(at).map_or("", |arg| arg.text.as_str());
    let take = |at: usize| operands.get(at).copied().cloned().into_iter().collect();
    let home = |arg: &Arg| arg.text.contains("/.");
    match (word(0), word(1)) {
        ("bundle", "create") => take(2),
        // A checkout beside the work is ordinary; one among the settings of a home is not.
        ("clone", _) if operands.len() > 2 && operands.last().is_some_and(|arg| home(arg)) => {
            take(operands.len() - 1)
        }
        ("worktree", "add") => operands.iter().skip(2).filter(|arg| home(arg)).copied().cloned().collect(),
        ("apply", _) => simple.args.iter().filter_map(|arg| part(arg, "--directory=")).collect(),
        ("bugreport" | "diagnose", _) => {
            let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
            pairs.filter(|(option, _)| option.text == "-o").map(|(_, file)| file.clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// Programs that are known to leave the files alone that they are given, or whose writes are judged elsewhere.
const READERS: &[&str] = &[
    "",
    "cat",
    "less",
    "more",
    "head",
    "tail",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "ack",
    "ls",
    "stat",
    "wc",
    "diff",
    "cmp",
    "test",
    "[",
    "file",
    "find",
    "fd",
    "vim",
    "vi",
    "nvim",
    "nano",
    "emacs",
    "code",
    "bat",
    "source",
    ".",
    "sed",
    "awk",
    "gawk",
    "mawk",
    "sha256sum",
    "sha1sum",
    "md5sum",
    "cksum",
    "b2sum",
    "cut",
    "sort",
    "jq",
    "yq",
    "echo",
    "printf",
    "which",
    "type",
    "strings",
    "hexdump",
    "od",
    "readlink",
    "realpath",
    "dirname",
    "basename",
    "cd",
    "pushd",
    "export",
    "declare",
    "local",
    "typeset",
    "readonly",
    "unset",
    "set",
    "alias",
    "zcat",
    "tac",
    "nl",
    "tree",
    "du",
    "shellcheck",
    "ssh",
    "ssh-add",
    "sudo",
    "doas",
    "env",
    "nohup",
    "time",
    "timeout",
    "nice",
    "exec",
    "xargs",
    "eval",
    "command",
    "builtin",
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "git",
    "gh",
    "tr",
    "column",
    "fold",
    "fmt",
    "paste",
    "join",
    "expand",
    "open",
    "xdg-open",
    "man",
    "mkdir",
    "rmdir",
    "rm",
    "unlink",
    "shred",
    "chmod",
    "chown",
    "chgrp",
    "cp",
    "mv",
    "ln",
    "install",
    "tee",
    "sponge",
    "dd",
    "truncate",
    "touch",
    "rsync",
    "scp",
    "sftp",
    "tar",
    "zip",
    "unzip",
    "curl",
    "wget",
    "perl",
    "ruby",
    "trap",
    "read",
    "kill",
    "ps",
    "pgrep",
    "pkill",
    "hermes-cli",
    "hermes",
    "hermesd",
    "sqlite3",
    "crontab",
    "docker",
    "for",
    "stow",
    "chezmoi",
    "ssh-copy-id",
    "socat",
    "nc",
    "ncat",
    "xxd",
    "base64",
    "visudo",
    "systemctl",
    "watch",
    "entr",
    "return",
];

/// Files that run by themselves or belong to the agent, given to a program that may write them.
pub(super) fn perhaps_written(simple: &Simple, facts: &CommandFacts<'_>) -> Vec<Arg> {
    if simple.is(READERS) {
        return Vec::new();
    }
    let cwd = simple.cwd.as_deref();
    let mut found = Vec::new();
    for (at, arg) in simple.args.iter().enumerate() {
        let text = arg.text.as_str();
        let inline = text.split_once('=').map(|(_, value)| value);
        let short = text
            .strip_prefix('-')
            .filter(|text| !text.starts_with('-'))
            .and_then(|text| text.find('/').and_then(|at| text.get(at..)));
        for candidate in [inline, short, Some(text)].into_iter().flatten() {
            let name = candidate.rsplit('/').next().unwrap_or_default();
            let is_option = candidate.starts_with('-');
            // A script is run, not written.
            let is_script = at == 0 && super::inline::interpreter(&simple.program).is_some();
            if candidate.is_empty()
                || is_option
                || is_script
                || is_env_file(name)
                || matches!(name, "config.yaml" | ".npmrc")
            {
                continue;
            }
            if facts.runs_by_itself(candidate, cwd) {
                found.push(Arg { text: candidate.to_owned(), ..arg.clone() });
                break;
            }
        }
    }
    found
}

//! Commands and texts that a command runs: wrappers, shells, `find -exec`, `xargs`, `eval`.

mod collectors;
mod runners;
mod shells;
mod wrappers;

use super::expand::Arg;
use super::simple::{Options, Simple, Stdin};
use super::syntax;

pub(super) use shells::{FOREIGN_SHELLS, invocation, is_shell, is_stdin, opens_descriptor, script};

/// What runs inside.
#[derive(Debug)]
pub(super) enum Inner {
    Command {
        words: Vec<Arg>,
        stdin: Option<Stdin>,
        folder: Folder,
    },
    Text {
        text: String,
        /// In the shell itself, so that what it sets stays.
        here: bool,
        /// `$0`, `$1` …; `None` when not known.
        positional: Option<Vec<String>>,
    },
}

/// Where a command inside runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Folder {
    Same,
    Unknown,
    /// As written; relative to the outer command's.
    At(String),
}

/// What `simple` runs.
pub(super) fn of(simple: &Simple) -> Vec<Inner> {
    let program = simple.program.as_str();
    if is_shell(program) || FOREIGN_SHELLS.contains(&program) {
        return shells::shell(simple);
    }
    if let Some(inner) = runners::runs(simple) {
        return inner;
    }
    match program {
        "" => Vec::new(),
        "env" => wrappers::env(simple),
        "command"
            if simple
                .args
                .first()
                .is_some_and(|arg| arg.text.starts_with("-v") || arg.text.starts_with("-V")) =>
        {
            Vec::new()
        }
        "eval" => vec![text(&join(&simple.args), true)],
        "source" | "." => match (&simple.stdin, simple.args.first()) {
            (Stdin::Text(code), Some(arg)) if is_stdin(&arg.text) => vec![text(code, true)],
            _ => Vec::new(),
        },
        "trap" => {
            let args = simple.args.strip_prefix([Arg::known("--")].as_slice()).unwrap_or(&simple.args);
            match args.first() {
                Some(arg) if !arg.text.starts_with('-') && args.len() > 1 => vec![text(&arg.text, false)],
                _ => Vec::new(),
            }
        }
        "alias" => simple
            .args
            .iter()
            .filter_map(|arg| arg.text.split_once('='))
            .filter(|(_, value)| syntax::read(value).is_ok())
            .map(|(_, value)| text(value, false))
            .collect(),
        "xargs" | "gxargs" => collectors::xargs(simple),
        "parallel" => collectors::parallel(simple),
        "find" | "gfind" | "bfs" => collectors::find(simple),
        "fd" | "fdfind" => collectors::fd(simple),
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
        "su" | "runuser" | "script" | "sg" => shells::with_c(simple),
        "flock" if simple.has_arg(&["-c", "--command"]) => shells::with_c(simple),
        "hyperfine" => simple
            .options(
                "wrmMPSn",
                &["warmup", "runs", "prepare", "cleanup", "setup", "export-json", "export-markdown", "shell"],
            )
            .operands
            .iter()
            .map(|arg| text(&arg.text, false))
            .collect(),
        "nodemon" => simple
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
        "git" => collectors::git(simple),
        "gdb" => match simple.args.iter().position(|arg| arg.text == "--args") {
            Some(at) => command(simple.args.get(at + 1..).unwrap_or_default().to_vec()),
            None => Vec::new(),
        },
        _ if program.starts_with("ld-linux") || program.starts_with("ld-musl") => {
            command(options_until_operand(&simple.args, "", &["library-path", "preload", "argv0"]))
        }
        _ => wrappers::wrapped(simple),
    }
}

fn command(words: Vec<Arg>) -> Vec<Inner> {
    if words.is_empty() {
        Vec::new()
    } else {
        vec![Inner::Command { words, stdin: None, folder: Folder::Same }]
    }
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

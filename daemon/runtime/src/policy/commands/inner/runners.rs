//! Programs of many subcommands that run a command, or a text that a shell reads.

use super::super::expand::Arg;
use super::super::simple::Simple;
use super::{Inner, command, join, text};

/// Programs, the subcommand that counts (empty for any), and the options whose value a shell reads.
const TEXTS: &[(&str, &[&str], &[&str])] = &[
    ("npx", &[], &["-c", "--call"]),
    ("pnpx", &[], &["-c", "--call"]),
    ("bunx", &[], &["-c", "--call"]),
    ("npm", &["exec", "x"], &["-c", "--call"]),
    ("cargo", &["watch"], &["-s", "--shell"]),
    ("asciinema", &[], &["-c", "--command"]),
    ("ttyrec", &[], &["-e"]),
    ("chokidar", &[], &["-c", "--command"]),
    ("onchange", &[], &["-c"]),
    ("yt-dlp", &[], &["--exec", "--exec-before-download"]),
    ("youtube-dl", &[], &["--exec"]),
    ("execlineb", &[], &["-c"]),
    ("entr", &[], &["-s"]),
    ("reflex", &[], &["-s"]),
    ("xterm", &[], &["-e"]),
    ("fzf", &[], &["--preview", "--bind", "--execute"]),
];

/// Programs whose operands are texts, each for a shell.
const TEXT_OPERANDS: [&str; 9] =
    ["pee", "mispipe", "concurrently", "npm-run-all", "kdesu", "gksu", "gksudo", "beesu", "watchexec"];

/// Programs, the words that must stand among their arguments, and how many words there stand before the command.
const COMMANDS: &[(&str, &str, usize)] = &[
    ("rustup", "run", 1),
    ("npm", "x", 0),
    ("npm", "exec", 0),
    ("npm", "explore", 1),
    ("pnpm", "exec", 0),
    ("pnpm", "dlx", 0),
    ("yarn", "exec", 0),
    ("yarn", "dlx", 0),
    ("yarn", "run", 0),
    ("cargo", "watch", 0),
    ("volta", "run", 0),
    ("nvm", "exec", 1),
    ("direnv", "exec", 1),
    ("flatpak-spawn", "--host", 0),
    ("conda", "run", 0),
    ("mamba", "run", 0),
    ("podman", "unshare", 0),
    ("buildah", "unshare", 0),
];

/// What such a program runs; `None` for another program.
pub(super) fn runs(simple: &Simple) -> Option<Vec<Inner>> {
    let program = simple.program.as_str();
    let mut found = Vec::new();
    for (_, subs, options) in TEXTS.iter().filter(|(name, ..)| *name == program) {
        if subs.is_empty() || simple.has_arg(subs) {
            found.extend(option_texts(simple, options));
        }
    }
    if TEXT_OPERANDS.contains(&program) {
        let operands: Vec<&Arg> = simple.args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
        found.extend(operands.iter().map(|arg| text(&arg.text, false)));
        found.extend(super::wrappers::unknown_wrapper(simple));
        return Some(found);
    }
    match program {
        "cmake" => return cmake(simple),
        // A module that is a program of its own.
        _ if program.starts_with("python") => {
            const MODULES: [&str; 7] = ["pip", "keyring", "twine", "pipx", "uv", "poetry", "serve"];
            let at = simple.args.iter().position(|arg| arg.text == "-m")?;
            let words = simple.args.get(at + 1..).filter(|_| MODULES.contains(&simple.arg(at + 1)))?;
            return Some(command(words.to_vec()));
        }
        "sops" if simple.has_arg(&["exec-env", "exec-file"]) => {
            return Some(simple.args.last().map(|arg| text(&arg.text, false)).into_iter().collect());
        }
        _ => {}
    }
    let places = COMMANDS
        .iter()
        .filter(|(name, ..)| *name == program)
        .filter_map(|(_, sub, skip)| Some((simple.args.iter().position(|arg| arg.text == *sub)?, skip)));
    if let Some((at, skip)) = places.min() {
        let rest = simple.args.get(at + 1..).unwrap_or_default();
        // Options of the subcommand, whose values are not known here, stand before the command.
        let start = rest.iter().position(|arg| !arg.text.starts_with('-')).unwrap_or(rest.len());
        let words = rest.get(start + skip..).unwrap_or_default();
        let words = words.strip_prefix([Arg::known("--")].as_slice()).unwrap_or(words);
        // One word with blanks is a text.
        found
            .extend(words.first().filter(|word| word.text.contains(' ')).map(|word| text(&word.text, false)));
        found.extend(command(words.to_vec()));
        if let Some(dashes) = rest.iter().position(|arg| arg.text == "--") {
            found.extend(command(rest.get(dashes + 1..).unwrap_or_default().to_vec()));
        }
        return Some(found);
    }
    (!found.is_empty()).then_some(found)
}

fn option_texts(simple: &Simple, options: &[&str]) -> Vec<Inner> {
    let mut found = Vec::new();
    for (at, arg) in simple.args.iter().enumerate() {
        let inline = options
            .iter()
            .filter(|option| option.starts_with("--"))
            .find_map(|option| arg.text.strip_prefix(option)?.strip_prefix('='));
        if let Some(inline) = inline {
            found.push(text(inline, false));
        } else if options.contains(&arg.text.as_str())
            && let Some(value) = simple.args.get(at + 1)
        {
            found.push(text(&value.text, false));
        }
    }
    found
}

/// `cmake -E`: the usual programs under other names.
fn cmake(simple: &Simple) -> Option<Vec<Inner>> {
    let at = simple.args.iter().position(|arg| arg.text == "-E")?;
    let (sub, rest) = simple.args.get(at + 1..)?.split_first()?;
    let with = |words: &[&str]| {
        command(words.iter().map(|word| Arg::known(word)).chain(rest.iter().cloned()).collect())
    };
    Some(match sub.text.as_str() {
        "rm" | "remove" => with(&["rm"]),
        "remove_directory" => with(&["rm", "-r"]),
        "copy" | "copy_if_different" => with(&["cp"]),
        "copy_directory" | "copy_directory_if_different" => with(&["cp", "-r"]),
        "rename" => with(&["mv"]),
        "touch" => with(&["touch"]),
        "create_symlink" | "create_hardlink" => with(&["ln"]),
        "env" => with(&["env"]),
        "time" => with(&["time"]),
        "tar" => with(&["tar"]),
        "chdir" => vec![text(&format!("cd {}", join(rest).replacen(' ', " && ", 1)), false)],
        _ => Vec::new(),
    })
}

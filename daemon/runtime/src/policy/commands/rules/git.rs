//! git: what loses work, and what makes it run other programs.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::report::Report;
use super::super::scope::UNKNOWN;
use super::super::simple::{Options, Simple};
use super::shape_exact;

/// Settings that change looks or names, and run nothing.
const HARMLESS_KEYS: [&str; 30] = [
    "user.name",
    "user.email",
    "color.",
    "core.quotepath",
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.abbrev",
    "core.symlinks",
    "advice.",
    "init.defaultbranch",
    "commit.gpgsign",
    "tag.gpgsign",
    "safe.directory",
    "gc.auto",
    "gc.prune",
    "push.default",
    "push.autosetupremote",
    "pull.",
    "merge.conflictstyle",
    "merge.renamelimit",
    "diff.algorithm",
    "diff.renames",
    "log.",
    "protocol.version",
    "fetch.",
    "rerere.",
    "branch.",
];

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    if simple.program != "git" && simple.program != "hub" {
        return;
    }
    let mut rest = simple.args.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        let text = first.text.as_str();
        match text {
            "-c" | "--config-env" => {
                setting(behind.first().map_or("", |arg| arg.text.as_str()), simple, report);
                rest = behind.get(1..).unwrap_or_default();
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" => {
                rest = behind.get(1..).unwrap_or_default();
            }
            _ if text.starts_with("--config-env=") => {
                setting(text.trim_start_matches("--config-env="), simple, report);
                rest = behind;
            }
            _ if text.starts_with("--exec-path=") => {
                report.ask("git.runs", "makes git run programs from another folder", shape_exact(simple));
                rest = behind;
            }
            _ if text.starts_with("-c") && !text.starts_with("--") => {
                setting(text.trim_start_matches("-c"), simple, report);
                rest = behind;
            }
            _ if text.starts_with('-') => rest = behind,
            _ => break,
        }
    }
    let Some((sub, args)) = rest.split_first() else { return };
    let with_values =
        if matches!(sub.text.as_str(), "push" | "clean" | "branch" | "reset") { "o" } else { "mFtCSuXsob" };
    let options = Options::read(args, with_values, &["message", "file", "author", "date"]);
    let mut ask = |rule, what: &str| report.ask(rule, what, shape_exact(simple));
    let any = |wanted: &[&str]| args.iter().any(|arg| wanted.contains(&arg.text.as_str()));
    let beginning = |wanted: &str| args.iter().any(|arg| arg.text.starts_with(wanted));
    match sub.text.as_str() {
        "reset" if options.longs.iter().any(|long| !long.is_empty() && "hard".starts_with(long.as_str())) => {
            ask("git.reset_hard", "throws away all changes that are not committed");
        }
        "push" => {
            let lease = beginning("--force-with-lease") || beginning("--force-if-includes");
            let force = options.shorts.contains(&'f')
                || options
                    .longs
                    .iter()
                    .any(|long| long.len() > 2 && "force".starts_with(long.as_str()) || long == "mirror")
                || args.iter().any(|arg| arg.text.starts_with('+'));
            let deletes = options.has("d", "")
                || any(&["--delete", "--prune"])
                || args.iter().any(|arg| arg.text.starts_with(':') && arg.text.len() > 1);
            if force {
                ask("git.force_push", "overwrites what others see on the remote");
            } else if lease {
                ask("git.force_push", "overwrites the remote branch if nobody else changed it");
            }
            if deletes {
                ask("git.delete_remote", "deletes branches or tags on the remote");
            }
            if beginning("--receive-pack") || beginning("--exec") || beginning("ext::") {
                ask("git.runs", "makes git run a program on the other side");
            }
        }
        "clean" => {
            let force = options.shorts.contains(&'f') || options.has_long("force") && beginning("--f");
            if force && !options.shorts.contains(&'n') && !any(&["--dry-run"]) {
                ask("git.clean", "deletes files that git does not know");
            }
        }
        "branch" => {
            let deletes = options.shorts.contains(&'d') || beginning("--del");
            let force = options.shorts.contains(&'f') || any(&["--force"]);
            if options.shorts.contains(&'D') || (deletes && force) {
                ask("git.branch_delete", "deletes a branch even if its work is nowhere else");
            }
        }
        "stash" if any(&["clear", "drop"]) => ask("git.destroy", "throws away stashed work"),
        "reflog" if any(&["expire", "delete"]) => {
            ask("git.destroy", "throws away the way back to old states");
        }
        "update-ref" if any(&["-d", "--delete"]) => ask("git.destroy", "deletes a name of a state"),
        "filter-branch" | "filter-repo" => ask("git.rewrite", "rewrites the whole history"),
        // The whole tree at once loses as much as `reset --hard`.
        "checkout" | "restore"
            if any(&[".", ":/", "*"]) && (any(&["--worktree", "-W"]) || !any(&["--staged", "-S"])) =>
        {
            ask("git.checkout_force", "throws away changes that are not committed");
        }
        "rm" if options.has("f", "force") && !any(&["--cached"]) => {
            ask("git.checkout_force", "throws away changes that are not committed");
        }
        "read-tree" if beginning("--reset") => {
            ask("git.reset_hard", "throws away all changes that are not committed");
        }
        "reset" if any(&["--merge", "--keep"]) => {
            ask("git.reset_hard", "throws away changes that are not committed");
        }
        "worktree" if any(&["remove"]) && any(&["--force", "-f"]) => {
            ask("git.destroy", "throws away a working tree with its changes");
        }
        "prune" => ask("git.destroy", "throws away the way back to old states"),
        "gc" if args.iter().any(|arg| matches!(arg.text.as_str(), "--prune=now" | "--prune=all")) => {
            ask("git.destroy", "throws away the way back to old states");
        }
        "apply" if any(&["--unsafe-paths"]) => ask("write.outside", "writes outside the working directory"),
        "checkout" | "switch" | "restore" | "checkout-index"
            if options.shorts.contains(&'f') || any(&["--force", "--discard-changes"]) =>
        {
            ask("git.checkout_force", "throws away changes that are not committed");
        }
        "config" => {
            let key = options.operand(0);
            // A value may look like an option.
            let valued = options.operands.len() == 1 && args.last().is_some_and(|arg| arg.text.contains(' '));
            let writes = options.operands.len() > 1
                || valued
                || any(&[
                    "--add",
                    "--replace-all",
                    "--unset",
                    "--unset-all",
                    "--edit",
                    "-e",
                    "--rename-section",
                    "--remove-section",
                ]);
            let key = if matches!(key, "set" | "unset" | "edit") { options.operand(1) } else { key };
            let reads = any(&["--get", "--get-all", "--list", "-l", "--get-regexp", "get", "list"]);
            if writes && !reads {
                setting(
                    &format!("{key}={}", args.last().map_or("", |arg| arg.text.as_str())),
                    simple,
                    report,
                );
            }
        }
        "clone" | "fetch" | "pull" | "ls-remote" | "remote" | "submodule" | "archive" => {
            let transport = args.iter().any(|arg| {
                arg.text.starts_with("ext::")
                    || arg.text.starts_with("--upload-pack")
                    || arg.text.starts_with("--exec")
            });
            let short = sub.text == "clone" && options.shorts.contains(&'u');
            if transport || short {
                ask("git.runs", "makes git run a program of the caller's choice");
            }
            for (name, value) in &options.values {
                if name == "config" {
                    setting(&value.text, simple, report);
                }
            }
            if let Some(at) = args.iter().position(|arg| matches!(arg.text.as_str(), "-c" | "--config"))
                && sub.text == "clone"
            {
                setting(args.get(at + 1).map_or("", |arg| arg.text.as_str()), simple, report);
            }
        }
        "grep" if options.shorts.contains(&'O') || beginning("--open-files-in-pager") => {
            ask("git.runs", "makes git open files in a program");
        }
        "difftool" | "mergetool" if beginning("-x") || beginning("--extcmd") || beginning("--tool") => {
            ask("git.runs", "makes git compare by a program of the caller's choice");
        }
        "daemon" | "instaweb" | "upload-pack" | "receive-pack" | "http-backend" => {
            ask("git.runs", "serves the repository to others");
        }
        "diff" | "hash-object" | "grep" | "blame" | "show" | "cat-file" | "commit" | "notes" | "add" => {
            secrets(&sub.text, args, simple, facts, report);
        }
        _ => {}
    }
}

/// Secrets that git shows, or puts where they stay.
fn secrets(sub: &str, args: &[Arg], simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let cwd = simple.cwd.as_deref();
    let mut before = "";
    for arg in args {
        let option = std::mem::replace(&mut before, arg.text.as_str());
        let is_text = matches!(option, "-m" | "--message" | "-e" | "--grep" | "-S" | "-G");
        let is_file = sub != "commit" || matches!(option, "-F" | "--file") || arg.text.starts_with("--file=");
        // `HEAD:.env`, `--file=x`.
        let text = arg.text.rsplit([':', '=']).next().unwrap_or_default();
        if !is_text
            && is_file
            && !text.is_empty()
            && !arg.text.starts_with("--no")
            && facts.secret(text, cwd, arg.glob)
        {
            report.ask("read.secret", "shows or keeps credentials by git", shape_exact(simple));
        }
    }
}

/// One setting for git, given on its command line or stored.
fn setting(pair: &str, simple: &Simple, report: &mut Report) {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let key = key.to_lowercase();
    let harmless =
        HARMLESS_KEYS.iter().any(|known| key == *known || (known.ends_with('.') && key.starts_with(known)))
            || (key == "core.pager" || key.starts_with("pager."))
                && matches!(value, "" | "cat" | "less" | "false" | "true")
            || key == "core.editor" && matches!(value, "true" | ":" | "cat" | "vim" | "nano")
            || key.starts_with("alias.")
                && !value.trim_start().starts_with('!')
                && !value.contains(UNKNOWN)
                && ![
                    "-c", "--exec", "-x", "force", "config", "bisect", "filter", "difftool", "pack", "-O",
                    "foreach",
                ]
                .iter()
                .any(|word| value.contains(word));
    if !harmless || pair.contains(UNKNOWN) {
        report.ask(
            "git.config",
            format!("sets git's {key}, by which git may run other programs"),
            shape_exact(simple),
        );
    }
}

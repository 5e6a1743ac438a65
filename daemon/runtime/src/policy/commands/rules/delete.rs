//! Deleting.

use super::super::CommandFacts;
use super::super::report::Report;
use super::super::simple::Simple;
use super::{shape, shape_exact};

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let windows = simple.via.iter().any(|outer| matches!(outer.as_str(), "cmd" | "pwsh" | "powershell"));
    match simple.program.as_str() {
        "rm" | "grm" | "unlink" | "srm" if !windows => remove(simple, facts, report),
        // They take folders without an option that says so.
        "rimraf" | "del-cli" | "trash" | "trash-put" | "gvfs-trash" | "gvfs-rm"
            if !simple.args.is_empty() =>
        {
            let mut as_rm = simple.clone();
            as_rm.args.insert(0, super::super::expand::Arg::known("-r"));
            remove(&as_rm, facts, report);
        }
        "gio" if matches!(simple.arg(0), "trash" | "remove") => {
            report.ask("delete.recursive", "deletes files or folders", shape_exact(simple));
        }
        "scrub" | "sfill" | "bleachbit" | "rmlint" | "tmpreaper" | "tmpwatch" | "systemd-tmpfiles"
        | "logrotate" => {
            report.ask("delete.tool", "deletes files that a program chooses", shape_exact(simple));
        }
        "fdupes" | "jdupes" | "rdfind"
            if simple.args.iter().any(|arg| {
                arg.text.contains("delete") || (arg.text.starts_with('-') && arg.text.contains('d'))
            }) =>
        {
            report.ask("delete.tool", "deletes files that a program chooses", shape_exact(simple));
        }
        "shred" | "wipe" => report.ask("delete.shred", "destroys files beyond recovery", shape_exact(simple)),
        "rmdir" if windows => report.ask("delete.windows", "deletes folders", shape_exact(simple)),
        "find" | "gfind" | "bfs" if simple.has_arg(&["-delete"]) => {
            let narrowed = simple.args.iter().any(|arg| {
                arg.text.starts_with('-')
                    && !matches!(
                        arg.text.as_str(),
                        "-delete" | "-depth" | "-maxdepth" | "-mindepth" | "-xdev" | "-print"
                    )
            });
            let start = simple.args.iter().find(|arg| !arg.text.starts_with('-'));
            if !narrowed && start.is_some_and(|start| facts.is_vital(start, simple.cwd.as_deref()).is_some())
            {
                return report
                    .block("block.system_dirs", "deletes a folder of the operating system, or a home");
            }
            report.ask("delete.find", "deletes every file that a search finds", shape_exact(simple));
        }
        "rsync"
            if simple
                .args
                .iter()
                .any(|arg| arg.text.starts_with("--del") || arg.text == "--remove-source-files") =>
        {
            report.ask(
                "delete.rsync",
                "deletes files that are missing on the other side",
                shape_exact(simple),
            );
        }
        "fd" | "fdfind" => {}
        program => {
            let lower = program.to_lowercase();
            let names = ["del", "erase", "rd", "rm", "ri", "remove-item", "clear-content", "format"];
            if (windows && names.contains(&lower.as_str())) || lower == "remove-item" {
                report.ask("delete.windows", "deletes files or folders", shape_exact(simple));
            }
        }
    }
}

fn remove(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let options = simple.options("", &[]);
    let cwd = simple.cwd.as_deref();
    // `--no-preserve-root` names its purpose.
    let recursive =
        options.has("rR", "recursive") || options.longs.iter().any(|long| long.starts_with("no-p"));
    if recursive {
        for operand in &options.operands {
            match facts.is_vital(operand, cwd) {
                Some("root") => return report.block("block.root_wipe", "deletes the whole file system"),
                Some("home") => return report.block("block.home", "deletes the user's home folder"),
                Some(_) => {
                    return report.block("block.system_dirs", "deletes a folder of the operating system");
                }
                None => {}
            }
        }
        let shown = shown(simple);
        return report.ask(
            "delete.recursive",
            format!("deletes folders with all they contain ({shown})"),
            shape(simple, &options),
        );
    }
    if is_own_check(simple, facts) {
        return;
    }
    let unknown = options.open
        || options
            .operands
            .iter()
            .any(|operand| operand.splits || operand.is_blank() || operand.text.starts_with('\0'));
    let collected = simple
        .via
        .last()
        .is_some_and(|outer| matches!(outer.as_str(), "xargs" | "parallel" | "find" | "fd" | "fdfind"));
    if unknown || collected {
        return report.ask(
            "delete.unknown",
            "deletes files that are not known before the run",
            shape_exact(simple),
        );
    }
    let outside = options.operands.iter().find(|operand| {
        operand.text.starts_with('/')
            || super::super::places::absolute(&operand.text, cwd)
                .is_none_or(|path| !std::path::Path::new(&path).starts_with(facts.workspace))
            || operand.text.contains(".git/")
    });
    if let Some(operand) = outside {
        let what =
            format!("deletes {}, by an absolute path or outside the working directory", operand.shown());
        report.ask("delete.absolute", what, shape(simple, &options));
    }
}

fn shown(simple: &Simple) -> String {
    let operands: Vec<String> = simple
        .args
        .iter()
        .filter(|arg| !arg.text.starts_with('-'))
        .map(super::super::expand::Arg::shown)
        .collect();
    operands.join(", ")
}

/// `rm -f` of one file that a check of the agent left in the temp folder.
fn is_own_check(simple: &Simple, facts: &CommandFacts<'_>) -> bool {
    let operands: Vec<_> = simple.args.iter().filter(|arg| arg.text != "-f").collect();
    let [only] = operands.as_slice() else { return false };
    let Some(text) = only.literal() else { return false };
    let path = std::path::Path::new(text);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    (name.starts_with("hermes-verify-") || name.starts_with("hermes-ad-hoc-"))
        && path.parent().is_some_and(|folder| folder == facts.temp_dir)
}

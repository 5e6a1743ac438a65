//! Package managers, builders and their settings: code from elsewhere, lasting changes, what is published.

use super::super::CommandFacts;
use super::super::report::Report;
use super::super::simple::Simple;
use super::shape_exact;

/// Indexes that are well known, so that naming them is no question.
const INDEXES: [&str; 4] = [
    "https://pypi.org/",
    "https://test.pypi.org/",
    "https://download.pytorch.org/",
    "https://registry.npmjs.org",
];

/// Settings that stay, by program: the words that change them, and what they have in common.
const LASTING: &[(&str, &[&str], &[&str])] = &[
    (
        "npm",
        &["set"],
        &["registry", "prefix", "script-shell", "ignore-scripts", "_auth", "node-options", "cafile", "proxy"],
    ),
    ("pnpm", &["set"], &["registry", "prefix", "script-shell", "ignore-scripts", "_auth", "node-options"]),
    ("yarn", &["set"], &["yarnPath", "registry", "Registry", "prefix", "://"]),
    ("pip", &["config"], &["set", "edit", "unset"]),
    ("pip3", &["config"], &["set", "edit", "unset"]),
    ("conda", &["config"], &["channel", "--set"]),
    ("go", &["env"], &["-w"]),
    ("gh", &["alias", "config", "extension"], &["set", "import", "install", "exec"]),
    ("gsettings", &["set"], &[""]),
    ("dconf", &["write", "load"], &[""]),
    ("xfconf-query", &["-s", "--set"], &[""]),
    ("kwriteconfig5", &[], &[""]),
    ("kwriteconfig6", &[], &[""]),
    ("defaults", &["write", "delete", "import"], &[""]),
    ("xdg-mime", &["default"], &[""]),
    ("xdg-settings", &["set"], &[""]),
    ("jj", &["config"], &["set", "edit"]),
    ("loginctl", &["enable-linger"], &[""]),
];

/// Programs and options that make them run or load a program of the caller's choice.
const CHOSEN: &[(&str, &[&str])] = &[
    ("go", &["-toolexec", "-exec", "-vettool"]),
    ("hg", &["--config"]),
    ("svn", &["--config-option", "--diff-cmd", "--diff3-cmd", "--editor-cmd"]),
    ("guile", &["-c", "-e"]),
    ("expect", &["-c"]),
    ("clisp", &["-x"]),
    ("swipl", &["-g", "-t"]),
    ("gprolog", &["--query-goal", "--entry-goal"]),
    ("ghci", &["-e"]),
    ("ocaml", &["-e"]),
    ("iex", &["-e", "--eval"]),
    ("rake", &["-e", "-E", "--execute"]),
    ("bazel", &["--run_under"]),
    ("aria2c", &["--on-download-complete", "--on-download-start", "--on-bt-download-complete"]),
    ("openssl", &["-engine", "-provider-path", "-provider"]),
    ("gpg", &["--agent-program", "--photo-viewer", "--pinentry-program"]),
    ("gcc", &["-fplugin", "-specs"]),
    ("g++", &["-fplugin", "-specs"]),
    ("clang", &["-fplugin", "-load"]),
    ("clang++", &["-fplugin", "-load"]),
    ("rpm", &["-E", "--eval", "--pipe"]),
    ("rpmbuild", &["-E", "--eval"]),
    ("helm", &["--post-renderer"]),
    ("elinks", &["-eval"]),
    ("lynx", &["-cmd_script"]),
    ("lldb", &["-n", "--attach-name"]),
    ("gdb", &["-ix", "--init-command"]),
    ("gdbserver", &["--attach"]),
    ("ssh", &["-I"]),
    ("sftp", &["-D", "-S"]),
    ("ssh-keygen", &["-D", "-w"]),
    ("php", &["-z"]),
    ("cpio", &["--rsh-command"]),
    ("run-parts", &[""]),
];

/// What gives something away for good.
const PUBLISHING: &[(&str, &[&str])] = &[
    ("npm", &["publish", "unpublish", "deprecate", "owner", "access", "token", "adduser", "login"]),
    ("pnpm", &["publish"]),
    ("yarn", &["publish"]),
    ("cargo", &["publish", "yank", "owner", "login"]),
    ("twine", &["upload"]),
    ("poetry", &["publish"]),
    ("uv", &["publish"]),
    ("gem", &["push", "yank"]),
    ("asciinema", &["upload"]),
];

pub(super) fn judge(simple: &Simple, _facts: &CommandFacts<'_>, report: &mut Report) {
    let program = simple.program.as_str();
    let lasting = LASTING.iter().any(|(name, subs, parts)| {
        *name == program
            && (subs.is_empty() || simple.has_arg(subs))
            && simple.args.iter().any(|arg| parts.iter().any(|part| arg.text.contains(part)))
    });
    if lasting {
        report.ask("tool.settings", format!("changes lasting settings of {program}"), shape_exact(simple));
    }
    let chosen = CHOSEN.iter().filter(|(name, _)| *name == program).any(|(_, options)| {
        simple.args.iter().any(|arg| {
            options.iter().any(|option| {
                let rest = arg.text.strip_prefix(option);
                rest.is_some_and(|rest| {
                    rest.is_empty()
                        || rest.starts_with('=')
                        || option.is_empty()
                        || (option.len() == 2
                            && !option.starts_with("--")
                            && matches!(*option, "-D" | "-I" | "-E" | "-S"))
                })
            })
        })
    });
    let value = |text: &str| text.contains("$(shell") || text.contains('`');
    let chosen = chosen
        || match program {
            "apt" | "apt-get" | "aptitude" => simple.args.iter().any(|arg| {
                let lower = arg.text.to_lowercase();
                lower.contains("invoke") || lower.contains("dir::bin") || lower.contains("::options")
            }),
            "make" | "gmake" => simple.args.iter().any(|arg| arg.text.contains('=') && value(&arg.text)),
            "php" => simple.args.iter().any(|arg| {
                arg.text.contains("auto_prepend")
                    || arg.text.contains("auto_append")
                    || arg.text.contains("extension=")
            }),
            "mlr" => simple.args.iter().any(|arg| {
                ["system", "exec", "tee", "dump", "emit", "| \"", "> \""]
                    .iter()
                    .any(|word| arg.text.contains(word))
                    && arg.text.contains(['(', '>', '|'])
            }),
            "rename" | "prename" | "file-rename" | "perl-rename" => renames_by_code(simple),
            "lftp" | "smbclient" => simple.args.iter().any(|arg| arg.text.contains('!')),
            "websocat" => simple.args.iter().any(|arg| {
                arg.text.contains("cmd:") || arg.text.contains("sh-c:") || arg.text.contains("exec:")
            }),
            "node" => simple
                .args
                .iter()
                .any(|arg| arg.text.starts_with("--inspect") && arg.text.contains("0.0.0.0")),
            "git" | "hub" => {
                simple.has_arg(&["send-email"])
                    && simple.args.iter().any(|arg| {
                        arg.text.starts_with("--smtp-server") || arg.text.starts_with("--sendmail-cmd")
                    })
            }
            "strace" | "ltrace" => simple.args.iter().any(|arg| {
                let file = arg.text.strip_prefix("-o").or_else(|| arg.text.strip_prefix("--output="));
                arg.text.starts_with(['|', '!']) || file.is_some_and(|file| file.starts_with(['|', '!']))
            }),
            _ => false,
        };
    if chosen {
        report.ask("tool.runs", format!("makes {program} run another program or text"), shape_exact(simple));
    }
    if PUBLISHING.iter().any(|(name, subs)| *name == program && subs.contains(&first(simple)))
        && !simple.has_arg(&["--dry-run", "-n", "ls", "list"])
    {
        report.ask("remote.publish", "publishes something, or changes who may", shape_exact(simple));
    }
    if program == "gh" {
        github(simple, report);
    }
    let installs = matches!(program, "pip" | "pip3" | "uv" | "pipx" | "npm" | "yarn" | "pnpm");
    let index = |at: usize, text: &str| {
        let named =
            ["--index-url", "--extra-index-url", "--index", "--default-index", "--find-links", "--registry"];
        let apart = named.contains(&text) || (text == "-i" && matches!(program, "pip" | "pip3" | "uv"));
        let value = if apart {
            Some(simple.arg(at + 1))
        } else {
            text.split_once('=').filter(|(name, _)| named.contains(name)).map(|(_, value)| value)
        };
        value.is_some_and(|value| !INDEXES.iter().any(|known| value.starts_with(known)))
    };
    if installs && simple.args.iter().enumerate().any(|(at, arg)| index(at, &arg.text)) {
        report.ask("remote.index", "installs from another index than the usual one", shape_exact(simple));
    }
    // A program from an address, run at once.
    let runner = matches!(program, "deno" | "npx" | "bunx" | "pnpx" | "uvx")
        || (program == "uv" && simple.has_arg(&["run"]))
        || (program == "pipx" && simple.has_arg(&["run"]));
    let from_address = simple.args.iter().any(|arg| {
        ["http://", "https://", "git+", "github:", "gist:"].iter().any(|start| arg.text.starts_with(start))
    });
    if runner && from_address && !simple.has_arg(&["--index-url"]) {
        report.ask("run.remote", "runs what it downloads, unseen", shape_exact(simple));
    }
}

fn first(simple: &Simple) -> &str {
    simple.args.iter().find(|arg| !arg.text.starts_with('-')).map_or("", |arg| arg.text.as_str())
}

/// `rename 's/a/b/'` takes a program of perl.
fn renames_by_code(simple: &Simple) -> bool {
    let code = first(simple);
    let flags = code.rsplit(['/', '|', '#', ',']).next().unwrap_or_default();
    let substitutes = ["s/", "y/", "tr/", "s|", "s#", "s,"].iter().any(|start| code.starts_with(start));
    if substitutes {
        flags.contains('e') || code.contains(['`', '(', '$']) && code.contains("(?{") || code.contains(';')
    } else {
        code.contains(['(', '`', '\'', '"', ';', '{'])
    }
}

/// What the client of the forge takes away, lets in or keeps.
fn github(simple: &Simple, report: &mut Report) {
    let second = simple
        .args
        .iter()
        .filter(|arg| !arg.text.starts_with('-'))
        .nth(1)
        .map_or("", |arg| arg.text.as_str());
    let api = simple.args.iter().any(|arg| {
        arg.text.eq_ignore_ascii_case("delete") || arg.text == "-XDELETE" || arg.text == "--method=DELETE"
    });
    let deletes = match first(simple) {
        "api" => api,
        "repo" => matches!(second, "delete" | "archive" | "rename" | "edit" | "deploy-key"),
        "secret" | "variable" => matches!(second, "delete" | "set"),
        "release" | "gist" | "label" | "issue" | "cache" | "run" => second == "delete",
        "auth" => matches!(second, "login" | "logout" | "refresh" | "setup-git"),
        "ssh-key" | "gpg-key" => second != "list",
        "codespace" => true,
        "pr" => second == "merge" && simple.has_arg(&["--admin"]),
        _ => false,
    };
    if deletes {
        report.ask("remote.forge", "deletes on, or changes access to, the forge", shape_exact(simple));
    }
}

//! Variables that make other programs run something, or hide who a process belongs to.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::places::absolute;
use super::super::report::Report;
use super::super::scope::UNKNOWN;
use super::super::simple::Simple;
use super::shape_exact;
use crate::child_env::TOOL_MARK;

/// Names whose value is loaded or run by the programs that see it.
const LOADED: [&str; 39] = [
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5OPT",
    "PERL5DB",
    "PERL5LIB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSOPEN",
    "LESSCLOSE",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GCONV_PATH",
    "MAKEFLAGS",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "CURL_HOME",
    "WGETRC",
    "GIT_TEMPLATE_DIR",
    "SSLKEYLOGFILE",
];

/// Names whose value is a program that is started; these values only show text or do nothing.
const STARTED: [&str; 15] = [
    "PAGER",
    "MANPAGER",
    "GIT_PAGER",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "BROWSER",
    "SYSTEMD_PAGER",
    "FCEDIT",
    "AWS_PAGER",
    "GH_PAGER",
    "GH_BROWSER",
    "GH_EDITOR",
    "SHELL",
];
const SHOWING: [&str; 20] = [
    "",
    "cat",
    "less",
    "more",
    "true",
    ":",
    "head",
    "vi",
    "vim",
    "nvim",
    "nano",
    "emacs",
    "/bin/cat",
    "/bin/true",
    "/bin/sh",
    "/bin/bash",
    "/bin/zsh",
    "/usr/bin/bash",
    "/usr/bin/zsh",
    "firefox",
];

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    let in_words = simple
        .is(&["env", "export", "declare", "typeset", "readonly", "local", "sudo", "doas", "setenv", "set"]);
    let words = simple.args.iter().filter(|_| in_words).filter_map(|arg| arg.text.split_once('='));
    let assigns = simple.assigns.iter().map(|(name, value)| (name.as_str(), value.text.as_str()));
    for (name, value) in assigns.chain(words) {
        assigned(name, value, simple, facts, report);
    }
    hides(simple, report);
}

fn assigned(name: &str, value: &str, simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    if name == TOOL_MARK || name == "HERMES_YOLO_MODE" || name == "HERMES_TOOL_RUN" {
        report.ask("own.mark", format!("sets {name}, which is the agent's own"), shape_exact(simple) + name);
        return;
    }
    let node = name == "NODE_OPTIONS"
        && ["--require", "-r ", "--import", "--loader", "--experimental-loader", "--eval", "--inspect"]
            .iter()
            .any(|option| value.contains(option));
    let counted = name.starts_with("GIT_CONFIG_KEY_")
        || name.starts_with("GIT_CONFIG_VALUE_")
        || name.starts_with("BASH_FUNC_");
    // `sed -i` on the list of a rebase changes that list and nothing else.
    let edits = name == "GIT_SEQUENCE_EDITOR"
        && value.starts_with("sed -i")
        && !value.contains([';', '|', '&', '`', '$', '>', UNKNOWN])
        && !super::tools::sed_text_runs(value);
    let started = STARTED.contains(&name) && !SHOWING.contains(&value) && !edits;
    let ssh = matches!(name, "GIT_SSH" | "GIT_SSH_COMMAND" | "RSYNC_RSH" | "CVS_RSH") && !is_plain_ssh(value);
    let wrapper = name.ends_with("_WRAPPER") && name.starts_with("RUSTC") && !matches!(value, "" | "sccache");
    let path = name == "PATH" && leads_elsewhere(value, simple, facts);
    if (LOADED.contains(&name) && !value.is_empty()) || node || counted || started || ssh || wrapper || path {
        let shape = format!("{name}={value} {}", shape_exact(simple));
        report.ask(
            "environment.loaded",
            format!("sets {name}, by which other programs load or run something"),
            shape,
        );
    }
}

fn is_plain_ssh(value: &str) -> bool {
    let mut words = value.split_whitespace();
    words.next() == Some("ssh")
        && !value.contains(['`', ';', '|', '&', '$', UNKNOWN])
        && !value.to_lowercase().contains("command")
}

/// A search path that begins in the temp folder: anybody may put programs there.
fn leads_elsewhere(value: &str, simple: &Simple, facts: &CommandFacts<'_>) -> bool {
    let first = value.split(':').next().unwrap_or_default();
    absolute(first, simple.cwd.as_deref()).is_some_and(|folder| {
        (folder.starts_with("/tmp") || folder.starts_with("/var/tmp") || folder.starts_with("/dev/shm"))
            && !std::path::Path::new(&folder).starts_with(facts.workspace)
    })
}

/// Commands that take the agent's mark off a process.
fn hides(simple: &Simple, report: &mut Report) {
    let names_mark = simple.args.iter().any(|arg| arg.text.contains(TOOL_MARK));
    let clears = match simple.program.as_str() {
        "env" => {
            let options =
                simple.args.iter().take_while(|arg| arg.text.starts_with('-') || arg.text.contains('='));
            options.clone().any(|arg| {
                let text = arg.text.as_str();
                text == "-"
                    || (text.starts_with("--i") && "--ignore-environment".starts_with(text))
                    || (text.starts_with('-')
                        && !text.starts_with("--")
                        && !text.contains(['u', 'S', 'C'])
                        && text.contains('i'))
                    || text.starts_with("-i")
            }) || (names_mark && simple.has_arg(&["-u", "--unset"]))
                || simple.args.iter().any(|arg| {
                    let unset = arg.text.strip_prefix("-u").or_else(|| arg.text.strip_prefix("--unset="));
                    unset.is_some_and(|name| name.starts_with("HERMES_") || name.contains(UNKNOWN))
                })
        }
        "unset" => names_mark || simple.args.iter().any(Arg::has_unknown),
        "export" | "declare" | "typeset" => {
            names_mark && simple.args.iter().any(|arg| matches!(arg.text.as_str(), "-n" | "+x" | "-fn"))
        }
        "exec" => simple.args.first().is_some_and(|arg| arg.text.starts_with('-') && arg.text.contains('c')),
        _ => false,
    };
    if clears {
        report.ask(
            "own.mark",
            "takes off the mark by which the agent's processes are known",
            shape_exact(simple),
        );
    }
}

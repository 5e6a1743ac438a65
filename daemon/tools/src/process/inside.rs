//! What data that is written to a process amounts to: a command when a shell or an interpreter reads it, plain data
//! otherwise. A password or a `y` for an installer is no command, and must not be asked about like one.

use crate::terminal::lexer::{Simple, simple_commands};

/// Programs whose input is run in a shell: here, on another machine, or as another user.
const SHELLS: [&str; 24] = [
    "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "busybox", "ssh", "su",
    "sudo", "doas", "chroot", "nsenter", "script", "tmux", "screen", "telnet", "nc", "xargs",
];

/// Interpreters that run what they read when they are given no program, and how a program is given to them.
const INTERPRETERS: [(&str, &str); 8] = [
    ("python", "-c"),
    ("ipython", "-c"),
    ("pypy", "-c"),
    ("node", "-e"),
    ("bun", "-e"),
    ("perl", "-e"),
    ("ruby", "-e"),
    ("php", "-r"),
];

/// Words in front of a command that run it as it is.
const WRAPPERS: [&str; 9] =
    ["env", "exec", "command", "nohup", "time", "nice", "stdbuf", "setsid", "timeout"];

/// The command that `data` is to the processes of `command`; `None` when they take it as data.
pub(super) fn command(command: &str, data: &str) -> Option<String> {
    let mut found = None;
    for simple in simple_commands(command) {
        match reader(&simple) {
            Reader::Shell => return Some(data.to_owned()),
            Reader::Interpreter { program, option } => {
                found = Some(format!("{program} {option} {}", quoted(data)));
            }
            Reader::Data => {}
        }
    }
    found
}

/// How a simple command takes what it reads.
enum Reader {
    Shell,
    Interpreter { program: String, option: &'static str },
    Data,
}

fn reader(simple: &Simple) -> Reader {
    let mut words = simple.words.iter().map(String::as_str).peekable();
    while words.peek().is_some_and(|word| {
        // Options and values of a wrapper (`timeout 5`, `nice -n 3`, `env A=1`).
        WRAPPERS.contains(word)
            || word.starts_with('-')
            || word.contains('=')
            || word.starts_with(|c: char| c.is_ascii_digit())
    }) {
        words.next();
    }
    let Some(word) = words.next() else { return Reader::Data };
    let program = word.rsplit('/').next().unwrap_or(word);
    let rest: Vec<&str> = words.collect();
    // What is decided only when it runs could be any program.
    if word.contains(['$', '`', '*', '?']) || matches!(program, "eval" | "source" | "." | "read") {
        return Reader::Shell;
    }
    if matches!(program, "docker" | "podman" | "kubectl" | "lxc") {
        return if rest.contains(&"exec") || rest.contains(&"run") || rest.contains(&"attach") {
            Reader::Shell
        } else {
            Reader::Data
        };
    }
    if SHELLS.contains(&program) {
        // A shell that has its program takes the rest as data, as far as its program does.
        let given = rest.iter().any(|word| !word.starts_with('-') || is_code_option(word));
        let plain = matches!(
            program,
            "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" | "mksh" | "fish" | "csh" | "tcsh"
        );
        let script = plain && given && !rest.iter().any(|word| is_interactive(word));
        return match script {
            true if rest.iter().any(|word| is_code_option(word)) => inside_code(&rest),
            true => Reader::Data,
            false => Reader::Shell,
        };
    }
    let version_end = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
    let bare = version_end(program);
    let known = INTERPRETERS.iter().find(|(name, _)| *name == bare);
    match known {
        Some((_, option)) => {
            let has_program =
                rest.iter().any(|word| !word.starts_with('-') || is_code_option(word) || *word == "-m");
            if has_program && !rest.iter().any(|word| is_interactive(word)) {
                Reader::Data
            } else {
                Reader::Interpreter { program: program.to_owned(), option }
            }
        }
        None if matches!(
            program,
            "irb" | "pry" | "lua" | "tclsh" | "ghci" | "R" | "julia" | "deno" | "gdb" | "lldb" | "expect"
        ) =>
        {
            Reader::Shell
        }
        None => Reader::Data,
    }
}

/// `bash -c '…'`: the code decides who reads.
fn inside_code(rest: &[&str]) -> Reader {
    let code = rest.iter().position(|word| is_code_option(word)).and_then(|at| rest.get(at + 1));
    match code.and_then(|code| command(code, "")) {
        Some(_) => Reader::Shell,
        None => Reader::Data,
    }
}

fn is_code_option(word: &str) -> bool {
    word == "--eval" || (word.starts_with('-') && !word.starts_with("--") && word.ends_with(['c', 'e', 'r']))
}

fn is_interactive(word: &str) -> bool {
    word == "--interactive" || (word.starts_with('-') && !word.starts_with("--") && word.contains(['i', 's']))
}

fn quoted(data: &str) -> String {
    format!("'{}'", data.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn what_a_shell_reads_is_a_command() {
        for program in [
            "bash",
            "/bin/sh",
            "cd x && exec zsh -i",
            "env A=1 bash --norc",
            "ssh host",
            "sudo -s",
            "docker exec -it web sh",
            "$SHELL",
            "bash -c 'cd /x; bash'",
            "bash -c 'echo a' -i",
            "timeout 60 bash",
            "while read -r line; do eval \"$line\"; done",
        ] {
            assert_eq!(command(program, "rm -rf x\n"), Some("rm -rf x\n".to_owned()), "{program}");
        }
    }

    #[test]
    fn what_an_interpreter_reads_is_its_program() {
        assert_eq!(command("python3", "print('a')"), Some(r"python3 -c 'print('\''a'\'')'".to_owned()));
        assert_eq!(command("python3.12 -iq", "x"), Some("python3.12 -c 'x'".to_owned()));
        assert_eq!(command("node", "x"), Some("node -e 'x'".to_owned()));
    }

    #[test]
    fn what_other_programs_read_is_data() {
        for program in [
            "npm run dev",
            "npm init",
            "cat",
            "./server --stdin",
            "python3 app.py",
            "python3 -m http.server",
            "node -e 'process.stdin.on(\"data\", x)'",
            "bash install.sh",
            "apt install x",
            "passwd",
            "docker build .",
            "bash -c 'cat; echo x'",
        ] {
            assert_eq!(command(program, "y\n"), None, "{program}");
        }
    }
}

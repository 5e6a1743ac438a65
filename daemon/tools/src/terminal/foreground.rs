//! Commands that would not come back, and so are not started in the foreground (spec 40 §6.1).

use super::lexer::{Simple, simple_commands};

/// Words that detach what follows.
const DETACHERS: [&str; 3] = ["nohup", "disown", "setsid"];

/// Words in front of a command that run it as it is.
const WRAPPERS: [&str; 6] = ["sudo", "env", "exec", "command", "nohup", "time"];

const SCRIPT_RUNNERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
const SERVER_SCRIPTS: [&str; 4] = ["dev", "start", "serve", "watch"];
const SERVERS: [&str; 3] = ["nodemon", "uvicorn", "gunicorn"];

/// Why `command` is not run in the foreground, in words for the model; `None` when it may be.
pub(super) fn refusal(command: &str) -> Option<String> {
    let commands = simple_commands(command);
    for simple in &commands {
        if asks_for_help(simple) {
            continue;
        }
        if DETACHERS.contains(&simple.program()) {
            return Some(format!(
                "`{}` detaches a process from the foreground, where nothing could watch or stop it. {ADVICE}",
                simple.program()
            ));
        }
        if simple.background {
            return Some(format!("`&` starts a process that nothing could watch or stop. {ADVICE}"));
        }
        if let Some(server) = long_lived(simple) {
            return Some(format!("`{server}` serves until it is stopped and would never return. {ADVICE}"));
        }
    }
    None
}

/// What to do instead.
const ADVICE: &str = "Start it with background=true, without detaching it, and look after it with `process`.";

fn asks_for_help(simple: &Simple) -> bool {
    simple.arguments().any(|argument| matches!(argument, "--help" | "--version"))
}

/// The words that name a server which the command starts.
fn long_lived(simple: &Simple) -> Option<String> {
    let mut words = simple.words.iter().map(String::as_str).peekable();
    while words.peek().is_some_and(|word| WRAPPERS.contains(word) || word.contains('=')) {
        words.next();
    }
    let program = words.next()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let rest: Vec<&str> = words.collect();
    let first = rest.iter().copied().find(|word| !word.starts_with('-'));
    let named = |second: &str| Some(format!("{program} {second}"));
    match program {
        program if SERVERS.contains(&program) => Some(program.to_owned()),
        program if SCRIPT_RUNNERS.contains(&program) => {
            let script = match first {
                Some("run" | "run-script") => {
                    rest.iter().copied().filter(|word| !word.starts_with('-')).nth(1)
                }
                other => other,
            };
            script.filter(|script| SERVER_SCRIPTS.contains(script)).and_then(named)
        }
        "npx" | "bunx" | "pnpx" => {
            let at = rest.iter().position(|word| !word.starts_with('-'))?;
            let inner = rest.get(at..)?.iter().map(|word| (*word).to_owned()).collect();
            long_lived(&Simple { words: inner, ..Simple::default() })
        }
        "next" if first == Some("dev") => named("dev"),
        "vite" if !matches!(first, Some("build" | "optimize")) => Some("vite".to_owned()),
        "docker" | "podman" if first == Some("compose") => compose_up(program, &rest),
        "docker-compose" => compose_up(program, &rest),
        program if program.starts_with("python") => {
            let module = rest.iter().position(|word| *word == "-m").and_then(|at| rest.get(at + 1));
            (module == Some(&"http.server")).then(|| format!("{program} -m http.server"))
        }
        _ => None,
    }
}

fn compose_up(program: &str, rest: &[&str]) -> Option<String> {
    let up = rest.iter().position(|word| *word == "up")?;
    let detached = rest.get(up..)?.iter().any(|word| matches!(*word, "-d" | "--detach" | "--no-start"));
    (!detached).then(|| format!("{program} … up"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_return_is_refused() {
        for command in [
            "nohup ./run.sh",
            "sleep 100 &",
            "cd app && npm run dev",
            "yarn start",
            "PORT=3 npx vite --host",
            "docker compose up",
            "docker compose -f x.yml up web",
            "next dev",
            "python3 -m http.server 8000",
            "sudo gunicorn app:app",
            "setsid x",
            "a; b & disown",
        ] {
            assert!(refusal(command).is_some(), "{command}");
        }
    }

    #[test]
    fn what_returns_is_run() {
        for command in [
            "ls -l",
            "npm run build",
            "npm test",
            "npm start --help",
            "vite build",
            "docker compose up -d",
            "uvicorn --version",
            "echo 'sleep 5 &'",
            "grep nohup file",
            "cat <<EOF > run.sh\nnohup x &\nEOF",
            "make 2>&1 | tail -5",
            "git commit -m 'start & stop'",
            "python -m pytest",
            "timeout 20s npm run dev",
        ] {
            assert_eq!(refusal(command), None, "{command}");
        }
    }
}

//! Checks by programs that the user may have: `node`, `tsc`, `gofmt`, `rustfmt`. Only the syntax of the one
//! file is looked at, so that the answer depends on no other file.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::Findings;
use crate::programs;
use crate::services::ToolCx;

/// Output of a check that is read.
const MAX_OUTPUT: u64 = 64 * 1024;

/// A longer text is not checked.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// How a kind of file is checked.
struct Linter {
    program: &'static str,
    arguments: &'static [&'static str],
    /// The text comes as a file of this name in an empty folder; otherwise on standard input.
    file: Option<&'static str>,
    /// The errors in the output.
    errors: fn(&str) -> Vec<String>,
}

const NODE: Linter =
    Linter { program: "node", arguments: &["--check"], file: Some("check.js"), errors: node_errors };
const NODE_MODULE: Linter = Linter { file: Some("check.mjs"), ..NODE };
const NODE_COMMON: Linter = Linter { file: Some("check.cjs"), ..NODE };
const TSC: Linter = Linter {
    program: "tsc",
    arguments: &["--noEmit", "--noResolve", "--noLib", "--skipLibCheck", "--pretty", "false"],
    file: Some("check.ts"),
    errors: tsc_errors,
};
const TSX: Linter = Linter {
    arguments: &[
        "--noEmit",
        "--noResolve",
        "--noLib",
        "--skipLibCheck",
        "--pretty",
        "false",
        "--jsx",
        "preserve",
    ],
    file: Some("check.tsx"),
    ..TSC
};
const GOFMT: Linter = Linter { program: "gofmt", arguments: &["-e", "-l"], file: None, errors: gofmt_errors };
const RUSTFMT: Linter = Linter {
    program: "rustfmt",
    arguments: &["--edition", "2024", "--check", "--quiet", "--color", "never"],
    file: None,
    errors: rustfmt_errors,
};

fn linter(path: &Path) -> Option<&'static Linter> {
    Some(match path.extension()?.to_str()? {
        "js" => &NODE,
        "mjs" => &NODE_MODULE,
        "cjs" => &NODE_COMMON,
        "ts" | "mts" | "cts" => &TSC,
        "tsx" => &TSX,
        "go" => &GOFMT,
        "rs" => &RUSTFMT,
        _ => return None,
    })
}

/// Checks `text` as the name of `path` says, until `until`.
pub(super) async fn check(cx: &ToolCx, path: &Path, text: &str, until: Instant) -> Findings {
    let Some(linter) = linter(path) else { return Findings::Unchecked };
    if text.len() > MAX_TEXT {
        return Findings::Skipped("the file is too long".to_owned());
    }
    let environment = cx.services.child_env.environment(&cx.workspace, &cx.settings.terminal.env_passthrough);
    let Some(program) = programs::find(linter.program, &environment) else {
        return Findings::Skipped(format!("{} is not installed", linter.program));
    };
    // What stands there can be written without a question, and would be run without one.
    if programs::is_the_agents(&program, &cx.workspace) {
        return Findings::Skipped(format!("{} stands in the working directory", linter.program));
    }
    let findings = run(cx, linter, (&program, &environment), text, until).await;
    // Older versions take a module for one only by its name.
    match findings {
        Findings::Errors(errors)
            if linter.file == NODE.file && errors.iter().any(|error| error.contains("outside a module")) =>
        {
            run(cx, &NODE_MODULE, (&program, &environment), text, until).await
        }
        findings => findings,
    }
}

async fn run(
    cx: &ToolCx,
    linter: &Linter,
    (program, environment): (&Path, &[(OsString, OsString)]),
    text: &str,
    until: Instant,
) -> Findings {
    let work = outcome(linter, program, environment, text);
    let outcome = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Findings::Skipped("the call was stopped".to_owned()),
        outcome = tokio::time::timeout_at(until.into(), work) => outcome,
    };
    let program = linter.program;
    match outcome {
        Err(_) => Findings::Skipped(format!("{program} did not finish in time")),
        Ok(Err(error)) => Findings::Skipped(format!("{program} cannot run: {error}")),
        Ok(Ok((success, output))) => {
            let errors = (linter.errors)(&output);
            if success || !errors.is_empty() {
                return Findings::Errors(errors);
            }
            // It failed, and not because of the text.
            let reason = output.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
            match linter.program {
                // They also end this way when the text is only not laid out as they would.
                "rustfmt" | "gofmt" => Findings::Errors(Vec::new()),
                _ => Findings::Skipped(format!(
                    "{program} cannot check: {}",
                    crate::files::first_chars(reason, 200).0
                )),
            }
        }
    }
}

/// Whether the program ended well, and what it printed.
async fn outcome(
    linter: &Linter,
    program: &Path,
    environment: &[(OsString, OsString)],
    text: &str,
) -> io::Result<(bool, String)> {
    // Settings of the project (a pinned toolchain, plugins) must not be looked at, so nothing is above it.
    let folder = tempfile::Builder::new().prefix("hermes-lint-").tempdir()?;
    let mut command = Command::new(program);
    command
        .args(linter.arguments)
        .current_dir(folder.path())
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    match linter.file {
        Some(name) => {
            let file = folder.path().join(name);
            tokio::fs::write(&file, text).await?;
            command.arg(OsStr::new(name)).stdin(Stdio::null());
        }
        None => {
            command.stdin(Stdio::piped());
        }
    }
    let mut child = command.spawn()?;
    let _group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program that has seen enough closes its end.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
    };
    let (mut printed, mut complained) = (Vec::new(), Vec::new());
    let read_out = async {
        if let Some(stdout) = stdout {
            stdout.take(MAX_OUTPUT).read_to_end(&mut printed).await?;
        }
        io::Result::Ok(())
    };
    let read_err = async {
        if let Some(stderr) = stderr {
            stderr.take(MAX_OUTPUT).read_to_end(&mut complained).await?;
        }
        io::Result::Ok(())
    };
    let ((), out, err) = tokio::join!(feed, read_out, read_err);
    out.and(err)?;
    let status = child.wait().await?;
    complained.extend_from_slice(&printed);
    Ok((status.success(), String::from_utf8_lossy(&complained).into_owned()))
}

/// Kills the program with all that it started, however the check ends.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It has gone when all went well.
            let _ = killpg(leader, Signal::SIGKILL);
        }
    }
}

/// `…/check.js:12`, some lines, `SyntaxError: …`
fn node_errors(output: &str) -> Vec<String> {
    let mut place = None;
    let mut errors = Vec::new();
    for line in output.lines().map(str::trim) {
        if let Some((_, number)) = line.split_once("check.").and_then(|(_, rest)| rest.split_once("js:")) {
            place = number.chars().all(|c| c.is_ascii_digit()).then_some(number).or(place);
        } else if line.starts_with("SyntaxError") {
            errors.push(place.map_or_else(|| line.to_owned(), |number| format!("line {number}: {line}")));
        }
    }
    errors
}

/// `check.ts(3,5): error TS1005: ';' expected.` Only numbers from 1000 to 1999 are of the syntax.
fn tsc_errors(output: &str) -> Vec<String> {
    let error = |line: &str| {
        let (place, message) = line.split_once(": error TS1")?;
        let (code, message) = message.split_once(": ")?;
        let number = place.split_once('(')?.1.split(',').next()?;
        (code.len() == 3).then(|| format!("line {number}: {message}"))
    };
    output.lines().filter_map(error).collect()
}

/// `<standard input>:3:5: expected …`
fn gofmt_errors(output: &str) -> Vec<String> {
    let error = |line: &str| {
        let (place, message) = line.strip_prefix("<standard input>:")?.split_once(": ")?;
        Some(format!("line {}: {message}", place.split(':').next()?))
    };
    output.lines().filter_map(error).collect()
}

/// `error: expected …`, and in the next line ` --> <stdin>:3:5`
fn rustfmt_errors(output: &str) -> Vec<String> {
    let mut message = None;
    let mut errors = Vec::new();
    for line in output.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("error: ") {
            message = Some(text);
        } else if let Some(place) = line.strip_prefix("--> <stdin>:")
            && let Some(text) = message.take()
        {
            errors.push(format!("line {}: {text}", place.split(':').next().unwrap_or_default()));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn errors_are_read_from_what_programs_print() {
        let node = "/tmp/x/check.js:2\nlet = ;\n      ^\n\nSyntaxError: Unexpected token ';'\n    at wrapSafe (node:internal:1)\n";
        assert_eq!(node_errors(node), ["line 2: SyntaxError: Unexpected token ';'"]);
        let tsc = "check.ts(3,5): error TS1005: ';' expected.\ncheck.ts(4,1): error TS2307: Cannot find module 'x'.\n";
        assert_eq!(tsc_errors(tsc), ["line 3: ';' expected."]);
        let gofmt = "<standard input>:3:5: expected declaration\n<standard input>\n";
        assert_eq!(gofmt_errors(gofmt), ["line 3: expected declaration"]);
        let rustfmt = "error: expected `;`, found `}`\n --> <stdin>:2:10\n  |\n2 | let a = 1\n";
        assert_eq!(rustfmt_errors(rustfmt), ["line 2: expected `;`, found `}`"]);
    }
}

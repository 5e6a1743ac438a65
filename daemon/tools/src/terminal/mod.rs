//! `terminal`: a shell command, run to its end or started in the background (spec 40 §6.1).

mod background;
mod exit_notes;
mod foreground;
pub(crate) mod lexer;
pub(crate) mod sudo;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{EffectDisposition, Json, ToolSchema, ToolStatus};
use hermes_runtime::{CommandOutput, CommandSpec, ProcessView, StartError, StartSpec, TerminalError};
use serde_json::{Map, Value, json};

use crate::arguments::read::{count, flag, text};
use crate::files::first_chars;
use crate::output::{ToolOutput, put_some};
use crate::services::ToolCx;
use crate::settings::ToolSettings;
use crate::tool::{Concurrency, OwnedEffect, Tool, ToolTraits};
use crate::workspace::Workspace;

/// The longest a foreground command may take (spec 40 §6.1).
pub(crate) const MAX_TIMEOUT_S: u64 = 600;

/// Beyond the longest command: for ending it and for draining its output.
const DEADLINE: Duration = Duration::from_secs(MAX_TIMEOUT_S + 30);

/// Characters of a command in a preview.
const PREVIEW_CHARS: usize = 120;

/// The tools of the set `terminal`.
pub fn terminal_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Terminal)]
}

/// The tool.
#[derive(Debug)]
struct Terminal;

#[async_trait]
impl Tool for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn toolset(&self) -> &'static str {
        "terminal"
    }

    fn schema(&self, settings: &ToolSettings) -> ToolSchema {
        let default = settings.terminal.timeout.min(MAX_TIMEOUT_S);
        ToolSchema {
            name: self.name().to_owned(),
            description: "Run a bash command and wait until it ends; returns output and exit code. Directory, exports, \
                          functions and aliases stay for the next call. For files use the file tools, not cat, sed, \
                          grep, ls or echo. Servers and long jobs: background=true, then `process`. To wait for \
                          something, test whether it is ready instead of sleeping. No editors or other interactive \
                          programs without pty."
                .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string" },
                    "timeout": {
                        "type": "integer",
                        "description": format!("Seconds until it is stopped, {default} unless given, at most {MAX_TIMEOUT_S}"),
                    },
                    "workdir": { "type": "string", "description": "Directory for this command; default where the session is" },
                    "background": { "type": "boolean", "description": "Start it and return at once with a session_id for `process`" },
                    "pty": { "type": "boolean", "description": "Give it a terminal, for programs that want one" },
                    "notify_on_complete": { "type": "boolean", "description": "background: you are told when it ends" },
                    "watch_patterns": {
                        "type": "array",
                        "items": { "type": "string" },
                        "description": "background: you are told of output lines with one of these texts; rare ones, not with notify_on_complete",
                    },
                },
                "required": ["command"],
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits { deadline: Some(DEADLINE), ..ToolTraits::default() }
    }

    fn concurrency(&self, arguments: &Value) -> Concurrency {
        // It returns at once; what ran before it must have written its files.
        if flag(arguments, "background") { Concurrency::AfterWrites } else { Concurrency::Barrier }
    }

    fn preview(&self, arguments: &Value) -> String {
        let command = text(arguments, "command").trim();
        let first = command.lines().next().unwrap_or_default();
        let (shown, cut) = first_chars(first, PREVIEW_CHARS);
        let more = if cut || command.contains('\n') { " …" } else { "" };
        format!("{shown}{more}")
    }

    fn effect(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        let command = text(arguments, "command").to_owned();
        if command.contains('\0') {
            return Err("the command contains a NUL character".to_owned());
        }
        Ok(vec![OwnedEffect::Command { command, cwd: directory(arguments, workspace)? }])
    }

    fn blocked(&self, reason: &str) -> Value {
        json!({ "output": "", "exit_code": -1, "error": reason, "status": "blocked" })
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        if flag(&arguments, "background") {
            return start(cx, &arguments).await;
        }
        let mut spec = match spec(cx, &arguments) {
            Ok(spec) => spec,
            Err(problem) => return not_run(&problem, "refused"),
        };
        let command = spec.command.clone();
        let prepared = sudo::prepare(cx, &command).await;
        spec.command.clone_from(&prepared.command);
        spec.stdin.clone_from(&prepared.input);
        let chosen_directory = !text(&arguments, "workdir").is_empty();
        match cx.services.backend.run(spec, &cx.cancel).await {
            Ok(output) => ended(cx, &command, chosen_directory, &prepared, output),
            Err(error) => failed(&error),
        }
    }
}

/// Starts a background process.
async fn start(cx: &ToolCx, arguments: &Value) -> ToolOutput {
    let command = text(arguments, "command");
    if command.trim().is_empty() {
        return not_run("the command is empty", "refused");
    }
    let cwd = match directory(arguments, &cx.workspace) {
        Ok(cwd) if cwd.is_dir() => cwd,
        Ok(cwd) => return not_run(&format!("{} is not an existing directory", cwd.display()), "refused"),
        Err(problem) => return not_run(&problem, "refused"),
    };
    let wants_notice = flag(arguments, "notify_on_complete");
    let patterns = patterns(arguments);
    let watches = !patterns.is_empty() && !wants_notice;
    let prepared = sudo::prepare(cx, &background::watched(command)).await;
    let spec = StartSpec {
        command: prepared.command,
        shown: Some(command.to_owned()),
        cwd,
        env: cx.services.child_env.environment(&cx.workspace, &cx.settings.terminal.env_passthrough),
        pty: flag(arguments, "pty"),
        session: cx.workspace.shell().clone(),
        principal: cx.principal.clone(),
        notify_on_complete: wants_notice && cx.wakeable,
        watch_patterns: if watches && cx.wakeable { patterns.clone() } else { Vec::new() },
        input: prepared.input,
    };
    match cx.services.processes.start(spec, &cx.cancel).await {
        Ok(process) => started(cx, &process, wants_notice, &patterns),
        Err(StartError::Terminal(TerminalError::Interrupted)) => ToolOutput {
            status: ToolStatus::Cancelled,
            ..not_run("interrupted before the command started", "cancelled")
        },
        Err(error) => not_run(&chain(&error), "disabled"),
    }
}

/// The texts to watch for, without empty ones, which every line has.
fn patterns(arguments: &Value) -> Vec<String> {
    let given = arguments.get("watch_patterns").and_then(Value::as_array).into_iter().flatten();
    given.filter_map(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

fn started(cx: &ToolCx, process: &ProcessView, wants_notice: bool, patterns: &[String]) -> ToolOutput {
    let mut fields = Map::new();
    fields.insert("output".into(), "started in the background".into());
    fields.insert("session_id".into(), process.id.clone().into());
    fields.insert("pid".into(), process.pid.into());
    fields.insert("exit_code".into(), 0.into());
    fields.insert("error".into(), Value::Null);
    if !cx.wakeable && (wants_notice || !patterns.is_empty()) {
        let why = "nothing can be told after this turn: look with `process` wait or poll";
        fields.insert("notify_unsupported".into(), why.into());
    } else if wants_notice {
        fields.insert("notify_on_complete".into(), true.into());
        if !patterns.is_empty() {
            fields.insert("watch_patterns_ignored".into(), true.into());
            let note = "notify_on_complete and watch_patterns exclude each other; its end will be told, not its lines";
            fields.insert("note".into(), note.into());
        }
    } else if !patterns.is_empty() {
        fields.insert("watch_patterns".into(), patterns.into());
    } else {
        let hint = "it says nothing by itself: look with `process` poll, or wait for its end";
        fields.insert("hint".into(), hint.into());
    }
    ToolOutput::done(Value::Object(fields)).summed_up(process.id.clone())
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Where the command runs.
fn directory(arguments: &Value, workspace: &Workspace) -> Result<PathBuf, String> {
    match text(arguments, "workdir") {
        "" | "." | "./" | "auto" | "cwd" => Ok(workspace.cwd()),
        written => workspace
            .resolve(written)
            .map(|resolved| resolved.path)
            .map_err(|error| format!("workdir: {error}")),
    }
}

fn spec(cx: &ToolCx, arguments: &Value) -> Result<CommandSpec, String> {
    let command = text(arguments, "command");
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    if let Some(refusal) = foreground::refusal(command) {
        return Err(refusal);
    }
    let timeout = match count(arguments, "timeout") {
        Some(0) => return Err("the timeout must be at least 1 second".to_owned()),
        Some(seconds) if seconds as u64 > MAX_TIMEOUT_S => {
            return Err(format!(
                "a timeout of {seconds} s is too long: a command may take at most {MAX_TIMEOUT_S} s. Start it with \
                 background=true"
            ));
        }
        Some(seconds) => seconds as u64,
        None => cx.settings.terminal.timeout.clamp(1, MAX_TIMEOUT_S),
    };
    let cwd = directory(arguments, &cx.workspace)?;
    // A directory that was named must be there; the session's own may have vanished, which the backend mends.
    if !text(arguments, "workdir").is_empty() && !cwd.is_dir() {
        return Err(format!("workdir {} is not an existing directory", cwd.display()));
    }
    Ok(CommandSpec {
        command: command.to_owned(),
        env: cx.services.child_env.environment(&cx.workspace, &cx.settings.terminal.env_passthrough),
        cwd,
        timeout: Duration::from_secs(timeout),
        output_cap_chars: cx.settings.output.max_bytes.max(1),
        stdin: None,
        pty: flag(arguments, "pty"),
        session: cx.workspace.shell().clone(),
    })
}

fn ended(
    cx: &ToolCx,
    command: &str,
    chosen_directory: bool,
    prepared: &sudo::Prepared,
    output: CommandOutput,
) -> ToolOutput {
    let before = cx.workspace.cwd();
    // `workdir` is for one command, so the session stays where it was, unless it is gone.
    if !chosen_directory || !before.is_dir() {
        cx.workspace.set_cwd(output.cwd.clone());
    }
    let now = cx.workspace.cwd();
    let meaning = exit_notes::meaning(command, output.exit_code);
    let benign = meaning.is_some_and(|meaning| meaning.contains("not an error"));
    let mut fields = Map::new();
    let verdict = prepared.judge(cx, &output.output, output.exit_code);
    let shown = sudo::mask(output.output.clone(), prepared.password.as_ref());
    // A log with the password in it is not pointed at.
    let full_log = output.full_log.filter(|_| shown == output.output);
    fields.insert("output".into(), shown.into());
    fields.insert("exit_code".into(), output.exit_code.into());
    fields.insert("error".into(), Value::Null);
    put_some(&mut fields, "sudo_auth_failed", verdict.rejected.then_some(true));
    put_some(&mut fields, "sudo_cache_cleared", verdict.cache_cleared.then_some(true));
    put_some(&mut fields, "hint", verdict.wanted.then_some(sudo::HINT));
    put_some(&mut fields, "exit_code_meaning", meaning);
    put_some(&mut fields, "cwd", (now != before).then(|| now.display().to_string()));
    put_some(&mut fields, "note", output.cwd_note);
    put_some(&mut fields, "output_file", full_log.map(|path| path.display().to_string()));
    let status = match output.exit_code {
        _ if output.interrupted => ToolStatus::Cancelled,
        _ if output.timed_out => ToolStatus::Timeout,
        0 => ToolStatus::Ok,
        _ if benign => ToolStatus::Ok,
        _ => ToolStatus::Error,
    };
    let cut_off = output.interrupted || output.timed_out;
    let effect = if cut_off { EffectDisposition::Unknown } else { EffectDisposition::Done };
    ToolOutput { status, effect, ..ToolOutput::done(Value::Object(fields)) }
        .summed_up(format!("exit {}", output.exit_code))
}

/// The command surely did not start.
fn failed(error: &TerminalError) -> ToolOutput {
    not_run(&format!("{error}; {}", error.hint()), "disabled")
}

fn not_run(problem: &str, status: &str) -> ToolOutput {
    ToolOutput::failed(json!({ "output": "", "exit_code": -1, "error": problem, "status": status }))
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;

//! `process`: what a session does with its background processes (spec 40 §6.2).

mod inside;
mod notices;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{EffectDisposition, Json, ToolSchema, ToolStatus};
use hermes_runtime::{ProcessError, ProcessView, Processes, WaitEnd};
use serde_json::{Map, Value, json};

use crate::arguments::read::{count, text};
use crate::files::first_chars;
use crate::output::{ToolOutput, put_some};
use crate::services::ToolCx;
use crate::settings::ToolSettings;
use crate::terminal::{MAX_TIMEOUT_S, sudo};
use crate::tool::{OwnedEffect, Tool, ToolTraits};
use crate::workspace::Workspace;

pub use notices::ProcessNotices;

/// Beyond the longest wait: for ending a process.
const DEADLINE: Duration = Duration::from_secs(MAX_TIMEOUT_S + 90);

/// Lines of a log that one call returns unless it asks for others.
const LOG_LINES: usize = 200;
/// Characters: of a command in the list, of the output shown there, by `poll` when there is nothing new, by `wait`.
const COMMAND_CHARS: usize = 200;
const LIST_CHARS: usize = 200;
const PREVIEW_CHARS: usize = 1000;
const WAIT_CHARS: usize = 2000;
/// A line that has not ended is remembered so far, to be judged with what follows.
const PENDING_BYTES: usize = 64 * 1024;

/// The tool that looks after background processes.
pub fn process_tools(processes: &Processes) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Process { processes: processes.clone(), pending: Mutex::default() })]
}

/// The tool.
#[derive(Debug)]
struct Process {
    processes: Processes,
    /// By process, what was written to a shell since the last line's end: it is judged with what completes it. Guards
    /// short sections without `.await`.
    pending: Mutex<HashMap<String, String>>,
}

#[async_trait]
impl Tool for Process {
    fn name(&self) -> &'static str {
        "process"
    }

    fn toolset(&self) -> &'static str {
        "terminal"
    }

    fn schema(&self, settings: &ToolSettings) -> ToolSchema {
        let longest = longest_wait(settings);
        ToolSchema {
            name: self.name().to_owned(),
            description: "Look after background processes of `terminal`. list; poll: status and new output; log: lines; \
                          wait: until it ends; write: data as it is; submit: data and a newline; close: end its stdin; \
                          kill: end it with all its children."
                .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "action": {
                        "type": "string",
                        "enum": ["list", "poll", "log", "wait", "write", "submit", "close", "kill"],
                    },
                    "session_id": { "type": "string", "description": "From `terminal`; for all but list" },
                    "data": { "type": "string" },
                    "timeout": {
                        "type": "integer",
                        "description": format!("wait: seconds, {longest} unless given and at most"),
                    },
                    "offset": { "type": "integer", "description": "log: first line, from 0; default the last lines" },
                    "limit": { "type": "integer", "description": format!("log: lines, {LOG_LINES} unless given") },
                },
                "required": ["action"],
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits { deadline: Some(DEADLINE), ..ToolTraits::default() }
    }

    fn preview(&self, arguments: &Value) -> String {
        let (action, id) = (text(arguments, "action"), text(arguments, "session_id"));
        let (data, cut) = first_chars(text(arguments, "data").trim_end(), 60);
        let more = if cut { " …" } else { "" };
        [action, id, data].join(" ").trim_end().to_owned() + more
    }

    /// What is written to a shell is a command; to other programs it is data.
    fn effect(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        let newline = match text(arguments, "action") {
            "write" => "",
            "submit" => "\n",
            _ => return Ok(Vec::new()),
        };
        // One that is not there is told by the call itself.
        let Ok(process) = self.processes.get(workspace.shell(), text(arguments, "session_id")) else {
            return Ok(Vec::new());
        };
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).get(&process.id).cloned();
        let data = format!("{}{}{newline}", pending.unwrap_or_default(), text(arguments, "data"));
        let command = inside::command(&process.command, &data);
        if command.is_some() && unended(&data).len() > PENDING_BYTES {
            // Its beginning would be forgotten, and the rest judged without it.
            return Err(format!(
                "a line of more than {PENDING_BYTES} bytes is not written to a shell or an interpreter; write shorter \
                 lines, or a script file"
            ));
        }
        // Data for a program that is no known shell is judged as what it gets to read: the gate knows more of these.
        let command = command.unwrap_or_else(|| as_input(&process.command, &data));
        Ok(vec![OwnedEffect::Command { command, cwd: process.cwd }])
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        let id = text(&arguments, "session_id");
        let action = text(&arguments, "action");
        if action != "list" && id.is_empty() {
            return ToolOutput::error(format!("{action} needs a session_id; list names them"));
        }
        let done = match action {
            "list" => Ok(self.list(cx)),
            "poll" => self.poll(cx, id),
            "log" => self.log(cx, id, &arguments),
            "wait" => self.wait(cx, id, &arguments).await,
            "kill" => self.kill(cx, id).await,
            "write" => self.write(cx, id, text(&arguments, "data")).await,
            "submit" => self.write(cx, id, &format!("{}\n", text(&arguments, "data"))).await,
            "close" => self.close(cx, id).await,
            other => return ToolOutput::error(format!("there is no action {other:?}")),
        };
        done.unwrap_or_else(|error| failed(&error))
    }
}

impl Process {
    fn list(&self, cx: &ToolCx) -> ToolOutput {
        let session = cx.workspace.shell();
        let processes: Vec<Value> = self
            .processes
            .list(Some(session))
            .into_iter()
            .map(|process| {
                let mut fields = facts(cx, &process);
                let (command, _) = first_chars(&process.command, COMMAND_CHARS);
                fields.insert("command".into(), command.into());
                fields.insert("cwd".into(), process.cwd.display().to_string().into());
                #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970 fit an i64")]
                let started_at = process.started_at.unix_seconds() as i64;
                fields.insert("started_at".into(), started_at.into());
                let preview = self.output(cx, &process.id, LIST_CHARS).unwrap_or_default();
                fields.insert("output_preview".into(), preview.into());
                if !process.watch_patterns.is_empty() {
                    fields.insert("watch_patterns".into(), process.watch_patterns.into());
                    fields.insert("watch_hits".into(), process.watch_hits.into());
                }
                put_some(&mut fields, "notify_on_complete", process.notify_on_complete.then_some(true));
                Value::Object(fields)
            })
            .collect();
        ToolOutput::looked(json!({ "processes": processes }))
    }

    fn poll(&self, cx: &ToolCx, id: &str) -> Result<ToolOutput, ProcessError> {
        let polled = self.processes.poll(cx.workspace.shell(), id, cx.settings.output.max_bytes)?;
        let mut fields = facts(cx, &polled.process);
        fields.insert("new_output".into(), masked(cx, polled.new_output.clone()).into());
        if polled.skipped > 0 {
            let note = format!("{} bytes of older output were passed over", polled.skipped);
            fields.insert("output_note".into(), note.into());
        }
        if polled.new_output.is_empty() {
            fields.insert("output_preview".into(), self.output(cx, id, PREVIEW_CHARS)?.into());
        }
        Ok(ToolOutput::looked(Value::Object(fields)))
    }

    fn log(&self, cx: &ToolCx, id: &str, arguments: &Value) -> Result<ToolOutput, ProcessError> {
        let process = self.processes.get(cx.workspace.shell(), id)?;
        let output = self.processes.output(cx.workspace.shell(), id, usize::MAX)?;
        let lines: Vec<&str> = output.text.lines().collect();
        let limit = count(arguments, "limit").filter(|limit| *limit > 0).unwrap_or(LOG_LINES);
        let offset = count(arguments, "offset").unwrap_or_else(|| lines.len().saturating_sub(limit));
        let shown = lines.iter().skip(offset).take(limit).copied().collect::<Vec<&str>>();
        let mut fields = facts(cx, &process);
        fields.insert("output".into(), masked(cx, shown.join("\n")).into());
        fields.insert("offset".into(), offset.min(lines.len()).into());
        fields.insert("lines".into(), shown.len().into());
        fields.insert("total_lines".into(), lines.len().into());
        if output.truncated {
            let note = "older lines are not counted: these are of the last 200,000 characters";
            fields.insert("output_note".into(), note.into());
        }
        Ok(ToolOutput::looked(Value::Object(fields)))
    }

    async fn wait(&self, cx: &ToolCx, id: &str, arguments: &Value) -> Result<ToolOutput, ProcessError> {
        let longest = longest_wait(&cx.settings);
        let asked = count(arguments, "timeout").map(|seconds| seconds as u64);
        let seconds = asked.unwrap_or(longest).clamp(1, longest);
        let limit = Duration::from_secs(seconds);
        let (end, process) = self.processes.wait(cx.workspace.shell(), id, limit, &cx.cancel).await?;
        let mut fields = facts(cx, &process);
        let status = match end {
            WaitEnd::Exited => "exited",
            WaitEnd::TimedOut => "timeout",
            WaitEnd::Interrupted => "interrupted",
        };
        fields.insert("status".into(), status.into());
        fields.insert("output".into(), self.output(cx, id, WAIT_CHARS)?.into());
        if end == WaitEnd::TimedOut {
            let capped = asked.is_some_and(|asked| asked > longest);
            let limit = if capped { ", the longest wait" } else { "" };
            let note =
                format!("it still runs after {seconds} s{limit}; wait again, or go on with something else");
            fields.insert("timeout_note".into(), note.into());
        }
        let output = ToolOutput::looked(Value::Object(fields));
        Ok(match end {
            WaitEnd::Interrupted => ToolOutput { status: ToolStatus::Cancelled, ..output },
            WaitEnd::Exited | WaitEnd::TimedOut => output,
        })
    }

    async fn kill(&self, cx: &ToolCx, id: &str) -> Result<ToolOutput, ProcessError> {
        let killed = self.processes.kill(cx.workspace.shell(), id).await?;
        let mut fields = facts(cx, &killed.process);
        let status = if killed.already_exited { "already_exited" } else { "killed" };
        fields.insert("status".into(), status.into());
        let left =
            killed.left_behind.then_some("it had ended by itself; what it had left running was ended now");
        put_some(&mut fields, "note", left);
        if killed.survived {
            fields.insert("error".into(), "some of its processes would not go; look with ps".into());
            let content = Value::Object(fields);
            return Ok(ToolOutput { effect: EffectDisposition::Unknown, ..ToolOutput::failed(content) });
        }
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        Ok(ToolOutput::done(Value::Object(fields)))
    }

    async fn write(&self, cx: &ToolCx, id: &str, data: &str) -> Result<ToolOutput, ProcessError> {
        // Noted first: a part that was taken counts, whatever becomes of the rest.
        self.note_written(id, data);
        self.processes.write(cx.workspace.shell(), id, data.as_bytes()).await?;
        Ok(ToolOutput::done(json!({ "session_id": id, "status": "ok", "bytes_written": data.len() })))
    }

    async fn close(&self, cx: &ToolCx, id: &str) -> Result<ToolOutput, ProcessError> {
        self.processes.close_input(cx.workspace.shell(), id).await?;
        Ok(ToolOutput::done(json!({ "session_id": id, "status": "ok" })))
    }

    fn note_written(&self, id: &str, data: &str) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pending.remove(id).unwrap_or_default();
        let known = self.processes.list(None);
        pending.retain(|id, _| known.iter().any(|process| process.id == *id));
        let written = before + data;
        let rest = unended(&written).to_owned();
        if !rest.is_empty() && rest.len() <= PENDING_BYTES {
            pending.insert(id.to_owned(), rest);
        }
    }

    fn output(&self, cx: &ToolCx, id: &str, chars: usize) -> Result<String, ProcessError> {
        Ok(masked(cx, self.processes.output(cx.workspace.shell(), id, chars)?.text))
    }
}

/// The beginning of a line that has not ended yet; a backslash before the newline makes the next line a part of it.
fn unended(data: &str) -> &str {
    let ends = |at: &usize| {
        let line = data.get(..*at).unwrap_or_default();
        (line.len() - line.trim_end_matches('\\').len()).is_multiple_of(2)
    };
    let end = data.match_indices('\n').map(|(at, _)| at).rfind(ends);
    end.and_then(|at| data.get(at + 1..)).unwrap_or(data)
}

/// The longest wait, in seconds.
fn longest_wait(settings: &ToolSettings) -> u64 {
    settings.terminal.timeout.clamp(1, MAX_TIMEOUT_S)
}

/// What every answer says of its process.
fn facts(cx: &ToolCx, process: &ProcessView) -> Map<String, Value> {
    let until = process.end.as_ref().map_or_else(|| cx.services.clock.now(), |end| end.at);
    #[expect(clippy::cast_possible_truncation, reason = "no process runs for longer than an i64 has seconds")]
    let uptime = until.seconds_since(process.started_at).max(0.0) as i64;
    let mut fields = Map::new();
    fields.insert("session_id".into(), process.id.clone().into());
    fields.insert("status".into(), if process.end.is_some() { "exited" } else { "running" }.into());
    fields.insert("pid".into(), process.pid.into());
    fields.insert("uptime_seconds".into(), uptime.into());
    if let Some(end) = &process.end {
        fields.insert("exit_code".into(), end.exit_code.into());
        fields.insert("completion_reason".into(), end.reason.as_str().into());
        put_some(&mut fields, "termination_source", end.source.clone());
    }
    if process.detached {
        fields.insert("detached".into(), true.into());
        let note = match &process.end {
            None => Some(
                "taken over after a restart of the daemon: its stdin is closed, its exit code will not be known",
            ),
            Some(end) if end.exit_code.is_none() => {
                Some("its exit code is not known: no daemon saw its end, or a later one did")
            }
            Some(_) => None,
        };
        put_some(&mut fields, "detached_note", note);
    }
    fields
}

fn masked(cx: &ToolCx, text: String) -> String {
    sudo::mask(text, cx.workspace.sudo_password().as_ref())
}

fn failed(error: &ProcessError) -> ToolOutput {
    let mut content = json!({ "error": error.to_string() });
    let effect = match error {
        ProcessError::Unknown { .. } => {
            content["status"] = "not_found".into();
            EffectDisposition::None
        }
        ProcessError::NotReading { .. } => EffectDisposition::Unknown,
        _ => EffectDisposition::None,
    };
    ToolOutput { effect, ..ToolOutput::failed(content) }
}

/// The command line that starts `command` with `data` as its input.
fn as_input(command: &str, data: &str) -> String {
    let mut end = "HERMES_INPUT".to_owned();
    while data.contains(&end) {
        end.push('_');
    }
    format!("{{ {command}\n}} <<'{end}'\n{data}\n{end}\n")
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;

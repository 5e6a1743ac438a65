//! `config show|get|path|env-path|check`: the settings as this client sees them; no daemon is needed.
//! `config set|unset` go through the daemon, which alone changes what is in force.

use std::path::PathBuf;

use hermes_config::{Diagnostic, Settings, Severity, to_yaml};
use hermes_proto::v1;
use serde_json::{Value, json};

use super::Desk;
use crate::args::{ConfigCommand, ConfigShowFlags};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome, Stop};
use crate::output::Output;
use crate::profile;

pub(super) fn run(desk: &Desk<'_>, command: Option<ConfigCommand>, output: &mut Output) -> Outcome<Exit> {
    match command.unwrap_or(ConfigCommand::Show(ConfigShowFlags::default())) {
        ConfigCommand::Path => {
            output.line(&config_path(desk).display().to_string())?;
            Ok(Exit::Success)
        }
        ConfigCommand::EnvPath => {
            output.line(&desk.home.dot_env().display().to_string())?;
            Ok(Exit::Success)
        }
        ConfigCommand::Show(flags) if flags.raw => show_raw(desk, output),
        ConfigCommand::Show(flags) => show(desk, flags, output),
        ConfigCommand::Get { key, json } => get(desk, &key, json, output),
        ConfigCommand::Check { json } => check(desk, json, output),
        ConfigCommand::Set { key, value } => {
            let value = hermes_config::typed_value(&value).map_err(|problem| {
                Failure::usage(format!("the value for `{key}` is neither JSON nor YAML: {problem}"))
            })?;
            super::wait_for(write(desk, key, Some(value), output))
        }
        ConfigCommand::Unset { key } => super::wait_for(write(desk, key, None, output)),
    }
}

fn config_path(desk: &Desk<'_>) -> PathBuf {
    profile::config_path(desk.home, desk.global, desk.around)
}

fn show(desk: &Desk<'_>, flags: ConfigShowFlags, output: &mut Output) -> Outcome<Exit> {
    let loaded = profile::settings(desk.home, desk.global, desk.around)?;
    let settings = &loaded.settings;
    match (flags.origin, flags.json) {
        (false, false) => output.text(&to_yaml(&settings.masked()))?,
        (false, true) => output.line(&settings.masked().to_string())?,
        (true, true) => {
            let entries: Vec<Value> = settings
                .entries()
                .iter()
                .map(|entry| json!({"key": entry.key, "value": entry.value, "origin": entry.origin.to_string()}))
                .collect();
            output.line(&Value::from(entries).to_string())?;
        }
        (true, false) => {
            for entry in settings.entries() {
                output.line(&format!("{} = {}  # {}", entry.key, entry.value, entry.origin))?;
            }
        }
    }
    tell(&loaded.diagnostics, output);
    Ok(Exit::Success)
}

/// The file itself, with its comments and without its secrets.
fn show_raw(desk: &Desk<'_>, output: &mut Output) -> Outcome<Exit> {
    let path = config_path(desk);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            output.note(&format!("there is no {} yet", path.display()));
            return Ok(Exit::Success);
        }
        Err(error) => return Err(Failure::general(format!("cannot read {}: {error}", path.display())).into()),
    };
    let shown = hermes_config::mask_yaml_text(&text);
    output.text(&shown)?;
    if !shown.is_empty() && !shown.ends_with('\n') {
        output.line("")?;
    }
    Ok(Exit::Success)
}

fn get(desk: &Desk<'_>, key: &str, json: bool, output: &mut Output) -> Outcome<Exit> {
    let loaded = profile::settings(desk.home, desk.global, desk.around)?;
    let Some(value) = value_of(&loaded.settings, key) else {
        let what = format!("`{key}` is not set");
        return Err(Failure::general(what).hint("all keys and values: hermes-cli config show").into());
    };
    if json {
        output.line(&value.to_string())?;
        return Ok(Exit::Success);
    }
    match &value {
        Value::String(text) => output.line(text)?,
        Value::Array(_) | Value::Object(_) => output.text(&to_yaml(&value))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => output.line(&value.to_string())?,
    }
    Ok(Exit::Success)
}

/// A value that was asked for by name. Secrets stay masked: scripts take them from where they are kept.
fn value_of(settings: &Settings, key: &str) -> Option<Value> {
    settings.masked_at(key)
}

/// Changes the profile's own file. A stand-in for it (`--config`) is whoever's file; no daemon goes by it.
async fn write(desk: &Desk<'_>, key: String, value: Option<Value>, output: &mut Output) -> Outcome<Exit> {
    if let Some(other) = profile::chosen_config(desk.global, desk.around) {
        let what = format!("only the profile's own config.yaml can be changed, not {}", other.display());
        return Err(Failure::usage(what)
            .hint("edit that file by hand, or leave --config and HERMES_CONFIG out")
            .into());
    }
    profile::prepare(desk.home)?;
    let client = desk.connector.ensure().await?;
    let verb = if value.is_some() { "set" } else { "unset" };
    let value = value.map(|value| v1::Json { raw: value.to_string() });
    let written = client.set_config(v1::SetConfigRequest { key: key.clone(), value }).await?;
    output.line(&format!("{key} is {verb} in {}", written.path))?;
    match (written.applied, written.note.as_str()) {
        (true, "") => {}
        (false, "") => output.note("it is not in force yet: hermes-cli daemon restart"),
        (_, note) => output.note(note),
    }
    Ok(Exit::Success)
}

fn check(desk: &Desk<'_>, json: bool, output: &mut Output) -> Outcome<Exit> {
    let loaded = match profile::settings(desk.home, desk.global, desk.around) {
        Ok(loaded) => loaded,
        Err(Stop::Failure(failure)) => {
            if json {
                let finding = json!({"severity": "error", "kind": "unusable", "message": failure.message});
                output.line(&json!({"ok": false, "findings": [finding]}).to_string())?;
            }
            // A file that cannot be used at all is the gravest finding of all.
            return Err(Stop::Failure(Box::new(Failure { exit: Exit::Problems, ..*failure })));
        }
        Err(stop) => return Err(stop),
    };
    let findings = &loaded.diagnostics;
    let errors = findings.iter().filter(|finding| is_problem(finding)).count();
    if json {
        let list: Vec<Value> = findings.iter().map(finding_json).collect();
        output.line(&json!({"ok": errors == 0, "findings": list}).to_string())?;
    } else {
        for finding in findings {
            output.line(&format!("{}: {finding}", finding.severity.as_str()))?;
        }
        let path = config_path(desk);
        let missing = if path.exists() { "" } else { " (there is none; the defaults hold)" };
        match (errors, findings.len()) {
            (0, 0) => output.line(&format!("{} is in order{missing}", path.display()))?,
            (errors, all) => output.line(&format!("{all} findings, {errors} of them errors"))?,
        }
    }
    Ok(if errors == 0 { Exit::Success } else { Exit::Problems })
}

/// A finding on which something else is in force than what the user wrote.
fn is_problem(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error || finding.kind.is_invalid_value()
}

fn finding_json(finding: &Diagnostic) -> Value {
    json!({
        "severity": if is_problem(finding) { "error" } else { finding.severity.as_str() },
        "kind": finding.kind.as_str(),
        "origin": finding.origin.to_string(),
        "key": finding.key,
        "message": finding.message,
        "accepted": finding.accepted,
        "suggestion": finding.suggestion,
    })
}

/// Findings beside an answer, on stderr.
fn tell(findings: &[Diagnostic], output: &mut Output) {
    for finding in findings.iter().filter(|finding| finding.severity >= Severity::Warning) {
        output.note(&format!("{}: {finding}", finding.severity.as_str()));
    }
}

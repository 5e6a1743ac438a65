//! `status`: the profile and its daemon at a glance, without starting anything.

use hermes_client::Client;
use hermes_core::{Clock as _, SystemClock};
use hermes_proto::v1;
use serde_json::{Value, json};

use super::Desk;
use crate::exit::Exit;
use crate::failure::{Outcome, chain};
use crate::output::{Output, duration};
use crate::profile;

/// What is known of the daemon.
pub(super) enum Daemon {
    Running(Box<(v1::HelloResponse, v1::StatusResponse)>),
    Stopped,
    /// It is there, but cannot be used.
    Unusable(String),
}

/// Asks the daemon how it is, if there is one.
pub(super) async fn ask(desk: &Desk<'_>) -> Daemon {
    let asked = async |client: Client| {
        let status = client.status().await.map_err(|error| chain(&error))?;
        Ok::<_, String>(Box::new((client.hello().clone(), status)))
    };
    match desk.connector.connect().await {
        Ok(client) => asked(client).await.map_or_else(Daemon::Unusable, Daemon::Running),
        Err(error) if error.is_absent() => Daemon::Stopped,
        Err(error) => Daemon::Unusable(format!("{}; {}", chain(&error), error.hint())),
    }
}

pub(super) async fn run(desk: &Desk<'_>, json: bool, output: &mut Output) -> Outcome<Exit> {
    let daemon = ask(desk).await;
    let settings = match profile::settings(desk.home, desk.global, desk.around) {
        Ok(loaded) => {
            let text =
                |key: &str| loaded.settings.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let findings = loaded.diagnostics.len();
            Ok((text("model.default"), text("model.provider"), findings))
        }
        Err(crate::failure::Stop::Failure(failure)) => Err(failure.message),
        Err(stop) => return Err(stop),
    };
    let config = profile::config_path(desk.home, desk.global, desk.around);
    if json {
        let (model, provider) = match &settings {
            Ok((model, provider, _)) => (json!(model), json!(provider)),
            Err(_) => (Value::Null, Value::Null),
        };
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "profile": desk.home.profile().as_str(),
            "home": desk.home.dir(),
            "config": config,
            "config_error": settings.as_ref().err(),
            "model": model,
            "provider": provider,
            "daemon": daemon_json(&daemon),
        });
        output.line(&document.to_string())?;
        return Ok(Exit::Success);
    }
    output.line("Profile")?;
    output.line(&format!("  name      {}", desk.home.profile()))?;
    output.line(&format!("  home      {}", desk.home.dir().display()))?;
    output.line(&format!("  config    {}", file_note(&config)))?;
    output.line(&format!("  secrets   {}", file_note(&desk.home.dot_env())))?;
    output.line("Model")?;
    match &settings {
        Ok((model, provider, findings)) => {
            let shown = |text: &str| if text.is_empty() { "not set".to_owned() } else { text.to_owned() };
            output.line(&format!("  model     {}", shown(model)))?;
            output.line(&format!("  provider  {}", shown(provider)))?;
            if *findings > 0 {
                output.line(&format!("  settings  {findings} findings: hermes-cli config check"))?;
            }
        }
        Err(error) => output.line(&format!("  settings  cannot be used: {error}"))?,
    }
    output.line("Daemon")?;
    for line in daemon_lines(&daemon) {
        output.line(&format!("  {line}"))?;
    }
    Ok(Exit::Success)
}

fn file_note(path: &std::path::Path) -> String {
    let missing = if path.exists() { "" } else { " (none yet)" };
    format!("{}{missing}", path.display())
}

/// The daemon's state in lines of "name  value".
pub(super) fn daemon_lines(daemon: &Daemon) -> Vec<String> {
    let (hello, status) = match daemon {
        Daemon::Stopped => return vec!["state     stopped (it starts when it is needed)".into()],
        Daemon::Unusable(why) => return vec![format!("state     not usable: {why}")],
        Daemon::Running(both) => both.as_ref(),
    };
    let kind = if hello.on_demand { "on demand" } else { "until it is stopped" };
    let up = SystemClock.now().unix_seconds() - status.started_at;
    let mut lines = vec![
        format!("state     {}, {kind}", status.state),
        format!("process   {}, since {}", hello.pid, duration(up)),
        format!("version   {}", hello.version),
        format!("model     {} ({})", status.model, status.provider),
        format!("turns     {} running, {} waiting", status.active_turns, status.queued_inputs),
        format!(
            "sessions  {} loaded, {} stored, {} messages",
            status.live_sessions, status.session_count, status.message_count
        ),
        format!("clients   {}", status.clients),
    ];
    if let Some(reason) = &status.read_only_reason {
        lines.push(format!("database  read-only: {reason}"));
    }
    lines.extend(status.warnings.iter().map(|warning| format!("warning   {warning}")));
    lines
}

pub(super) fn daemon_json(daemon: &Daemon) -> Value {
    match daemon {
        Daemon::Stopped => json!({"state": "stopped"}),
        Daemon::Unusable(why) => json!({"state": "unusable", "error": why}),
        Daemon::Running(both) => serde_json::to_value(&both.1).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_daemon_in_lines() {
        let hello =
            v1::HelloResponse { pid: 7, version: "0.1.0".into(), on_demand: true, ..Default::default() };
        let status = v1::StatusResponse {
            state: "running".into(),
            model: "fake".into(),
            provider: "custom".into(),
            active_turns: 1,
            session_count: 3,
            message_count: 40,
            live_sessions: 2,
            clients: 1,
            read_only_reason: Some("the database is newer".into()),
            warnings: vec!["disk is nearly full".into()],
            ..Default::default()
        };
        let lines = daemon_lines(&Daemon::Running(Box::new((hello, status))));
        // The second line tells the time since the start.
        let lines: Vec<&str> =
            lines.iter().map(String::as_str).filter(|line| !line.starts_with("process")).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_stopped_daemon_is_no_error() {
        assert_eq!(daemon_json(&Daemon::Stopped), json!({"state": "stopped"}));
        assert!(daemon_lines(&Daemon::Stopped).concat().contains("stopped"));
    }
}

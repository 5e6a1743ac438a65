//! `daemon run|start|stop|restart|status|logs`.

use std::os::unix::process::CommandExt as _;

use hermes_client::{Client, Launch, StartMode};
use hermes_proto::v1;

use super::status::{Daemon, daemon_json, daemon_lines};
use super::{Desk, logs, status, wait_for};
use crate::args::DaemonCommand;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::profile;

pub(super) fn run(desk: &Desk<'_>, command: DaemonCommand, output: &mut Output) -> Outcome<Exit> {
    match command {
        DaemonCommand::Run => run_in_foreground(desk),
        DaemonCommand::Start => wait_for(start(desk, output)),
        DaemonCommand::Stop { now } => wait_for(stop(desk, now, output)),
        DaemonCommand::Restart { now } => wait_for(restart(desk, now, output)),
        DaemonCommand::Status { json } => wait_for(show_status(desk, json, output)),
        DaemonCommand::Logs(tail) => wait_for(logs::run(desk, "agent", &tail, output)),
    }
}

/// Becomes the daemon: signals, exit code and terminal are its own from here on.
fn run_in_foreground(desk: &Desk<'_>) -> Outcome<Exit> {
    profile::prepare(desk.home)?;
    let program = desk.connector.launch().find()?;
    let arguments = Launch::arguments(desk.connector.place(), None);
    let error = std::process::Command::new(&program).args(arguments).arg("--foreground").exec();
    Err(Failure::general(format!("cannot run {}: {error}", program.display())).into())
}

async fn start(desk: &Desk<'_>, output: &mut Output) -> Outcome<Exit> {
    profile::prepare(desk.home)?;
    if let Ok(client) = desk.connector.connect().await {
        let kind = if client.hello().on_demand { ", on demand: it ends when idle" } else { "" };
        output.line(&format!("already running (process {}{kind})", client.hello().pid))?;
        return Ok(Exit::Success);
    }
    let client = desk.connector.ensure_mode(StartMode::Stay).await?;
    output.line(&format!("started (process {})", client.hello().pid))?;
    Ok(Exit::Success)
}

async fn stop(desk: &Desk<'_>, now: bool, output: &mut Output) -> Outcome<Exit> {
    let Some(client) = running(desk).await? else {
        output.line(&format!("no daemon runs for profile {}", desk.home.profile()))?;
        return Ok(Exit::Success);
    };
    shut_down(desk, &client, false, now, output).await?;
    output.line("stopped")?;
    Ok(Exit::Success)
}

async fn restart(desk: &Desk<'_>, now: bool, output: &mut Output) -> Outcome<Exit> {
    profile::prepare(desk.home)?;
    let mode = match running(desk).await? {
        Some(client) => {
            shut_down(desk, &client, true, now, output).await?;
            if client.hello().on_demand { StartMode::OnDemand } else { StartMode::Stay }
        }
        None => StartMode::Stay,
    };
    let client = desk.connector.ensure_mode(mode).await?;
    output.line(&format!("running (process {})", client.hello().pid))?;
    Ok(Exit::Success)
}

/// The running daemon. One that cannot be talked to is an error, with its process id in the hint.
async fn running(desk: &Desk<'_>) -> Outcome<Option<Client>> {
    match desk.connector.connect().await {
        Ok(client) => Ok(Some(client)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn shut_down(
    desk: &Desk<'_>,
    client: &Client,
    restart: bool,
    now: bool,
    output: &mut Output,
) -> Outcome<()> {
    let request = v1::ShutdownRequest { restart, drain_s: now.then_some(0.0) };
    let answer = client.shutdown(request).await?;
    if answer.active_turns > 0 && !now {
        output.note(&format!("waiting for {} running turns", answer.active_turns));
    }
    Ok(desk.connector.wait_until_gone(client.hello()).await?)
}

async fn show_status(desk: &Desk<'_>, json: bool, output: &mut Output) -> Outcome<Exit> {
    let daemon = status::ask(desk).await;
    if json {
        output.line(&daemon_json(&daemon).to_string())?;
    } else {
        for line in daemon_lines(&daemon) {
            output.line(&line)?;
        }
    }
    Ok(match daemon {
        Daemon::Running(_) => Exit::Success,
        Daemon::Stopped | Daemon::Unusable(_) => Exit::Failure,
    })
}

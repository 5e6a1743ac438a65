//! The daemon and the agent's processes: it is not to be started by one, knows its own, and notes them for the next.

use std::time::Duration;

use hermes_config::Home;
use hermes_engine::Engine;
use hermes_runtime::Tasks;
use hermes_runtime::kin::{
    Family, FamilyInput, Kinship, LinuxProc, ProcessId, Reason, StrayRecord, brand, started_inside,
};
use hermes_server::Clients;
use tokio::time::MissedTickBehavior;

use crate::args::Surroundings;
use crate::policy_keys::PolicyKeys;

/// Between two looks at what runs below the daemon and at the settings' files.
const LOOK: Duration = Duration::from_secs(1);
/// With no client, no turn and nothing below, only every so many looks are taken.
const IDLE_LOOKS: u32 = 3;

fn record(home: &Home) -> StrayRecord {
    StrayRecord::at(home.run_dir().join("strays.json"))
}

/// Why this process must not serve the home: a tool of the agent started it.
pub(crate) fn refuses_to_serve(home: &Home) -> Option<String> {
    let pid = i32::try_from(std::process::id()).ok()?;
    let Kinship { reason, sessions } = started_inside(&LinuxProc, pid, &record(home).living(&LinuxProc))?;
    Some(match (reason, sessions.last()) {
        (Reason::Marked, Some(session)) => format!("a tool of session {session} started it"),
        (Reason::Unknown(why), _) => format!("it cannot be told who started it: {why}"),
        _ => "a process that tools left running started it".to_owned(),
    })
}

/// Becomes the head of the family. `roots` gives the background processes that were taken over.
pub(crate) fn family(
    home: &Home,
    around: &Surroundings,
    on_demand: bool,
    roots: impl Fn() -> Vec<ProcessId> + Send + Sync + 'static,
) -> Family {
    if let Err(error) = brand() {
        tracing::warn!(%error, "tools are known by their ancestors and marks only");
    }
    Family::new(FamilyInput {
        record: record(home),
        roots: std::sync::Arc::new(roots),
        is_service: !on_demand && is_service(around),
    })
}

/// Whether a service manager started exactly this process. A shell or an editor that runs as a service has children
/// in its unit that are a person's.
fn is_service(around: &Surroundings) -> bool {
    let variable = |wanted: &str| {
        let found = around.environment.iter().find(|(name, _)| name.to_str() == Some(wanted));
        found.and_then(|(_, value)| value.to_str())
    };
    if let Some(pid) = variable("SYSTEMD_EXEC_PID") {
        return pid.parse() == Ok(std::process::id());
    }
    // Before version 248 it does not say whom it started.
    let parent = format!("/proc/{}/comm", nix::unistd::getppid());
    variable("INVOCATION_ID").is_some()
        && std::fs::read_to_string(parent).is_ok_and(|name| name.trim() == "systemd")
}

/// Looks again and again until the daemon ends.
pub(crate) fn keep_looking(
    tasks: &Tasks,
    family: Family,
    policy: PolicyKeys,
    clients: Clients,
    engine: Engine,
) {
    let stopping = tasks.stopping();
    tasks.spawn("family", async move {
        let mut tick = tokio::time::interval(LOOK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle = 0;
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = stopping.cancelled() => return,
            }
            let in_use = clients.count() > 0 || engine.busy();
            idle = if in_use { 0 } else { idle + 1 };
            if idle % IDLE_LOOKS != 0 {
                continue;
            }
            if family.look() {
                idle = 0;
            }
            if in_use {
                policy.look().await;
            }
        }
    });
}

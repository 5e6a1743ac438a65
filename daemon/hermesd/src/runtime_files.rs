//! What the daemon tells other processes through files: where it is (`run/daemon.json`) and how it is
//! (`gateway_state.json`).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hermes_core::Instant;
use serde::Serialize;

use crate::private_file;
use crate::process::ProcessRecord;

/// `run/daemon.json` (contract §10): there while the daemon accepts calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DaemonFile {
    pub pid: u32,
    pub epoch: String,
    pub socket: PathBuf,
    /// The configured HTTP address; absent when no port is open.
    pub http: Option<String>,
    pub protocol: u32,
    pub version: &'static str,
    pub on_demand: bool,
}

impl DaemonFile {
    /// Announces the daemon.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        private_file::replace(path, &serde_json::to_vec(self)?)
    }
}

/// Where the daemon is in its life (spec 70 §17).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifeState {
    Starting,
    Running,
    Draining,
    Stopped,
    StartupFailed,
}

impl LifeState {
    /// The name used in the file.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::StartupFailed => "startup_failed",
        }
    }
}

/// Writes `gateway_state.json`.
#[derive(Debug, Clone)]
pub(crate) struct StateFile {
    path: PathBuf,
    process: ProcessRecord,
    version: &'static str,
}

#[derive(Serialize)]
struct StateRecord<'a> {
    #[serde(flatten)]
    process: &'a ProcessRecord,
    gateway_state: &'static str,
    exit_reason: Option<&'a str>,
    restart_requested: bool,
    active_agents: u32,
    platforms: BTreeMap<String, serde_json::Value>,
    updated_at: String,
    code_version: &'a str,
}

impl StateFile {
    pub(crate) fn new(path: PathBuf, process: ProcessRecord, version: &'static str) -> Self {
        Self { path, process, version }
    }

    /// Whether the file tells of a daemon of ours that served this home: one that came up, not one that failed.
    pub(crate) fn tells_of_service(path: &Path) -> bool {
        let record =
            std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
        record.is_some_and(|record| {
            record["kind"] == "hermesd"
                && record["gateway_state"]
                    .as_str()
                    .is_some_and(|state| ["running", "draining", "stopped"].contains(&state))
        })
    }

    /// Writes the state. A failure is logged and otherwise ignored: the file informs, nothing rests on it.
    pub(crate) fn write(&self, now: Instant, state: LifeState, facts: StateFacts<'_>) {
        let record = StateRecord {
            process: &self.process,
            gateway_state: state.as_str(),
            exit_reason: facts.exit_reason,
            restart_requested: facts.restart,
            active_agents: facts.active_turns,
            platforms: BTreeMap::new(),
            updated_at: rfc3339(now),
            code_version: self.version,
        };
        let written = serde_json::to_vec(&record).map_err(io::Error::from);
        if let Err(error) = written.and_then(|json| private_file::replace(&self.path, &json)) {
            tracing::warn!(path = %self.path.display(), %error, "cannot write the state file");
        }
    }
}

/// What goes with a state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StateFacts<'a> {
    pub exit_reason: Option<&'a str>,
    pub restart: bool,
    pub active_turns: u32,
}

fn rfc3339(at: Instant) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "microseconds since 1970 fit an i64")]
    let micros = (at.unix_seconds() * 1e6) as i64;
    jiff::Timestamp::from_microsecond(micros).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_file_has_the_originals_fields() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("gateway_state.json");
        let process = ProcessRecord {
            pid: 7,
            kind: "hermesd".into(),
            argv: vec!["hermesd".into()],
            start_time: Some(5),
            hermes_home: Some("/h".into()),
        };
        let file = StateFile::new(path.clone(), process, "0.1.0");
        let facts = StateFacts { active_turns: 2, ..StateFacts::default() };
        file.write(Instant(1_767_225_600.5), LifeState::Draining, facts);
        let written: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let expected = serde_json::json!({
            "pid": 7, "kind": "hermesd", "argv": ["hermesd"], "start_time": 5, "hermes_home": "/h",
            "gateway_state": "draining", "exit_reason": null, "restart_requested": false,
            "active_agents": 2, "platforms": {}, "updated_at": "2026-01-01T00:00:00.5Z", "code_version": "0.1.0",
        });
        assert_eq!(written, expected);
    }
}

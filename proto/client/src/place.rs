//! Where the parts of one profile's daemon lie, and what `run/daemon.json` says of it (contract §10).

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// The paths of one profile that a client needs. The caller takes them from its knowledge of homes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The root of all profiles, handed to a started daemon as `--home`.
    pub root: PathBuf,
    /// The profile's name, handed to a started daemon as `--profile`.
    pub profile: String,
    /// The socket by the rule of contract §10.
    pub socket: PathBuf,
    /// `run/daemon.json`.
    pub daemon_json: PathBuf,
    /// `gateway.lock`, which a daemon holds for life and in which it writes who it is.
    pub gateway_lock: PathBuf,
    /// `logs/agent.log`, shown when a start fails.
    pub agent_log: PathBuf,
}

/// Who wrote itself into `gateway.lock`. The original's gateway takes the same lock.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct LockRecord {
    pid: u32,
    kind: String,
}

/// What a running daemon says of itself in `run/daemon.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(default)]
pub struct DaemonFile {
    pub pid: u32,
    pub epoch: String,
    pub socket: Option<PathBuf>,
    pub protocol: u32,
}

impl DaemonFile {
    /// Whether a process with the recorded id exists. The id may have been given to another process
    /// since, so this is a hint for waiting, never a proof.
    pub fn may_be_alive(&self) -> bool {
        process_exists(self.pid)
    }
}

fn process_exists(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    // EPERM means that the process exists and belongs to somebody else.
    pid > 0 && matches!(kill(Pid::from_raw(pid), None), Ok(()) | Err(Errno::EPERM))
}

impl Place {
    /// Reads `run/daemon.json`; `None` when there is none or when it cannot be understood.
    pub fn daemon_file(&self) -> Option<DaemonFile> {
        serde_json::from_slice(&std::fs::read(&self.daemon_json).ok()?).ok()
    }

    /// Whether another `hermesd` than the process `own` has the profile, as far as its lock file tells.
    pub(crate) fn held_by_other(&self, own: Option<u32>) -> bool {
        self.holder().is_some_and(|pid| Some(pid) != own)
    }

    /// The `hermesd` that has written itself into the lock file and lives. It takes its name out right before
    /// it lets the lock go.
    pub(crate) fn holder(&self) -> Option<u32> {
        let record: LockRecord = serde_json::from_slice(&std::fs::read(&self.gateway_lock).ok()?).ok()?;
        (record.kind == "hermesd" && process_exists(record.pid)).then_some(record.pid)
    }

    /// The sockets at which the daemon may answer: the rule's first, then the one that the daemon
    /// recorded, which differs when daemon and client see different runtime directories.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let recorded = std::iter::once_with(|| self.daemon_file()?.socket).flatten();
        std::iter::once(self.socket.clone()).chain(recorded.filter(|recorded| *recorded != self.socket))
    }
}

/// How much of a log's end is looked at for its last lines.
const TAIL_BYTES: u64 = 64 * 1024;

/// The last `count` lines of a text file; empty when it cannot be read.
pub(crate) fn last_lines(path: &Path, count: usize) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<String> = text.lines().rev().take(count).map(str::to_owned).collect();
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path) -> Place {
        Place {
            root: dir.to_owned(),
            profile: "default".into(),
            socket: dir.join("run/hermesd.sock"),
            daemon_json: dir.join("run/daemon.json"),
            gateway_lock: dir.join("gateway.lock"),
            agent_log: dir.join("logs/agent.log"),
        }
    }

    #[test]
    fn the_recorded_socket_is_tried_after_the_rules_own() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        assert!(place.sockets().eq([place.socket.clone()]));

        std::fs::create_dir(dir.path().join("run")).unwrap();
        let json = r#"{"pid": 7, "epoch": "e", "socket": "/elsewhere.sock", "http": null, "protocol": 1}"#;
        std::fs::write(&place.daemon_json, json).unwrap();
        assert_eq!(
            place.sockets().collect::<Vec<_>>(),
            [place.socket.clone(), PathBuf::from("/elsewhere.sock")]
        );
    }

    #[test]
    fn a_broken_daemon_file_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        std::fs::create_dir(dir.path().join("run")).unwrap();
        std::fs::write(&place.daemon_json, "{\"pid\": ").unwrap();
        assert_eq!(place.daemon_file(), None);
    }

    #[test]
    fn a_profile_is_held_by_another_living_daemon_only() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        let alive = std::process::id();
        let held = |json: String, own| {
            std::fs::write(&place.gateway_lock, json).unwrap();
            place.held_by_other(own)
        };
        assert!(!place.held_by_other(None));
        assert!(held(format!(r#"{{"pid": {alive}, "kind": "hermesd"}}"#), Some(1)));
        assert!(!held(format!(r#"{{"pid": {alive}, "kind": "hermesd"}}"#), Some(alive)));
        assert!(!held(format!(r#"{{"pid": {alive}, "kind": "hermes-gateway"}}"#), Some(1)));
        assert!(!held(r#"{"pid": 0, "kind": "hermesd"}"#.into(), None));
        assert!(!held("4711".into(), None));
    }

    #[test]
    fn this_process_is_alive_and_process_zero_is_not_asked() {
        let alive = DaemonFile { pid: std::process::id(), ..DaemonFile::default() };
        assert!(alive.may_be_alive());
        assert!(!DaemonFile::default().may_be_alive());
    }

    #[test]
    fn last_lines_are_the_last_in_reading_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(last_lines(&path, 2), ["two", "three"]);
        assert!(last_lines(&dir.path().join("none"), 2).is_empty());
    }
}

//! The record by which a daemon is known to others: a pid alone may have been given to another
//! process by now, so it carries the start time too (spec 70 §17).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One process, as `gateway.pid`, `gateway.lock` and `gateway_state.json` name it. The field names are the
/// original's, which reads these files too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pub pid: u32,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub argv: Vec<String>,
    /// Clock ticks from the machine's boot to the start (field 22 of `/proc/PID/stat`); absent where
    /// the system has no `/proc`.
    #[serde(default)]
    pub start_time: Option<u64>,
    #[serde(default)]
    pub hermes_home: Option<PathBuf>,
}

impl ProcessRecord {
    /// This process, serving `home`.
    pub(crate) fn current(home: &Path, argv: Vec<String>) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            kind: "hermesd".into(),
            argv,
            start_time: start_time(pid),
            hermes_home: Some(home.to_path_buf()),
        }
    }

    /// The record as JSON text.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a record, also the bare number that old files hold.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bare =
            |pid| Self { pid, kind: String::new(), argv: Vec::new(), start_time: None, hermes_home: None };
        serde_json::from_str(text).ok().or_else(|| text.trim().parse().ok().map(bare))
    }
}

fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in brackets and may hold blanks; the third begins after the last one.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_file() {
        let record = ProcessRecord::current(Path::new("/home/h"), vec!["hermesd".into(), "run".into()]);
        let text = String::from_utf8(record.to_json()).unwrap();
        assert_eq!(ProcessRecord::parse(&text), Some(record));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_a_start_time() {
        assert!(start_time(std::process::id()).is_some_and(|ticks| ticks > 0));
    }

    #[test]
    fn old_files_hold_a_bare_number() {
        assert_eq!(ProcessRecord::parse("4711\n").map(|record| record.pid), Some(4711));
        assert_eq!(ProcessRecord::parse(""), None);
        assert_eq!(ProcessRecord::parse("{}"), None);
    }
}

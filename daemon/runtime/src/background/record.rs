//! What is kept of background processes, so that the next daemon finds them: `processes.json`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file's own version; another one is not read.
const VERSION: u32 = 1;

/// The whole file.
#[derive(Debug, Serialize, Deserialize)]
struct Register {
    version: u32,
    processes: Vec<Record>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) session: String,
    pub(super) principal: String,
    pub(super) command: String,
    pub(super) cwd: PathBuf,
    pub(super) log: PathBuf,
    pub(super) pid: i32,
    /// The kernel's start time of `pid`; it counts within `boot` only.
    pub(super) start_ticks: u64,
    pub(super) boot: String,
    pub(super) mark: String,
    pub(super) started_at: f64,
    pub(super) pty: bool,
    pub(super) notify_on_complete: bool,
    pub(super) watch_patterns: Vec<String>,
    pub(super) watch_hits: u64,
    /// Notices given so far: their ids must stay unique.
    pub(super) notices: u64,
    /// Where `poll` goes on.
    pub(super) polled: u64,
    /// The session knows of its end.
    pub(super) told: bool,
    pub(super) ended: Option<EndRecord>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct EndRecord {
    pub(super) at: f64,
    pub(super) exit_code: Option<i32>,
    pub(super) reason: super::EndReason,
    pub(super) source: Option<String>,
}

/// Replaces the file at once. It is not forced to the disk: after a crash of the machine no process lives.
pub(super) fn save(path: &Path, processes: Vec<Record>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".processes-").tempfile_in(folder)?;
    let text = serde_json::to_vec_pretty(&Register { version: VERSION, processes })?;
    file.write_all(&text)?;
    file.persist(path).map_err(|failed| failed.error)?;
    Ok(())
}

/// What an earlier daemon kept; a file that cannot be understood counts as none.
pub(super) fn load(path: &Path) -> Vec<Record> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "cannot read the list of background processes");
            return Vec::new();
        }
    };
    match serde_json::from_slice::<Register>(&bytes) {
        Ok(register) if register.version == VERSION => register.processes,
        Ok(register) => {
            tracing::warn!(
                version = register.version,
                "the list of background processes is of another version"
            );
            Vec::new()
        }
        Err(error) => {
            tracing::warn!(%error, "the list of background processes is not ours or broken");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_was_kept_is_found_and_private() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("processes.json");
        assert_eq!(load(&path), []);
        let record = Record {
            id: "proc_0123456789ab".into(),
            session: "s1".into(),
            principal: "owner".into(),
            command: "npm run dev".into(),
            cwd: "/w".into(),
            log: "/h/processes/proc_0123456789ab.log".into(),
            pid: 7,
            start_ticks: 9,
            boot: "b".into(),
            mark: "m".into(),
            started_at: 1.5,
            pty: false,
            notify_on_complete: true,
            watch_patterns: vec!["ready".into()],
            watch_hits: 1,
            notices: 1,
            polled: 12,
            told: false,
            ended: Some(EndRecord {
                at: 2.0,
                exit_code: Some(0),
                reason: super::super::EndReason::Exited,
                source: None,
            }),
        };
        save(&path, vec![record.clone()]).unwrap();
        assert_eq!(load(&path), [record]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_foreign_or_broken_file_counts_as_none() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("processes.json");
        for text in
            ["", "[]", "[{\"session_id\": \"proc_1\", \"pid\": 1}]", "{\"version\": 2, \"processes\": []}"]
        {
            fs::write(&path, text).unwrap();
            assert_eq!(load(&path), [], "{text}");
        }
    }
}

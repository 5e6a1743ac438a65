//! What tools have left running, on disk: the next daemon is no ancestor of it, and must know it all the same.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::source::{ProcSource, ProcessId};

/// Names one boot of the machine: start times count from it.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    boot: String,
    processes: Vec<ProcessId>,
}

/// The file in which a daemon notes all its living descendants.
#[derive(Debug, Clone)]
pub struct StrayRecord {
    path: PathBuf,
    boot: String,
}

impl StrayRecord {
    /// The record at `path`; nothing is read yet.
    pub fn at(path: PathBuf) -> Self {
        let boot = fs::read_to_string(BOOT_ID).map(|id| id.trim().to_owned()).unwrap_or_default();
        Self { path, boot }
    }

    /// Where it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The noted processes that still live. A record of another boot, or one that cannot be read, holds none.
    pub fn living(&self, source: &dyn ProcSource) -> BTreeSet<ProcessId> {
        let content =
            fs::read(&self.path).ok().and_then(|text| serde_json::from_slice::<Content>(&text).ok());
        content
            .filter(|content| content.boot == self.boot)
            .map(|content| content.processes)
            .unwrap_or_default()
            .into_iter()
            .filter(|noted| source.stat(noted.pid).is_ok_and(|stat| stat.process == *noted && !stat.zombie))
            .collect()
    }

    /// Replaces what is noted.
    pub(super) fn write(&self, processes: &BTreeSet<ProcessId>) -> io::Result<()> {
        let content = Content { boot: self.boot.clone(), processes: processes.iter().copied().collect() };
        let text = serde_json::to_vec(&content).unwrap_or_default();
        hermes_config::write_private(&self.path, &text)
    }
}

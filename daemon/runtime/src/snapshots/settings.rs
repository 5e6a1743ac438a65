//! Settings that act on snapshots: the section `checkpoints`.

use schemars::JsonSchema;
use serde::Deserialize;

/// Section `checkpoints`: what is kept of files before a turn changes them, so that it can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the settings file")]
pub struct CheckpointSettings {
    /// Keep files before a tool changes them.
    pub enabled: bool,
    /// Keep a project's files also before a terminal command that looks destructive (`rm`, `mv`, `sed -i`,
    /// `git reset`, `>` …). Costs a walk over the project for each such command.
    pub terminal: bool,
    /// Snapshots that are kept of one session; the oldest go first.
    #[schemars(range(min = 1))]
    pub max_snapshots: usize,
    /// Megabytes that all snapshots of the profile may take together; the oldest go first, at least one of
    /// each session stays.
    #[schemars(range(min = 1))]
    pub max_total_size_mb: u64,
    /// A larger file is not kept, and cannot be restored.
    #[schemars(range(min = 1))]
    pub max_file_size_mb: u64,
    /// Remove what is too old or too much by itself.
    pub auto_prune: bool,
    /// Days after which a snapshot is removed.
    #[schemars(range(min = 1))]
    pub retention_days: u32,
    /// Remove snapshots of projects whose folder has been gone for a day.
    pub delete_orphans: bool,
    /// Hours between two looks for snapshots that are too old.
    pub min_interval_hours: u32,
}

impl Default for CheckpointSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            terminal: false,
            max_snapshots: 20,
            max_total_size_mb: 500,
            max_file_size_mb: 10,
            auto_prune: true,
            retention_days: 7,
            delete_orphans: true,
            min_interval_hours: 24,
        }
    }
}

const MEGABYTE: u64 = 1024 * 1024;
const DAY_S: f64 = 86_400.0;

impl CheckpointSettings {
    /// Bytes above which a file is not kept.
    pub(super) fn max_file(&self) -> u64 {
        self.max_file_size_mb.max(1).saturating_mul(MEGABYTE)
    }

    /// Bytes that all snapshots may take.
    pub(super) fn max_total(&self) -> u64 {
        self.max_total_size_mb.max(1).saturating_mul(MEGABYTE)
    }

    /// Seconds that a snapshot is kept.
    pub(super) fn retention_s(&self) -> f64 {
        f64::from(self.retention_days.max(1)) * DAY_S
    }

    /// Seconds between two looks.
    pub(super) fn interval_s(&self) -> f64 {
        f64::from(self.min_interval_hours) * 3_600.0
    }
}

/// Seconds that a project's folder must be gone before its snapshots are.
pub(super) const ORPHAN_S: f64 = DAY_S;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_reference() {
        let settings: CheckpointSettings = serde_json::from_str("{}").unwrap();
        assert_eq!(settings, CheckpointSettings::default());
        assert_eq!((settings.max_file(), settings.max_total()), (10 << 20, 500 << 20));
    }
}

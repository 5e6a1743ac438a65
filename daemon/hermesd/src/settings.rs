//! Settings that the daemon's own life goes by.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::logs::LogLevel;

/// Section `daemon`: how long it stays.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct DaemonSettings {
    /// Seconds after which a daemon that a client started on demand ends, when no client is connected, no
    /// turn runs and nothing waits. 0 keeps it until it is stopped.
    pub idle_exit: u32,
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self { idle_exit: 900 }
    }
}

impl DaemonSettings {
    /// The idle time after which an on-demand daemon ends.
    pub(crate) fn idle_exit(&self) -> Option<Duration> {
        (self.idle_exit > 0).then(|| Duration::from_secs(self.idle_exit.into()))
    }
}

/// Section `logging`: what the daemon writes to `logs/`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct LoggingSettings {
    /// How much is logged.
    pub level: LogLevel,
    /// Size in MB at which a log file is put aside.
    #[schemars(range(min = 1, max = 1024))]
    pub max_size_mb: u32,
    /// Old files that are kept beside each log.
    #[schemars(range(max = 100))]
    pub backup_count: u32,
}

impl Default for LoggingSettings {
    fn default() -> Self {
        Self { level: LogLevel::default(), max_size_mb: 5, backup_count: 3 }
    }
}

/// Section `agent`, as far as the daemon's end acts on it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct DrainSettings {
    /// Seconds that running turns get to end before a stop or a restart interrupts them. 0 interrupts at
    /// once.
    #[schemars(range(max = 86_400))]
    pub restart_drain_timeout: u32,
}

impl Default for DrainSettings {
    fn default() -> Self {
        Self { restart_drain_timeout: 30 }
    }
}

impl DrainSettings {
    /// The time that running turns get.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.restart_drain_timeout.into())
    }
}

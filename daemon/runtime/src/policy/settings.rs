//! Section `approvals`: when a person is asked, and what counts as an answer when nobody is there.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Section `approvals`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApprovalSettings {
    /// `manual` asks a person, `off` asks nobody (hard blocks and `deny` rules still hold). `smart` lets a
    /// model look first; this version has no such reviewer yet, so it asks a person.
    pub mode: ApprovalMode,
    /// Seconds to wait for a person's answer; no answer is a no.
    #[schemars(range(min = 1))]
    pub timeout: u64,
    /// What happens to a question of a scheduled job, where nobody can be asked.
    pub cron_mode: Unattended,
    /// What happens to a question of any other run where nobody can be asked: scripts, one-shots, batches.
    pub headless_mode: Unattended,
    /// Commands that never run, as globs (`git push *`). Each is held against the whole command and against
    /// every single command in it; it holds under `--yolo` too.
    pub deny: Vec<String>,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            mode: ApprovalMode::Manual,
            timeout: 60,
            cron_mode: Unattended::Deny,
            headless_mode: Unattended::Deny,
            deny: Vec::new(),
        }
    }
}

impl ApprovalSettings {
    /// How long a question stays open.
    pub fn wait(&self) -> Duration {
        Duration::from_secs(self.timeout.max(1))
    }
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// A model first, then a person.
    Smart,
    /// A person.
    Manual,
    /// Nobody.
    Off,
}

/// What is done with a question that nobody can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unattended {
    /// No.
    Deny,
    /// Yes.
    Approve,
}

/// `command_allowlist`: commands that need no question.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CommandAllowlist(
    /// Exact commands, globs such as `podman *`, or ids of rules. An entry never matches a command that
    /// is made of several.
    pub Vec<String>,
);

/// What the policy reads live: the newest settings that may be applied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicySettings {
    pub approvals: ApprovalSettings,
    pub allowlist: CommandAllowlist,
}

impl PolicySettings {
    /// Takes the sections out of the profile's settings.
    pub fn from_settings(settings: &hermes_config::Settings) -> Self {
        Self { approvals: settings.section("approvals"), allowlist: settings.section("command_allowlist") }
    }
}

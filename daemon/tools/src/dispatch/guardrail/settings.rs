//! Section `tool_loop_guardrails`: when a turn that goes in circles is warned, and when it is stopped.

use schemars::JsonSchema;
use serde::Deserialize;

/// Surfaces where somebody watches and can break in: there a turn is only warned (spec 10 §11).
const ATTENDED: [&str; 6] = ["cli", "tui", "desktop", "acp", "subagent", "api_server"];

/// Section `tool_loop_guardrails`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GuardrailSettings {
    /// The model is told that it repeats itself.
    pub warnings_enabled: bool,
    /// A turn that goes on repeating itself is ended, also where somebody watches.
    pub hard_stop_enabled: bool,
    /// A turn that goes on repeating itself is ended where nobody watches: chats, jobs, webhooks.
    pub non_interactive_hard_stop_enabled: bool,
    /// From which repetition on the model is warned.
    pub warn_after: WarnAfter,
    /// After how many repetitions the turn is ended.
    pub hard_stop_after: HardStopAfter,
    /// Calls of one turn, whatever they do; they hold everywhere.
    pub loop_caps: LoopCaps,
    /// The older spelling of `warn_after.exact_failure`.
    #[schemars(range(min = 1))]
    pub exact_failure_warn_after: Option<u32>,
    /// The older spelling of `warn_after.same_tool_failure`.
    #[schemars(range(min = 1))]
    pub same_tool_failure_warn_after: Option<u32>,
    /// The older spelling of `warn_after.idempotent_no_progress`.
    #[schemars(range(min = 1))]
    pub no_progress_warn_after: Option<u32>,
    /// The older spelling of `hard_stop_after.exact_failure`.
    #[schemars(range(min = 1))]
    pub exact_failure_block_after: Option<u32>,
    /// The older spelling of `hard_stop_after.same_tool_failure`.
    #[schemars(range(min = 1))]
    pub same_tool_failure_halt_after: Option<u32>,
    /// The older spelling of `hard_stop_after.idempotent_no_progress`.
    #[schemars(range(min = 1))]
    pub no_progress_block_after: Option<u32>,
}

impl Default for GuardrailSettings {
    fn default() -> Self {
        Self {
            warnings_enabled: true,
            hard_stop_enabled: false,
            non_interactive_hard_stop_enabled: true,
            warn_after: WarnAfter::default(),
            hard_stop_after: HardStopAfter::default(),
            loop_caps: LoopCaps::default(),
            exact_failure_warn_after: None,
            same_tool_failure_warn_after: None,
            no_progress_warn_after: None,
            exact_failure_block_after: None,
            same_tool_failure_halt_after: None,
            no_progress_block_after: None,
        }
    }
}

/// `tool_loop_guardrails.warn_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WarnAfter {
    /// The same call with the same arguments fails; 2 when not set.
    #[schemars(range(min = 1))]
    pub exact_failure: Option<u32>,
    /// The same tool fails, with any arguments; 3 when not set.
    #[schemars(range(min = 1))]
    pub same_tool_failure: Option<u32>,
    /// The same question gets the same answer; 2 when not set.
    #[schemars(range(min = 1))]
    pub idempotent_no_progress: Option<u32>,
}

/// `tool_loop_guardrails.hard_stop_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HardStopAfter {
    /// The same call with the same arguments fails; 5 when not set.
    #[schemars(range(min = 1))]
    pub exact_failure: Option<u32>,
    /// The same tool fails, with any arguments; 8 when not set.
    #[schemars(range(min = 1))]
    pub same_tool_failure: Option<u32>,
    /// The same question gets the same answer; 5 when not set.
    #[schemars(range(min = 1))]
    pub idempotent_no_progress: Option<u32>,
}

/// `tool_loop_guardrails.loop_caps`: 0 means no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoopCaps {
    /// Calls of `web_search` in one turn.
    pub max_web_searches: u32,
    /// Children that one turn may start.
    pub max_subagents: u32,
}

impl Default for LoopCaps {
    fn default() -> Self {
        Self { max_web_searches: 50, max_subagents: 50 }
    }
}

/// What one turn goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) warn: bool,
    pub(super) stop: bool,
    pub(super) exact: Threshold,
    pub(super) same_tool: Threshold,
    pub(super) no_progress: Threshold,
    pub(super) caps: LoopCaps,
}

/// Counts from which something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Threshold {
    pub(super) warn: u32,
    pub(super) stop: u32,
}

impl Limits {
    pub(super) fn of(settings: &GuardrailSettings, platform: &str) -> Self {
        let platform = platform.trim().to_lowercase();
        let attended = platform.is_empty() || ATTENDED.contains(&platform.as_str());
        let (warn, stop) = (settings.warn_after, settings.hard_stop_after);
        let pick = |new: Option<u32>, old: Option<u32>, default: u32| new.or(old).unwrap_or(default).max(1);
        Self {
            warn: settings.warnings_enabled,
            stop: settings.hard_stop_enabled || (!attended && settings.non_interactive_hard_stop_enabled),
            exact: Threshold {
                warn: pick(warn.exact_failure, settings.exact_failure_warn_after, 2),
                stop: pick(stop.exact_failure, settings.exact_failure_block_after, 5),
            },
            same_tool: Threshold {
                warn: pick(warn.same_tool_failure, settings.same_tool_failure_warn_after, 3),
                stop: pick(stop.same_tool_failure, settings.same_tool_failure_halt_after, 8),
            },
            no_progress: Threshold {
                warn: pick(warn.idempotent_no_progress, settings.no_progress_warn_after, 2),
                stop: pick(stop.idempotent_no_progress, settings.no_progress_block_after, 5),
            },
            caps: settings.loop_caps,
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn turns_are_stopped_where_nobody_watches() {
        let settings = GuardrailSettings::default();
        for (platform, stops) in
            [("cli", false), ("", false), ("API_SERVER", false), ("telegram", true), ("cron", true)]
        {
            assert_eq!(Limits::of(&settings, platform).stop, stops, "{platform}");
        }
        let everywhere = GuardrailSettings { hard_stop_enabled: true, ..settings.clone() };
        assert!(Limits::of(&everywhere, "cli").stop);
        let nowhere = GuardrailSettings { non_interactive_hard_stop_enabled: false, ..settings };
        assert!(!Limits::of(&nowhere, "cron").stop);
    }

    #[test]
    fn the_older_flat_keys_count_unless_the_newer_ones_are_there() {
        let settings: GuardrailSettings = serde_json::from_value(json!({
            "exact_failure_warn_after": 7,
            "exact_failure_block_after": 9,
            "hard_stop_after": { "exact_failure": 4 },
        }))
        .unwrap();
        let limits = Limits::of(&settings, "cli");
        assert_eq!(limits.exact, Threshold { warn: 7, stop: 4 });
        assert_eq!(limits.same_tool, Threshold { warn: 3, stop: 8 });
    }
}

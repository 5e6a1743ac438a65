//! Settings that act in this crate, and the bundles of them that a session and a call use.

use std::collections::BTreeMap;
use std::time::Duration;

use hermes_config::Settings;
use hermes_runtime::TerminalSettings;
use schemars::JsonSchema;
use serde::Deserialize;

/// Deadline of a tool that has none of its own (spec 40 §3, step 6).
const DEFAULT_DEADLINE_S: f64 = 300.0;

/// Time of calls that run at the same time, all of them together (spec 10 §10.3).
const CONCURRENT_BATCH_S: f64 = 420.0;

/// No deadline is longer (spec 10 §17).
const ONE_YEAR: Duration = Duration::from_hours(365 * 24);

/// Section `tool_output`: how much of a tool's output reaches the model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolOutputSettings {
    /// Characters of a command's output that are kept: the first 40 % and the last 60 %.
    #[schemars(range(min = 1))]
    pub max_bytes: usize,
    /// Lines that one `read_file` call may return.
    #[schemars(range(min = 1))]
    pub max_lines: usize,
    /// Characters after which a line of a file is cut.
    #[schemars(range(min = 1))]
    pub max_line_length: usize,
    /// Tool name → characters above which a result of this tool goes to a file, leaving a preview.
    pub overrides: BTreeMap<String, usize>,
}

impl Default for ToolOutputSettings {
    fn default() -> Self {
        Self { max_bytes: 50_000, max_lines: 2000, max_line_length: 2000, overrides: BTreeMap::new() }
    }
}

/// Characters of a file that one `read_file` call returns when nothing is configured (spec 40 §5.2).
const DEFAULT_FILE_READ_CHARS: usize = 100_000;

/// Root key `file_read_max_chars`: characters of a file that one `read_file` call may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("default" = DEFAULT_FILE_READ_CHARS))]
pub struct FileReadMaxChars(#[schemars(range(min = 1))] pub usize);

impl Default for FileReadMaxChars {
    fn default() -> Self {
        Self(DEFAULT_FILE_READ_CHARS)
    }
}

/// Root key `platform_toolsets`: surface → the toolsets that its sessions have. An empty list means no
/// tools; a surface that is not named has its bundle.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PlatformToolsets(pub BTreeMap<String, Vec<String>>);

/// Section `agent`, as far as this crate acts on it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentToolSettings {
    /// Toolsets that no session has, whatever else names them.
    pub disabled_toolsets: Vec<String>,
}

/// Section `timeouts.tools`: seconds after which a tool call is stopped. `null`, zero or less: never.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolTimeouts {
    /// For tools that have no deadline of their own and are not named here.
    pub default: Option<f64>,
    /// For calls that run at the same time, all of them together.
    pub concurrent_batch: Option<f64>,
    /// Tool name → its seconds.
    #[serde(flatten)]
    pub tools: BTreeMap<String, Option<f64>>,
}

impl Default for ToolTimeouts {
    fn default() -> Self {
        Self {
            default: Some(DEFAULT_DEADLINE_S),
            concurrent_batch: Some(CONCURRENT_BATCH_S),
            tools: BTreeMap::new(),
        }
    }
}

impl ToolTimeouts {
    /// The deadline of a call of `tool`, whose own deadline is `own`. `None` means none.
    pub fn deadline(&self, tool: &str, own: Option<Duration>) -> Option<Duration> {
        match (self.tools.get(tool), own) {
            (Some(seconds), _) => bounded(*seconds),
            (None, Some(own)) => Some(own),
            (None, None) => bounded(self.default),
        }
    }

    /// The deadline of calls that run at the same time; `None` means none.
    pub fn batch(&self) -> Option<Duration> {
        bounded(self.concurrent_batch)
    }
}

fn bounded(seconds: Option<f64>) -> Option<Duration> {
    let seconds = seconds.filter(|seconds| *seconds > 0.0)?;
    Some(Duration::try_from_secs_f64(seconds).map_or(ONE_YEAR, |wanted| wanted.min(ONE_YEAR)))
}

/// What a tool call reads of the settings: frozen when the call begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolSettings {
    pub output: ToolOutputSettings,
    pub file_read_max_chars: FileReadMaxChars,
    pub timeouts: ToolTimeouts,
    pub terminal: TerminalSettings,
}

impl ToolSettings {
    /// Takes the sections out of the profile's settings.
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            output: settings.section("tool_output"),
            file_read_max_chars: settings.section("file_read_max_chars"),
            timeouts: settings.section("timeouts.tools"),
            terminal: settings.section("terminal"),
        }
    }
}

/// What decides a session's tools, beside its own choice: frozen when the session opens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolsetSettings {
    /// Surface → toolsets.
    pub platform_toolsets: BTreeMap<String, Vec<String>>,
    /// Taken away last.
    pub disabled: Vec<String>,
}

impl ToolsetSettings {
    /// Takes the sections out of the profile's settings.
    pub fn from_settings(settings: &Settings) -> Self {
        let PlatformToolsets(platform_toolsets) = settings.section("platform_toolsets");
        let AgentToolSettings { disabled_toolsets } = settings.section("agent");
        Self { platform_toolsets, disabled: disabled_toolsets }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_deadline_is_the_setting_then_its_own_then_the_default() {
        let timeouts: ToolTimeouts =
            serde_json::from_value(json!({ "terminal": 5, "patch": null, "todo": -1, "x": 1e300 })).unwrap();
        let own = Some(Duration::from_secs(630));
        assert_eq!(timeouts.deadline("terminal", own), Some(Duration::from_secs(5)));
        assert_eq!(timeouts.deadline("patch", own), None);
        assert_eq!(timeouts.deadline("todo", None), None);
        assert_eq!(timeouts.deadline("x", None), Some(ONE_YEAR));
        assert_eq!(timeouts.deadline("process", own), own);
        assert_eq!(timeouts.deadline("read_file", None), Some(Duration::from_mins(5)));
        let unbounded: ToolTimeouts = serde_json::from_value(json!({ "default": null })).unwrap();
        assert_eq!(unbounded.deadline("read_file", None), None);
    }

    #[test]
    fn the_schema_of_timeouts_takes_any_tools_name() {
        let schema = schemars::schema_for!(ToolTimeouts).to_value();
        assert_eq!(schema["properties"]["default"]["type"], json!(["number", "null"]));
        assert_eq!(schema["additionalProperties"]["type"], json!(["number", "null"]));
    }

    #[test]
    fn sections_are_whole_without_a_word_in_the_file() {
        let output: ToolOutputSettings = serde_json::from_value(json!({ "max_lines": 10 })).unwrap();
        assert_eq!(output, ToolOutputSettings { max_lines: 10, ..ToolOutputSettings::default() });
        assert_eq!(serde_json::from_value::<FileReadMaxChars>(json!(5)).unwrap(), FileReadMaxChars(5));
    }
}

//! What a result means to the guardrail: did the call fail, could it have changed anything (spec 10 §10.5, §11).

use hermes_core::{EffectDisposition, ToolStatus};
use serde_json::Value;

use crate::output::ToolOutput;

/// Tools that only look, so that the same answer twice is no progress.
const READERS: [&str; 10] = [
    "read_file",
    "search_files",
    "web_search",
    "web_extract",
    "session_search",
    "skill_view",
    "skills_list",
    "browser_snapshot",
    "browser_console",
    "browser_get_images",
];

/// The readers of the usual MCP server for files.
const FILE_SERVER_READERS: [&str; 10] = [
    "read_file",
    "read_text_file",
    "read_media_file",
    "read_multiple_files",
    "list_directory",
    "list_directory_with_sizes",
    "directory_tree",
    "search_files",
    "get_file_info",
    "list_allowed_directories",
];

/// Tools whose failures say little about the next try: none of them is ended for failing often.
const MAY_KEEP_FAILING: [&str; 5] =
    ["terminal", "execute_code", "process", "browser_navigate", "web_extract"];

/// How a call counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Failed,
    /// It went well and may have changed something.
    Changed,
    /// It went well and has changed nothing.
    Looked,
    /// It says nothing about the model's way: the user or a deadline of the batch ended it.
    Cut,
}

impl Outcome {
    pub(super) fn of(output: &ToolOutput) -> Self {
        // An exit code says nothing beside a status: that of a process which was looked at is no failure of the
        // look, and grep finds nothing with 1.
        let failed_inside = output.content.get("success") == Some(&Value::Bool(false));
        match (output.status, output.effect) {
            (ToolStatus::Cancelled, _) => Self::Cut,
            (ToolStatus::Error | ToolStatus::Blocked | ToolStatus::Timeout, _) => Self::Failed,
            (ToolStatus::Ok, _) if failed_inside => Self::Failed,
            (ToolStatus::Ok, EffectDisposition::None) => Self::Looked,
            (ToolStatus::Ok, EffectDisposition::Done | EffectDisposition::Unknown) => Self::Changed,
        }
    }
}

pub(super) fn is_reader(tool: &str) -> bool {
    READERS.contains(&tool)
        || tool
            .strip_prefix("mcp_filesystem_")
            .is_some_and(|rest| FILE_SERVER_READERS.contains(&rest.trim_start_matches('_')))
}

pub(super) fn may_keep_failing(tool: &str) -> bool {
    MAY_KEEP_FAILING.contains(&tool)
}

/// Asking again is what these are for.
pub(super) fn is_poller(tool: &str) -> bool {
    tool == "process" || tool.ends_with("_get_result") || tool.ends_with("_poll")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_typed_status_decides_before_what_the_json_says() {
        let done = |content| ToolOutput::done(content);
        let with = |status| ToolOutput { status, ..ToolOutput::looked(json!({})) };
        for (output, want) in [
            (with(ToolStatus::Error), Outcome::Failed),
            (with(ToolStatus::Blocked), Outcome::Failed),
            (with(ToolStatus::Timeout), Outcome::Failed),
            (with(ToolStatus::Cancelled), Outcome::Cut),
            (done(json!({ "exit_code": 1, "output": "" })), Outcome::Changed),
            (done(json!({ "exit_code": 0, "error": null })), Outcome::Changed),
            (done(json!({ "success": false })), Outcome::Failed),
            (ToolOutput::looked(json!({ "content": "error: not one of ours" })), Outcome::Looked),
        ] {
            assert_eq!(Outcome::of(&output), want, "{output:?}");
        }
    }

    #[test]
    fn names_tell_readers_and_pollers() {
        assert!(is_reader("read_file") && is_reader("mcp_filesystem_directory_tree"));
        assert!(!is_reader("terminal") && !is_reader("mcp_filesystem_write_file"));
        assert!(is_poller("process") && is_poller("mcp_x_get_result") && !is_poller("pollution"));
    }
}

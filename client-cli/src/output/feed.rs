//! The tool feed: one line per tool call, and the diff of an edit (spec 80 §6.4).

use std::io;

use hermes_proto::v1::ToolComplete;
use serde_json::Value;

use super::clean::{fit, one_line, width};
use super::{Output, duration};

/// Most lines of one inline diff.
const DIFF_LINES: usize = 80;
/// Longest reason behind a failed call, in characters.
const REASON_CHARS: usize = 100;

/// How a tool is shown: its sign and its verb.
fn face(tool: &str) -> (&'static str, &str) {
    match tool {
        "read_file" => ("📖", "read"),
        "write_file" => ("📝", "write"),
        "patch" => ("🔧", "patch"),
        "search_files" => ("🔎", "search"),
        "terminal" => ("💻", "$"),
        other => ("⚡", other),
    }
}

/// Writes the line of an ended call. `preview` is what its start told of the arguments.
pub(super) fn tool_ended(output: &mut Output, preview: &str, end: &ToolComplete) -> io::Result<()> {
    let line = line(preview, end, output.style().columns);
    if end.is_error {
        output.painted_line(&line, "31")?;
    } else {
        output.dim_line(&line)?;
    }
    match end.inline_diff.as_deref().filter(|diff| !diff.trim().is_empty()) {
        Some(diff) => inline_diff(output, diff),
        None => Ok(()),
    }
}

/// Writes the line of a call that ended while this client was not connected.
pub(super) fn tool_missed(output: &mut Output, tool: &str) -> io::Result<()> {
    let (sign, verb) = face(tool);
    output.dim_line(&one_line(&format!("┊ {sign} {verb}  (while the daemon was out of reach)")))
}

fn line(preview: &str, end: &ToolComplete, columns: Option<usize>) -> String {
    let (sign, verb) = face(&end.name);
    let head = format!("┊ {sign} {verb} ");
    let mut tail = format!("  {}", duration(end.duration_s));
    if let Some(reason) = reason(end) {
        tail.push_str(&reason);
    }
    let preview = one_line(preview);
    let whole = |preview: &str| one_line(&format!("{head}{preview}{tail}"));
    let Some(columns) = columns else { return whole(&preview) };
    // The preview gives way first; what then is still too long is cut.
    let room = columns.saturating_sub(width(&head) + width(&tail));
    fit(&whole(&fit(&preview, room.max(8))), columns).into_owned()
}

/// Why a call did not succeed, in brackets.
fn reason(end: &ToolComplete) -> Option<String> {
    if !end.is_error {
        return None;
    }
    let status = if end.status.is_empty() { "error" } else { &end.status };
    let told = end.result.as_ref().and_then(|json| serde_json::from_str::<Value>(&json.raw).ok());
    let text = match &told {
        Some(Value::Object(fields)) => fields.get("error").and_then(Value::as_str),
        Some(Value::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let first = text.and_then(|text| text.lines().next()).map(one_line).unwrap_or_default();
    let cut: String = first.chars().take(REASON_CHARS).collect();
    let dots = if cut.len() < first.len() { "…" } else { "" };
    Some(if cut.is_empty() { format!(" [{status}]") } else { format!(" [{status}: {cut}{dots}]") })
}

fn inline_diff(output: &mut Output, diff: &str) -> io::Result<()> {
    let mut lines = diff.lines();
    for line in lines.by_ref().take(DIFF_LINES) {
        let style = match line.chars().next() {
            Some('+') => "32",
            Some('-') => "31",
            _ => "2",
        };
        output.painted_line(&format!("  {line}"), style)?;
    }
    match lines.count() {
        0 => Ok(()),
        more => output.dim_line(&format!("  … {more} more lines")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::super::testing::captured;
    use super::*;
    use hermes_proto::v1::Json;

    fn ended(name: &str, status: &str, result: &str) -> ToolComplete {
        ToolComplete {
            name: name.into(),
            status: status.into(),
            is_error: status != "ok",
            result: Some(Json { raw: result.into() }),
            duration_s: 0.21,
            ..Default::default()
        }
    }

    fn shown(columns: Option<usize>, preview: &str, end: &ToolComplete) -> String {
        let (mut output, out, _) = captured(Style { columns, ..Style::default() });
        tool_ended(&mut output, preview, end).unwrap();
        out.text()
    }

    #[test]
    fn feed_lines() {
        let lines = [
            shown(None, "src/main.rs", &ended("read_file", "ok", "{}")),
            shown(None, "ls -la\n| head", &ended("terminal", "ok", "{}")),
            shown(
                None,
                "gone.txt",
                &ended("read_file", "error", r#"{"error": "no such file: gone.txt\nmore"}"#),
            ),
            shown(None, "rm -rf /", &ended("terminal", "blocked", r#"{"error": "needs approval"}"#)),
            shown(None, "x", &ended("web_search", "timeout", "[]")),
            shown(None, "bad\u{1b}[2Jname", &ended("read_file", "ok", "{}")),
        ]
        .concat();
        insta::assert_snapshot!(lines);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let long = "a/very/long/path/to/some/file/that/goes/on/日本語.rs";
        for columns in [40, 25, 80] {
            for end in [
                ended("read_file", "ok", "{}"),
                ended("terminal", "error", r#"{"error": "exit code 1 and more"}"#),
            ] {
                let line = shown(Some(columns), long, &end);
                assert!(width(line.trim_end()) <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn a_long_diff_ends_with_how_much_is_left() {
        let diff = "+x\n".repeat(DIFF_LINES + 3);
        let end = ToolComplete { inline_diff: Some(diff), ..ended("patch", "ok", "{}") };
        let text = shown(None, "f", &end);
        assert_eq!(text.lines().count(), 1 + DIFF_LINES + 1);
        assert!(text.ends_with("  … 3 more lines\n"), "{text}");
    }
}

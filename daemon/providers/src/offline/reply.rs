//! What the offline responder says: about results of tools, about itself, and how to get a model.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hermes_core::{Instant, utc_stamp};
use serde_json::Value;

use crate::catalog::provider_of_key;
use crate::offline::OfflineFacts;
use crate::offline::intent::Intent;
use crate::provider::ToolList;

/// Most lines of one answer that quote a tool's result.
const MAX_LINES: usize = 60;

/// A tool's result, as read out of its row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The tool failed, was refused or was cut off; the text says why.
    Failed {
        reason: String,
        near: Vec<String>,
    },
    Value(Value),
    /// A result that is not JSON.
    Text(String),
}

impl Outcome {
    pub(crate) fn read(content: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(content) else {
            return Self::Text(content.trim().to_owned());
        };
        // A command that ran and failed may have its output beside an error.
        let has_output =
            value.get("output").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
        match value.get("error") {
            Some(Value::String(reason)) if !reason.is_empty() && !has_output => {
                Self::Failed { reason: reason.clone(), near: strings(value.get("similar_files")) }
            }
            _ => Self::Value(value),
        }
    }
}

/// Tells what a tool gave for `intent`.
pub(crate) fn report(intent: &Intent, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { reason, near } => failed(intent, reason, near),
        Outcome::Text(text) => format!("{}:\n\n{}", heading(intent), fenced(text)),
        Outcome::Value(value) => {
            let text = match intent {
                Intent::List { path } => listing(path, value),
                Intent::Read { path } => file(path, value),
                Intent::Search { text, path } => hits(text, path, value),
                Intent::Run { command } => run(command, value),
                Intent::Greeting | Intent::Help | Intent::Time | Intent::Remember | Intent::Unknown => {
                    format!("{}:\n\n{}", heading(intent), fenced(&value.to_string()))
                }
            };
            match value.get("note").and_then(Value::as_str).filter(|note| !note.is_empty()) {
                Some(note) => format!("{text}\n\nNote: {note}"),
                None => text,
            }
        }
    }
}

fn heading(intent: &Intent) -> String {
    match intent {
        Intent::List { path } => format!("The files in {}", place(path)),
        Intent::Read { path } => format!("`{path}`"),
        Intent::Search { text, path } => format!("Where `{text}` stands in {}", place(path)),
        Intent::Run { command } => format!("`{command}`"),
        Intent::Greeting | Intent::Help | Intent::Time | Intent::Remember | Intent::Unknown => {
            "The tool's result".to_owned()
        }
    }
}

fn failed(intent: &Intent, reason: &str, near: &[String]) -> String {
    let what = match intent {
        Intent::List { path } => format!("I could not list {}", place(path)),
        Intent::Read { path } => format!("I could not read `{path}`"),
        Intent::Search { text, .. } => format!("I could not search for `{text}`"),
        Intent::Run { command } => format!("I did not get a result of `{command}`"),
        Intent::Greeting | Intent::Help | Intent::Time | Intent::Remember | Intent::Unknown => {
            "The tool gave no result".to_owned()
        }
    };
    let mut text = format!("{what}: {}", reason.trim().trim_end_matches('.'));
    if !near.is_empty() {
        let _ = write!(text, "\n\nFiles with a similar name: {}", near.join(", "));
    }
    text
}

fn place(path: &str) -> String {
    if path == "." { "this folder".to_owned() } else { format!("`{path}`") }
}

fn listing(path: &str, value: &Value) -> String {
    let mut files = strings(value.get("files"));
    files.sort();
    files.dedup();
    if files.is_empty() {
        return format!("There are no files in {} (hidden and ignored ones are not counted).", place(path));
    }
    let files: Vec<String> = relative(&files);
    let is_partial = value.get("truncated").and_then(Value::as_bool) == Some(true);
    let total = value.get("total_count").and_then(Value::as_u64).unwrap_or(files.len() as u64);
    let at_least = value.get("total_is_lower_bound").and_then(Value::as_bool) == Some(true);
    let mut text = capitalised(&place(path));
    let _ = write!(text, " holds {}{total} {}", if at_least { "at least " } else { "" }, entries(total));
    if files.len() <= MAX_LINES && !is_partial {
        text.push_str(":\n");
        for file in &files {
            let _ = write!(text, "\n- {file}");
        }
        return text;
    }
    // Too many to name: what stands at the top, with what is below it counted.
    if is_partial {
        // Counts of a part would pass for counts of the whole.
        let _ = writeln!(text, "; the newest {} of them stand in:", files.len());
    } else {
        text.push_str("; at the top:\n");
    }
    let mut tops: BTreeMap<String, u64> = BTreeMap::new();
    for file in &files {
        match file.split_once('/') {
            Some((top, rest)) => *tops.entry(format!("{top}/")).or_default() += u64::from(!rest.is_empty()),
            None => {
                tops.entry(file.clone()).or_default();
            }
        }
    }
    for (top, below) in tops.iter().take(MAX_LINES) {
        match below {
            0 => {
                let _ = write!(text, "\n- {top}");
            }
            _ if is_partial => {
                let _ = write!(text, "\n- {top}");
            }
            below => {
                let _ = write!(text, "\n- {top} ({below} {})", entries(*below));
            }
        }
    }
    if let Some(more) = tops.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
        let _ = write!(text, "\n- and {more} more");
    }
    text
}

/// Takes off the folder that all paths share, when they are absolute.
fn relative(files: &[String]) -> Vec<String> {
    if !files.iter().all(|file| file.starts_with('/')) {
        return files.iter().map(|file| file.strip_prefix("./").unwrap_or(file).to_owned()).collect();
    }
    let folder =
        |file: &str| file.trim_end_matches('/').rsplit_once('/').map_or(0, |(folder, _)| folder.len() + 1);
    let first = files.first().map_or("", String::as_str);
    let mut shared = first.get(..folder(first)).unwrap_or_default();
    while !files.iter().all(|file| file.starts_with(shared)) {
        shared = shared.get(..folder(shared)).unwrap_or_default();
    }
    files.iter().map(|file| file.strip_prefix(shared).unwrap_or(file).to_owned()).collect()
}

fn file(path: &str, value: &Value) -> String {
    let Some(content) = value.get("content").and_then(Value::as_str) else {
        let message = value.get("message").and_then(Value::as_str).unwrap_or("the tool returned no content");
        return format!("`{path}`: {message}");
    };
    // Lines come as `N|text`.
    let lines: Vec<&str> = content
        .lines()
        .map(|line| match line.split_once('|') {
            Some((number, text)) if !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()) => text,
            _ => line,
        })
        .collect();
    let total = value.get("total_lines").and_then(Value::as_u64).unwrap_or(lines.len() as u64);
    if lines.iter().all(|line| line.is_empty()) {
        return format!("`{path}` is empty.");
    }
    let unit = if total == 1 { "line" } else { "lines" };
    let shown = lines.len().min(MAX_LINES);
    let head = lines.get(..shown).unwrap_or_default().join("\n");
    let mut text = format!("`{path}` ({total} {unit}):\n\n{}", fenced(&head));
    if total > shown as u64 {
        let _ = write!(text, "\n\nThese are its first {shown} lines.");
    }
    text
}

fn hits(text: &str, path: &str, value: &Value) -> String {
    let total = value.get("total_count").and_then(Value::as_u64).unwrap_or(0);
    let lines: Vec<String> = if let Some(joined) = value.get("matches_text").and_then(Value::as_str) {
        joined.lines().map(str::to_owned).collect()
    } else {
        let matches = value.get("matches").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let field = |hit: &Value, name: &str| hit.get(name).map(plain).unwrap_or_default();
        matches
            .iter()
            .map(|hit| {
                format!("{}:{}: {}", field(hit, "path"), field(hit, "line"), field(hit, "content").trim())
            })
            .collect()
    };
    if lines.is_empty() {
        return format!("`{text}` stands nowhere in {}.", place(path));
    }
    let times = if total == 1 { "once".to_owned() } else { format!("{} times", total.max(1)) };
    let shown = lines.len().min(MAX_LINES);
    let mut answer = format!(
        "`{text}` stands {times} in {}:\n\n{}",
        place(path),
        fenced(&lines.get(..shown).unwrap_or_default().join("\n"))
    );
    if lines.len() > shown {
        let _ = write!(answer, "\n\nand {} more lines.", lines.len() - shown);
    }
    answer
}

fn run(command: &str, value: &Value) -> String {
    let output = value.get("output").and_then(Value::as_str).unwrap_or_default().trim_end();
    let code = value.get("exit_code").and_then(Value::as_i64);
    let mut text = match code {
        Some(0) | None => format!("`{command}` ran"),
        Some(code) => format!("`{command}` ended with exit code {code}"),
    };
    if let Some(error) = value.get("error").and_then(Value::as_str).filter(|error| !error.is_empty()) {
        let _ = write!(text, " ({error})");
    }
    if output.is_empty() {
        text.push_str(" and printed nothing.");
        return text;
    }
    let lines: Vec<&str> = output.lines().collect();
    let from = lines.len().saturating_sub(MAX_LINES);
    if from > 0 {
        let _ = write!(text, "; the last {MAX_LINES} of {} lines", lines.len());
    }
    let _ = write!(text, ":\n\n{}", fenced(&lines.get(from..).unwrap_or_default().join("\n")));
    text
}

/// Says that the session lacks the tool that the request needs.
pub(crate) fn without_tool(intent: &Intent, tool: &str) -> String {
    let what = match intent {
        Intent::List { .. } => "listing files",
        Intent::Read { .. } => "reading a file",
        Intent::Search { .. } => "searching files",
        Intent::Run { .. } => "running a command",
        Intent::Greeting | Intent::Help | Intent::Time | Intent::Remember | Intent::Unknown => "this",
    };
    format!("For {what} I need the tool `{tool}`, and this session does not have it (see --toolsets).")
}

/// Answers that need no tool.
pub(crate) fn in_words(intent: &Intent, tools: &ToolList, facts: &OfflineFacts, now: Instant) -> String {
    match intent {
        Intent::Time => match &facts.local_time {
            Some(time) => format!("It is {time}."),
            None => format!("It is {} UTC.", readable_stamp(now)),
        },
        Intent::Greeting => {
            format!("Hello. I am Hermes, running without a language model.\n\n{}", abilities(tools))
        }
        Intent::Help => abilities(tools),
        Intent::Remember => {
            "I cannot remember that: what to keep is decided by a model, and none is configured. Nothing was stored."
                .to_owned()
        }
        Intent::Unknown | Intent::List { .. } | Intent::Read { .. } | Intent::Search { .. } | Intent::Run { .. } => {
            format!("That needs a language model, and none is configured.\n\n{}", abilities(tools))
        }
    }
}

fn abilities(tools: &ToolList) -> String {
    let mut text = "Without a model I understand only a few requests:\n".to_owned();
    for (tool, example) in [
        ("search_files", "What is in this folder?"),
        ("read_file", "Read README.md"),
        ("search_files", "Search for TODO in src/"),
        ("terminal", "Run `git status`"),
    ] {
        if tools.has(tool) {
            let _ = write!(text, "\n- {example}");
        }
    }
    text.push_str("\n- What time is it?");
    text
}

/// Ends every answer: what this is, what was seen on this machine, and how to set a model.
pub(crate) fn footer(facts: &OfflineFacts) -> String {
    let config = facts.config_path.as_deref().unwrap_or("config.yaml of this profile");
    let env = facts.env_path.as_deref().unwrap_or(".env of this profile");
    let server = facts.local_servers.first();
    let base_url = server.map_or("http://127.0.0.1:11434/v1", |server| server.base_url.as_str());
    let model = server.and_then(|server| server.models.first()).map_or("<model id>", String::as_str);
    let mut text =
        "---\nNo model is configured: this answer came from the built-in offline responder, which is \
                    not a language model."
            .to_owned();
    for server in &facts.local_servers {
        let _ = write!(text, "\nSeen on this machine: {} at {}", server.name, server.base_url);
        if !server.models.is_empty() {
            let _ = write!(text, " (serves {})", server.models.join(", "));
        }
        text.push('.');
    }
    for variable in &facts.key_variables {
        let _ = write!(text, "\nSeen in the environment: {variable}. It is not used by itself");
        if let Some(provider) = provider_of_key(variable) {
            let _ = write!(
                text,
                "; to use it, write `{variable}=<your key>` into {env} and set `provider: {}` with a `default` model",
                provider.id
            );
        }
        text.push('.');
    }
    let _ = write!(
        text,
        "\nTo set a model, write this into {config}:\n\n```yaml\nmodel:\n  provider: custom\n  base_url: {base_url}\n  \
         default: {model}\n```\n\n`base_url` is the address of any OpenAI-compatible server; a key goes into {env} or \
         `model.api_key`."
    );
    text
}

/// `20260102_030405` as `2026-01-02 03:04:05`.
fn readable_stamp(now: Instant) -> String {
    let digits: Vec<char> = utc_stamp(now).chars().filter(char::is_ascii_digit).collect();
    let mut text = String::new();
    for (position, digit) in digits.iter().enumerate() {
        match position {
            4 | 6 => text.push('-'),
            8 => text.push(' '),
            10 | 12 => text.push(':'),
            _ => {}
        }
        text.push(*digit);
    }
    text
}

fn entries(count: u64) -> &'static str {
    if count == 1 { "entry" } else { "entries" }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// A code block that its content cannot end.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{text}\n{fence}")
}

/// Texts of a list, whose items may also be objects with a path.
fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| match item {
            Value::String(text) => Some(text.clone()),
            Value::Object(fields) => {
                let path = fields.get("path")?.as_str()?;
                let is_dir = fields.get("is_dir").or(fields.get("directory")).and_then(Value::as_bool);
                Some(if is_dir == Some(true) && !path.ends_with('/') {
                    format!("{path}/")
                } else {
                    path.to_owned()
                })
            }
            _ => None,
        })
        .collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

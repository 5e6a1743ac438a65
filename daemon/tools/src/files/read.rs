//! `read_file`: numbered lines of a text file.

use std::fs::File;
use std::io::{Cursor, Seek as _};
use std::path::Path;

use async_trait::async_trait;
use hermes_core::{Json, ToolSchema};
use serde_json::{Map, Value, json};

use super::binary_names::{BinaryKind, binary_kind};
use super::documents;
use super::open::{open_regular, plain};
use super::text::marked_encoding;
use super::window::{Cut, Outcome, Slice, Window, read_window};
use super::{PATH_HELP, TOOLSET, path_effect, resolve};
use crate::arguments::read::{count, text};
use crate::output::{ToolOutput, put_some};
use crate::services::ToolCx;
use crate::settings::ToolSettings;
use crate::tool::{Concurrency, OwnedEffect, ResultCap, Tool, ToolTraits};
use crate::workspace::{ReadKey, Repeat, ResolvedPath, Seen, Stamp, WARN_AT, Workspace};

const DEFAULT_LIMIT: usize = 500;

/// A larger file that is read in large pieces gets a hint (spec 40 §5.2).
const LARGE_FILE: u64 = 512_000;
const LARGE_LIMIT: usize = 200;

/// What the model is told instead of the same content again. A write of this very text is refused.
pub(super) const UNCHANGED: &str =
    "The file has not changed since you read these lines; use the content of that earlier result.";

/// The tool.
#[derive(Debug)]
pub(super) struct ReadFile;

#[async_trait]
impl Tool for ReadFile {
    fn name(&self) -> &'static str {
        "read_file"
    }

    fn toolset(&self) -> &'static str {
        TOOLSET
    }

    fn schema(&self, settings: &ToolSettings) -> ToolSchema {
        let max = settings.output.max_lines;
        let default = DEFAULT_LIMIT.min(max);
        ToolSchema {
            name: self.name().to_owned(),
            description: "Read a text file as numbered lines (`12|text`); better than cat, head or tail. \
                          A secret is shown as «redacted:…» while the file itself is intact."
                .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": PATH_HELP },
                    "offset": { "type": "integer", "description": "First line, from 1" },
                    "limit": { "type": "integer", "description": format!("Lines, {default} unless given, at most {max}") },
                },
                "required": ["path"],
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits {
            concurrency: Concurrency::PathScoped,
            read_only: true,
            deadline: None,
            result_cap: ResultCap::Unlimited,
            counts_repeats: true,
            redacts_itself: true,
        }
    }

    fn preview(&self, arguments: &Value) -> String {
        let path = super::first_chars(text(arguments, "path"), 100).0;
        match count(arguments, "offset") {
            Some(offset) if offset > 1 => format!("{path}:{offset}"),
            _ => path.to_owned(),
        }
    }

    fn effect(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        path_effect(workspace, text(arguments, "path"), |path| OwnedEffect::Read { path })
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        let target = match resolve(&cx.workspace, text(&arguments, "path")) {
            Ok(target) => target,
            Err(problem) => return ToolOutput::error(problem),
        };
        let limit = count(&arguments, "limit").unwrap_or(DEFAULT_LIMIT);
        let key = ReadKey {
            path: target.path.clone(),
            offset: count(&arguments, "offset").unwrap_or(1).max(1),
            limit: limit.clamp(1, cx.settings.output.max_lines.max(1)),
        };
        let (inner, for_reading) = (cx.clone(), key.clone());
        let attempt = cx.blocking("read_file", move || read(&inner, &target, &for_reading)).await;
        if !cx.turn_has_come().await {
            return ToolOutput::error(format!("reading {} was stopped", key.path.display()));
        }
        note(cx, key, attempt)
    }
}

/// A read that the session's notes do not know of yet.
struct Attempt {
    output: ToolOutput,
    /// The file that was opened.
    stamp: Option<Stamp>,
    /// The notes were asked whether this is a repetition.
    asked: bool,
    /// What the model will have seen.
    seen: Option<Seen>,
}

/// Notes a read, in the order of the calls; it may turn out to be a repetition of one that ran beside it.
fn note(cx: &ToolCx, key: ReadKey, attempt: Attempt) -> ToolOutput {
    let Attempt { output, stamp, asked, seen } = attempt;
    if let Some(stamp) = stamp.filter(|_| !asked)
        && let Some(repetition) = repeated(cx, &key, stamp)
    {
        return repetition;
    }
    let Some(seen) = seen else { return output };
    let in_a_row = cx.workspace.files().after_read(key, seen, &cx.call_id);
    if in_a_row < WARN_AT {
        return output;
    }
    output
        .with("_warning", format!("you read these lines {in_a_row} times in a row; the next time is refused"))
}

fn read(cx: &ToolCx, target: &ResolvedPath, key: &ReadKey) -> Attempt {
    let (file, metadata) = match open_regular(cx, target) {
        Ok(opened) => opened,
        Err(output) => return Attempt { output: *output, stamp: None, asked: false, seen: None },
    };
    let stamp = Stamp::from(&metadata);
    let writes = cx.services.files.writes();
    // Only when nothing runs beside it is it known by now that it is a repetition, and need not be read.
    let asked = cx.turn.has_come();
    if asked && let Some(output) = repeated(cx, key, stamp) {
        return Attempt { output, stamp: Some(stamp), asked, seen: None };
    }
    let (output, partial) = content(cx, key, file, metadata.len());
    let seen = partial.map(|partial| Seen { stamp, partial, writes });
    Attempt { output, stamp: Some(stamp), asked, seen }
}

/// The lines as the result shows them, and whether they are less than the whole; `None` when it is not them that
/// the result shows.
fn content(cx: &ToolCx, key: &ReadKey, mut file: File, size: u64) -> (ToolOutput, Option<bool>) {
    let window = Window {
        offset: key.offset,
        limit: key.limit,
        max_line_chars: cx.settings.output.max_line_length.max(1),
        max_chars: cx.settings.file_read_max_chars.0.max(1),
    };
    let stop = || cx.cancel.is_cancelled();
    let document = documents::kind(&key.path).and_then(|kind| documents::extract(kind, &file, size));
    let extracted = document.is_some();
    let outcome = match document {
        Some(text) => {
            let length = text.len() as u64;
            read_window(&mut Cursor::new(text), length, window, &stop)
        }
        None => match binary_by_name(cx, &key.path) {
            Some(refusal) => return (refusal, None),
            // A document that was tried has moved the file's position.
            None => file.rewind().and_then(|()| read_window(&mut file, size, window, &stop)),
        },
    };
    let path = key.path.display();
    let slice = match outcome {
        Ok(Outcome::Text(slice)) => slice,
        Ok(Outcome::Binary { head }) => return (not_text(cx, &key.path, &head), None),
        Ok(Outcome::Stopped) => return (ToolOutput::error(format!("reading {path} was stopped")), None),
        Err(error) => {
            return (ToolOutput::error(format!("cannot read {path}: {}", plain(&error))), None);
        }
    };
    let whole = slice.first == 1 && slice.cut.is_none() && slice.long_lines == 0;
    let output = shown(cx, key, &slice, size);
    (if extracted { output.with("extracted_document", true) } else { output }, Some(!whole))
}

/// The refusal of a file whose name says that it is no text.
fn binary_by_name(cx: &ToolCx, path: &Path) -> Option<ToolOutput> {
    let path_shown = path.display();
    Some(ToolOutput::error(match binary_kind(path)? {
        BinaryKind::Image => {
            let hint = cx.if_has("vision_analyze", "; look at it with vision_analyze");
            format!("{path_shown} is an image, not text{hint}")
        }
        BinaryKind::Other => format!("{path_shown} is a binary file by its name and is not shown as text"),
    }))
}

/// The result of asking again for what was already given, when that is the case.
fn repeated(cx: &ToolCx, key: &ReadKey, stamp: Stamp) -> Option<ToolOutput> {
    let repeat = cx.workspace.files().before_read(key, stamp);
    let path = key.path.display().to_string();
    match repeat {
        Repeat::Fresh => None,
        Repeat::Unchanged => Some(ToolOutput::looked(json!({
            "status": "unchanged",
            "path": path,
            "dedup": true,
            "content_returned": false,
            "message": UNCHANGED,
        }))),
        Repeat::AlreadyRead { times } => Some(
            ToolOutput::error(format!(
                "you asked for the same lines of {path} {times} times and they have not changed: use what you have"
            ))
            .with("already_read", times),
        ),
        Repeat::Polling { times } => Some(
            ToolOutput::error(format!(
                "you read the same lines of {path} {times} times in a row: do something else before you look again"
            ))
            .with("already_read", times),
        ),
    }
}

fn not_text(cx: &ToolCx, path: &Path, head: &[u8]) -> ToolOutput {
    let path = path.display();
    let convert = cx.if_has("terminal", "; convert it with iconv in the terminal");
    match marked_encoding(head) {
        Some(encoding) => {
            ToolOutput::error(format!("{path} is {encoding} text, and only UTF-8 is shown{convert}"))
        }
        None => ToolOutput::error(format!(
            "{path} is a binary file, or text in an encoding other than UTF-8, and is not shown"
        )),
    }
}

fn shown(cx: &ToolCx, key: &ReadKey, slice: &Slice, file_size: u64) -> ToolOutput {
    let (content, redacted) = numbered(cx, slice);
    let mut fields = Map::new();
    fields.insert("path".into(), key.path.display().to_string().into());
    fields.insert("content".into(), content.into());
    fields.insert("read_lines".into(), slice.lines.len().into());
    fields.insert("total_lines".into(), slice.total_lines.into());
    put_some(&mut fields, "total_is_lower_bound", slice.total_is_lower_bound.then_some(true));
    fields.insert("file_size".into(), file_size.into());
    fields.insert("truncated".into(), slice.cut.is_some().into());
    put_some(&mut fields, "truncated_by", (slice.cut == Some(Cut::Chars)).then_some("bytes"));
    let next = slice.first + slice.lines.len();
    put_some(&mut fields, "next_offset", slice.cut.map(|_| next));
    put_some(&mut fields, "line_endings", slice.crlf.then_some("crlf"));
    put_some(&mut fields, "redacted", (redacted > 0).then_some(redacted));
    let note = "some bytes are no UTF-8 and are shown as \u{fffd}; do not write them back";
    put_some(&mut fields, "note", slice.lossy.then_some(note));
    put_some(&mut fields, "hint", hint(cx, key, slice, file_size));
    let lines = slice.lines.len();
    let summary = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
    ToolOutput::looked(Value::Object(fields)).summed_up(summary)
}

fn hint(cx: &ToolCx, key: &ReadKey, slice: &Slice, file_size: u64) -> Option<String> {
    let mut hints = Vec::new();
    let last = slice.first + slice.lines.len().saturating_sub(1);
    let at_least = if slice.total_is_lower_bound { "at least " } else { "" };
    if slice.total_lines == 0 {
        hints.push("the file is empty".to_owned());
    } else if slice.past_end {
        hints.push(format!("the file has only {} lines; this is the last", slice.total_lines));
    } else if slice.cut.is_some() {
        hints.push(format!(
            "lines {}-{last} of {at_least}{}; go on with offset={}",
            slice.first,
            slice.total_lines,
            last + 1
        ));
    }
    if slice.long_lines > 0 {
        let cut = if slice.long_lines == 1 {
            "1 long line is cut".to_owned()
        } else {
            format!("{} long lines are cut", slice.long_lines)
        };
        hints.push(cut);
    }
    if file_size > LARGE_FILE && key.limit > LARGE_LIMIT && slice.cut.is_some() {
        let search = cx.if_has("search_files", ", or find the place with search_files first");
        hints.push(format!("a large file: read fewer lines{search}"));
    }
    (!hints.is_empty()).then(|| hints.join("; "))
}

/// The lines with their numbers, secrets masked, and how many secrets there were.
fn numbered(cx: &ToolCx, slice: &Slice) -> (String, usize) {
    // Masked before numbering: a key of several lines is one only without numbers. Masking keeps the lines.
    let joined = slice.lines.join("\n");
    let (masked, redacted) = cx.services.redactor.redact_file_content(&joined);
    (number(masked.split('\n').take(slice.lines.len()), slice.first), redacted)
}

fn number<'a>(lines: impl Iterator<Item = &'a str>, first: usize) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for (at, line) in lines.enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let _ = write!(out, "{}|{line}", first + at);
    }
    out
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;

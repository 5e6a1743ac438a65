//! `patch`: replaces one text in a file by another.
//!
//! Only the exact rung of the match ladder is there (spec 40 §5.4), and the schema says so.

mod closest;
mod edit;

use std::io::Read as _;
use std::path::Path;

use async_trait::async_trait;
use hermes_core::{EffectDisposition, Json, ToolSchema};
use serde_json::{Map, Value, json};

use super::lint::{self, Syntax};
use super::open::{open_failed, open_regular, plain, write_failed};
use super::stale::{self, Extent};
use super::text::{BOM, LineEnding, decode};
use super::{
    CROSS_PROFILE_HELP, PATH_HELP, TOOLSET, atomic, diff, locked_target, write_effect, write_guards,
};
use crate::arguments::read::{flag, text};
use crate::output::{ToolOutput, put_some};
use crate::services::ToolCx;
use crate::settings::ToolSettings;
use crate::tool::{Concurrency, OwnedEffect, Tool, ToolTraits};
use crate::workspace::{ResolvedPath, Workspace};
use edit::{Edit, Edited};

/// A larger file is not held in memory to be edited.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Line numbers that an error lists.
const LISTED_LINES: usize = 20;

/// Failures on one file after which the hint gets firmer (spec 40 §5.4).
const FIRMER_AT: u32 = 3;

/// The tool.
#[derive(Debug)]
pub(super) struct Patch;

#[async_trait]
impl Tool for Patch {
    fn name(&self) -> &'static str {
        "patch"
    }

    fn toolset(&self) -> &'static str {
        TOOLSET
    }

    fn schema(&self, _: &ToolSettings) -> ToolSchema {
        ToolSchema {
            name: self.name().to_owned(),
            description:
                "Replace text in a file. old_string must stand there exactly, indentation included (only \
                          line endings may differ), and once: add lines around it until it is unique, or set \
                          replace_all. Returns the diff."
                    .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": PATH_HELP },
                    "old_string": { "type": "string", "description": "Text to replace, without line numbers" },
                    "new_string": { "type": "string", "description": "Text to put there; empty deletes" },
                    "replace_all": { "type": "boolean", "description": "Replace every occurrence" },
                    "cross_profile": { "type": "boolean", "description": CROSS_PROFILE_HELP },
                },
                "required": ["path", "old_string", "new_string"],
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits { concurrency: Concurrency::PathScoped, redacts_itself: true, ..ToolTraits::default() }
    }

    fn preview(&self, arguments: &Value) -> String {
        super::first_chars(text(arguments, "path"), 100).0.to_owned()
    }

    fn effect(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        write_effect(workspace, arguments)
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        if text(&arguments, "mode") == "patch" || arguments.get("patch").is_some() {
            return ToolOutput::error(
                "this tool only replaces old_string by new_string; patch texts (`*** Begin Patch`) are not supported",
            );
        }
        let (target, lock) = match locked_target(cx, &arguments).await {
            Ok(target) => target,
            Err(output) => return *output,
        };
        let inner = cx.clone();
        cx.blocking("patch", move || {
            // Held until the write is over, also when nobody waits for it any more.
            let _lock = lock;
            let edit = Edit {
                old: text(&arguments, "old_string"),
                new: text(&arguments, "new_string"),
                everywhere: flag(&arguments, "replace_all"),
            };
            patch(&inner, &target, edit)
        })
        .await
    }
}

fn patch(cx: &ToolCx, target: &ResolvedPath, edit: Edit<'_>) -> ToolOutput {
    let path = &target.path;
    if let Some(problem) = senseless(edit) {
        return ToolOutput::error(problem);
    }
    let guarded = [edit.old, edit.new].into_iter().find_map(write_guards::refusal);
    if let Some(problem) = guarded {
        return ToolOutput::error(problem);
    }
    let (content, metadata) = match whole_file(cx, target) {
        Ok(read) => read,
        Err(output) => return *output,
    };
    let (new_content, lines) = match edit::apply(&content, edit) {
        Edited::Changed { content, lines } => (content, lines),
        Edited::AlreadyApplied { line } => return already_applied(path, line),
        Edited::Ambiguous { lines } => return ambiguous(path, &lines),
        Edited::NotFound { new_at } => return not_found(cx, path, &content, edit.old, new_at),
    };
    if cx.cancel.is_cancelled() {
        return ToolOutput::error(format!("patching {} was stopped; nothing was changed", path.display()));
    }
    let warning = stale::warning(cx, path, Some(&metadata), Extent::Quoted, target.strayed);
    let (_, written) = match atomic::replace(path, &new_content) {
        Ok(replaced) => replaced,
        Err(error) => return write_failed(path, &error),
    };
    if let Some(problem) = differs_on_disk(path, &new_content) {
        return ToolOutput { effect: EffectDisposition::Unknown, ..ToolOutput::error(problem) };
    }
    stale::note_write(cx, path, &written, Extent::Quoted);
    landed(cx, path, &content, &new_content, &lines, warning)
}

fn senseless(edit: Edit<'_>) -> Option<&'static str> {
    if edit.old.is_empty() {
        return Some("old_string is empty: give the text to replace, or use write_file for a new file");
    }
    (edit.old == edit.new).then_some("old_string and new_string are equal: there is nothing to change")
}

fn whole_file(cx: &ToolCx, target: &ResolvedPath) -> Result<(Vec<u8>, std::fs::Metadata), Box<ToolOutput>> {
    let path = target.path.as_path();
    let (file, metadata) = open_regular(cx, target)?;
    if metadata.len() > MAX_BYTES {
        let advice = cx.if_has("terminal", "; edit it in the terminal, for instance with sed");
        return Err(Box::new(ToolOutput::error(format!(
            "{} has {} bytes, more than the {MAX_BYTES} that can be patched{advice}",
            path.display(),
            metadata.len()
        ))));
    }
    let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    // One byte more, to notice a file that grows or that has no size of its own.
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| Box::new(open_failed(path, &error)))?;
    if content.len() as u64 > MAX_BYTES {
        return Err(Box::new(ToolOutput::error(format!("{} is too long to be patched", path.display()))));
    }
    Ok((content, metadata))
}

fn already_applied(path: &Path, line: usize) -> ToolOutput {
    ToolOutput::looked(json!({
        "success": true,
        "already_applied": true,
        "resolved_path": path.display().to_string(),
        "match_line": line,
        "note": "new_string already stands there and old_string is gone: nothing was written. To add the text \
                 once more, use a longer old_string",
    }))
    .summed_up("already applied")
}

fn ambiguous(path: &Path, lines: &[usize]) -> ToolOutput {
    let mut listed: Vec<String> = lines.iter().take(LISTED_LINES).map(usize::to_string).collect();
    if lines.len() > LISTED_LINES {
        listed.push("…".to_owned());
    }
    ToolOutput::error(format!(
        "old_string is {} times in {}, at lines {}. Add lines around it until it is unique, or set replace_all",
        lines.len(),
        path.display(),
        listed.join(", ")
    ))
    .with("matches", lines.len())
}

fn not_found(cx: &ToolCx, path: &Path, content: &[u8], old: &str, new_at: Option<usize>) -> ToolOutput {
    let failures = cx.workspace.files().patch_failed(path);
    let mut message = format!("old_string is not in {}, character for character", path.display());
    if let Some(line) = new_at {
        use std::fmt::Write as _;
        let _ = write!(message, ". new_string is there, at line {line}: perhaps the edit was already made");
    }
    let hint = if failures >= FIRMER_AT {
        format!(
            "This is failure {failures} on this file. Read the lines again and copy them exactly, use a longer piece \
             of text, or rewrite the file with write_file"
        )
    } else {
        "Read the lines and copy them exactly, without their numbers".to_owned()
    };
    let text = decode(content);
    let regions: Vec<String> = closest::closest_regions(&text, old)
        .iter()
        .map(|region| cx.services.redactor.redact_file_content(region).0.into_owned())
        .collect();
    let mut output = ToolOutput::error(message);
    if !regions.is_empty() {
        output = output.with("closest", json!(regions));
    }
    output.with("_hint", hint)
}

/// Reads the file back: an edit that is not on disk must not be reported as one that is.
fn differs_on_disk(path: &Path, wanted: &[u8]) -> Option<String> {
    let same = |actual: &[u8]| {
        let plain = |bytes: &[u8]| LineEnding::Lf.apply(&decode(bytes));
        actual == wanted || plain(actual) == plain(wanted)
    };
    match std::fs::read(path) {
        Ok(actual) if same(&actual) => None,
        Ok(_) => Some(format!(
            "{} was changed by somebody else right after the edit; read it again",
            path.display()
        )),
        Err(error) => {
            Some(format!("{} cannot be read back after the edit: {}", path.display(), plain(&error)))
        }
    }
}

fn landed(
    cx: &ToolCx,
    path: &Path,
    old: &[u8],
    new: &[u8],
    lines: &[usize],
    warning: Option<String>,
) -> ToolOutput {
    let flat = |bytes: &[u8]| {
        LineEnding::Lf.apply(&String::from_utf8_lossy(bytes.strip_prefix(BOM).unwrap_or(bytes)))
    };
    let (old, new) = (flat(old), flat(new));
    let diff = diff::unified(&old, &new, &cx.workspace.shown(path));
    let (diff, redacted) = cx.services.redactor.redact_file_content(&diff);
    let changed = |sign: char| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count();
    let summary = format!("+{} -{}", changed('+'), changed('-'));
    let mut fields = Map::new();
    fields.insert("success".into(), true.into());
    fields.insert("diff".into(), diff.as_ref().into());
    fields.insert("resolved_path".into(), path.display().to_string().into());
    fields.insert("files_modified".into(), json!([path.display().to_string()]));
    put_some(&mut fields, "replacements", (lines.len() > 1).then_some(lines.len()));
    put_some(&mut fields, "redacted", (redacted > 0).then_some(redacted));
    put_some(&mut fields, "lint", new_problem(path, &old, &new));
    put_some(&mut fields, "_warning", warning);
    let shown = diff.into_owned();
    ToolOutput::done(Value::Object(fields)).summed_up(summary).with_diff(Some(shown))
}

/// What the edit did to the file's syntax: an edit of several steps may break it on the way, so that is
/// told, not refused.
fn new_problem(path: &Path, old: &str, new: &str) -> Option<Value> {
    match (lint::check(path, new), lint::check(path, old)) {
        (Syntax::Unchecked, _) => None,
        (Syntax::Good, _) => Some(json!({ "status": "ok" })),
        (Syntax::Broken(problem), Syntax::Broken(_)) => Some(
            json!({ "status": "error", "message": problem, "note": "it did not parse before the edit either" }),
        ),
        (Syntax::Broken(problem), _) => Some(json!({ "status": "error", "message": problem })),
    }
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;

//! Replace mode: one text in one file by another (spec 40 §5.4).

use std::path::Path;

use hermes_core::EffectDisposition;
use hermes_runtime::Redactor;
use serde_json::{Map, Value, json};

use super::super::open::write_failed;
use super::super::stale::{self, Extent};
use super::super::text::decode;
use super::super::{atomic, write_guards};
use super::closest;
use super::edit::{self, Edit, Edited};
use super::file::{self, Shown};
use super::ladder::Strategy;
use super::markers::{self, MarkProblem};
use crate::files::lint::Linted;
use crate::output::{ToolOutput, put_some};
use crate::services::ToolCx;
use crate::workspace::ResolvedPath;

/// Line numbers that an error lists.
const LISTED_LINES: usize = 20;

/// Bytes of a file in which something like a text that is not there is looked for.
const MAX_COMPARED: usize = 2 * 1024 * 1024;

/// Failures on one file after which the hint gets firmer (spec 40 §5.4).
const FIRMER_AT: u32 = 3;

/// What came of it, and the text to check when something was written.
pub(super) type Patched = (ToolOutput, Vec<Linted>);

pub(super) fn run(cx: &ToolCx, target: &ResolvedPath, edit: Edit<'_>) -> Patched {
    match attempt(cx, target, edit) {
        Ok(patched) => patched,
        Err(output) => (*output, Vec::new()),
    }
}

fn attempt(cx: &ToolCx, target: &ResolvedPath, edit: Edit<'_>) -> Result<Patched, Box<ToolOutput>> {
    let path = &target.path;
    let refused = |problem: String| Box::new(ToolOutput::error(problem));
    if let Some(problem) = senseless(edit) {
        return Err(refused(problem.to_owned()));
    }
    let marked = Redactor::contains_marker(edit.old);
    let guarded = [edit.old, edit.new].into_iter().find_map(|text| {
        if marked { write_guards::refusal_but_marks(text) } else { write_guards::refusal(text) }
    });
    if let Some(problem) = guarded {
        return Err(refused(problem));
    }
    let loaded = file::load(cx, target)?;
    let real = marked.then(|| unmasked(cx, path, &loaded.content, edit)).transpose()?;
    let (old, new) = real.as_ref().map_or((edit.old, edit.new), |(old, new)| (old.as_str(), new.as_str()));
    let edited = edit::apply(&loaded.content, Edit { old, new, everywhere: edit.everywhere });
    let (new_content, lines, strategy) = match edited {
        Edited::Changed { content, lines, strategy } => (content, lines, strategy),
        other => return Err(Box::new(not_changed(cx, path, &loaded.content, edit.old, &other))),
    };
    if cx.cancel.is_cancelled() {
        return Err(refused(format!("patching {} was stopped; nothing was changed", path.display())));
    }
    let warning = stale::warning(cx, path, Some(&loaded.metadata), Extent::Quoted, target.strayed);
    let (_, written) =
        atomic::replace(path, &new_content).map_err(|error| Box::new(write_failed(path, &error)))?;
    if let Some(problem) = file::differs_on_disk(path, &new_content) {
        return Err(Box::new(ToolOutput {
            effect: EffectDisposition::Unknown,
            ..ToolOutput::error(problem)
        }));
    }
    stale::note_write(cx, path, &written, Extent::Quoted);
    let (before, after) = (file::flat(&loaded.content), file::flat(&new_content));
    let output = landed(cx, path, &before, &after, (&lines, strategy), warning);
    Ok((output, vec![Linted::new(path.clone(), Some(before), after)]))
}

fn senseless(edit: Edit<'_>) -> Option<&'static str> {
    if edit.old.is_empty() {
        return Some("old_string is empty: give the text to replace, or use write_file for a new file");
    }
    (edit.old == edit.new).then_some("old_string and new_string are equal: there is nothing to change")
}

/// Both texts with the secrets that their marks stand for.
fn unmasked(
    cx: &ToolCx,
    path: &Path,
    content: &[u8],
    edit: Edit<'_>,
) -> Result<(String, String), Box<ToolOutput>> {
    let (old, new) = (edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n"));
    markers::with_real_values(&cx.services.redactor, &file::flat(content), &old, &new).map_err(|problem| {
        Box::new(match problem {
            MarkProblem::NotKept => ToolOutput::error(
                "a «redacted:…» mark stands for a secret that you cannot see: it may only stay as and where it \
                 is, so old_string and new_string need the same marks. Leave such lines out of the edit",
            ),
            MarkProblem::NotFound => not_found(cx, path, content, edit.old, None),
            MarkProblem::Ambiguous { lines } => ambiguous(path, &lines, Strategy::Exact),
        })
    })
}

/// The result of an edit that changed nothing.
fn not_changed(cx: &ToolCx, path: &Path, content: &[u8], old: &str, edited: &Edited) -> ToolOutput {
    match edited {
        Edited::AlreadyApplied { line } => already_applied(path, *line),
        Edited::Ambiguous { lines, strategy } => ambiguous(path, lines, *strategy),
        Edited::EscapeDrift { line } => ToolOutput::error(format!(
            "old_string and new_string write quotes behind backslashes, and {} has them plain at line {line}. \
             Send both texts without those backslashes",
            path.display()
        )),
        Edited::Unproved { line, differ } => failed(
            cx,
            path,
            content,
            old,
            format!(
                "old_string is not in {}. Line {line} begins something alike, but what the edit would change \
                 is not the same there: {}",
                path.display(),
                lines_listed(differ)
            ),
        ),
        Edited::AlikeInSeveral { lines } => failed(
            cx,
            path,
            content,
            old,
            format!(
                "old_string is not in {}. Several places are equally alike, from {}",
                path.display(),
                lines_listed(lines)
            ),
        ),
        Edited::NotFound { new_at } => not_found(cx, path, content, old, *new_at),
        Edited::Changed { .. } => ToolOutput::error("nothing was changed"),
    }
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

/// `lines 3, 9`, or `line 3`.
pub(super) fn lines_listed(lines: &[usize]) -> String {
    let mut listed: Vec<String> = lines.iter().take(LISTED_LINES).map(usize::to_string).collect();
    if lines.len() > LISTED_LINES {
        listed.push("…".to_owned());
    }
    format!("{} {}", if lines.len() == 1 { "line" } else { "lines" }, listed.join(", "))
}

fn ambiguous(path: &Path, lines: &[usize], strategy: Strategy) -> ToolOutput {
    let roughly = if strategy == Strategy::Exact {
        String::new()
    } else {
        format!(" (matched as {})", strategy.name())
    };
    ToolOutput::error(format!(
        "old_string is {} times in {}, at {}{roughly}. Add lines around it until it is unique, or set replace_all",
        lines.len(),
        path.display(),
        lines_listed(lines)
    ))
    .with("matches", lines.len())
}

fn not_found(cx: &ToolCx, path: &Path, content: &[u8], old: &str, new_at: Option<usize>) -> ToolOutput {
    let mut message = format!("old_string is not in {}", path.display());
    if let Some(line) = new_at {
        use std::fmt::Write as _;
        let _ = write!(message, ". new_string is there, at line {line}: perhaps the edit was already made");
    }
    failed(cx, path, content, old, message)
}

/// A failure to find the text, with what is most like it.
fn failed(cx: &ToolCx, path: &Path, content: &[u8], old: &str, message: String) -> ToolOutput {
    let failures = cx.workspace.files().patch_failed(path);
    let regions = closest(cx, content, old);
    let output = ToolOutput::error(message);
    let output = if regions.is_empty() { output } else { output.with("closest", json!(regions)) };
    output.with("_hint", hint(failures))
}

/// What to do after so many failures on one file.
pub(super) fn hint(failures: u32) -> String {
    if failures < FIRMER_AT {
        return "Read the lines and copy them exactly, without their numbers".to_owned();
    }
    format!(
        "This is failure {failures} on this file. Read the lines again and copy them exactly, use a longer piece of \
         text, or rewrite the file with write_file"
    )
}

/// The regions that are most like `old`, with secrets masked.
pub(super) fn closest(cx: &ToolCx, content: &[u8], old: &str) -> Vec<String> {
    // Masked as a whole: a part of a longer secret would not be known as one.
    let text = decode(content.get(..MAX_COMPARED).unwrap_or(content));
    let (masked, _) = cx.services.redactor.redact_file_content(&text);
    closest::closest_regions(&masked, old)
}

fn landed(
    cx: &ToolCx,
    path: &Path,
    old: &str,
    new: &str,
    (lines, strategy): (&[usize], Strategy),
    warning: Option<String>,
) -> ToolOutput {
    let mut shown = Shown::default();
    shown.add(cx, old, new, &cx.workspace.shown(path));
    let mut fields: Map<String, Value> = Map::new();
    fields.insert("success".into(), true.into());
    shown.put(&mut fields);
    fields.insert("resolved_path".into(), path.display().to_string().into());
    fields.insert("files_modified".into(), json!([path.display().to_string()]));
    put_some(&mut fields, "replacements", (lines.len() > 1).then_some(lines.len()));
    if strategy != Strategy::Exact {
        fields.insert("match_strategy".into(), strategy.name().into());
        put_some(&mut fields, "match_line", lines.first().copied());
    }
    put_some(&mut fields, "_warning", warning);
    let summary = shown.summary();
    ToolOutput::done(Value::Object(fields)).summed_up(summary).with_diff(shown.into_diff())
}

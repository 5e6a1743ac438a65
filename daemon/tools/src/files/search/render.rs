//! Turns what was found into the result that the model reads (spec 40 §5.6).

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::content::{FileHits, Found};
use super::names::NamesFound;
use super::{Scene, paged, shown};
use crate::output::{ToolOutput, put_some};

/// From this many hits on, they are one text instead of a list.
const TEXT_FROM: usize = 5;

/// What is told of the hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Lines,
    Files,
    Counts,
}

/// The result of a search in contents.
pub(super) fn content(scene: &Scene<'_>, found: &Found, mode: Mode, with_context: bool) -> ToolOutput {
    let mut fields = Map::new();
    let total = match mode {
        Mode::Files => found.files_with_hits,
        Mode::Lines | Mode::Counts => found.hits,
    };
    fields.insert("total_count".into(), total.into());
    put_some(&mut fields, "total_is_lower_bound", found.timed_out.then_some(true));
    let (listed, of) = match mode {
        Mode::Lines => (put_lines(scene, found, with_context, &mut fields), found.hits),
        Mode::Files => {
            let page = paged(&found.files, scene.page);
            let files: Vec<String> = page.iter().map(|file| shown(scene, &file.path)).collect();
            fields.insert("files".into(), json!(files));
            (page.len(), found.files_with_hits)
        }
        Mode::Counts => {
            let page = paged(&found.files, scene.page);
            let counts: Map<String, Value> =
                page.iter().map(|file| (shown(scene, &file.path), file.hits.into())).collect();
            fields.insert("counts".into(), Value::Object(counts));
            (page.len(), found.files_with_hits)
        }
    };
    put_page(scene, listed, of, found.timed_out, &mut fields);
    put_some(&mut fields, "warning", warning(found));
    put_some(&mut fields, "_omitted", omitted(found));
    put_some(&mut fields, "note", note(scene));
    let summary = match (mode, total) {
        (Mode::Files, 1) => "1 file".to_owned(),
        (Mode::Files, files) => format!("{files} files"),
        (_, 1) => "1 match".to_owned(),
        (_, hits) => format!("{hits} matches"),
    };
    ToolOutput::looked(Value::Object(fields)).summed_up(summary)
}

/// Puts the lines of the page and gives the number of hits among them.
fn put_lines(scene: &Scene<'_>, found: &Found, with_context: bool, fields: &mut Map<String, Value>) -> usize {
    let files: Vec<&FileHits> = found.files.iter().filter(|file| !file.lines.is_empty()).collect();
    let hits = files.iter().flat_map(|file| &file.lines).filter(|line| line.hit).count();
    let mut redacted = 0;
    let mut mask = |text: &str| {
        let (masked, count) = scene.cx.services.redactor.redact_file_content(text);
        redacted += count;
        masked.into_owned()
    };
    if hits < TEXT_FROM && !with_context {
        let matches: Vec<Value> = files
            .iter()
            .flat_map(|file| file.lines.iter().map(move |line| (file, line)))
            .map(|(file, line)| {
                json!({ "path": shown(scene, &file.path), "line": line.number, "content": mask(&line.text) })
            })
            .collect();
        fields.insert("matches".into(), matches.into());
    } else {
        let mut text = String::new();
        for file in files {
            let _ = writeln!(text, "{}", shown(scene, &file.path));
            let mut last = None;
            for line in &file.lines {
                // A gap between the contexts of two hits.
                if with_context && last.is_some_and(|last| last + 1 < line.number) {
                    text.push_str("  --\n");
                }
                last = Some(line.number);
                let sign = if line.hit { ':' } else { '-' };
                let _ = writeln!(text, "  {}{sign} {}", line.number, mask(&line.text));
            }
        }
        text.truncate(text.trim_end().len());
        let format = if with_context {
            "path, then `  line: match` or `  line- context`"
        } else {
            "path, then `  line: text`"
        };
        fields.insert("matches_text".into(), text.into());
        fields.insert("matches_format".into(), format.into());
    }
    put_some(fields, "redacted", (redacted > 0).then_some(redacted));
    hits
}

/// The result of a search by name.
pub(super) fn names(scene: &Scene<'_>, found: &NamesFound) -> ToolOutput {
    let page = paged(&found.entries, scene.page);
    let files: Vec<String> = page
        .iter()
        .map(|entry| {
            let mut path = shown(scene, &entry.path);
            if entry.is_dir {
                path.push('/');
            }
            path
        })
        .collect();
    let total = found.entries.len();
    let mut fields = Map::new();
    fields.insert("total_count".into(), total.into());
    put_some(&mut fields, "total_is_lower_bound", found.is_lower_bound.then_some(true));
    fields.insert("files".into(), json!(files));
    put_page(scene, page.len(), total as u64, found.timed_out, &mut fields);
    put_some(&mut fields, "note", note(scene));
    let summary = if total == 1 { "1 path".to_owned() } else { format!("{total} paths") };
    ToolOutput::looked(Value::Object(fields)).summed_up(summary)
}

fn put_page(scene: &Scene<'_>, listed: usize, of: u64, timed_out: bool, fields: &mut Map<String, Value>) {
    let next = scene.page.offset + listed;
    let more = listed > 0 && (next as u64) < of;
    put_some(fields, "truncated", (more || timed_out).then_some(true));
    put_some(fields, "next_offset", more.then_some(next));
    put_some(fields, "limit_reason", timed_out.then_some("search_timeout"));
}

fn warning(found: &Found) -> Option<String> {
    let mut parts = Vec::new();
    if found.long_lines > 0 {
        parts.push(format!("{} with lines too long to search", files(found.long_lines)));
    }
    if found.unreadable > 0 {
        parts.push(format!("{} could not be read", files(found.unreadable)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn files(count: u64) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Files with hits that are not shown.
fn omitted(found: &Found) -> Option<Value> {
    let mut fields = Map::new();
    put_some(&mut fields, "protected_files", (found.protected > 0).then_some(found.protected));
    put_some(&mut fields, "binary_files", (found.binary > 0).then_some(found.binary));
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn note(scene: &Scene<'_>) -> Option<String> {
    (!scene.notes.is_empty()).then(|| scene.notes.join("; "))
}

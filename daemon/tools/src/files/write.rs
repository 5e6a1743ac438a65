//! `write_file`: the whole content of a file, in one step.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

use async_trait::async_trait;
use hermes_core::{Json, ToolSchema};
use serde_json::{Map, Value, json};

use super::lint::{self, Linted, Syntax};
use super::open::{open_failed, write_failed};
use super::stale::{self, Extent};
use super::text::{BOM, LineEnding, decode};
use super::{
    CROSS_PROFILE_HELP, PATH_HELP, TOOLSET, atomic, diff, locked_target, write_effect, write_guards,
};
use crate::arguments::read::text;
use crate::output::{ToolOutput, put_some};
use crate::services::ToolCx;
use crate::settings::ToolSettings;
use crate::tool::{Concurrency, OwnedEffect, Tool, ToolTraits};
use crate::workspace::{ResolvedPath, Workspace, real_path};

/// Bytes at the start of the old file that tell its line ending and byte order mark.
const HEAD: u64 = 64 * 1024;

/// A larger old or new file is written without a diff for those who watch.
const MAX_DIFFED: usize = 256 * 1024;

/// The tool.
#[derive(Debug)]
pub(super) struct WriteFile;

#[async_trait]
impl Tool for WriteFile {
    fn name(&self) -> &'static str {
        "write_file"
    }

    fn toolset(&self) -> &'static str {
        TOOLSET
    }

    fn schema(&self, _: &ToolSettings) -> ToolSchema {
        ToolSchema {
            name: self.name().to_owned(),
            description: "Write a whole file, with missing folders; an existing file is replaced, so read it first. \
                          Mode and line endings are kept. JSON, YAML and TOML must parse. For edits use patch."
                .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": PATH_HELP },
                    "content": { "type": "string", "description": "The complete content, without line numbers" },
                    "cross_profile": { "type": "boolean", "description": CROSS_PROFILE_HELP },
                },
                "required": ["path", "content"],
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits { concurrency: Concurrency::PathScoped, redacts_itself: true, ..ToolTraits::default() }
    }

    fn preview(&self, arguments: &Value) -> String {
        let path = super::first_chars(text(arguments, "path"), 100).0;
        format!("{path} ({} bytes)", text(arguments, "content").len())
    }

    fn effect(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        write_effect(workspace, arguments)
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        let (target, lock) = match locked_target(cx, &arguments).await {
            Ok(target) => target,
            Err(output) => return *output,
        };
        let inner = cx.clone();
        let (output, linted) = cx
            .blocking("write_file", move || {
                // Held until the write is over, also when nobody waits for it any more.
                let _lock = lock;
                match write(&inner, &target, text(&arguments, "content")) {
                    Ok((output, linted)) => (output, vec![linted]),
                    Err(output) => (*output, Vec::new()),
                }
            })
            .await;
        lint::with_findings(cx, output, linted).await
    }
}

/// Writes; the second part is what is left to check. An `Err` is the call's result.
fn write(cx: &ToolCx, target: &ResolvedPath, content: &str) -> Result<(ToolOutput, Linted), Box<ToolOutput>> {
    let path = &target.path;
    if let Some(problem) = write_guards::refusal(content) {
        return Err(Box::new(ToolOutput::error(problem)));
    }
    if let Syntax::Broken(problem) = lint::check(path, content) {
        let refusal =
            format!("the content is not valid for {} and was not written: {problem}", path.display());
        let output = ToolOutput::error(refusal);
        return Err(Box::new(output.with("lint", json!({ "status": "error", "message": problem }))));
    }
    let old = old_file(path)?;
    if cx.cancel.is_cancelled() {
        let stopped = format!("writing {} was stopped; nothing was changed", path.display());
        return Err(Box::new(ToolOutput::error(stopped)));
    }
    let bytes = old.as_ref().map_or_else(|| content.as_bytes().to_vec(), |old| old.like(content));
    let warning =
        stale::warning(cx, path, old.as_ref().map(|old| &old.metadata), Extent::Whole, target.strayed);
    let (dirs_created, metadata) =
        atomic::replace(path, &bytes).map_err(|error| Box::new(write_failed(path, &error)))?;
    stale::note_write(cx, path, &metadata, Extent::Whole);
    let mut fields = Map::new();
    fields.insert("bytes_written".into(), bytes.len().into());
    fields.insert("resolved_path".into(), path.display().to_string().into());
    fields.insert("files_modified".into(), json!([path.display().to_string()]));
    put_some(&mut fields, "dirs_created", dirs_created.then_some(true));
    put_some(&mut fields, "_warning", warning);
    let before = old.as_ref().map_or(Some(""), |old| old.text.as_deref());
    let shown = before
        .filter(|_| content.len() <= MAX_DIFFED)
        .map(|before| diff::unified(before, content, &cx.workspace.shown(path)))
        .map(|diff| cx.services.redactor.redact_file_content(&diff).0.into_owned());
    let output = ToolOutput::done(Value::Object(fields))
        .summed_up(format!("{} bytes", bytes.len()))
        .with_diff(shown.filter(|diff| !diff.is_empty()));
    // The old text of a large file is not at hand: then all errors count as new.
    let before = old.and_then(|old| old.text);
    Ok((output, Linted::new(path.clone(), before, LineEnding::Lf.apply(content))))
}

/// The file that is about to be replaced.
struct OldFile {
    metadata: Metadata,
    head: Vec<u8>,
    /// All of it, when it is small enough for a diff.
    text: Option<String>,
}

impl OldFile {
    /// `content` with the byte order mark and the line ending of the old file.
    fn like(&self, content: &str) -> Vec<u8> {
        let mark = self.head.starts_with(BOM) && !content.as_bytes().starts_with(BOM);
        let mut bytes = if mark { BOM.to_vec() } else { Vec::new() };
        match LineEnding::of(&self.head) {
            LineEnding::CrLf => bytes.extend_from_slice(LineEnding::CrLf.apply(content).as_bytes()),
            LineEnding::Lf => bytes.extend_from_slice(content.as_bytes()),
        }
        bytes
    }
}

/// Looks at what stands at `path`; `None` when nothing does. An `Err` is the call's result.
fn old_file(path: &Path) -> Result<Option<OldFile>, Box<ToolOutput>> {
    // The path had no links left when it was judged; a link that is there now leads somewhere else.
    if real_path(path).as_deref() != Ok(path) {
        return Err(Box::new(ToolOutput::error(format!(
            "{} leads elsewhere now; try again",
            path.display()
        ))));
    }
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Box::new(open_failed(path, &error))),
    };
    if metadata.is_dir() {
        return Err(Box::new(ToolOutput::error(format!("{} is a directory", path.display()))));
    }
    if !metadata.is_file() {
        return Err(Box::new(ToolOutput::error(format!(
            "{} is a pipe, socket or device, not a file",
            path.display()
        ))));
    }
    let whole = metadata.len() <= MAX_DIFFED as u64;
    let limit = if whole { MAX_DIFFED as u64 } else { HEAD };
    let mut head = Vec::new();
    // A file that may be written but not read is replaced all the same.
    let _ = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut head));
    let text = whole.then(|| LineEnding::Lf.apply(&decode(&head)));
    Ok(Some(OldFile { metadata, head, text }))
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;

//! `search_files`: regex search in files, and files by name.

mod content;
mod glob;
mod names;
mod render;
mod stop;
mod walk;

use std::path::Path;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hermes_core::{Json, ToolSchema};
use serde_json::{Value, json};

use super::open::open_failed;
use super::{TOOLSET, path_effect, resolve};
use crate::arguments::read::{count, text};
use crate::output::ToolOutput;
use crate::services::ToolCx;
use crate::settings::ToolSettings;
use crate::tool::{Concurrency, OwnedEffect, Tool, ToolTraits};
use crate::workspace::{WARN_AT, Workspace};
use content::Query;
use glob::NameGlob;
use stop::Stop;
use walk::Rules;

/// Results shown when the call names no number, and at most.
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;

/// Lines around a hit, at most.
const MAX_CONTEXT: usize = 20;

/// A search ends after this long, with what it has (spec 40 §5.6).
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// The tool.
#[derive(Debug)]
pub(super) struct SearchFiles;

#[async_trait]
impl Tool for SearchFiles {
    fn name(&self) -> &'static str {
        "search_files"
    }

    fn toolset(&self) -> &'static str {
        TOOLSET
    }

    fn schema(&self, _: &ToolSettings) -> ToolSchema {
        ToolSchema {
            name: self.name().to_owned(),
            description: "Search file contents by regex (Rust syntax, line by line) or, with target \"files\", find \
                          files and folders by glob, newest first; better than grep, rg, find or ls. Hidden and \
                          git-ignored files are left out unless nothing else matches."
                .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "description": "Regex, or a glob like *.rs or src/**/*.ts" },
                    "target": { "type": "string", "enum": ["content", "files"] },
                    "path": { "type": "string", "description": "Folder or file; default the session's directory" },
                    "file_glob": { "type": "string", "description": "Search only files like *.py" },
                    "output_mode": { "type": "string", "enum": ["content", "files_only", "count"] },
                    "context": { "type": "integer", "description": "Lines shown around a match" },
                    "limit": { "type": "integer", "description": "Results, 50 unless given" },
                    "offset": { "type": "integer", "description": "Results to pass over" },
                },
                "required": ["pattern"],
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits {
            concurrency: Concurrency::PathScoped,
            read_only: true,
            counts_repeats: true,
            redacts_itself: true,
            ..ToolTraits::default()
        }
    }

    fn preview(&self, arguments: &Value) -> String {
        let pattern = super::first_chars(text(arguments, "pattern"), 80).0.replace('\n', "\\n");
        match text(arguments, "path") {
            "" | "." => pattern,
            path => format!("{pattern} in {}", super::first_chars(path, 80).0),
        }
    }

    fn effect(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        path_effect(workspace, root_of(arguments), |path| OwnedEffect::Read { path })
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        let root = match resolve(&cx.workspace, root_of(&arguments)) {
            Ok(resolved) => resolved.path,
            Err(problem) => return ToolOutput::error(problem),
        };
        let signature = format!("{arguments}{}", root.display());
        // Only when nothing runs beside it is it known by now that it is a repetition, and need not be done.
        let known = cx.turn.has_come().then(|| note(cx, signature.clone()));
        if let Some(Err(refusal)) = known {
            return *refusal;
        }
        let stop = Stop { cancel: cx.cancel.clone(), until: Instant::now() + TIME_LIMIT };
        let inner = cx.clone();
        let output = cx.blocking("search_files", move || search(&inner, &root, &arguments, &stop)).await;
        let noted = match known {
            Some(noted) => noted,
            None if cx.turn_has_come().await => note(cx, signature),
            None => return ToolOutput::error("the search was stopped"),
        };
        match noted {
            Ok(in_a_row) if in_a_row >= WARN_AT => output.with(
                "_warning",
                format!("the same search {in_a_row} times in a row; the next time is refused"),
            ),
            Ok(_) => output,
            Err(refusal) => *refusal,
        }
    }
}

/// Notes a search, in the order of the calls. Gives how often it came in a row, or refuses it.
fn note(cx: &ToolCx, signature: String) -> Result<u32, Box<ToolOutput>> {
    let in_a_row = cx.workspace.files().note_search(signature);
    // The later ones need not wait for its end.
    cx.turn.pass();
    if in_a_row > WARN_AT {
        return Err(Box::new(ToolOutput::error(format!(
            "the same search {in_a_row} times in a row: use its result, or search for something else"
        ))));
    }
    Ok(in_a_row)
}

fn root_of(arguments: &Value) -> &str {
    match text(arguments, "path").trim() {
        "" => ".",
        path => path,
    }
}

/// Which page of the results is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

/// What a search needs to know of its call.
pub(crate) struct Scene<'a> {
    cx: &'a ToolCx,
    root: &'a Path,
    page: Page,
    /// What the result says beside the hits.
    notes: Vec<String>,
}

fn search(cx: &ToolCx, root: &Path, arguments: &Value, stop: &Stop) -> ToolOutput {
    if let Err(error) = std::fs::symlink_metadata(root) {
        return open_failed(root, &error);
    }
    let page = Page {
        offset: count(arguments, "offset").unwrap_or(0),
        limit: count(arguments, "limit").unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
    };
    let scene = Scene { cx, root, page, notes: Vec::new() };
    let output = if text(arguments, "target") == "files" {
        by_name(scene, text(arguments, "pattern"), stop)
    } else {
        by_content(scene, arguments, stop)
    };
    if cx.cancel.is_cancelled() {
        return ToolOutput::error("the search was stopped");
    }
    output
}

fn by_content(mut scene: Scene<'_>, arguments: &Value, stop: &Stop) -> ToolOutput {
    let pattern = text(arguments, "pattern");
    if pattern.is_empty() {
        return ToolOutput::error("the pattern is empty");
    }
    let (matcher, wants_line_break) = match content::compile(pattern) {
        Ok(compiled) => compiled,
        Err(problem) => return ToolOutput::error(format!("the pattern is not a valid regex: {problem}")),
    };
    let glob = match text(arguments, "file_glob") {
        "" => None,
        glob => match NameGlob::new(glob, scene.root) {
            Ok(glob) => Some(glob),
            Err(problem) => return ToolOutput::error(format!("file_glob is not a valid glob: {problem}")),
        },
    };
    let mode = match text(arguments, "output_mode") {
        "files_only" => render::Mode::Files,
        "count" => render::Mode::Counts,
        _ => render::Mode::Lines,
    };
    let context = count(arguments, "context").unwrap_or(0).min(MAX_CONTEXT);
    let lines = mode == render::Mode::Lines;
    let query = Query {
        root: scene.root,
        matcher,
        glob,
        context: if lines { context } else { 0 },
        offset: if lines { scene.page.offset } else { 0 },
        limit: if lines { scene.page.limit } else { 0 },
        files_only: mode == render::Mode::Files,
    };
    let may_read = |path: &Path| scene.cx.may_read(path);
    let never_opened = scene.cx.services.policy.paths().never_opened();
    let mut found = content::search(&query, Rules::Usual, stop, &never_opened, &may_read);
    if found.hits == 0 && !found.timed_out && scene.root.is_dir() {
        let wider = content::search(&query, Rules::All, stop, &never_opened, &may_read);
        if wider.hits > 0 {
            scene.notes.push(ONLY_HIDDEN.to_owned());
        }
        found = wider;
    }
    if found.hits == 0 && (wants_line_break || pattern.contains('\n') || pattern.contains("\\n")) {
        scene
            .notes
            .push("the search goes line by line, so a pattern with a line break matches nothing".to_owned());
    }
    render::content(&scene, &found, mode, context > 0)
}

const ONLY_HIDDEN: &str = "nothing matched in visible files; these are hidden or git-ignored";

fn by_name(mut scene: Scene<'_>, pattern: &str, stop: &Stop) -> ToolOutput {
    let pattern = if pattern.trim().is_empty() { "*" } else { pattern };
    let glob = match NameGlob::new(pattern, scene.root) {
        Ok(glob) => glob,
        Err(problem) => return ToolOutput::error(format!("the pattern is not a valid glob: {problem}")),
    };
    let mut found = names::find(scene.root, &glob, Rules::Usual, stop);
    if found.entries.is_empty() && !found.timed_out {
        found = names::find(scene.root, &glob, Rules::All, stop);
        if !found.entries.is_empty() {
            scene.notes.push(ONLY_HIDDEN.to_owned());
        }
    }
    if found.entries.is_empty()
        && !found.timed_out
        && glob.is_plain()
        && let Ok(looser) = NameGlob::loosened(pattern)
    {
        found = names::find(scene.root, &looser, Rules::Usual, stop);
        if !found.entries.is_empty() {
            scene.notes.push(format!("nothing is called {pattern}; these names contain it"));
        }
    }
    render::names(&scene, &found)
}

/// A path as the model can give it to the next tool.
fn shown(scene: &Scene<'_>, path: &Path) -> String {
    scene.cx.workspace.shown(path)
}

/// The items of a page.
fn paged<T>(items: &[T], page: Page) -> &[T] {
    let from = page.offset.min(items.len());
    let to = (from + page.limit).min(items.len());
    items.get(from..to).unwrap_or_default()
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;

//! V4A mode: one patch for several files, which lands as a whole or not at all (spec 40 §5.5).

mod apply;
mod hunks;
mod parse;
mod plan;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use hermes_core::EffectDisposition;
use serde_json::{Map, Value, json};
use tokio::sync::OwnedMutexGuard;

use super::super::stale::{self, Extent};
use super::file::{self, Shown};
use super::replace::{Patched, hint};
use crate::files::lint::Linted;
use crate::files::{resolve, write_of};
use crate::output::{ToolOutput, put_some};
use crate::services::ToolCx;
use crate::tool::OwnedEffect;
use crate::workspace::{ResolvedPath, Workspace, real_path};
use plan::{Change, Plan, Unfit};

/// Problems that an error lists.
const LISTED: usize = 20;

/// All paths that a patch names, as written.
fn written_paths(patch: &str) -> Result<Vec<String>, String> {
    let mut paths = parse::header_paths(patch);
    paths.retain(|path| !path.is_empty());
    match paths.iter().find(|path| climbs(path)) {
        Some(path) => Err(format!("`..` in a patch header is refused: {path}")),
        None => Ok(paths),
    }
}

fn climbs(path: &str) -> bool {
    Path::new(path).components().any(|part| part == Component::ParentDir)
}

/// What a patch touches: every path of its headers, as a write.
pub(super) fn effects(
    workspace: &Workspace,
    arguments: &Value,
    patch: &str,
) -> Result<Vec<OwnedEffect>, String> {
    written_paths(patch)?
        .iter()
        .map(|path| Ok(write_of(workspace.locate(path).map_err(|error| error.to_string())?, arguments)))
        .collect()
}

/// The files of a patch in a few words, for people.
pub(super) fn preview(patch: &str) -> String {
    let paths = parse::header_paths(patch);
    match paths.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// Resolved paths by how they are written, and the locks on them, taken in the order of the paths so that
/// two patches cannot wait for each other.
pub(super) struct Targets {
    paths: BTreeMap<String, ResolvedPath>,
    _locks: Vec<OwnedMutexGuard<()>>,
}

/// Resolves and locks all paths of a patch. An `Err` is the call's result.
pub(super) async fn targets(cx: &ToolCx, arguments: &Value, patch: &str) -> Result<Targets, Box<ToolOutput>> {
    let refused = |problem: String| Box::new(ToolOutput::error(problem));
    let mut paths = BTreeMap::new();
    for written in written_paths(patch).map_err(refused)? {
        if written.ends_with('/') {
            return Err(refused(format!("{written} ends in `/`, so it names a folder and not a file")));
        }
        let target = resolve(&cx.workspace, &written).map_err(refused)?;
        paths.insert(written, target);
    }
    let mut sorted: Vec<&PathBuf> = paths.values().map(|target| &target.path).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut locks = Vec::with_capacity(sorted.len());
    for path in sorted {
        locks.push(cx.services.files.lock(path).await);
    }
    // A link may have been swapped since the policy judged the written path.
    for target in paths.values() {
        if target.path != target.written
            && let Some(reason) = cx.denies(&write_of(target.path.clone(), arguments))
        {
            return Err(refused(reason));
        }
    }
    Ok(Targets { paths, _locks: locks })
}

/// Applies the patch. The locks in `targets` are held until it is over.
pub(super) fn run(cx: &ToolCx, targets: &Targets, patch: &str) -> Patched {
    match attempt(cx, &targets.paths, patch) {
        Ok(patched) => patched,
        Err(output) => (*output, Vec::new()),
    }
}

fn attempt(
    cx: &ToolCx,
    targets: &BTreeMap<String, ResolvedPath>,
    patch: &str,
) -> Result<Patched, Box<ToolOutput>> {
    let refused = |problem: String| Box::new(ToolOutput::error(problem));
    let sections = parse::parse(patch).map_err(|problems| Box::new(unfit(problems)))?;
    if let Some(moved) = targets.values().find(|target| real_path(&target.path).as_ref() != Ok(&target.path))
    {
        return Err(refused(format!("{} leads elsewhere now; try again", moved.path.display())));
    }
    let plan = plan::make(cx, &sections, targets).map_err(|unfit| Box::new(misfit(cx, unfit)))?;
    if plan.steps.is_empty() {
        return Err(refused("the patch changes nothing: the files are already as it makes them".to_owned()));
    }
    if cx.cancel.is_cancelled() {
        return Err(refused("the patch was stopped; nothing was changed".to_owned()));
    }
    let warnings = warnings(cx, &plan);
    apply::run(&plan.steps).map_err(|failed| Box::new(not_applied(&failed)))?;
    for change in &plan.changes {
        if let Some(problem) =
            change.after.as_ref().and_then(|after| file::differs_on_disk(&change.path, after))
        {
            let output = ToolOutput::error(problem);
            return Err(Box::new(ToolOutput { effect: EffectDisposition::Unknown, ..output }));
        }
    }
    Ok(landed(cx, plan, &warnings))
}

fn unfit(problems: Vec<String>) -> ToolOutput {
    let total = problems.len();
    let mut listed: Vec<String> = problems.into_iter().take(LISTED).collect();
    if total > LISTED {
        listed.push(format!("… and {} more", total - LISTED));
    }
    ToolOutput::error(format!("the patch was not applied and nothing was changed: {}", listed.join("; ")))
}

fn misfit(cx: &ToolCx, reasons: Unfit) -> ToolOutput {
    let failures =
        reasons.missed.iter().map(|path| cx.workspace.files().patch_failed(path)).max().unwrap_or(0);
    let mut output = unfit(reasons.problems);
    if !reasons.closest.is_empty() {
        output = output.with("closest", json!(reasons.closest));
    }
    if failures > 0 { output.with("_hint", hint(failures)) } else { output }
}

fn not_applied(failed: &apply::Failed) -> ToolOutput {
    if failed.not_restored.is_empty() {
        return ToolOutput::error(format!(
            "the patch could not be written, and all files are as they were: {}",
            failed.problem
        ));
    }
    let output = ToolOutput::error(format!(
        "the patch could not be written: {}. These files could not be brought back, look at them: {}",
        failed.problem,
        failed.not_restored.join(", ")
    ));
    ToolOutput { effect: EffectDisposition::Unknown, ..output }
}

/// What was wrong with the model's picture of the files, asked before they change.
fn warnings(cx: &ToolCx, plan: &Plan) -> Vec<String> {
    plan.changes
        .iter()
        .filter_map(|change| {
            let known = change.from.as_ref().unwrap_or(&change.path);
            let warning =
                stale::warning(cx, known, change.metadata.as_ref(), Extent::Quoted, change.strayed)?;
            Some(format!("{}: {warning}", cx.workspace.shown(&change.path)))
        })
        .collect()
}

fn landed(cx: &ToolCx, plan: Plan, warnings: &[String]) -> Patched {
    let mut shown = Shown::default();
    let (mut modified, mut created, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    let mut linted = Vec::new();
    let name = |path: &Path| path.display().to_string();
    for path in &plan.removed {
        deleted.push(name(path));
        stale::note_removed(cx, path);
    }
    for change in plan.changes {
        if let Some(from) = &change.from {
            deleted.push(name(from));
            stale::note_removed(cx, from);
        }
        if change.created || change.from.is_some() {
            created.push(name(&change.path));
        } else {
            modified.push(name(&change.path));
        }
        let Change { path, before, after, .. } = change;
        if let Ok(metadata) = std::fs::metadata(&path) {
            let extent = if change.created { Extent::Whole } else { Extent::Quoted };
            stale::note_write(cx, &path, &metadata, extent);
        }
        if let Some(after) = after {
            let (before, after) = (before.as_deref().map(file::flat), file::flat(&after));
            shown.add(cx, before.as_deref().unwrap_or_default(), &after, &cx.workspace.shown(&path));
            linted.push(Linted::new(path, before, after));
        }
    }
    let mut fields = Map::new();
    fields.insert("success".into(), true.into());
    shown.put(&mut fields);
    for (key, mut paths) in
        [("files_modified", modified), ("files_created", created), ("files_deleted", deleted)]
    {
        paths.sort();
        put_some(&mut fields, key, (!paths.is_empty()).then_some(paths));
    }
    let roughly: Vec<Value> = plan
        .roughly
        .iter()
        .map(|(path, how, line)| {
            json!({ "path": cx.workspace.shown(path), "match_strategy": how.name(), "match_line": line })
        })
        .collect();
    put_some(&mut fields, "matches", (!roughly.is_empty()).then_some(roughly));
    put_some(&mut fields, "_warning", (!warnings.is_empty()).then(|| warnings.join("; ")));
    let summary = shown.summary();
    let output = ToolOutput::done(Value::Object(fields)).summed_up(summary).with_diff(shown.into_diff());
    (output, linted)
}

#[cfg(test)]
#[path = "v4a_tests.rs"]
mod tests;

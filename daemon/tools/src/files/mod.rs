//! The file tools: `read_file`, `write_file`, `patch`, `search_files` (spec 40 §5).

mod atomic;
#[cfg(test)]
mod bad_input_tests;
mod binary_names;
mod diff;
mod documents;
mod lint;
mod near_names;
mod open;
mod patch;
mod read;
mod search;
mod stale;
mod text;
mod window;
mod write;
mod write_guards;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

pub(crate) use self::text::first_chars;
use crate::arguments::read::{flag, text};
use crate::output::ToolOutput;
use crate::services::ToolCx;
use crate::tool::{OwnedEffect, Tool};
use crate::workspace::{ResolvedPath, Workspace};

/// The tools of the set `file`.
pub fn file_tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(patch::Patch),
        Arc::new(read::ReadFile),
        Arc::new(search::SearchFiles),
        Arc::new(write::WriteFile),
    ]
}

const TOOLSET: &str = "file";

/// How a schema describes a path.
const PATH_HELP: &str = "Absolute, ~/..., or relative to the session's directory";

/// How a schema describes the switch of a write into another profile.
const CROSS_PROFILE_HELP: &str = "Only to change another profile's files";

/// The one path that a call writes.
fn write_effect(workspace: &Workspace, arguments: &Value) -> Result<Vec<OwnedEffect>, String> {
    path_effect(workspace, text(arguments, "path"), |path| write_of(path, arguments))
}

fn write_of(path: PathBuf, arguments: &Value) -> OwnedEffect {
    if flag(arguments, "cross_profile") {
        OwnedEffect::CrossProfileWrite { path }
    } else {
        OwnedEffect::Write { path }
    }
}

/// Where a call writes, with the path locked. A link may have been swapped since the policy judged the
/// written path, so one that leads somewhere else is judged again. An `Err` is the call's result.
async fn locked_target(
    cx: &ToolCx,
    arguments: &Value,
) -> Result<(ResolvedPath, OwnedMutexGuard<()>), Box<ToolOutput>> {
    let refused = |problem: String| Box::new(ToolOutput::error(problem));
    if text(arguments, "path").ends_with('/') {
        return Err(refused("the path ends in `/`, so it names a folder and not a file".to_owned()));
    }
    let target = resolve(&cx.workspace, text(arguments, "path")).map_err(refused)?;
    let lock = cx.services.files.lock(&target.path).await;
    if target.path != target.written
        && let Some(reason) = cx.denies(&write_of(target.path.clone(), arguments))
    {
        return Err(refused(reason));
    }
    Ok((target, lock))
}

/// Resolves a written path, with the error as the model reads it.
fn resolve(workspace: &Workspace, written: &str) -> Result<ResolvedPath, String> {
    workspace.resolve(written).map_err(|error| error.to_string())
}

/// The one path that a call reads or writes.
fn path_effect(
    workspace: &Workspace,
    written: &str,
    effect: impl FnOnce(PathBuf) -> OwnedEffect,
) -> Result<Vec<OwnedEffect>, String> {
    Ok(vec![effect(workspace.locate(written).map_err(|error| error.to_string())?)])
}

//! `patch`: replaces one text in a file by another, or applies a patch to several files at once.

mod adapt;
mod closest;
mod edit;
mod file;
mod flat;
mod fold;
mod guess;
mod ladder;
mod markers;
mod replace;
mod v4a;

use async_trait::async_trait;
use hermes_core::{Json, ToolSchema};
use serde_json::{Value, json};

use super::{CROSS_PROFILE_HELP, PATH_HELP, TOOLSET, lint, locked_target, write_effect};
use crate::arguments::read::{flag, text};
use crate::output::ToolOutput;
use crate::services::ToolCx;
use crate::settings::ToolSettings;
use crate::tool::{Concurrency, OwnedEffect, Tool, ToolTraits};
use crate::workspace::Workspace;
use edit::Edit;

/// The tool.
#[derive(Debug)]
pub(super) struct Patch;

/// What a call asks for.
enum Mode<'a> {
    Replace(Edit<'a>),
    Patch(&'a str),
}

impl<'a> Mode<'a> {
    fn of(arguments: &'a Value) -> Result<Self, String> {
        let given = |key: &str| arguments.get(key).is_some_and(Value::is_string);
        let patch = text(arguments, "patch");
        if text(arguments, "mode") == "patch" || (!patch.is_empty() && !given("old_string")) {
            if patch.trim().is_empty() {
                return Err("mode `patch` needs the text of the patch in `patch`".to_owned());
            }
            return Ok(Self::Patch(patch));
        }
        let missing: Vec<&str> =
            ["path", "old_string", "new_string"].into_iter().filter(|key| !given(key)).collect();
        if !missing.is_empty() {
            return Err(format!("missing: {}", missing.join(", ")));
        }
        Ok(Self::Replace(Edit {
            old: text(arguments, "old_string"),
            new: text(arguments, "new_string"),
            everywhere: flag(arguments, "replace_all"),
        }))
    }
}

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
            description: "Edit files. Replace old_string, which must be unique in the file (add lines around it, or \
                          set replace_all), by new_string; small differences in blanks are forgiven. Or, with mode \
                          \"patch\", change several files at once, all or none. Returns the diff."
                .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "mode": { "type": "string", "enum": ["replace", "patch"] },
                    "path": { "type": "string", "description": PATH_HELP },
                    "old_string": { "type": "string", "description": "Text to replace, without line numbers" },
                    "new_string": { "type": "string", "description": "Text to put there; empty deletes" },
                    "replace_all": { "type": "boolean", "description": "Replace every occurrence" },
                    "patch": {
                        "type": "string",
                        "description": "*** Update File: p | *** Add File: p | *** Delete File: p | *** Move File: a -> b; \
                                        under an update hunks `@@ line before it @@` with lines ` context`, `-old`, `+new`",
                    },
                    "cross_profile": { "type": "boolean", "description": CROSS_PROFILE_HELP },
                },
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits { concurrency: Concurrency::PathScoped, redacts_itself: true, ..ToolTraits::default() }
    }

    fn preview(&self, arguments: &Value) -> String {
        let shown = match Mode::of(arguments) {
            Ok(Mode::Patch(patch)) => v4a::preview(patch),
            _ => text(arguments, "path").to_owned(),
        };
        super::first_chars(&shown, 100).0.to_owned()
    }

    fn effect(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        match Mode::of(arguments)? {
            Mode::Replace(_) => write_effect(workspace, arguments),
            Mode::Patch(patch) => v4a::effects(workspace, arguments, patch),
        }
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        let (output, linted) = match Mode::of(&arguments) {
            Err(problem) => return ToolOutput::error(problem),
            Ok(Mode::Patch(patch)) => {
                let targets = match v4a::targets(cx, &arguments, patch).await {
                    Ok(targets) => targets,
                    Err(output) => return *output,
                };
                let (inner, patch) = (cx.clone(), patch.to_owned());
                // The locks are held until the writing is over, also when nobody waits for it any more.
                cx.blocking("patch", move || v4a::run(&inner, &targets, &patch)).await
            }
            Ok(Mode::Replace(edit)) => {
                let (target, lock) = match locked_target(cx, &arguments).await {
                    Ok(target) => target,
                    Err(output) => return *output,
                };
                let (inner, everywhere) = (cx.clone(), edit.everywhere);
                let (old, new) = (edit.old.to_owned(), edit.new.to_owned());
                cx.blocking("patch", move || {
                    let _lock = lock;
                    replace::run(&inner, &target, Edit { old: &old, new: &new, everywhere })
                })
                .await
            }
        };
        lint::with_findings(cx, output, linted).await
    }
}

#[cfg(test)]
mod cases_tests;
#[cfg(test)]
mod properties_tests;
#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;

//! What an edit did to the syntax of a file (spec 40 §5.7): only what the edit broke is told as new.

mod external;
mod python;
mod syntax;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::output::ToolOutput;
use crate::services::ToolCx;
pub(crate) use syntax::{Syntax, check};

/// How long all checks of one call may take (spec 40 §5.7).
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Errors that a result lists.
const LISTED: usize = 10;

/// A file that was written, for its check.
#[derive(Debug)]
pub(crate) struct Linted {
    path: PathBuf,
    /// Its text before; `None` for a new file.
    before: Option<String>,
    after: String,
}

impl Linted {
    pub(crate) fn new(path: PathBuf, before: Option<String>, after: String) -> Self {
        Self { path, before, after }
    }
}

/// What a check of one text found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Findings {
    /// Nothing checks this kind of file.
    Unchecked,
    /// It is checked by a program that cannot run here, and why.
    Skipped(String),
    /// What is wrong, a line each; empty when nothing is.
    Errors(Vec<String>),
}

/// `output` with what the checks of the written files found: for one file as `lint`, for several by their
/// paths.
pub(crate) async fn with_findings(cx: &ToolCx, output: ToolOutput, linted: Vec<Linted>) -> ToolOutput {
    let until = Instant::now() + TIME_LIMIT;
    match linted.as_slice() {
        [] => output,
        [only] => match report(cx, only, until).await {
            Some(found) => output.with("lint", found),
            None => output,
        },
        several => {
            let mut fields = Map::new();
            for file in several {
                if let Some(found) = report(cx, file, until).await {
                    fields.insert(cx.workspace.shown(&file.path), found);
                }
            }
            if fields.is_empty() { output } else { output.with("lint", Value::Object(fields)) }
        }
    }
}

/// What is told about one file.
async fn report(cx: &ToolCx, file: &Linted, until: Instant) -> Option<Value> {
    let errors = match findings(cx, file, &file.after, until).await {
        Findings::Unchecked => return None,
        Findings::Skipped(reason) => return Some(json!({ "status": "skipped", "reason": reason })),
        Findings::Errors(errors) if errors.is_empty() => return Some(json!({ "status": "ok" })),
        Findings::Errors(errors) => errors,
    };
    let before = match &file.before {
        None => Vec::new(),
        Some(before) => match findings(cx, file, before, until).await {
            Findings::Errors(errors) => errors,
            Findings::Unchecked | Findings::Skipped(_) => Vec::new(),
        },
    };
    let fresh = new_ones(&errors, &before);
    if fresh.is_empty() {
        return Some(json!({
            "status": "error",
            "message": joined(&errors),
            "note": "it did not parse before the edit either",
        }));
    }
    let mut fields = json!({ "status": "error", "message": joined(&fresh) });
    if fresh.len() < errors.len()
        && let Value::Object(fields) = &mut fields
    {
        fields.insert("note".into(), "errors that were there before are left out".into());
    }
    Some(fields)
}

async fn findings(cx: &ToolCx, file: &Linted, text: &str, until: Instant) -> Findings {
    let path = &file.path;
    if let Some(errors) = python::check(path, text) {
        return Findings::Errors(errors);
    }
    match check(path, text) {
        Syntax::Good => Findings::Errors(Vec::new()),
        Syntax::Broken(problem) => Findings::Errors(vec![problem]),
        Syntax::Unchecked => external::check(cx, path, text, until).await,
    }
}

/// The errors of `after` that were not in `before`, wherever they stood.
fn new_ones(after: &[String], before: &[String]) -> Vec<String> {
    let mut known: Vec<String> = before.iter().map(|error| placeless(error)).collect();
    after
        .iter()
        .filter(|error| {
            let error = placeless(error);
            match known.iter().position(|other| *other == error) {
                Some(at) => {
                    known.swap_remove(at);
                    false
                }
                None => true,
            }
        })
        .cloned()
        .collect()
}

/// An error without its numbers: an edit moves what stands below it.
fn placeless(error: &str) -> String {
    error.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn joined(errors: &[String]) -> String {
    let mut text = errors.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join("\n");
    if errors.len() > LISTED {
        use std::fmt::Write as _;
        let _ = write!(text, "\n… and {} more", errors.len() - LISTED);
    }
    text
}

#[cfg(test)]
#[path = "lint_tests.rs"]
mod tests;

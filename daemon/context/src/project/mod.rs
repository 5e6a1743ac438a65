//! The project's own instructions: which file, how much of it, and whether it may be trusted (spec 20 §6, §7).

mod find;
mod fit;
mod read;
mod vet;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use find::ReadCheck;
pub use fit::context_file_cap;
pub(crate) use read::{FileText, ReadFile, read_bounded};
pub(crate) use vet::{one_line, vet};

use crate::estimate::text_tokens;
use crate::prompts;
use find::{Candidate, CandidateState, Found};

/// How long the file system may take to show the project's files.
const SEARCH_LIMIT: Duration = Duration::from_secs(3);

/// What became of one file that could have entered the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    Loaded,
    /// Loaded in part.
    Truncated,
    /// Loaded although the injection scan has findings (SOUL.md).
    Flagged,
    /// Another file won.
    Shadowed,
    /// Replaced by a placeholder: the injection scan has findings.
    Blocked,
    Empty,
    Unreadable,
    /// Not looked at, since context files are off for this session or this directory.
    Suppressed,
}

/// One line of `/context`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    pub path: PathBuf,
    pub state: FileState,
    /// Estimated tokens in the prompt.
    pub tokens: u64,
}

/// What the project brings to the prompt.
#[derive(Debug, Default)]
pub(crate) struct Project {
    /// The block with its heading.
    pub(crate) block: Option<String>,
    pub(crate) reports: Vec<FileReport>,
    pub(crate) notices: Vec<String>,
}

/// How the project's files are read.
pub(crate) struct ProjectInput<'a> {
    pub(crate) cwd: &'a Path,
    pub(crate) cap: u64,
    /// Whether the model has the tool `read_file`.
    pub(crate) read_file: bool,
    pub(crate) may_read: Option<&'a ReadCheck>,
}

/// Finds, vets and fits the project's instructions.
pub(crate) fn load(input: &ProjectInput<'_>) -> Project {
    match find::find_within(SEARCH_LIMIT, input.cwd, input.may_read) {
        Some(found) => render(found, input),
        None => Project {
            notices: vec![format!(
                "the project files in {} were not read: the file system did not answer within {} s",
                input.cwd.display(),
                SEARCH_LIMIT.as_secs()
            )],
            ..Project::default()
        },
    }
}

fn render(found: Found, input: &ProjectInput<'_>) -> Project {
    let mut project = Project::default();
    if found.rules_left_out {
        project
            .notices
            .push("there are more Cursor rules than are read; the first by name are used".to_owned());
    }
    let winners = found.files.iter().filter(|file| matches!(file.state, CandidateState::Text(_))).count();
    let mut sections: Vec<(String, String)> = Vec::new();
    for file in found.files {
        let Candidate { path, label, state } = file;
        let (state, tokens) = match state {
            CandidateState::Empty => (FileState::Empty, 0),
            CandidateState::Shadowed => (FileState::Shadowed, 0),
            CandidateState::Unreadable(reason) => {
                project.notices.push(format!("{label} was not read: {reason}"));
                (FileState::Unreadable, 0)
            }
            CandidateState::Text(text) => {
                // Several files share one cap, so they are fitted together below.
                let cap = if winners == 1 { input.cap } else { u64::MAX };
                let vetted = vet(&text, cap, &label, &path, input.read_file);
                project.notices.extend(vetted.blocked_notice(&label));
                let state = if vetted.findings.is_empty() {
                    project.notices.extend(vetted.cut_notice(&label));
                    if vetted.cut.is_some() { FileState::Truncated } else { FileState::Loaded }
                } else {
                    FileState::Blocked
                };
                let shown =
                    if state == FileState::Blocked { vetted.placeholder(&label) } else { vetted.text };
                let tokens = text_tokens(&shown);
                sections.push((label, shown));
                (state, tokens)
            }
        };
        project.reports.push(FileReport { path, state, tokens });
    }
    if sections.is_empty() {
        return project;
    }
    let files: Vec<&str> = sections.iter().map(|(label, _)| label.as_str()).collect();
    let chars: usize = sections.iter().map(|(_, text)| text.chars().count()).sum();
    tracing::info!(directory = %input.cwd.display(), files = files.join(", "), chars, "project context");
    let together = sections.len() > 1;
    let sections: Vec<String> =
        sections.iter().map(|(label, text)| format!("## {label}\n\n{text}")).collect();
    let mut body = sections.join("\n\n");
    if together {
        let all = FileText::whole(body);
        let vetted = vet::fit_only(
            &all,
            input.cap,
            "Cursor's rules",
            &input.cwd.join(".cursor/rules"),
            input.read_file,
        );
        project.notices.extend(vetted.cut_notice("Cursor's rules"));
        if vetted.cut.is_some() {
            for report in project.reports.iter_mut().filter(|report| report.state == FileState::Loaded) {
                report.state = FileState::Truncated;
            }
        }
        body = vetted.text;
    }
    project.block = Some(format!("{}\n\n{body}", prompts::PROJECT));
    project
}

#[cfg(test)]
mod tests;

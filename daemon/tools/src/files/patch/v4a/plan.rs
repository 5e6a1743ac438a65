//! What a patch comes to, worked out in memory: every section is tried on the files as the sections before
//! it leave them, and all that does not fit is told together.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::super::super::write_guards;
use super::super::file::{self, Loaded};
use super::super::ladder::Strategy;
use super::super::replace::closest;
use super::apply::Step;
use super::hunks::{self, Misfit};
use super::parse::{Hunk, Section};
use crate::services::ToolCx;
use crate::tool::OwnedEffect;
use crate::workspace::ResolvedPath;

/// A patch that fits.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// Each file that will be another one, by its path at the end.
    pub(super) changes: Vec<Change>,
    pub(super) removed: Vec<PathBuf>,
    /// Hunks that were found roughly: file, how, line.
    pub(super) roughly: Vec<(PathBuf, Strategy, usize)>,
}

/// A file with another content or under another name.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    /// The name that it had, when that is another one.
    pub(super) from: Option<PathBuf>,
    /// It did not exist under any name.
    pub(super) created: bool,
    /// Content before and after; both are `None` for a file that is only moved.
    pub(super) before: Option<Vec<u8>>,
    pub(super) after: Option<Vec<u8>>,
    /// Of the file that stood at the old name.
    pub(super) metadata: Option<Metadata>,
    pub(super) strayed: bool,
}

/// Why a patch does not fit.
#[derive(Debug)]
pub(super) struct Unfit {
    /// For each problem its file, as the patch names it, and what is wrong.
    pub(super) problems: Vec<String>,
    /// Regions like the lines that were not found.
    pub(super) closest: Vec<String>,
    /// Files in which lines were not found.
    pub(super) missed: Vec<PathBuf>,
}

/// A file as the sections so far leave it.
#[derive(Debug)]
enum Now {
    Absent,
    /// It stands on disk, and nobody has looked into it.
    Unread {
        origin: PathBuf,
    },
    Text(Box<Known>),
}

/// A file that was read, or will be made.
#[derive(Debug)]
struct Known {
    /// Where it stands on disk, if it does.
    origin: Option<PathBuf>,
    before: Option<Vec<u8>>,
    now: Vec<u8>,
    metadata: Option<Metadata>,
}

struct Planner<'a> {
    cx: &'a ToolCx,
    targets: &'a BTreeMap<String, ResolvedPath>,
    now: BTreeMap<PathBuf, Now>,
    plan: Plan,
    unfit: Unfit,
}

/// Works a patch out. `targets` has every path of its headers.
pub(super) fn make(
    cx: &ToolCx,
    sections: &[Section],
    targets: &BTreeMap<String, ResolvedPath>,
) -> Result<Plan, Unfit> {
    let unfit = Unfit { problems: Vec::new(), closest: Vec::new(), missed: Vec::new() };
    let mut planner = Planner { cx, targets, now: BTreeMap::new(), plan: Plan::default(), unfit };
    for section in sections {
        planner.section(section);
    }
    planner.finish()
}

impl Planner<'_> {
    fn section(&mut self, section: &Section) {
        match section {
            Section::Update { path, moved_to, hunks } => {
                self.update(path, hunks);
                if let Some(to) = moved_to {
                    self.rename(path, to);
                }
            }
            Section::Add { path, content } => self.add(path, content),
            Section::Delete { path } => self.delete(path),
            Section::Move { from, to } => self.rename(from, to),
        }
    }

    fn problem(&mut self, written: &str, problem: impl std::fmt::Display) {
        self.unfit.problems.push(format!("{written}: {problem}"));
    }

    fn target(&self, written: &str) -> Option<ResolvedPath> {
        self.targets.get(written).cloned()
    }

    /// What is known of the file, looked up on disk the first time.
    fn look(&mut self, path: &Path) -> &mut Now {
        self.now.entry(path.to_owned()).or_insert_with(|| match fs::symlink_metadata(path) {
            Ok(_) => Now::Unread { origin: path.to_owned() },
            Err(_) => Now::Absent,
        })
    }

    fn update(&mut self, written: &str, hunks: &[Hunk]) {
        let Some(target) = self.target(written) else { return };
        let path = target.path.clone();
        if let Now::Unread { origin } = self.look(&path) {
            let origin = origin.clone();
            let at_origin = ResolvedPath { path: origin.clone(), ..target };
            match file::load(self.cx, &at_origin) {
                Ok(Loaded { content, metadata }) => {
                    let known = Known {
                        origin: Some(origin),
                        before: Some(content.clone()),
                        now: content,
                        metadata: Some(metadata),
                    };
                    self.now.insert(path.clone(), Now::Text(Box::new(known)));
                }
                Err(output) => {
                    let problem =
                        output.content.get("error").and_then(|error| error.as_str()).unwrap_or("unreadable");
                    let problem = problem.to_owned();
                    return self.problem(written, problem);
                }
            }
        }
        let Now::Text(known) = self.look(&path) else {
            return self.problem(written, "there is no such file to update");
        };
        let content = known.now.clone();
        for hunk in hunks {
            // A mark may stay where it is; that is seen to where the hunk finds its place.
            if let Some(problem) = write_guards::refusal_but_marks(&hunk.new_text(0)) {
                return self.problem(written, problem);
            }
        }
        match hunks::apply(&self.cx.services.redactor, &content, hunks) {
            Ok(applied) => {
                self.plan
                    .roughly
                    .extend(applied.roughly.into_iter().map(|(how, line)| (path.clone(), how, line)));
                self.write(&path, applied.content);
            }
            Err(misfits) => self.misfits(written, &path, &content, misfits),
        }
    }

    fn misfits(&mut self, written: &str, path: &Path, content: &[u8], misfits: Vec<Misfit>) {
        for misfit in misfits {
            if let Some(wanted) = &misfit.wanted {
                if self.unfit.closest.is_empty() {
                    self.unfit.closest = closest(self.cx, content, wanted);
                }
                if !self.unfit.missed.iter().any(|missed| missed == path) {
                    self.unfit.missed.push(path.to_owned());
                }
            }
            self.problem(written, misfit.problem);
        }
    }

    fn write(&mut self, path: &Path, new: Vec<u8>) {
        let Some(Now::Text(known)) = self.now.get_mut(path) else { return };
        if known.now == new {
            return;
        }
        let old = std::mem::replace(&mut known.now, new.clone());
        match self.plan.steps.last_mut() {
            // One write is enough for what was changed twice.
            Some(
                Step::Write { path: last, new: content, .. } | Step::Create { path: last, new: content },
            ) if last == path => {
                *content = new;
            }
            _ => self.plan.steps.push(Step::Write { path: path.to_owned(), old, new }),
        }
    }

    fn add(&mut self, written: &str, content: &str) {
        let Some(target) = self.target(written) else { return };
        if let Some(problem) = write_guards::refusal(content) {
            return self.problem(written, problem);
        }
        if !self.is_free(written, &target.path) {
            return;
        }
        let new = content.as_bytes().to_vec();
        self.plan.steps.push(Step::Create { path: target.path.clone(), new: new.clone() });
        let known = Known { origin: None, before: None, now: new, metadata: None };
        self.now.insert(target.path, Now::Text(Box::new(known)));
    }

    /// Whether a file can come to be at `path`; says why not.
    fn is_free(&mut self, written: &str, path: &Path) -> bool {
        if !matches!(self.look(path), Now::Absent) {
            self.problem(written, "exists already; change it with `*** Update File`");
            return false;
        }
        let above = path.ancestors().skip(1).find_map(|folder| {
            let planned = matches!(self.now.get(folder), Some(Now::Text(_) | Now::Unread { .. }));
            let metadata = fs::metadata(folder).ok();
            (planned || metadata.is_some())
                .then(|| (folder.to_owned(), !planned && metadata.is_some_and(|it| it.is_dir())))
        });
        match above {
            Some((folder, false)) => {
                self.problem(written, format!("{} is a file, not a folder", folder.display()));
                false
            }
            _ => true,
        }
    }

    fn delete(&mut self, written: &str) {
        let Some(target) = self.target(written) else { return };
        if !self.is_plain_file(written, &target, "delete") {
            return;
        }
        self.plan.steps.push(Step::Remove { path: target.path.clone() });
        match self.now.insert(target.path, Now::Absent) {
            Some(Now::Unread { origin }) => self.plan.removed.push(origin),
            Some(Now::Text(known)) => self.plan.removed.extend(known.origin),
            Some(Now::Absent) | None => {}
        }
    }

    fn rename(&mut self, written: &str, to: &str) {
        let (Some(from), Some(to_target)) = (self.target(written), self.target(to)) else { return };
        if !self.is_plain_file(written, &from, "move") || !self.is_free(to, &to_target.path) {
            return;
        }
        // Under another name it could be read.
        if let Some(reason) = self.cx.denies(&OwnedEffect::Read { path: from.path.clone() }) {
            return self.problem(written, reason);
        }
        self.plan.steps.push(Step::Rename { from: from.path.clone(), to: to_target.path.clone() });
        if let Some(moved) = self.now.insert(from.path, Now::Absent) {
            self.now.insert(to_target.path, moved);
        }
    }

    /// Whether a file stands there that can be taken away; says why not.
    fn is_plain_file(&mut self, written: &str, target: &ResolvedPath, verb: &str) -> bool {
        let problem = match self.look(&target.path) {
            Now::Absent => Some(format!("there is no such file to {verb}")),
            Now::Text(_) => None,
            Now::Unread { origin } => match fs::symlink_metadata(origin) {
                Ok(metadata) if metadata.is_file() => None,
                Ok(metadata) if metadata.is_dir() => Some("is a folder".to_owned()),
                _ => Some("is a pipe, socket or device, not a file".to_owned()),
            },
        };
        // The link would stay, and what it points to would go.
        let is_link = fs::symlink_metadata(&target.written).is_ok_and(|metadata| metadata.is_symlink());
        let problem =
            problem.or_else(|| is_link.then(|| format!("is a symbolic link; {verb} it in the terminal")));
        let fits = problem.is_none();
        if let Some(problem) = problem {
            self.problem(written, problem);
        }
        fits
    }

    fn finish(self) -> Result<Plan, Unfit> {
        if !self.unfit.problems.is_empty() {
            return Err(self.unfit);
        }
        let mut plan = self.plan;
        let strayed = |path: &Path| self.targets.values().any(|target| target.path == path && target.strayed);
        for (path, now) in self.now {
            let (origin, before, after, metadata) = match now {
                Now::Absent => continue,
                Now::Unread { origin } if origin == path => continue,
                Now::Unread { origin } => {
                    let metadata = fs::symlink_metadata(&origin).ok();
                    (Some(origin), None, None, metadata)
                }
                Now::Text(known) => (known.origin, known.before, Some(known.now), known.metadata),
            };
            let moved = origin.as_ref().is_some_and(|origin| *origin != path);
            if !moved && before.is_some() && before == after {
                continue;
            }
            plan.changes.push(Change {
                created: origin.is_none(),
                from: origin.filter(|_| moved),
                strayed: strayed(&path),
                path,
                before,
                after,
                metadata,
            });
        }
        // Removed and made anew under the same name: that is a change.
        let made: Vec<PathBuf> = plan.changes.iter().map(|change| change.path.clone()).collect();
        plan.removed.retain(|removed| !made.contains(removed));
        Ok(plan)
    }
}

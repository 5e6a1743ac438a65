//! Finds files and directories by name.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::glob::NameGlob;
use super::stop::Stop;
use super::walk::{Rules, walk};

/// Matches held for sorting; a search with more is told as "at least".
const MAX_HELD: usize = 200_000;

/// One match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) path: PathBuf,
    pub(crate) is_dir: bool,
    modified: Option<SystemTime>,
}

/// What was found, newest first.
#[derive(Debug, Default)]
pub(crate) struct NamesFound {
    pub(crate) entries: Vec<Named>,
    pub(crate) is_lower_bound: bool,
    pub(crate) timed_out: bool,
}

/// Finds entries below `root` that `glob` means.
pub(crate) fn find(root: &Path, glob: &NameGlob, rules: Rules, stop: &Stop) -> NamesFound {
    let mut found = NamesFound::default();
    for entry in walk(root, rules).filter_map(Result::ok) {
        if stop.now() {
            found.timed_out = stop.timed_out();
            found.is_lower_bound = true;
            break;
        }
        if entry.depth() == 0 && entry.file_type().is_some_and(|kind| kind.is_dir())
            || !glob.matches(entry.path(), root)
        {
            continue;
        }
        if found.entries.len() >= MAX_HELD {
            found.is_lower_bound = true;
            break;
        }
        found.entries.push(Named {
            is_dir: entry.file_type().is_some_and(|kind| kind.is_dir()),
            modified: entry.metadata().ok().and_then(|metadata| metadata.modified().ok()),
            path: entry.into_path(),
        });
    }
    found.entries.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    found
}

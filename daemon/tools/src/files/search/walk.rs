//! Which files and directories a search looks at, in a stable order.

use std::path::Path;

use ignore::{Walk, WalkBuilder, WalkParallel};

/// Which entries below the root count. The root itself always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// No hidden entries and none that version control ignores.
    Usual,
    /// All but version control's own data.
    All,
}

const VCS_FOLDERS: [&str; 5] = [".git", ".hg", ".svn", ".jj", "CVS"];

/// Kernel interfaces: reading them can block, and none of it is the user's.
const PSEUDO: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Walks below `root`, entries of a directory by name. Symbolic links below it are not followed.
pub(crate) fn walk(root: &Path, rules: Rules) -> Walk {
    builder(root, rules).sort_by_file_name(std::ffi::OsStr::cmp).build()
}

/// The same entries in no order, on several threads.
pub(crate) fn walk_at_once(root: &Path, rules: Rules, threads: usize) -> WalkParallel {
    builder(root, rules).threads(threads).build_parallel()
}

fn builder(root: &Path, rules: Rules) -> WalkBuilder {
    let usual = rules == Rules::Usual;
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(usual)
        .ignore(usual)
        .git_ignore(usual)
        .git_exclude(usual)
        // The user's global ignore file is found through the process environment, which is not the user's here.
        .git_global(false)
        .parents(usual)
        .filter_entry(|entry| {
            let vcs = entry.file_name().to_str().is_some_and(|name| VCS_FOLDERS.contains(&name));
            let pseudo = entry.path().to_str().is_some_and(|path| PSEUDO.contains(&path));
            entry.depth() == 0 || !(pseudo || vcs && entry.file_type().is_some_and(|kind| kind.is_dir()))
        });
    builder
}

//! Which repository and branch a directory belongs to, read from the files themselves.

use std::path::{Path, PathBuf};

/// Most bytes of `HEAD` or of a `.git` file that are looked at.
const MAX_BYTES: u64 = 4_096;

/// What git knows of a directory; empty outside a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GitFacts {
    pub(crate) root: Option<PathBuf>,
    /// `None` on a detached head.
    pub(crate) branch: Option<String>,
}

impl GitFacts {
    /// Looks from `directory` upwards. Blocking; two small reads at most.
    pub(crate) fn of(directory: &Path) -> Self {
        let Some(root) = directory.ancestors().find(|path| path.join(".git").exists()) else {
            return Self::default();
        };
        let branch = git_dir(root)
            .and_then(|git| read(&git.join("HEAD")))
            .and_then(|head| head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned));
        Self { root: Some(root.to_path_buf()), branch }
    }
}

/// `.git` itself, or what it points to in a worktree or submodule.
fn git_dir(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = read(&dot_git)?;
    Some(root.join(text.trim().strip_prefix("gitdir: ")?))
}

fn read(path: &Path) -> Option<String> {
    use std::io::Read as _;
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_folder_below_a_repository_has_its_root_and_branch() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        assert_eq!(GitFacts::of(&below), GitFacts::default());
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        std::fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        let expected = GitFacts { root: Some(dir.path().into()), branch: Some("feature/x".into()) };
        assert_eq!(GitFacts::of(&below), expected);
    }

    #[test]
    fn a_worktree_is_followed_to_its_own_head() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("store")).unwrap();
        std::fs::write(dir.path().join("store/HEAD"), "ref: refs/heads/wt\n").unwrap();
        std::fs::write(dir.path().join(".git"), "gitdir: store\n").unwrap();
        assert_eq!(GitFacts::of(dir.path()).branch, Some("wt".into()));
    }
}

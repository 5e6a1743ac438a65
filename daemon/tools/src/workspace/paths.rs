//! From what a model wrote to the file that is meant (spec 40 §5.1).

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Hops of a chain of symbolic links that are followed.
const MAX_LINKS: usize = 20;

/// A path that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("the path contains a NUL character")]
    Nul,
    #[error("`~{0}` is no user of this machine")]
    UnknownUser(String),
    #[error("`~` cannot be expanded: the home directory is not known")]
    NoHome,
    #[error("too many levels of symbolic links: {}", .0.display())]
    TooManyLinks(PathBuf),
}

/// Where a written path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Absolute, but with links and `..` as they were written: what the policy judges, since it follows
    /// links hop by hop itself.
    pub written: PathBuf,
    /// Absolute, with symbolic links resolved as far as the path exists.
    pub path: PathBuf,
    /// It was written as a relative path and leads out of the workspace.
    pub strayed: bool,
}

/// Expands `~` and `~user`, and joins a relative path to `cwd`. Touches no file but the user database.
pub(super) fn absolute(written: &str, cwd: &Path, user_home: Option<&Path>) -> Result<PathBuf, PathError> {
    if written.contains('\0') {
        return Err(PathError::Nul);
    }
    if written.trim().is_empty() {
        return Err(PathError::Empty);
    }
    let Some(tail) = written.strip_prefix('~') else { return Ok(cwd.join(written)) };
    let (user, rest) = tail.split_once('/').unwrap_or((tail, ""));
    let home = if user.is_empty() {
        user_home.map(Path::to_owned).ok_or(PathError::NoHome)?
    } else if user.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')) {
        let known = nix::unistd::User::from_name(user).ok().flatten();
        known.ok_or_else(|| PathError::UnknownUser(user.to_owned()))?.dir
    } else {
        // No user name, so a file whose name begins with a tilde.
        return Ok(cwd.join(written));
    };
    Ok(if rest.is_empty() { home } else { home.join(rest) })
}

/// Resolves symbolic links and `..` as the operating system would, also where the last parts of the path
/// do not exist yet. A dangling link leads to where it points.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, PathError> {
    let mut current = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::canonicalize(&current) {
            Ok(real) => return Ok(real),
            Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => break,
            Err(_) => {}
        }
        let (base, missing) = deepest_existing(&current);
        // A dangling link exists as a name, so it is the deepest existing part, or the first missing one.
        let Some((first, rest)) = missing.split_first() else { return Ok(base) };
        let entry = base.join(first);
        match std::fs::read_link(&entry) {
            Ok(target) => {
                current = base.join(target);
                current.extend(rest);
            }
            Err(_) => return Ok(lexical(base, &missing)),
        }
    }
    Err(PathError::TooManyLinks(path.to_owned()))
}

/// The longest leading part that exists, resolved, and what comes behind it.
fn deepest_existing(path: &Path) -> (PathBuf, Vec<OsString>) {
    let mut parts: Vec<OsString> = Vec::new();
    let mut components: Vec<Component<'_>> = path.components().collect();
    while let Some(last) = components.pop() {
        let parent: PathBuf = components.iter().collect();
        parts.insert(0, last.as_os_str().to_owned());
        if let Ok(real) = std::fs::canonicalize(&parent) {
            return (real, parts);
        }
    }
    (PathBuf::from("/"), parts)
}

/// What does not exist can have no links: `..` simply goes up.
fn lexical(mut base: PathBuf, missing: &[OsString]) -> PathBuf {
    for part in missing {
        match part.to_str() {
            Some("..") => {
                base.pop();
            }
            Some(".") => {}
            _ => base.push(part),
        }
    }
    base
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn tilde_and_relative_paths_become_absolute() {
        let cwd = Path::new("/work");
        let home = Some(Path::new("/home/u"));
        for (written, want) in [
            ("a/b", "/work/a/b"),
            ("/a", "/a"),
            ("~", "/home/u"),
            ("~/x y", "/home/u/x y"),
            ("~root/x", "/root/x"),
            ("~ö/x", "/work/~ö/x"),
            ("文/(1).txt", "/work/文/(1).txt"),
        ] {
            assert_eq!(absolute(written, cwd, home), Ok(PathBuf::from(want)), "{written}");
        }
        assert_eq!(absolute("a\0b", cwd, home), Err(PathError::Nul));
        assert_eq!(absolute(" ", cwd, home), Err(PathError::Empty));
        assert_eq!(absolute("~/x", cwd, None), Err(PathError::NoHome));
        assert_eq!(
            absolute("~no-such-user-here/x", cwd, home),
            Err(PathError::UnknownUser("no-such-user-here".to_owned())),
        );
    }

    #[test]
    fn links_are_followed_also_where_they_dangle() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("real/later.txt", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for (given, want) in [
            ("link/new/file", "real/new/file"),
            ("link/../x", "x"),
            ("dangling", "real/later.txt"),
            ("missing/../other", "other"),
            ("real/./a", "real/a"),
        ] {
            assert_eq!(real_path(&root.join(given)), Ok(root.join(want)), "{given}");
        }
        assert!(matches!(real_path(&root.join("loop")), Err(PathError::TooManyLinks(_))));
    }
}

//! Follows a path link by link, as the operating system would, and remembers every stop.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Links that are followed; chains of people are short.
const MAX_LINKS: usize = 20;

/// Where a path led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trail {
    /// The path as written and as it stood after each link, normalised.
    pub(super) stops: Vec<PathBuf>,
    /// Without links and dots; parts that do not exist are kept as written.
    pub(super) target: PathBuf,
    /// A link led to something without a path: a pipe, a socket, an anonymous file.
    pub(super) nameless: bool,
}

impl Trail {
    /// All stops, the last one included.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        self.stops.iter().map(PathBuf::as_path).chain([self.target.as_path()])
    }
}

/// Why a path cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrailError {
    Relative,
    TooManyLinks,
}

/// Follows `path`. Parts that cannot be looked at are taken as they are written: the operating system will
/// refuse them itself.
pub(super) fn follow(path: &Path) -> Result<Trail, TrailError> {
    if !path.is_absolute() {
        return Err(TrailError::Relative);
    }
    let mut stops = vec![normal(path)];
    let mut current = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = VecDeque::new();
    push_front(&mut rest, path);
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            current.pop();
            continue;
        }
        let next = current.join(&part);
        let is_link = fs::symlink_metadata(&next).is_ok_and(|meta| meta.file_type().is_symlink());
        let Some(to) = is_link.then(|| fs::read_link(&next).ok()).flatten() else {
            current = next;
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(TrailError::TooManyLinks);
        }
        // `/proc/<pid>/fd/<n>` names what has no path like this: `pipe:[4711]`.
        if to.is_relative() && is_descriptor(&next) {
            return Ok(Trail { stops, target: next, nameless: true });
        }
        if to.is_absolute() {
            current = PathBuf::from("/");
        }
        push_front(&mut rest, &to);
        let mut stop = current.clone();
        stop.extend(&rest);
        stops.push(normal(&stop));
    }
    Ok(Trail { stops, target: current, nameless: false })
}

/// Puts the parts of `path` before those that are still to come.
fn push_front(rest: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(part) => rest.push_front(part.to_owned()),
            Component::ParentDir => rest.push_front("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/proc") && path.parent().and_then(Path::file_name).is_some_and(|name| name == "fd")
}

/// Removes dots without looking at the disk.
fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(part) => result.push(part),
            Component::ParentDir => {
                result.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_stop_of_a_chain_is_remembered() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "").unwrap();
        symlink("real", root.join("folder")).unwrap();
        symlink(root.join("folder/file"), root.join("a")).unwrap();
        symlink("./x/../a", root.join("b")).unwrap();
        fs::create_dir(root.join("x")).unwrap();
        let trail = follow(&root.join("x/../b")).unwrap();
        assert_eq!(trail.target, root.join("real/file"));
        assert_eq!(
            trail.stops,
            [root.join("b"), root.join("a"), root.join("folder/file"), root.join("real/file")]
        );
    }

    #[test]
    fn what_does_not_exist_is_kept_and_a_dangling_link_leads_to_its_target() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        symlink(root.join("no/such"), root.join("dangling")).unwrap();
        assert_eq!(follow(&root.join("new/file")).unwrap().target, root.join("new/file"));
        assert_eq!(follow(&root.join("new/../file")).unwrap().target, root.join("file"));
        assert_eq!(follow(&root.join("dangling/file")).unwrap().target, root.join("no/such/file"));
    }

    #[test]
    fn loops_and_relative_paths_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        symlink(temp.path().join("b"), temp.path().join("a")).unwrap();
        symlink(temp.path().join("a"), temp.path().join("b")).unwrap();
        assert_eq!(follow(&temp.path().join("a")), Err(TrailError::TooManyLinks));
        assert_eq!(follow(Path::new("a/b")), Err(TrailError::Relative));
    }
}

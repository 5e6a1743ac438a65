//! Comparing paths where the file system may ignore case.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The part of `path` below `base`, when it is `base` or lies below it. Names that differ in case alone are the
/// same where the disk says so.
pub(super) fn below(path: &Path, base: &Path) -> Option<PathBuf> {
    if let Ok(rest) = path.strip_prefix(base) {
        return Some(rest.to_owned());
    }
    let mut parts = path.components();
    for wanted in base.components() {
        let part = parts.next()?;
        if !part.as_os_str().eq_ignore_ascii_case(wanted.as_os_str()) {
            return None;
        }
    }
    ignores_case(path).then(|| parts.as_path().to_owned())
}

/// Whether `path`'s own `name` is the wanted one, by the rules of its disk.
pub(super) fn is_named(path: &Path, name: &OsStr, wanted: &str) -> bool {
    name == wanted || (name.eq_ignore_ascii_case(wanted) && ignores_case(path))
}

/// Whether the disk under `path` takes names that differ in case alone for the same: asked of its nearest existing
/// part whose name has letters.
fn ignores_case(path: &Path) -> bool {
    let existing = path.ancestors().filter_map(|part| {
        let name = part.file_name()?.to_str()?;
        let swapped: String = name.chars().map(swap_case).collect();
        let meta = fs::symlink_metadata(part).ok()?;
        (swapped != name).then(|| (part.with_file_name(swapped), meta))
    });
    existing.take(1).any(|(swapped, meta)| {
        fs::symlink_metadata(swapped)
            .is_ok_and(|other| (other.dev(), other.ino()) == (meta.dev(), meta.ino()))
    })
}

fn swap_case(c: char) -> char {
    if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_below_a_base_is_given() {
        let below = |path: &str, base: &str| below(Path::new(path), Path::new(base));
        assert_eq!(below("/a/b/c", "/a/b"), Some(PathBuf::from("c")));
        assert_eq!(below("/a/b", "/a/b"), Some(PathBuf::new()));
        assert_eq!(below("/a/bc", "/a/b"), None);
        assert_eq!(below("/a", "/a/b"), None);
    }

    #[test]
    fn case_counts_where_the_disk_says_so() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("Folder");
        fs::create_dir(&dir).unwrap();
        let other = temp.path().join("fOLDER");
        let folds = other.exists();
        assert_eq!(below(&other.join("x"), &dir).is_some(), folds);
        assert_eq!(ignores_case(&dir.join("new")), folds);
    }
}

//! Replaces a file's content in one step: readers see the old or the new content, never a part.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Mode of a new file, before the process's umask.
const NEW_FILE_MODE: u32 = 0o666;

/// Mode bits that a file keeps.
const KEPT_MODE: u32 = 0o7777;

/// Writes `bytes` to `path`, which has no symbolic links left in it. Gives whether directories were
/// made, and the state of the new file.
///
/// A temporary file in the same directory is written, synced and renamed over the old one; on failure
/// it is removed and the old file is as it was. Mode and, where allowed, owner of the old file are kept.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<(bool, Metadata)> {
    let directory = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let dirs_created = !directory.is_dir();
    if dirs_created {
        fs::create_dir_all(directory)?;
    }
    let old = match fs::metadata(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut temporary = tempfile::Builder::new()
        .prefix(".hermes-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(NEW_FILE_MODE))
        .tempfile_in(directory)?;
    temporary.write_all(bytes)?;
    if let Some(old) = &old {
        keep_owner_and_mode(temporary.as_file(), old)?;
    }
    temporary.as_file().sync_all()?;
    let file = temporary.persist(path).map_err(|error| error.error)?;
    Ok((dirs_created, file.metadata()?))
}

/// A name in the folder of `path` that nothing has.
pub(crate) fn unused_name_beside(path: &Path) -> io::Result<PathBuf> {
    let directory = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let taken = tempfile::Builder::new().prefix(".hermes-").suffix(".tmp").tempfile_in(directory)?;
    // A file may be renamed over this one, so the name is taken until then.
    let (_, path) = taken.keep().map_err(|error| error.error)?;
    Ok(path)
}

fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may give files away; a group that we are in is kept where possible.
        let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
    }
    // After the owner, since a change of owner clears the set-id bits.
    file.set_permissions(Permissions::from_mode(old.mode() & KEPT_MODE))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_gets_its_directories_and_a_usual_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.txt");
        let (dirs_created, metadata) = replace(&path, b"x").unwrap();
        assert!(dirs_created);
        assert_eq!(metadata.len(), 1);
        assert_eq!(metadata.mode() & 0o600, 0o600);
        assert_eq!(names(path.parent().unwrap()), ["c.txt"]);
        assert!(!replace(&path, b"y").unwrap().0);
    }

    #[test]
    fn the_mode_of_the_old_file_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
        let (_, metadata) = replace(&path, b"new").unwrap();
        assert_eq!(metadata.mode() & KEPT_MODE, 0o751);
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        // A directory in the file's place cannot be renamed over.
        fs::create_dir(dir.path().join("taken")).unwrap();
        assert!(replace(&dir.path().join("taken"), b"x").is_err());
        assert_eq!(names(dir.path()), ["taken"]);
    }
}

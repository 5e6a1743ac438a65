//! Files and folders that only their owner may read (spec 70 §1): created 0600 and 0700, replaced whole.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Mode of a new private file.
const FILE_MODE: u32 = 0o600;
/// Mode of a new private folder.
const DIR_MODE: u32 = 0o700;
/// How many links are followed to the file that is really written.
const MAX_LINKS: usize = 16;

/// Replaces the file at `path` by `bytes`: a crash leaves either the old or the new content, never a mixture.
///
/// A new file gets mode 0600, an existing one keeps its mode. A symbolic link stays, and its target is written.
///
/// # Errors
/// Those of the file system; the temporary file is removed then.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = follow_links(path)?;
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mode = match fs::metadata(&target) {
        Ok(found) if found.is_file() => found.permissions().mode() & 0o7777,
        Ok(_) => return Err(io::Error::other("not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => FILE_MODE,
        Err(error) => return Err(error),
    };
    let mut temporary = tempfile::Builder::new().prefix(".hermes-").suffix(".tmp").tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|failed| failed.error)?;
    // The rename itself is durable only when the folder is; some file systems cannot sync one.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Creates `path` and what is missing above it with mode 0700. A folder that exists keeps its mode.
///
/// # Errors
/// Those of the file system, also when something that is no folder stands in the way.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// The file that a write to `path` reaches, also when the last link points at nothing yet.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut current = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&current) {
            Ok(next) => current = current.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(current),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_private_and_an_old_one_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets");
        write_private(&path, b"one").unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o640));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn a_link_stays_and_its_target_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::os::unix::fs::symlink("target", &link).unwrap();
        write_private(&link, b"x").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"x");
    }

    #[test]
    fn a_folder_in_the_way_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_private(folder.path(), b"x").is_err());
    }

    #[test]
    fn new_folders_are_private_all_the_way_down() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        create_private_dir(&deep).unwrap();
        assert_eq!((mode(&deep), mode(&folder.path().join("a"))), (0o700, 0o700));
        create_private_dir(&deep).unwrap();
    }
}

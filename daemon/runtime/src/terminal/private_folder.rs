//! The backend's private folder: snapshots and full logs, readable by the owner only, gone at the end.
//!
//! A killed daemon cannot clean up after itself, so the next one does: a folder whose lock nobody holds is
//! left over.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const PREFIX: &str = "hermes-shell-";
const LOCK: &str = "lock";

/// A folder with mode 0700 that is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct PrivateFolder {
    folder: tempfile::TempDir,
    /// Held as long as the folder lives; the system lets go of it whatever ends the daemon.
    _lock: File,
}

impl PrivateFolder {
    /// Makes a new folder in `temp_dir` and removes those that a killed daemon of the same user left there.
    pub(super) fn create(temp_dir: &Path) -> io::Result<Self> {
        sweep(temp_dir);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(temp_dir)?;
        // Locked before it gets its name, so that no sweep ever sees it unlocked.
        let unnamed = folder.path().join("lock.new");
        let lock = File::create(&unnamed)?;
        lock.try_lock()?;
        fs::rename(&unnamed, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Makes a folder inside, with mode 0700.
    pub(super) fn subfolder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::create_dir(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        Ok(path)
    }
}

/// Removes left-over folders. What cannot be removed stays: this is housekeeping.
fn sweep(temp_dir: &Path) {
    let Ok(entries) = fs::read_dir(temp_dir) else { return };
    let own = nix::unistd::geteuid().as_raw();
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let ours = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == own);
        let abandoned = || File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if ours && abandoned() && fs::remove_dir_all(&path).is_ok() {
            tracing::debug!(folder = %path.display(), "removed a left-over shell folder");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_private_and_goes_with_its_value() {
        let temp = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::create(temp.path()).unwrap();
        let session = folder.subfolder("s1").unwrap();
        for path in [folder.folder.path(), &session] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        drop(folder);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_folders_without_a_living_owner_are_swept() {
        let temp = tempfile::tempdir().unwrap();
        let living = PrivateFolder::create(temp.path()).unwrap();
        let abandoned = temp.path().join("hermes-shell-old");
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        let stranger = temp.path().join("hermes-shell-without-lock");
        fs::create_dir(&stranger).unwrap();
        let second = PrivateFolder::create(temp.path()).unwrap();
        assert!(!abandoned.exists());
        assert!(living.folder.path().exists() && second.folder.path().exists() && stranger.exists());
    }
}

//! One daemon per profile: `gateway.lock` is held for life, `gateway.pid` says by whom.
//!
//! The lock is the original's (an exclusive `flock` on the same file), so that the original's gateway
//! and this daemon exclude each other. The kernel drops it with the process, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermes_server::HoldsProfileLock;

use crate::private_file;
use crate::process::ProcessRecord;

/// How often the lock's file may vanish under us before we give up.
const ATTEMPTS: u32 = 5;

/// The profile is ours while this lives.
#[derive(Debug)]
pub(crate) struct ProfileLock {
    file: File,
    pid_path: PathBuf,
}

impl HoldsProfileLock for ProfileLock {}

/// Why the profile could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LockError {
    #[error("{} is served by another process already, {}", home.display(), holder(*pid))]
    Held { home: PathBuf, pid: Option<u32> },
    #[error("cannot take the lock {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "which has not said its pid yet".into(), |pid| format!("pid {pid}"))
}

impl ProfileLock {
    /// Takes the lock of the profile and writes who holds it. Never waits.
    pub(crate) fn take(lock_path: &Path, pid_path: &Path, record: &ProcessRecord) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: lock_path.to_path_buf(), source };
        let Some(mut file) = lock(lock_path).map_err(failed)? else {
            return Err(LockError::Held {
                home: lock_path.parent().unwrap_or(lock_path).to_path_buf(),
                pid: holding_pid(lock_path, pid_path),
            });
        };
        // The lock's own file names the holder from the first moment on.
        let json = record.to_json();
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&json)).map_err(failed)?;
        private_file::replace(pid_path, &json)
            .map_err(|source| LockError::Io { path: pid_path.to_path_buf(), source })?;
        Ok(Self { file, pid_path: pid_path.to_path_buf() })
    }

    /// Ends the hold cleanly: nobody takes a pid file for a crash.
    pub(crate) fn release(self) {
        let _ = std::fs::remove_file(&self.pid_path);
        let _ = self.file.set_len(0);
    }
}

/// The locked file, or `None` when another process holds it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The original removes the file of an ended gateway; a lock on a removed file excludes nobody.
        let ours = file.metadata()?;
        match std::fs::metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (ours.dev(), ours.ino()) => return Ok(Some(file)),
            _ => {}
        }
    }
    Err(io::Error::other("the file is replaced again and again"))
}

fn holding_pid(lock_path: &Path, pid_path: &Path) -> Option<u32> {
    [lock_path, pid_path]
        .iter()
        .find_map(|path| ProcessRecord::parse(&std::fs::read_to_string(path).ok()?))
        .map(|record| record.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn take(&self) -> Result<ProfileLock, LockError> {
            let record = ProcessRecord::current(self.0.path(), vec!["hermesd".into()]);
            ProfileLock::take(&self.path("gateway.lock"), &self.path("gateway.pid"), &record)
        }
    }

    #[test]
    fn the_second_daemon_learns_at_once_who_holds_the_lock() {
        let home = Home::new();
        let _held = home.take().unwrap();
        let error = home.take().unwrap_err();
        let pid = std::process::id();
        assert!(matches!(error, LockError::Held { pid: Some(held), .. } if held == pid), "{error:?}");
        assert!(error.to_string().ends_with(&format!("pid {pid}")), "{error}");
    }

    #[test]
    fn a_released_profile_can_be_taken_again_and_leaves_no_pid() {
        let home = Home::new();
        home.take().unwrap().release();
        assert!(!home.path("gateway.pid").exists());
        assert_eq!(std::fs::read_to_string(home.path("gateway.lock")).unwrap(), "");
        home.take().unwrap();
    }

    #[test]
    fn the_pid_file_names_process_start_and_home() {
        let home = Home::new();
        let _held = home.take().unwrap();
        let text = std::fs::read_to_string(home.path("gateway.pid")).unwrap();
        let record = ProcessRecord::parse(&text).unwrap();
        assert_eq!(record, ProcessRecord::current(home.0.path(), vec!["hermesd".into()]));
    }

    #[test]
    fn a_lock_that_was_left_by_a_crash_is_free() {
        let home = Home::new();
        drop(home.take().unwrap());
        assert!(home.path("gateway.pid").exists(), "a crash leaves the pid file");
        home.take().unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_with_its_path() {
        let home = Home::new();
        let record = ProcessRecord::current(home.0.path(), Vec::new());
        let error = ProfileLock::take(&home.path("no/gateway.lock"), &home.path("gateway.pid"), &record);
        assert!(error.unwrap_err().to_string().contains("no/gateway.lock"));
    }
}

//! Binding the profile's socket: a private folder, a private socket, and a left-over socket replaced
//! only by the process that holds the profile's lock.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_config::{SocketFolderError, prepare_socket_folder};
use tokio::net::{UnixListener, UnixStream};

/// Longest wait for an answer on a left-over socket.
const PROBE: Duration = Duration::from_millis(200);

/// Proof that this process holds the profile's lock. Whoever holds it may replace a socket that an
/// ended daemon left behind; nobody else may.
pub trait HoldsProfileLock {}

/// Why the socket could not be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    #[error(transparent)]
    Folder(#[from] SocketFolderError),
    #[error("{} is in the way: it is no socket", path.display())]
    NotASocket { path: PathBuf },
    #[error("a process without the profile's lock answers at {}", path.display())]
    Answered { path: PathBuf },
    #[error("cannot bind {}", path.display())]
    Bind { path: PathBuf, source: io::Error },
}

impl BindError {
    /// What the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Folder(error) => error.hint(),
            Self::Bind { .. } => {
                "check that the folder is on a local disk, is yours, and has free space".into()
            }
            Self::NotASocket { .. } => "move that file away and start again".into(),
            Self::Answered { .. } => "end that process and start again".into(),
        }
    }
}

/// Binds `path` in a folder of mode 0700; the socket has mode 0600.
///
/// Must run inside a tokio runtime with I/O. Not cancel-safe: cancelled between its steps it may
/// leave a socket behind, which the next call replaces.
pub async fn bind(path: &Path, _lock: &impl HoldsProfileLock) -> Result<UnixListener, BindError> {
    let failed = |source| BindError::Bind { path: path.into(), source };
    prepare_socket_folder(path, nix::unistd::geteuid().as_raw())?;
    if let Some(folder) = path.parent() {
        set_mode(folder, 0o700).map_err(failed)?;
    }
    remove_left_over(path).await?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    set_mode(path, 0o600).map_err(failed)?;
    Ok(listener)
}

async fn remove_left_over(path: &Path) -> Result<(), BindError> {
    let failed = |source| BindError::Bind { path: path.into(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(BindError::NotASocket { path: path.into() });
        }
        Ok(_) => {}
    }
    // The lock says that no daemon serves this profile; a process that answers all the same must not
    // lose its socket silently.
    if let Ok(Ok(_)) = tokio::time::timeout(PROBE, UnixStream::connect(path)).await {
        return Err(BindError::Answered { path: path.into() });
    }
    std::fs::remove_file(path).map_err(failed)
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    struct Lock;
    impl HoldsProfileLock for Lock {}

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[tokio::test]
    async fn the_socket_and_its_folder_are_closed_to_others() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/hermesd.sock");
        let _listener = bind(&path, &Lock).await.unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
    }

    #[tokio::test]
    async fn an_open_folder_of_ours_is_closed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run");
        std::fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o755).unwrap();
        let _listener = bind(&folder.join("hermesd.sock"), &Lock).await.unwrap();
        assert_eq!(mode(&folder), 0o700);
    }

    #[tokio::test]
    async fn a_socket_left_by_an_ended_daemon_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/hermesd.sock");
        drop(bind(&path, &Lock).await.unwrap());
        assert!(path.exists(), "dropping a listener leaves its socket");
        let _listener = bind(&path, &Lock).await.unwrap();
        UnixStream::connect(&path).await.unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_answers_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/hermesd.sock");
        let _first = bind(&path, &Lock).await.unwrap();
        assert!(matches!(bind(&path, &Lock).await, Err(BindError::Answered { .. })));
        assert!(path.exists());
    }

    #[tokio::test]
    async fn a_file_in_the_sockets_place_is_not_removed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/hermesd.sock");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert!(matches!(bind(&path, &Lock).await, Err(BindError::NotASocket { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[tokio::test]
    async fn a_link_in_the_folders_place_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = home.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, home.path().join("run")).unwrap();
        let bound = bind(&home.path().join("run/hermesd.sock"), &Lock).await;
        assert!(matches!(bound, Err(BindError::Folder(_))), "{bound:?}");
    }
}

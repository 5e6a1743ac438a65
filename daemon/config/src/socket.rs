//! Where the daemon's socket is (contract §10), and the folder for it outside the home.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::private_file::create_private_dir;

/// Longest socket path that is used as it is. The kernel's limit is 108 bytes on Linux and 104 on macOS, with the
/// closing NUL.
pub(crate) const MAX_SOCKET_PATH_BYTES: usize = 100;
/// Hex digits of the home's hash in a socket's name.
const HASH_CHARS: usize = 16;

/// What of the caller's surroundings decides where a long path's socket goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketEnv {
    /// `XDG_RUNTIME_DIR`, when set.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// The machine's temp directory, used when the former is missing or no folder.
    pub temp_dir: PathBuf,
    /// The user that runs the daemon.
    pub uid: u32,
}

/// Picks the socket of the profile in `dir`, whose usual socket is `usual`.
pub(crate) fn path(dir: &Path, usual: &Path, env: &SocketEnv) -> PathBuf {
    if usual.as_os_str().len() <= MAX_SOCKET_PATH_BYTES {
        return usual.to_owned();
    }
    let hash = blake3::hash(dir.as_os_str().as_bytes()).to_hex();
    let name: String = hash.chars().take(HASH_CHARS).chain(".sock".chars()).collect();
    let in_folder = |base: &Path| base.join(format!("hermes-{}", env.uid)).join(&name);
    match &env.xdg_runtime_dir {
        Some(base) if base.is_absolute() && base.is_dir() => {
            let path = in_folder(base);
            if path.as_os_str().len() <= MAX_SOCKET_PATH_BYTES { path } else { in_folder(&env.temp_dir) }
        }
        _ => in_folder(&env.temp_dir),
    }
}

/// A folder that must not hold the daemon's socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketFolderError {
    /// The folder could be neither created nor looked at.
    #[error("cannot use the socket folder {}", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// Somebody else owns it, it is a link or no folder, or others may enter it.
    #[error("the socket folder {} {reason}", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it, as the end of a sentence.
        reason: &'static str,
    },
}

impl SocketFolderError {
    /// What the user can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::Unusable { path, .. } => {
                format!("check the permissions of {}, or set XDG_RUNTIME_DIR", path.display())
            }
            Self::Unsafe { path, .. } => {
                format!("remove {} (it may be somebody's trap), or set XDG_RUNTIME_DIR", path.display())
            }
        }
    }
}

/// Creates the folder of `socket` with mode 0700 and makes sure that it is a folder which only the user `uid`
/// may enter: the temp directory is everybody's, and a folder planted there would hand the socket to its owner.
/// A socket inside the home (`run/`) lies in a folder of the user's own, whose mode is kept.
///
/// # Errors
/// When the folder cannot be made, or is not safe.
pub fn prepare_socket_folder(socket: &Path, uid: u32) -> Result<(), SocketFolderError> {
    let folder = socket.parent().unwrap_or(Path::new("/"));
    let unusable = |source| SocketFolderError::Unusable { path: folder.to_owned(), source };
    create_private_dir(folder).map_err(unusable)?;
    let found = fs::symlink_metadata(folder).map_err(unusable)?;
    let shared = folder.file_name().is_some_and(|name| name.as_bytes().starts_with(b"hermes-"));
    let reason = if !found.is_dir() {
        "is a link or no folder"
    } else if found.uid() != uid {
        "belongs to another user"
    } else if shared && found.mode() & 0o077 != 0 {
        "can be entered by others"
    } else {
        return Ok(());
    };
    Err(SocketFolderError::Unsafe { path: folder.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn env(runtime: Option<&Path>, temp: &Path) -> SocketEnv {
        SocketEnv { xdg_runtime_dir: runtime.map(Path::to_owned), temp_dir: temp.to_owned(), uid: 7 }
    }

    #[test]
    fn a_short_path_is_used_as_it_is_and_a_long_one_is_hashed() {
        let base = tempfile::tempdir().unwrap();
        let dir = Path::new("/home/u/.hermes");
        let usual = dir.join("run/hermesd.sock");
        assert_eq!(path(dir, &usual, &env(None, base.path())), usual);

        let long = PathBuf::from(format!("/{}", "d".repeat(120)));
        let picked = path(&long, &long.join("run/hermesd.sock"), &env(Some(base.path()), Path::new("/tmp")));
        assert_eq!(picked.parent().unwrap(), base.path().join("hermes-7"));
        assert!(picked.as_os_str().len() <= MAX_SOCKET_PATH_BYTES);
        let other = PathBuf::from(format!("/{}", "e".repeat(120)));
        let of_other =
            path(&other, &other.join("run/hermesd.sock"), &env(Some(base.path()), Path::new("/tmp")));
        assert_ne!(picked, of_other, "two homes never share a socket");
    }

    #[test]
    fn the_limit_is_exactly_a_hundred_bytes() {
        let usual = PathBuf::from(format!("/{}", "d".repeat(99)));
        assert_eq!(path(Path::new("/d"), &usual, &env(None, Path::new("/tmp"))), usual);
        let longer = PathBuf::from(format!("/{}", "d".repeat(100)));
        assert_ne!(path(Path::new("/d"), &longer, &env(None, Path::new("/tmp"))), longer);
    }

    #[test]
    fn a_runtime_folder_that_is_missing_or_too_long_gives_way_to_the_temp_folder() {
        let long = PathBuf::from(format!("/{}", "d".repeat(120)));
        let usual = long.join("run/hermesd.sock");
        for runtime in ["/nowhere/at/all", "relative"] {
            let picked = path(&long, &usual, &env(Some(Path::new(runtime)), Path::new("/tmp")));
            assert!(picked.starts_with("/tmp/hermes-7"), "{picked:?}");
        }
    }

    #[test]
    fn a_planted_folder_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let uid = fs::metadata(base.path()).unwrap().uid();
        let socket = base.path().join("hermes-7/x.sock");
        prepare_socket_folder(&socket, uid).unwrap();
        prepare_socket_folder(&socket, uid).unwrap();

        assert!(matches!(
            prepare_socket_folder(&socket, uid + 1),
            Err(SocketFolderError::Unsafe { reason: "belongs to another user", .. })
        ));
        fs::set_permissions(socket.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(prepare_socket_folder(&socket, uid), Err(SocketFolderError::Unsafe { .. })));

        std::os::unix::fs::symlink(base.path(), base.path().join("hermes-8")).unwrap();
        let linked = prepare_socket_folder(&base.path().join("hermes-8/x.sock"), uid);
        assert!(matches!(linked, Err(SocketFolderError::Unsafe { reason: "is a link or no folder", .. })));
    }
}

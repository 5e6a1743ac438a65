//! How a file stands on disk: looked at without following a link, waiting for a pipe or trusting a size.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::libc;
use serde::{Deserialize, Serialize};

/// Mode bits that a file keeps.
const KEPT_MODE: u32 = 0o7777;

/// A file's content by its BLAKE3 hash, as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Hash(String);

impl Hash {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    pub(super) fn finish(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize().to_hex().to_string())
    }

    /// Reads what stands in an index or in a file name: nothing else may become a path.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let legal = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        legal.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// How a path stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// Nothing is there.
    Absent,
    File {
        hash: Hash,
        len: u64,
        mode: u32,
    },
    /// A file above the limit: known by its size, its time and its number, not by its content.
    Large {
        len: u64,
        mode: u32,
        mtime: (i64, i64),
        inode: u64,
    },
    /// Something that is no regular file, or that cannot be read.
    Other,
}

impl State {
    /// Whether both are the same content, whatever their modes.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::File { hash: a, .. }, Self::File { hash: b, .. }) => a == b,
            (
                Self::Large { len: a, mtime: at, inode: i, .. },
                Self::Large { len: b, mtime: bt, inode: j, .. },
            ) => (a, at, i) == (b, bt, j),
            _ => false,
        }
    }

    /// The mode bits of a file.
    pub(super) fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Large { mode, .. } => Some(*mode),
            Self::Absent | Self::Other => None,
        }
    }
}

/// A look at a path, with the content of a file within the limit.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) state: State,
    pub(super) bytes: Vec<u8>,
}

impl Look {
    fn bare(state: State) -> Self {
        Self { state, bytes: Vec::new() }
    }
}

/// Looks at `path`, whose folders have no links left in them. Reads at most `limit` bytes.
pub(super) fn look(path: &Path, limit: u64, forbidden: &[(u64, u64)]) -> Look {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Look::bare(State::Absent);
        }
        Err(_) => return Look::bare(State::Other),
    };
    // Some files must not even be opened by this process (see `PathPolicy::never_opened`).
    if !meta.is_file() || forbidden.contains(&(meta.dev(), meta.ino())) {
        return Look::bare(State::Other);
    }
    if meta.len() > limit {
        return Look::bare(large(&meta));
    }
    read(path, limit).unwrap_or_else(|_| Look::bare(State::Other))
}

fn read(path: &Path, limit: u64) -> io::Result<Look> {
    let file = open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(Look::bare(State::Other));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(limit)).unwrap_or(0) + 1);
    // One byte more tells that the file has grown, or that its size was a lie.
    let read = file.take(limit + 1).read_to_end(&mut bytes)?;
    if read as u64 > limit {
        return Ok(Look::bare(large(&meta)));
    }
    let state = State::File { hash: Hash::of(&bytes), len: read as u64, mode: meta.mode() & KEPT_MODE };
    Ok(Look { state, bytes })
}

/// Opens a regular file for reading; a link or a pipe that has just taken its place is not waited for.
pub(super) fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// A large file as far as its metadata tells.
pub(super) fn large(meta: &Metadata) -> State {
    State::Large {
        len: meta.len(),
        mode: meta.mode() & KEPT_MODE,
        mtime: (meta.mtime(), meta.mtime_nsec()),
        inode: meta.ino(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_neither_followed_nor_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "x").unwrap();
        std::os::unix::fs::symlink(&target, dir.path().join("link")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for name in ["link", "pipe", "."] {
            assert_eq!(look(&dir.path().join(name), 10, &[]).state, State::Other, "{name}");
        }
        assert_eq!(look(&dir.path().join("none"), 10, &[]).state, State::Absent);
        assert_eq!(look(&target.join("below"), 10, &[]).state, State::Absent);
        let meta = fs::metadata(&target).unwrap();
        assert_eq!(look(&target, 10, &[(meta.dev(), meta.ino())]).state, State::Other);
    }

    #[test]
    fn a_file_above_the_limit_is_known_by_its_metadata() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "12345").unwrap();
        assert!(matches!(look(&path, 5, &[]).state, State::File { len: 5, .. }));
        let before = look(&path, 4, &[]).state;
        assert!(matches!(before, State::Large { len: 5, .. }));
        assert!(before.same_content(&look(&path, 4, &[]).state));
        fs::write(&path, "123456").unwrap();
        assert!(!before.same_content(&look(&path, 4, &[]).state));
    }

    #[test]
    fn only_a_hash_is_a_hash() {
        let hash = Hash::of(b"x");
        assert_eq!(Hash::parse(hash.as_str()), Some(hash));
        for bad in ["", "ab", "../../../../../../../../../../../../../../../../../../../../etc/passw"] {
            assert_eq!(Hash::parse(bad), None);
        }
    }
}

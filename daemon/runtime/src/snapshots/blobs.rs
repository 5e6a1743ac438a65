//! Contents by their hash: `blobs/ab/cdef…`, one file each, readable by the owner only.
//!
//! A content is pinned from before it is stored until an index that names it is on disk, so that a
//! collection that runs meanwhile does not take it away.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::look::{self, Hash};

/// The store of contents.
#[derive(Debug)]
pub(super) struct Blobs {
    root: PathBuf,
    // Short sections: a std lock.
    pins: Mutex<Pins>,
}

#[derive(Debug, Default)]
struct Pins {
    held: HashMap<Hash, u32>,
    /// While a collection runs, what was let go counts as held: the indexes may have been read before.
    collecting: bool,
    released: Vec<Hash>,
}

/// Keeps contents from being collected. Let go of it once an index names them.
#[derive(Debug)]
pub(super) struct Pin<'a> {
    blobs: &'a Blobs,
    hashes: Vec<Hash>,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let mut pins = self.blobs.lock();
        for hash in std::mem::take(&mut self.hashes) {
            if pins.collecting {
                pins.released.push(hash);
            } else {
                pins.release(&hash);
            }
        }
    }
}

impl Pins {
    fn release(&mut self, hash: &Hash) {
        if let Some(count) = self.held.get_mut(hash) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(hash);
            }
        }
    }
}

impl Blobs {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, pins: Mutex::default() }
    }

    /// A pin that holds nothing yet.
    pub(super) fn pin(&self) -> Pin<'_> {
        Pin { blobs: self, hashes: Vec::new() }
    }

    /// Stores a content, when it is not there already. Gives the bytes that this took.
    ///
    /// There is no sync to disk: a content is checked against its hash before it is used again, and a power
    /// cut can cost no more than the undo of the last moments.
    pub(super) fn put(&self, hash: &Hash, bytes: &[u8], pin: &mut Pin<'_>) -> io::Result<u64> {
        *self.lock().held.entry(hash.clone()).or_default() += 1;
        pin.hashes.push(hash.clone());
        let path = self.path(hash);
        if fs::metadata(&path).is_ok_and(|meta| meta.len() == bytes.len() as u64) {
            return Ok(0);
        }
        let folder = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        private_folder(folder)?;
        replace(folder, &path, bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Opens a content. Whoever reads it checks it against its hash.
    pub(super) fn open(&self, hash: &Hash) -> io::Result<File> {
        look::open(&self.path(hash))
    }

    /// A whole content, checked.
    pub(super) fn read(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut self.open(hash)?, &mut bytes)?;
        if Hash::of(&bytes) == *hash { Ok(bytes) } else { Err(damaged()) }
    }

    /// Removes every content that `named` does not name. `named` is asked after the collection has begun.
    /// Gives the bytes that are left.
    pub(super) fn collect(&self, named: impl FnOnce() -> BTreeSet<Hash>) -> u64 {
        self.lock().collecting = true;
        let named = named();
        let mut left = 0;
        for (path, hash, len) in self.all() {
            // Under the lock: whoever stores the same content now finds it gone, or keeps it here.
            let pins = self.lock();
            let wanted =
                hash.as_ref().is_some_and(|hash| named.contains(hash) || pins.held.contains_key(hash));
            if wanted || fs::remove_file(&path).is_err() {
                left += len;
            }
            drop(pins);
        }
        let mut pins = self.lock();
        pins.collecting = false;
        for hash in std::mem::take(&mut pins.released) {
            pins.release(&hash);
        }
        left
    }

    fn all(&self) -> impl Iterator<Item = (PathBuf, Option<Hash>, u64)> {
        let folders = fs::read_dir(&self.root).into_iter().flatten().flatten();
        folders.flat_map(|folder| {
            let head = folder.file_name();
            let files = fs::read_dir(folder.path()).into_iter().flatten().flatten();
            files.filter_map(move |file| {
                let len = file.metadata().ok()?.len();
                let name = format!("{}{}", head.to_str()?, file.file_name().to_str()?);
                Some((file.path(), Hash::parse(&name), len))
            })
        })
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        // A hash is 64 ASCII characters.
        let (head, tail) = hash.as_str().split_at_checked(2).unwrap_or_default();
        self.root.join(head).join(tail)
    }

    fn lock(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A content that is not what its name says.
pub(super) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kept content is damaged")
}

/// Makes a folder, and those above it, for the owner only.
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Replaces `path`, which stands in `folder`, so that a reader sees the old or the new content.
pub(super) fn replace(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(".new-")
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_content_is_stored_once_and_privately() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(dir.path().join("blobs"));
        let hash = Hash::of(b"content");
        let mut pin = blobs.pin();
        assert_eq!(blobs.put(&hash, b"content", &mut pin).unwrap(), 7);
        assert_eq!(blobs.put(&hash, b"content", &mut pin).unwrap(), 0);
        assert_eq!(blobs.read(&hash).unwrap(), b"content");
        assert_eq!(fs::metadata(blobs.path(&hash)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&blobs.root).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_damaged_content_is_an_error_not_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(dir.path().to_owned());
        let hash = Hash::of(b"content");
        blobs.put(&hash, b"content", &mut blobs.pin()).unwrap();
        fs::write(blobs.path(&hash), "garbage").unwrap();
        assert_eq!(blobs.read(&hash).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_collection_takes_what_nobody_names_or_pins() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(dir.path().to_owned());
        let mut pin = blobs.pin();
        for text in ["named", "pinned", "forgotten"] {
            let mut own = blobs.pin();
            let kept = if text == "pinned" { &mut pin } else { &mut own };
            blobs.put(&Hash::of(text.as_bytes()), text.as_bytes(), kept).unwrap();
        }
        let mut late = Some(blobs.pin());
        let left = blobs.collect(|| {
            // Stored and let go while the collection runs.
            let mut pin = late.take().unwrap();
            blobs.put(&Hash::of(b"late"), b"late", &mut pin).unwrap();
            drop(pin);
            BTreeSet::from([Hash::of(b"named")])
        });
        assert_eq!(left, 5 + 6 + 4);
        assert!(blobs.read(&Hash::of(b"forgotten")).is_err());
        drop(pin);
        assert_eq!(blobs.collect(|| BTreeSet::from([Hash::of(b"named")])), 5);
    }
}

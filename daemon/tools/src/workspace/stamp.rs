//! What tells two states of a file apart without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// Change time, size and inode of a file.
///
/// The inode is in it because an atomic rewrite within one tick of the clock may keep time and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: (i64, i64),
    size: u64,
    inode: u64,
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            size: metadata.size(),
            inode: metadata.ino(),
        }
    }
}

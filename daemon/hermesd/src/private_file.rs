//! Small runtime files: written whole, readable by their owner only.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Replaces `path` by `bytes` so that a reader sees the old file or the new one, never a part.
///
/// There is no sync to disk: after a power cut these files are stale anyway.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temp = path.with_file_name(name);
    let written = write_new(&temp, bytes).and_then(|()| std::fs::rename(&temp, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temp);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A left-over of a process that had our id and was killed in the middle.
    let _ = std::fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_replaced_file_is_whole_and_private() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("daemon.json");
        replace(&path, b"long first text").unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "no temp file stays");
    }
}

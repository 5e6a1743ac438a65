//! Reading a file that somebody else may have put there: bounded in size, and never waiting on a pipe or a device.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Largest file that is read whole. It is far above the most that can enter a prompt (500,000 characters).
const WHOLE_BYTES: u64 = 8 * 1024 * 1024;
/// Of a larger file, only its beginning and its end are read.
const HEAD_BYTES: u64 = 4 * 1024 * 1024;
const TAIL_BYTES: u64 = 1024 * 1024;

/// The text of a file, or its two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileText {
    /// The whole text, or its beginning when `tail` is there.
    pub(crate) head: String,
    /// The end of a file that is too large to be read whole.
    pub(crate) tail: Option<String>,
    /// The file's size.
    pub(crate) bytes: u64,
    /// Lines of the file in front of `head`.
    pub(crate) skipped_lines: usize,
}

impl FileText {
    pub(crate) fn whole(text: String) -> Self {
        Self { bytes: text.len() as u64, head: text, tail: None, skipped_lines: 0 }
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.head.trim().is_empty() && self.tail.is_none()
    }
}

/// What became of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadFile {
    Missing,
    /// Why it could not be read.
    Unreadable(String),
    Text(FileText),
}

/// Reads `path`: a regular file (or a link to one) of text. A leading byte-order mark is dropped; bytes that are
/// not UTF-8 become U+FFFD; a file with a NUL byte is not text.
pub(crate) fn read_bounded(path: &Path) -> ReadFile {
    match read_ends(path) {
        Ok(Some((head, tail, bytes))) => {
            if head.contains(&0) {
                return ReadFile::Unreadable("it is not a text file".to_owned());
            }
            let cut = tail.is_some();
            let head = decode(&head);
            let head = head.strip_prefix('\u{feff}').unwrap_or(&head);
            // A cut may have split a character; its half is no text.
            let head = if cut { head.trim_end_matches('\u{fffd}') } else { head };
            let tail = tail.map(|tail| decode(&tail).trim_start_matches('\u{fffd}').to_owned());
            ReadFile::Text(FileText { head: head.to_owned(), tail, bytes, skipped_lines: 0 })
        }
        Ok(None) => ReadFile::Unreadable("it is not a regular file".to_owned()),
        Err(error) if is_missing(&error) => ReadFile::Missing,
        Err(error) => ReadFile::Unreadable(error.to_string()),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn decode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

type Ends = (Vec<u8>, Option<Vec<u8>>, u64);

/// The bytes of a regular file, or of its two ends; `None` for anything that is no regular file.
fn read_ends(path: &Path) -> io::Result<Option<Ends>> {
    // Looked at before it is opened, since opening a device can have effects of its own.
    if !std::fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    // Should it have become a pipe meanwhile, the open does not wait for a writer.
    let mut file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(None);
    }
    let size = found.len();
    if size <= WHOLE_BYTES {
        // Files of `/proc` say that they are empty, and a file can grow: the bound is on what is read.
        let head = take(&mut file, WHOLE_BYTES)?;
        let bytes = head.len() as u64;
        return Ok(Some((head, None, bytes)));
    }
    let head = take(&mut file, HEAD_BYTES)?;
    file.seek(SeekFrom::Start(size - TAIL_BYTES))?;
    let tail = take(&mut file, TAIL_BYTES)?;
    Ok(Some((head, Some(tail), size)))
}

fn take(file: &mut File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn text(path: &Path) -> Option<String> {
        match read_bounded(path) {
            ReadFile::Text(text) => Some(text.head),
            ReadFile::Missing | ReadFile::Unreadable(_) => None,
        }
    }

    #[test]
    fn a_text_file_is_read_without_its_byte_order_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        std::fs::write(&path, "\u{feff}hello é").unwrap();
        assert_eq!(text(&path).unwrap(), "hello é");
        std::fs::write(&path, b"caf\xe9").unwrap();
        assert_eq!(text(&path).unwrap(), "caf\u{fffd}");
        symlink(&path, folder.path().join("link.md")).unwrap();
        assert_eq!(text(&folder.path().join("link.md")).unwrap(), "caf\u{fffd}");
    }

    #[test]
    fn what_is_no_regular_text_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("binary"), b"ab\0cd").unwrap();
        for name in ["pipe", "zero", "folder", "binary", "loop"] {
            assert!(matches!(read_bounded(&at(name)), ReadFile::Unreadable(_)), "{name}");
        }
        for name in ["dangling", "absent", "binary/below"] {
            assert_eq!(read_bounded(&at(name)), ReadFile::Missing, "{name}");
        }
    }

    #[test]
    fn of_a_huge_file_only_the_ends_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge.md");
        let file = File::create(&path).unwrap();
        file.set_len(2 * 1024 * 1024 * 1024).unwrap();
        // A sparse file is all NUL bytes, which is not text, and that is known without reading it all.
        assert!(matches!(read_bounded(&path), ReadFile::Unreadable(_)));

        let mut bytes = "é".repeat(6 * 1024 * 1024).into_bytes();
        bytes.insert(0, b'a');
        std::fs::write(&path, &bytes).unwrap();
        let ReadFile::Text(text) = read_bounded(&path) else { panic!("not read") };
        assert_eq!(text.bytes, bytes.len() as u64);
        assert!(text.head.len() as u64 <= HEAD_BYTES && text.head.ends_with('é'));
        let tail = text.tail.unwrap();
        assert!(tail.len() as u64 <= TAIL_BYTES && tail.chars().all(|c| c == 'é'));
    }
}

//! Reads a settings file as text, with a bound and with faults that name the line.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Largest settings file that is read, in bytes. A hand-written one has some kilobytes.
pub(crate) const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Whose file it is: a pipe or a device is refused where the user did not name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The user named the file outright; a pipe (`<(…)`) and `/dev/null` are fine.
    Named,
    /// It lies in a place that is looked at anyway; reading a pipe there could wait for ever.
    Found,
}

/// Why a file gave no text.
#[derive(Debug)]
pub(crate) enum ReadFault {
    Missing,
    Io(io::Error),
    /// The bytes are no text that we read: the line (from 1) and why.
    NotText {
        line: u32,
        reason: String,
    },
}

impl From<io::Error> for ReadFault {
    fn from(error: io::Error) -> Self {
        // `a/b/config.yaml` where `b` is a file is as absent as it can be.
        if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            Self::Missing
        } else {
            Self::Io(error)
        }
    }
}

/// Reads the file at `path`, without a byte order mark.
pub(crate) fn read_text(path: &Path, trust: Trust) -> Result<String, ReadFault> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(ReadFault::Io(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")));
    }
    if kind.is_socket() || (trust == Trust::Found && !kind.is_file()) {
        return Err(ReadFault::Io(io::Error::other("it is not a regular file")));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let reason = format!("it is larger than {} MiB", MAX_FILE_BYTES / 1024 / 1024);
        return Err(ReadFault::Io(io::Error::new(io::ErrorKind::FileTooLarge, reason)));
    }
    text(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, ReadFault> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let reason = "the file is UTF-16; save it as UTF-8".to_owned();
        return Err(ReadFault::NotText { line: 1, reason });
    }
    // The YAML scanner takes a NUL for the end of the file, and would silently drop the rest.
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let reason = "it holds a NUL byte, so it is no text file".to_owned();
        return Err(ReadFault::NotText { line: line_of(&bytes, at), reason });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let reason = "it is not UTF-8 text; save it as UTF-8".to_owned();
        ReadFault::NotText { line: line_of(error.as_bytes(), at), reason }
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

fn line_of(bytes: &[u8], at: usize) -> u32 {
    let newlines = bytes.iter().take(at).filter(|byte| **byte == b'\n').count();
    u32::try_from(newlines + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(bytes: &[u8]) -> (u32, String) {
        match text(bytes.to_vec()) {
            Err(ReadFault::NotText { line, reason }) => (line, reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        assert_eq!(fault(b"a: 1\nb: \xff\n").0, 2);
        assert_eq!(fault(b"a: 1\n\nb: \0\n").0, 3);
        assert!(fault(b"\xff\xfea\0").1.contains("UTF-16"));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(text("\u{feff}a: 1".into()).unwrap(), "a: 1");
    }

    #[test]
    fn what_cannot_be_a_settings_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(read_text(&folder.path().join("no"), Trust::Named), Err(ReadFault::Missing)));
        assert!(matches!(read_text(folder.path(), Trust::Named), Err(ReadFault::Io(_))));
        assert_eq!(read_text(Path::new("/dev/null"), Trust::Named).unwrap(), "");
        assert!(matches!(read_text(Path::new("/dev/null"), Trust::Found), Err(ReadFault::Io(_))));
        assert!(matches!(read_text(Path::new("/dev/zero"), Trust::Named), Err(ReadFault::Io(_))));
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(read_text(&pipe, Trust::Found), Err(ReadFault::Io(_))));
    }
}

//! The file that a background process writes to by itself, so that its output needs no living daemon.
//!
//! Every process appends; we only read, and take away what is too old: the pages before the last 64 MiB are given
//! back to the disk while the file keeps its length, so that neither side's positions change.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::terminal::ansi::AnsiStripper;
use crate::terminal::decode::Utf8Decoder;

/// A character has at most so many bytes, and colours and the like are seldom more than that.
const BYTES_PER_CHAR: u64 = 5;
/// Pages are given back in pieces of this alignment.
const PAGE: u64 = 4096;

/// The log of one process.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
}

/// How far one reader has come.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    pub(super) offset: u64,
    stripper: AnsiStripper,
    decoder: Utf8Decoder,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Piece {
    pub(super) text: String,
    /// Bytes before it that nobody will read any more.
    pub(super) skipped: u64,
}

impl Cursor {
    pub(super) fn at(offset: u64) -> Self {
        Self { offset, ..Self::default() }
    }
}

impl Log {
    /// A new log, readable by the owner only.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// The log of a process that an earlier daemon started.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).open(path)?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A handle for somebody who appends.
    pub(super) fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// How much was written so far. It shrinks only when the process itself empties the file (`> /dev/stdout`).
    pub(super) fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |meta| meta.len())
    }

    /// What came since the cursor, at most the last `max_chars` of it.
    pub(super) fn since(&self, cursor: &mut Cursor, max_chars: usize) -> io::Result<Piece> {
        let end = self.length();
        if end < cursor.offset {
            *cursor = Cursor::default();
        }
        let begin = cursor.offset.max(end.saturating_sub(max_chars as u64 * BYTES_PER_CHAR));
        let mut skipped = begin - cursor.offset;
        if skipped > 0 {
            *cursor = Cursor::at(begin);
        }
        let bytes = self.read(begin, end)?;
        cursor.offset = begin + bytes.len() as u64;
        let mut text = decoded(&mut cursor.stripper, &mut cursor.decoder, &bytes);
        skipped += cut_front(&mut text, max_chars);
        Ok(Piece { text, skipped })
    }

    /// The end of the output, at most `max_chars`, from the beginning of a line on when some was left out.
    pub(super) fn tail(&self, max_chars: usize) -> io::Result<Piece> {
        let mut cursor = Cursor::default();
        let mut piece = self.since(&mut cursor, max_chars)?;
        let mut text = std::mem::take(&mut piece.text);
        cursor.decoder.finish(&mut text);
        if piece.skipped > 0
            && let Some((cut, rest)) = text.split_once('\n')
            && !rest.is_empty()
        {
            piece.skipped += cut.len() as u64 + 1;
            text = rest.to_owned();
        }
        Ok(Piece { text, ..piece })
    }

    fn read(&self, begin: u64, end: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX)];
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = bytes.get_mut(filled..).unwrap_or_default();
            match self.file.read_at(rest, begin + filled as u64) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Gives back what stands before the last `keep` bytes, once an eighth more has come. `freed` is where the last such
    /// piece ended.
    pub(super) fn trim(&self, freed: &mut u64, keep: u64) {
        let length = self.length();
        if length < *freed {
            *freed = 0;
        }
        let until = length.saturating_sub(keep) / PAGE * PAGE;
        if until.saturating_sub(*freed) < keep / 8 {
            return;
        }
        if let Err(error) = give_back(&self.file, *freed, until) {
            // A file system without holes: begin anew. Appending goes on at the new end.
            tracing::debug!(%error, "log cannot be trimmed and is emptied");
            if let Err(error) = self.file.set_len(0) {
                tracing::warn!(path = %self.path.display(), %error, "log of a process grows without bound");
            }
            *freed = 0;
            return;
        }
        *freed = until;
    }
}

#[cfg(target_os = "linux")]
fn give_back(file: &File, begin: u64, end: u64) -> io::Result<()> {
    use nix::fcntl::{FallocateFlags, fallocate};
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let number = |value: u64| i64::try_from(value).map_err(io::Error::other);
    Ok(fallocate(file, flags, number(begin)?, number(end - begin)?)?)
}

#[cfg(not(target_os = "linux"))]
fn give_back(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn decoded(stripper: &mut AnsiStripper, decoder: &mut Utf8Decoder, bytes: &[u8]) -> String {
    let (mut visible, mut text) = (Vec::with_capacity(bytes.len()), String::new());
    stripper.strip(bytes, &mut visible);
    decoder.decode(&visible, &mut text);
    text
}

/// Takes characters away at the front until `max_chars` are left; says how many bytes that were.
pub(super) fn cut_front(text: &mut String, max_chars: usize) -> u64 {
    let Some(excess) = text.chars().count().checked_sub(max_chars) else { return 0 };
    let cut = text.char_indices().nth(excess).map_or(text.len(), |(at, _)| at);
    text.drain(..cut);
    cut as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::io::Write as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn log() -> (tempfile::TempDir, Log) {
        let temp = tempfile::tempdir().unwrap();
        let log = Log::create(&temp.path().join("x.log")).unwrap();
        (temp, log)
    }

    #[test]
    fn a_log_is_private_and_read_piece_by_piece_across_characters_and_escapes() {
        let (_temp, log) = log();
        assert_eq!(std::fs::metadata(log.path()).unwrap().permissions().mode() & 0o777, 0o600);
        let (mut writer, mut cursor) = (log.writer().unwrap(), Cursor::default());
        let mut read = String::new();
        for byte in "grün \x1b[1mfett\x1b[0m\n".as_bytes() {
            writer.write_all(&[*byte]).unwrap();
            read.push_str(&log.since(&mut cursor, 100).unwrap().text);
        }
        assert_eq!(read, "grün fett\n");
        assert_eq!(log.since(&mut cursor, 100).unwrap(), Piece::default());
        assert_eq!(log.tail(100).unwrap().text, "grün fett\n");
    }

    #[test]
    fn only_the_end_of_much_output_is_read() {
        let (_temp, log) = log();
        let mut writer = log.writer().unwrap();
        for line in 0..10_000 {
            writeln!(writer, "line {line}").unwrap();
        }
        let piece = log.tail(50).unwrap();
        assert_eq!(piece.text, "line 9996\nline 9997\nline 9998\nline 9999\n");
        assert_eq!(piece.skipped + piece.text.len() as u64, log.length());
        let piece = log.since(&mut Cursor::default(), 20).unwrap();
        assert_eq!(piece.text, "line 9998\nline 9999\n");
        assert_eq!(piece.skipped + 20, log.length());
    }

    #[test]
    fn a_log_that_its_process_empties_is_read_anew() {
        let (_temp, log) = log();
        let mut cursor = Cursor::default();
        log.writer().unwrap().write_all(b"long ago\n").unwrap();
        log.since(&mut cursor, 100).unwrap();
        std::fs::write(log.path(), "new\n").unwrap();
        assert_eq!(log.since(&mut cursor, 100).unwrap().text, "new\n");
    }

    #[test]
    fn a_flood_takes_bounded_room_and_positions_stay() {
        let (_temp, log) = log();
        let (mut writer, mut freed, keep) = (log.writer().unwrap(), 0, 1024 * 1024);
        let piece = vec![b'x'; 64 * 1024];
        for _ in 0..320 {
            writer.write_all(&piece).unwrap();
            log.trim(&mut freed, keep);
        }
        writer.write_all(b"\nend\n").unwrap();
        let meta = std::fs::metadata(log.path()).unwrap();
        assert_eq!(meta.len(), 320 * 64 * 1024 + 5);
        assert!(meta.blocks() * 512 <= keep * 5 / 4, "{} bytes on disk", meta.blocks() * 512);
        assert!(log.tail(100).unwrap().text.ends_with("end\n"));
    }
}

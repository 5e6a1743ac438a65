//! The daemon's own log as a client reads it: the last lines, and what is written from then on.

use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::sync::watch;

/// Most lines that one call returns from the past.
const MAX_LINES: usize = 5_000;

/// Lines when the caller names no number.
const DEFAULT_LINES: usize = 100;

/// How far back a tail reads.
const MAX_TAIL_BYTES: u64 = 1024 * 1024;

/// Longest piece that is read at once.
const CHUNK: usize = 64 * 1024;

/// Where the log is, and a signal each time it grew.
#[derive(Debug, Clone)]
pub struct LogFeed {
    pub path: PathBuf,
    /// Changes whenever something was written; the value itself says nothing.
    pub written: watch::Receiver<u64>,
}

impl LogFeed {
    /// The last lines (`limit` 0 means 100) and a place to go on from.
    pub(crate) async fn tail(&self, limit: u32) -> io::Result<(Vec<String>, Follower)> {
        let limit = match usize::try_from(limit).unwrap_or(MAX_LINES) {
            0 => DEFAULT_LINES,
            asked => asked.min(MAX_LINES),
        };
        // Before the first read, so that nothing written meanwhile is missed.
        let mut written = self.written.clone();
        written.mark_unchanged();
        let mut file = File::open(&self.path).await?;
        let size = file.metadata().await?.len();
        let start = size.saturating_sub(MAX_TAIL_BYTES);
        file.seek(SeekFrom::Start(start)).await?;
        let mut bytes = Vec::new();
        (&mut file).take(MAX_TAIL_BYTES).read_to_end(&mut bytes).await?;
        let (whole, partial) = split_last_line(&bytes);
        let skipped_first = usize::from(start > 0);
        let lines: Vec<String> = lines(whole).skip(skipped_first).collect();
        let rest = partial.to_vec();
        let tail = lines.into_iter().rev().take(limit).collect::<Vec<_>>().into_iter().rev().collect();
        Ok((tail, Follower { path: self.path.clone(), file, partial: rest, written }))
    }
}

/// Reads on where a tail ended, over rotations.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    file: File,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
    written: watch::Receiver<u64>,
}

impl Follower {
    /// The next lines, at least one; `None` when the writer is gone.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<String>>> {
        loop {
            let lines = self.read().await?;
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
            if self.is_rotated().await? {
                // Lines that were written between the read above and the rotation.
                let last = self.read().await?;
                self.file = File::open(&self.path).await?;
                self.partial.clear();
                if !last.is_empty() {
                    return Ok(Some(last));
                }
                continue;
            }
            if self.written.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    async fn read(&mut self) -> io::Result<Vec<String>> {
        let mut bytes = std::mem::take(&mut self.partial);
        let seen = bytes.len();
        let chunk = u64::try_from(CHUNK).unwrap_or(u64::MAX);
        (&mut self.file).take(chunk).read_to_end(&mut bytes).await?;
        if bytes.len() == seen {
            self.partial = bytes;
            return Ok(Vec::new());
        }
        let (whole, partial) = split_last_line(&bytes);
        self.partial = partial.to_vec();
        Ok(lines(whole).collect())
    }

    /// Whether another file has the log's name by now.
    async fn is_rotated(&self) -> io::Result<bool> {
        let current = identity(&self.path).await?;
        let opened = self.file.metadata().await?;
        Ok(current.is_some_and(|current| current != (opened.dev(), opened.ino())))
    }
}

async fn identity(path: &Path) -> io::Result<Option<(u64, u64)>> {
    match tokio::fs::metadata(path).await {
        Ok(meta) => Ok(Some((meta.dev(), meta.ino()))),
        // Between the two renames of a rotation.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Splits after the last newline.
fn split_last_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes.split_at(end)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = String> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    struct Log {
        _home: tempfile::TempDir,
        path: PathBuf,
        grew: watch::Sender<u64>,
    }

    impl Log {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            Self { path: home.path().join("agent.log"), _home: home, grew: watch::channel(0).0 }
        }

        fn write(&self, text: &str) {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            self.grew.send_modify(|count| *count += 1);
        }

        fn feed(&self) -> LogFeed {
            LogFeed { path: self.path.clone(), written: self.grew.subscribe() }
        }
    }

    #[tokio::test]
    async fn a_tail_is_the_last_whole_lines() {
        let log = Log::new();
        log.write("one\ntwo\nthree\nfou");
        let (lines, _) = log.feed().tail(2).await.unwrap();
        assert_eq!(lines, ["two", "three"]);
    }

    #[tokio::test]
    async fn a_long_log_is_read_from_near_its_end() {
        let log = Log::new();
        log.write(&format!("{}\n", "x".repeat(99)).repeat(20_000));
        log.write("last\n");
        let (lines, _) = log.feed().tail(u32::MAX).await.unwrap();
        assert_eq!(lines.len(), MAX_LINES);
        assert_eq!(lines.last().unwrap(), "last");
        assert!(lines.iter().rev().skip(1).all(|line| line.len() == 99));
    }

    #[tokio::test]
    async fn a_follower_gets_each_line_once_and_over_a_rotation() {
        let log = Log::new();
        log.write("one\ntw");
        let (_, mut follower) = log.feed().tail(10).await.unwrap();
        log.write("o\nthree\n");
        assert_eq!(follower.next().await.unwrap().unwrap(), ["two", "three"]);
        log.write("four\n");
        std::fs::rename(&log.path, log.path.with_extension("log.1")).unwrap();
        log.write("five\n");
        assert_eq!(follower.next().await.unwrap().unwrap(), ["four"]);
        assert_eq!(follower.next().await.unwrap().unwrap(), ["five"]);
        drop(log.grew);
        assert_eq!(follower.next().await.unwrap(), None);
    }
}

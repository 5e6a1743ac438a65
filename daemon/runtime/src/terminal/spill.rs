//! The full log of an output that is too long to be kept whole.

use std::path::{Path, PathBuf};

use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt as _;

/// Where a log ends, so that a flood cannot fill the disk.
const MAX_LOG_BYTES: u64 = 64 * 1024 * 1024;
const CUT: &str = "\n[... the log ends here: 64 MiB are kept ...]\n";

/// An open log. Writing never fails the command: after an error the log is given up.
#[derive(Debug)]
pub(super) struct SpillLog {
    path: PathBuf,
    file: Option<File>,
    written: u64,
}

impl SpillLog {
    /// Opens a new file, readable by the owner only.
    pub(super) async fn create(path: &Path) -> Self {
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).await;
        let file = opened.inspect_err(|error| given_up(path, error)).ok();
        Self { path: path.to_owned(), file, written: 0 }
    }

    /// Appends text, up to the limit.
    pub(super) async fn write(&mut self, text: &str) {
        if self.written >= MAX_LOG_BYTES {
            return;
        }
        let Some(file) = &mut self.file else { return };
        self.written += text.len() as u64;
        let mut result = file.write_all(text.as_bytes()).await;
        if result.is_ok() && self.written >= MAX_LOG_BYTES {
            result = file.write_all(CUT.as_bytes()).await;
        }
        if let Err(error) = result {
            given_up(&self.path, &error);
            self.file = None;
        }
    }

    /// Ends the log; gives its path when all of it is on disk.
    pub(super) async fn finish(mut self) -> Option<PathBuf> {
        if let Some(file) = &mut self.file
            && file.flush().await.is_ok()
        {
            return Some(self.path);
        }
        // A log with holes would mislead.
        let _ = tokio::fs::remove_file(&self.path).await;
        None
    }
}

fn given_up(path: &Path, error: &std::io::Error) {
    tracing::warn!(path = %path.display(), %error, "full log of a command not kept");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn a_log_is_private_and_complete() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out.log");
        let mut log = SpillLog::create(&path).await;
        log.write("one ").await;
        log.write("two").await;
        assert_eq!(log.finish().await, Some(path.clone()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_written_is_given_up() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = SpillLog::create(&temp.path().join("no/such/folder.log")).await;
        log.write("text").await;
        assert_eq!(log.finish().await, None);
    }

    #[tokio::test]
    async fn a_flood_ends_at_the_limit() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out.log");
        let mut log = SpillLog::create(&path).await;
        let piece = "x".repeat(1024 * 1024);
        for _ in 0..70 {
            log.write(&piece).await;
        }
        log.finish().await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), MAX_LOG_BYTES + CUT.len() as u64);
    }
}

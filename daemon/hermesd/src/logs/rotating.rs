//! A log file that never grows beyond its bound: when it is full it becomes `.1`, and a few old ones are kept.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
// std's mutex: a section is one write to a local file.
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hermes_runtime::Redactor;
use tokio::sync::watch;
use tracing_subscriber::fmt::MakeWriter;

/// How far a log may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    /// Size in bytes at which the file is put aside.
    pub(super) max_bytes: u64,
    /// Old files that are kept beside the current one.
    pub(super) backups: u32,
}

/// An append-only file with a bound.
#[derive(Debug)]
pub(super) struct Rotating {
    path: PathBuf,
    bound: Bound,
    file: File,
    size: u64,
    grew: Option<watch::Sender<u64>>,
}

impl Rotating {
    pub(super) fn open(path: PathBuf, bound: Bound) -> io::Result<Self> {
        let file = append(&path)?;
        let size = file.metadata()?.len();
        Ok(Self { path, bound, file, size, grew: None })
    }

    /// Signals every write.
    pub(super) fn watched(self, grew: watch::Sender<u64>) -> Self {
        Self { grew: Some(grew), ..self }
    }

    /// Writes one line, in one piece.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.size > 0 && self.size.saturating_add(length) > self.bound.max_bytes {
            // A log that cannot be put aside is better too long than silent.
            let _ = self.rotate();
        }
        self.file.write_all(line)?;
        self.size = self.size.saturating_add(length);
        if let Some(grew) = &self.grew {
            grew.send_modify(|count| *count = count.wrapping_add(1));
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for age in (1..self.bound.backups).rev() {
            let _ = std::fs::rename(backup(&self.path, age), backup(&self.path, age + 1));
        }
        if self.bound.backups == 0 {
            std::fs::remove_file(&self.path)?;
        } else {
            std::fs::rename(&self.path, backup(&self.path, 1))?;
        }
        self.file = append(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn backup(path: &Path, age: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{age}"));
    path.with_file_name(name)
}

/// Gives each event a writer that puts its whole line into the file, redacted.
#[derive(Debug)]
pub(super) struct SharedWriter {
    file: Mutex<Rotating>,
    redactor: Arc<OnceLock<Redactor>>,
}

impl SharedWriter {
    pub(super) fn new(file: Rotating, redactor: Arc<OnceLock<Redactor>>) -> Self {
        Self { file: Mutex::new(file), redactor }
    }
}

impl<'a> MakeWriter<'a> for SharedWriter {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { to: self }
    }
}

/// The writer of one event.
#[derive(Debug)]
pub(super) struct LineWriter<'a> {
    to: &'a SharedWriter,
}

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let redacted = self.to.redactor.get().map_or(text.clone(), |redactor| redactor.redact(&text));
        let mut file = self.to.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_line(redacted.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound { max_bytes: 20, backups: 3 };

    #[test]
    fn a_full_file_is_put_aside_and_three_old_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.log");
        let mut log = Rotating::open(path.clone(), BOUND).unwrap();
        for number in 0..12 {
            log.write_line(format!("line {number:03}\n").as_bytes()).unwrap();
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&path), "line 010\nline 011\n");
        assert_eq!(read(&backup(&path, 1)), "line 008\nline 009\n");
        assert_eq!(read(&backup(&path, 3)), "line 004\nline 005\n");
        assert!(!backup(&path, 4).exists());
    }

    #[test]
    fn a_line_is_never_split_and_a_giant_one_still_gets_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.log");
        let mut log = Rotating::open(path.clone(), BOUND).unwrap();
        log.write_line(b"short\n").unwrap();
        let giant = "x".repeat(50) + "\n";
        log.write_line(giant.as_bytes()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), giant);
        assert_eq!(std::fs::read_to_string(backup(&path, 1)).unwrap(), "short\n");
    }

    #[test]
    fn an_existing_file_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.log");
        Rotating::open(path.clone(), BOUND).unwrap().write_line(b"before\n").unwrap();
        let (grew, written) = watch::channel(0);
        let mut log = Rotating::open(path.clone(), BOUND).unwrap().watched(grew);
        log.write_line(b"after\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nafter\n");
        assert!(written.has_changed().unwrap());
    }
}

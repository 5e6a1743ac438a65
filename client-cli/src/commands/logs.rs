//! `logs`: the end of a log file, filtered, and what is written from then on. No daemon is needed.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{Clock as _, SystemClock};

use super::Desk;
use crate::args::TailFlags;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::log_line::Filter;
use crate::output::Output;

/// Logs that a profile may have.
const LOGS: [&str; 6] = ["agent", "errors", "gateway", "gui", "desktop", "mcp"];
/// How far back from the end of a file lines are sought.
const TAIL_BYTES: u64 = 8 * 1024 * 1024;
/// Pause between two looks at a file that is followed.
const LOOK: Duration = Duration::from_millis(200);

pub(super) async fn run(desk: &Desk<'_>, log: &str, tail: &TailFlags, output: &mut Output) -> Outcome<Exit> {
    let dir = desk.home.logs_dir();
    if log == "list" {
        for name in LOGS {
            let path = dir.join(file_name(name));
            if let Ok(meta) = std::fs::metadata(&path) {
                output.line(&format!("{name:<8} {:>10} bytes  {}", meta.len(), path.display()))?;
            }
        }
        return Ok(Exit::Success);
    }
    if !LOGS.contains(&log) {
        let what = format!("there is no log `{log}`");
        return Err(Failure::general(what).hint(format!("the logs are: {}, list", LOGS.join(", "))).into());
    }
    let path = dir.join(file_name(log));
    let filter = Filter::new(tail, SystemClock.now());
    let mut followed = match Followed::open(&path) {
        Ok(followed) => Some(followed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            output.note(&format!("{} does not exist yet", path.display()));
            None
        }
        Err(error) => return Err(Failure::general(format!("cannot read {}: {error}", path.display())).into()),
    };
    if let Some(followed) = &mut followed {
        for line in followed.last(tail.lines, &filter).map_err(|error| unreadable(&path, &error))? {
            output.line(&line)?;
        }
    }
    if !tail.follow {
        return Ok(Exit::Success);
    }
    follow(&path, followed, &filter, output).await
}

fn file_name(log: &str) -> String {
    if log == "mcp" { "mcp-stderr.log".into() } else { format!("{log}.log") }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::general(format!("cannot read {}: {error}", path.display()))
}

async fn follow(
    path: &Path,
    mut followed: Option<Followed>,
    filter: &Filter,
    output: &mut Output,
) -> Outcome<Exit> {
    let mut judge = filter.judge();
    loop {
        if let Some(followed) = &mut followed {
            for line in followed.next_lines().map_err(|error| unreadable(path, &error))? {
                if judge.takes(&line) {
                    output.line(&line)?;
                }
            }
        }
        // Only now, when the old file is read to its end.
        if followed.as_ref().is_none_or(Followed::was_replaced) {
            followed = Followed::open(path).ok();
            if followed.is_some() {
                continue;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A log file that is being read.
struct Followed {
    path: PathBuf,
    reader: BufReader<File>,
    /// The beginning of a line that is not written to its end yet.
    partial: Vec<u8>,
}

impl Followed {
    fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { path: path.to_owned(), reader: BufReader::new(File::open(path)?), partial: Vec::new() })
    }

    /// The last lines that the filter takes; the reader then stands at the end.
    fn last(&mut self, count: usize, filter: &Filter) -> std::io::Result<Vec<String>> {
        let length = self.reader.get_ref().metadata()?.len();
        let start = length.saturating_sub(TAIL_BYTES);
        self.reader.seek(SeekFrom::Start(start))?;
        if start > 0 {
            let mut cut = Vec::new();
            self.reader.read_until(b'\n', &mut cut)?;
        }
        let mut judge = filter.judge();
        let mut lines = self.next_lines()?;
        lines.retain(|line| judge.takes(line));
        let surplus = lines.len().saturating_sub(count);
        lines.drain(..surplus);
        Ok(lines)
    }

    fn next_lines(&mut self) -> std::io::Result<Vec<String>> {
        let mut bytes = std::mem::take(&mut self.partial);
        self.reader.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.partial = bytes.split_off(whole);
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    /// Whether the path leads to another file by now: the log was rotated.
    fn was_replaced(&self) -> bool {
        let Ok(ours) = self.reader.get_ref().metadata() else { return true };
        match std::fs::metadata(&self.path) {
            Ok(named) => (named.dev(), named.ino()) != (ours.dev(), ours.ino()),
            // Moved away, and the new one is not there yet.
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LogLevel;
    use std::io::Write as _;

    fn tail(lines: usize) -> TailFlags {
        TailFlags { lines, follow: false, level: None, session: None, since: None, component: None }
    }

    fn filter(tail: &TailFlags) -> Filter {
        Filter::new(tail, SystemClock.now())
    }

    #[test]
    fn the_last_lines_that_pass_the_filter_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.log");
        let text = "2026-01-01T00:00:00Z  INFO hermes_engine: a\n\
                    2026-01-01T00:00:01Z ERROR hermes_engine: b\n\
                    2026-01-01T00:00:02Z  INFO hermes_engine: c\n\
                    2026-01-01T00:00:03Z ERROR hermes_engine: d\n";
        std::fs::write(&path, text).unwrap();
        let mut followed = Followed::open(&path).unwrap();
        let errors = TailFlags { level: Some(LogLevel::Error), ..tail(1) };
        let lines = followed.last(errors.lines, &filter(&errors)).unwrap();
        assert_eq!(lines, ["2026-01-01T00:00:03Z ERROR hermes_engine: d"]);
        assert_eq!(Followed::open(&path).unwrap().last(3, &filter(&tail(3))).unwrap().len(), 3);
    }

    #[test]
    fn a_line_is_shown_when_it_is_whole_and_a_rotated_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.log");
        let mut file = File::create(&path).unwrap();
        let mut followed = Followed::open(&path).unwrap();
        write!(file, "one\ntw").unwrap();
        assert_eq!(followed.next_lines().unwrap(), ["one"]);
        writeln!(file, "o").unwrap();
        assert_eq!(followed.next_lines().unwrap(), ["two"]);
        assert!(!followed.was_replaced());

        std::fs::rename(&path, dir.path().join("agent.log.1")).unwrap();
        assert!(!followed.was_replaced(), "nothing new to turn to yet");
        std::fs::write(&path, "three\n").unwrap();
        assert!(followed.was_replaced());
        assert_eq!(Followed::open(&path).unwrap().next_lines().unwrap(), ["three"]);
    }
}

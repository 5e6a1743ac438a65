//! Reading stdin without ever hanging on one that stays silent.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Most bytes that stdin may hold (spec 80 §4.1).
const LIMIT: usize = 1024 * 1024;
const CHUNK: usize = 64 * 1024;

/// How long to wait.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadLimits {
    /// For the first byte or the end; what stays silent longer is taken for empty.
    pub(crate) first_byte: Option<Duration>,
    /// For everything.
    pub(crate) deadline: Option<Instant>,
}

#[derive(Debug)]
pub(crate) enum StdinError {
    TooLong { limit: usize },
    Deadline,
    Io(io::Error),
}

/// Reads stdin to its end. Bytes that are no UTF-8 become replacement characters: what is piped in is
/// often a log.
pub(crate) fn read(limits: ReadLimits) -> Result<String, StdinError> {
    let stdin = io::stdin();
    read_from(stdin.as_fd(), limits)
}

fn read_from(source: BorrowedFd<'_>, limits: ReadLimits) -> Result<String, StdinError> {
    let begun = Instant::now();
    let mut bytes = Vec::new();
    let mut chunk = vec![0_u8; CHUNK];
    loop {
        let silence = limits.first_byte.filter(|_| bytes.is_empty()).map(|limit| begun + limit);
        let until = match (silence, limits.deadline) {
            (Some(silence), Some(deadline)) => Some(silence.min(deadline)),
            (one, other) => one.or(other),
        };
        if !wait(source, until).map_err(StdinError::Io)? {
            let late = limits.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            return if late { Err(StdinError::Deadline) } else { Ok(String::new()) };
        }
        match nix::unistd::read(source, &mut chunk) {
            Ok(0) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(count) => bytes.extend(chunk.iter().take(count)),
            // A non-blocking stdin may be empty again by now.
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            // Nobody can type here: a background job of a terminal.
            Err(Errno::EIO) => return Ok(String::new()),
            Err(errno) => return Err(StdinError::Io(errno.into())),
        }
        if bytes.len() > LIMIT {
            return Err(StdinError::TooLong { limit: LIMIT });
        }
    }
}

/// Waits until something can be read or the end was reached; `false` when `until` came first.
fn wait(source: BorrowedFd<'_>, until: Option<Instant>) -> io::Result<bool> {
    loop {
        let timeout = match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => PollTimeout::NONE,
            // Rounded up, so that the loop does not spin through the last millisecond.
            Some(rest) => PollTimeout::try_from(rest + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX),
        };
        let mut fds = [PollFd::new(source, PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(0) if until.is_some_and(|until| Instant::now() < until) => {}
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn pipe() -> (io::PipeReader, io::PipeWriter) {
        io::pipe().unwrap()
    }

    #[test]
    fn a_silent_pipe_is_left_after_its_time() {
        let (reader, _writer) = pipe();
        let limits = ReadLimits { first_byte: Some(Duration::from_millis(20)), deadline: None };
        let begun = Instant::now();
        assert_eq!(read_from(reader.as_fd(), limits).unwrap(), "");
        let waited = begun.elapsed();
        assert!(waited >= Duration::from_millis(20) && waited < Duration::from_secs(5), "{waited:?}");
    }

    #[test]
    fn what_was_written_is_read_to_its_end() {
        let (reader, mut writer) = pipe();
        writer.write_all(b"one \xff two").unwrap();
        drop(writer);
        let limits = ReadLimits { first_byte: Some(Duration::from_millis(1)), deadline: None };
        assert_eq!(read_from(reader.as_fd(), limits).unwrap(), "one \u{fffd} two");
    }

    #[test]
    fn an_ended_pipe_is_empty_at_once() {
        let (reader, writer) = pipe();
        drop(writer);
        assert_eq!(read_from(reader.as_fd(), ReadLimits::default()).unwrap(), "");
    }

    #[test]
    fn the_deadline_of_the_run_ends_the_reading() {
        let (reader, mut writer) = pipe();
        writer.write_all(b"still open").unwrap();
        let deadline = Some(Instant::now() + Duration::from_millis(10));
        let limits = ReadLimits { first_byte: None, deadline };
        assert!(matches!(read_from(reader.as_fd(), limits), Err(StdinError::Deadline)));
    }

    #[test]
    fn more_than_the_limit_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LIMIT as u64).unwrap();
        assert_eq!(read_from(file.as_fd(), ReadLimits::default()).unwrap().len(), LIMIT);

        let file = tempfile::tempfile().unwrap();
        file.set_len(LIMIT as u64 + 1).unwrap();
        assert!(matches!(read_from(file.as_fd(), ReadLimits::default()), Err(StdinError::TooLong { .. })));
    }
}

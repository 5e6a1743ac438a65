//! When a search ends early: its time is up, or nobody waits for it any more.

use std::io::{self, Read};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

/// Asked between files and between the blocks of a file.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) cancel: CancellationToken,
    pub(crate) until: Instant,
}

impl Stop {
    pub(crate) fn now(&self) -> bool {
        self.cancel.is_cancelled() || self.timed_out()
    }

    pub(crate) fn timed_out(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// A reader that fails when the search must end.
pub(super) struct StoppingReader<'a, R> {
    pub(super) inner: R,
    pub(super) stop: &'a Stop,
}

impl<R: Read> Read for StoppingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.now() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.inner.read(buffer)
    }
}

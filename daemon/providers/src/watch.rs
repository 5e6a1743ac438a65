//! Watches one call in time: cancellation, the limit without progress, the limit of the whole call,
//! and the notice that nothing comes (spec 30 §15).
//!
//! Only what the caller reports as progress counts. Bytes alone do not: a server that sends
//! keep-alives for ever is as stuck as one that sends nothing.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::provider::{StreamDelta, StreamSink};

/// After this much silence the user is told, and again after each further stretch of it.
pub(crate) const NOTICE_EVERY: Duration = Duration::from_secs(30);

/// Why the wait for something ended without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Cancelled,
    /// No progress for that long.
    Stale(Duration),
    /// The whole call took longer than that.
    TooLong(Duration),
}

/// The clocks of one call.
#[derive(Debug)]
pub(crate) struct Watch {
    cancel: CancellationToken,
    whole: Duration,
    whole_at: Instant,
    stale: Option<Duration>,
    notice_every: Duration,
    progress_at: Instant,
    notice_at: Instant,
}

impl Watch {
    /// Starts the clocks.
    pub(crate) fn start(
        cancel: &CancellationToken,
        whole: Duration,
        stale: Option<Duration>,
        notice_every: Duration,
    ) -> Self {
        let now = Instant::now();
        Self {
            cancel: cancel.clone(),
            whole,
            whole_at: now + whole,
            stale,
            notice_every,
            progress_at: now,
            notice_at: now + notice_every,
        }
    }

    /// Something came that carries text, thinking, a tool call or counts.
    pub(crate) fn progress(&mut self) {
        self.progress_at = Instant::now();
        self.notice_at = self.progress_at + self.notice_every;
    }

    /// From now on, end after that much silence at the latest.
    pub(crate) fn shorten(&mut self, stale: Duration) {
        self.stale = Some(self.stale.map_or(stale, |limit| limit.min(stale)));
    }

    /// Waits for `future`, and drops it when a clock runs out first.
    pub(crate) async fn until<T>(
        &mut self,
        future: impl Future<Output = T>,
        sink: &mut dyn StreamSink,
    ) -> Result<T, Halt> {
        let mut future = pin!(future);
        let cancel = self.cancel.clone();
        loop {
            let now = Instant::now();
            if let Some(limit) = self.stale.filter(|limit| now >= self.progress_at + *limit) {
                return Err(Halt::Stale(limit));
            }
            if now >= self.whole_at {
                return Err(Halt::TooLong(self.whole));
            }
            if now >= self.notice_at {
                self.notice_at = now + self.notice_every;
                sink.delta(StreamDelta::Waiting {
                    seconds: now.duration_since(self.progress_at).as_secs(),
                    limit_seconds: self.stale.map(|limit| limit.as_secs()),
                });
            }
            let stale_at = self.stale.map_or(self.whole_at, |limit| self.progress_at + limit);
            let wake_at = stale_at.min(self.whole_at).min(self.notice_at);
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Halt::Cancelled),
                output = &mut future => return Ok(output),
                () = sleep_until(wake_at) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[derive(Default)]
    struct Waits(Vec<u64>);

    impl StreamSink for Waits {
        fn delta(&mut self, delta: StreamDelta<'_>) {
            if let StreamDelta::Waiting { seconds, .. } = delta {
                self.0.push(seconds);
            }
        }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
    }

    #[test]
    fn silence_is_told_every_thirty_seconds_and_ends_at_the_limit() {
        runtime().block_on(async {
            let mut waits = Waits::default();
            let mut watch =
                Watch::start(&CancellationToken::new(), secs(1800), Some(secs(100)), NOTICE_EVERY);
            let end = watch.until(pending::<()>(), &mut waits).await;
            assert_eq!(end, Err(Halt::Stale(secs(100))));
            assert_eq!(waits.0, [30, 60, 90]);
        });
    }

    #[test]
    fn what_comes_without_progress_does_not_stop_the_clock() {
        runtime().block_on(async {
            let mut watch =
                Watch::start(&CancellationToken::new(), secs(1800), Some(secs(100)), NOTICE_EVERY);
            let mut sink = Waits::default();
            for _ in 0..9 {
                assert_eq!(watch.until(tokio::time::sleep(secs(11)), &mut sink).await, Ok(()));
            }
            assert_eq!(
                watch.until(tokio::time::sleep(secs(11)), &mut sink).await,
                Err(Halt::Stale(secs(100)))
            );
        });
    }

    #[test]
    fn progress_starts_the_clock_anew_but_not_that_of_the_whole_call() {
        runtime().block_on(async {
            let mut watch = Watch::start(&CancellationToken::new(), secs(250), Some(secs(100)), NOTICE_EVERY);
            let mut sink = Waits::default();
            for _ in 0..2 {
                assert_eq!(watch.until(tokio::time::sleep(secs(90)), &mut sink).await, Ok(()));
                watch.progress();
            }
            assert_eq!(watch.until(pending::<()>(), &mut sink).await, Err(Halt::TooLong(secs(250))));
        });
    }

    #[test]
    fn cancelling_wins_over_an_answer_that_is_ready() {
        runtime().block_on(async {
            let cancel = CancellationToken::new();
            cancel.cancel();
            let mut watch = Watch::start(&cancel, secs(9), None, NOTICE_EVERY);
            assert_eq!(watch.until(ready(1), &mut Waits::default()).await, Err(Halt::Cancelled));
        });
    }
}

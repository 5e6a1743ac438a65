//! Why the daemon ends, and the waiting for it: a signal, a client's wish, or idleness.

use std::io;
use std::time::Duration;

use hermes_core::{Clock, Instant};
use hermes_server::{ServerDeps, ShutdownCommand};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Longest time between two looks at an idle daemon.
const IDLE_LOOK: Duration = Duration::from_secs(30);

/// Why the daemon ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StopCause {
    Signal(&'static str),
    Client(ShutdownCommand),
    Idle,
}

impl StopCause {
    /// The words for logs and the state file.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Signal(name) => name.to_owned(),
            Self::Client(ShutdownCommand { restart: true, .. }) => "restart asked for by a client".into(),
            Self::Client(ShutdownCommand { restart: false, .. }) => "stop asked for by a client".into(),
            Self::Idle => "idle".into(),
        }
    }

    /// Whether a new daemon is expected to follow.
    pub(crate) fn is_restart(self) -> bool {
        matches!(self, Self::Client(ShutdownCommand { restart: true, .. }))
    }

    /// How long running turns get, given the configured time.
    pub(crate) fn grace(self, configured: Duration) -> Duration {
        match self {
            Self::Client(ShutdownCommand { drain: Some(asked), .. }) => asked,
            Self::Client(_) | Self::Signal(_) | Self::Idle => configured,
        }
    }
}

/// The signals that end the daemon.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Takes the signals over. Must run inside the runtime.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hang_up.recv() => "SIGHUP",
        }
    }
}

/// Returns once nobody has needed the daemon for `limit`.
pub(crate) async fn idle(limit: Duration, server: &ServerDeps, clock: &dyn Clock) {
    let ServerDeps { clients, engine, processes, .. } = server;
    let mut watch = IdleWatch { limit, busy_until: clock.now() };
    loop {
        let status = engine.status();
        let turns = status.active_turns > 0 || status.queued_inputs > 0;
        let busy = clients.count() > 0 || turns || processes.busy() > 0;
        match watch.look(clock.now(), busy, clients.last_seen()) {
            None => return,
            Some(rest) => tokio::time::sleep(rest.min(IDLE_LOOK)).await,
        }
    }
}

/// Decides when a daemon has been idle long enough.
#[derive(Debug)]
struct IdleWatch {
    limit: Duration,
    busy_until: Instant,
}

impl IdleWatch {
    /// What remains of the idle time at `now`; `None` when it is over.
    fn look(&mut self, now: Instant, busy: bool, client_seen: Instant) -> Option<Duration> {
        // A clock that was set back must not make the daemon immortal.
        if busy || self.busy_until > now {
            self.busy_until = now;
        }
        let since =
            if client_seen > self.busy_until && client_seen <= now { client_seen } else { self.busy_until };
        let idle = Duration::try_from_secs_f64(now.seconds_since(since)).unwrap_or_default();
        self.limit.checked_sub(idle).filter(|rest| !rest.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn idle_time_counts_from_the_last_work_or_the_last_client() {
        let mut watch = IdleWatch { limit: secs(100), busy_until: Instant(0.0) };
        assert_eq!(watch.look(Instant(10.0), true, Instant(0.0)), Some(secs(100)));
        assert_eq!(watch.look(Instant(50.0), false, Instant(0.0)), Some(secs(60)));
        assert_eq!(watch.look(Instant(60.0), false, Instant(55.0)), Some(secs(95)));
        assert_eq!(watch.look(Instant(155.0), false, Instant(55.0)), None);
    }

    #[test]
    fn a_clock_that_is_set_back_starts_the_count_anew() {
        let mut watch = IdleWatch { limit: secs(100), busy_until: Instant(1000.0) };
        assert_eq!(watch.look(Instant(10.0), false, Instant(990.0)), Some(secs(100)));
        assert_eq!(watch.look(Instant(110.0), false, Instant(990.0)), None);
    }

    #[test]
    fn a_client_may_shorten_the_drain() {
        let asked = |drain| StopCause::Client(ShutdownCommand { restart: true, drain });
        assert_eq!(asked(Some(secs(0))).grace(secs(30)), secs(0));
        assert_eq!(asked(None).grace(secs(30)), secs(30));
        assert!(asked(None).is_restart());
        assert!(!StopCause::Signal("SIGTERM").is_restart());
    }
}

//! How many clients are connected, and when one was last heard of: an on-demand daemon ends when
//! there has been none for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hermes_core::{Clock, Instant};

/// Counts open connections. A cheap clone; all clones count together.
#[derive(Debug, Clone)]
pub struct Clients(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    open: AtomicU32,
    /// Bits of the instant of the last connect, call or disconnect.
    last_seen: AtomicU64,
}

impl Clients {
    /// No client yet; "last seen" is now, so that a daemon waits its full time for its first client.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let now = clock.now().unix_seconds().to_bits();
        Self(Arc::new(Inner { clock, open: AtomicU32::new(0), last_seen: AtomicU64::new(now) }))
    }

    /// Connections that are open now.
    pub fn count(&self) -> u32 {
        self.0.open.load(Ordering::Relaxed)
    }

    /// When a client last connected, called or left.
    pub fn last_seen(&self) -> Instant {
        Instant(f64::from_bits(self.0.last_seen.load(Ordering::Relaxed)))
    }

    pub(crate) fn touch(&self) {
        let now = self.0.clock.now().unix_seconds().to_bits();
        self.0.last_seen.store(now, Ordering::Relaxed);
    }

    pub(crate) fn open(&self) -> ClientGuard {
        self.touch();
        self.0.open.fetch_add(1, Ordering::Relaxed);
        ClientGuard(self.clone())
    }
}

/// One open connection.
#[derive(Debug)]
pub(crate) struct ClientGuard(Clients);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct HandClock(Mutex<f64>);

    impl Clock for HandClock {
        fn now(&self) -> Instant {
            Instant(*self.0.lock().unwrap())
        }
    }

    #[test]
    fn a_client_counts_while_its_connection_is_open() {
        let clock = Arc::new(HandClock::default());
        let clients = Clients::new(clock.clone());
        let first = clients.open();
        let second = clients.open();
        assert_eq!(clients.count(), 2);
        drop(first);
        *clock.0.lock().unwrap() = 7.5;
        drop(second);
        assert_eq!((clients.count(), clients.last_seen()), (0, Instant(7.5)));
    }
}

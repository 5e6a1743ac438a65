//! Profile-wide notices: what every client of the profile should know, whatever session it shows.

use std::sync::Arc;

use hermes_core::{Clock, Instant};
use tokio::sync::broadcast;

/// Notices that wait for a slow watcher; older ones are lost to it, since they are hints.
const WAITING: usize = 32;

/// One notice.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) time: Instant,
    pub(crate) text: Arc<str>,
}

/// Sends notices to all watchers of the profile. A cheap clone.
#[derive(Debug, Clone)]
pub struct Notices {
    clock: Arc<dyn Clock>,
    sender: broadcast::Sender<Notice>,
}

impl Notices {
    /// Nobody watches yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, sender: broadcast::channel(WAITING).0 }
    }

    /// Tells everyone who watches now.
    pub fn send(&self, text: &str) {
        // An error means that nobody watches.
        let _ = self.sender.send(Notice { time: self.clock.now(), text: text.into() });
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.sender.subscribe()
    }
}

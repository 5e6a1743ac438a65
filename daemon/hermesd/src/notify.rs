//! What a service manager is told: ready, status, stopping. Silent without `NOTIFY_SOCKET`.

use sd_notify::NotifyState;

/// The daemon accepts calls.
pub(crate) fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The daemon takes no new work.
pub(crate) fn stopping(status: &str) {
    send(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// A start failed, for these reasons.
pub(crate) fn failed(reason: &str) {
    send(&[NotifyState::Status(reason)]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

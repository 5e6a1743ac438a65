//! Text that the user adds while a turn runs (spec 10 §16.2).

use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that may wait for delivery; what does not fit becomes a turn of its own.
const MAX_WAITING_BYTES: usize = 64 * 1024;

/// Shared between the actor, which fills it, and the turn, which drains it before each model call.
#[derive(Debug, Clone, Default)]
pub(crate) struct SteerSlot(Arc<Mutex<Slot>>);

#[derive(Debug, Default)]
struct Slot {
    waiting: Vec<String>,
    closed: bool,
}

impl SteerSlot {
    /// Adds a text; `false` when it is blank, too much waits already, or the turn takes no more.
    pub(crate) fn offer(&self, text: &str) -> bool {
        let mut slot = self.lock();
        let waiting: usize = slot.waiting.iter().map(String::len).sum();
        if slot.closed || text.trim().is_empty() || waiting + text.len() > MAX_WAITING_BYTES {
            return false;
        }
        slot.waiting.push(text.to_owned());
        true
    }

    /// Takes all that waits, joined by newlines.
    pub(crate) fn drain(&self) -> Option<String> {
        let mut slot = self.lock();
        (!slot.waiting.is_empty()).then(|| slot.waiting.drain(..).collect::<Vec<_>>().join("\n"))
    }

    /// Refuses further texts and takes what was not delivered.
    pub(crate) fn close(&self) -> Option<String> {
        self.lock().closed = true;
        self.drain()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_join_and_are_taken_once() {
        let slot = SteerSlot::default();
        assert!(slot.offer("a") && slot.offer("b") && !slot.offer("  "));
        assert_eq!(slot.drain(), Some("a\nb".into()));
        assert_eq!(slot.drain(), None);
    }

    #[test]
    fn an_ended_turn_refuses_and_hands_back_what_is_left() {
        let slot = SteerSlot::default();
        slot.offer("late");
        assert_eq!(slot.close(), Some("late".into()));
        assert!(!slot.offer("later"));
    }
}

//! The order of calls that work at the same time: what a session keeps about its calls (what was read, how
//! often in a row) is written in the order in which the calls began, so that it is the same as after running
//! them one by one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Hands out turns.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    // Short sections without `.await`: a std lock.
    state: Mutex<State>,
    passed: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Turns that were given out and have not passed.
    open: BTreeSet<u64>,
}

impl Turns {
    /// A turn behind all that were given out before.
    pub(crate) fn take(self: &Arc<Self>) -> Turn {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = state.next;
        state.next += 1;
        state.open.insert(number);
        Turn { turns: Arc::clone(self), number }
    }

    fn is_first(&self, number: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open.range(..number).next().is_none()
    }

    fn pass(&self, number: u64) {
        let was_open = self.state.lock().unwrap_or_else(PoisonError::into_inner).open.remove(&number);
        if was_open {
            self.passed.notify_waiters();
        }
    }
}

/// A call's place in the order. It passes when it is dropped, so that a call that ends in whatever way holds
/// up nobody.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    number: u64,
}

impl Turn {
    /// Whether all earlier turns have passed. Once it is so it stays so.
    pub(crate) fn has_come(&self) -> bool {
        self.turns.is_first(self.number)
    }

    /// Waits until all earlier turns have passed.
    pub(crate) async fn come(&self) {
        loop {
            let passed = self.turns.passed.notified();
            if self.has_come() {
                return;
            }
            passed.await;
        }
    }

    /// Lets the later ones go on.
    pub(crate) fn pass(&self) {
        self.turns.pass(self.number);
    }

    /// Lets the later ones go on when the guard is dropped, whoever else still holds the turn.
    pub(crate) fn pass_at_end(self: &Arc<Self>) -> PassAtEnd {
        PassAtEnd(Arc::clone(self))
    }
}

/// See [`Turn::pass_at_end`].
#[derive(Debug)]
pub(crate) struct PassAtEnd(Arc<Turn>);

impl Drop for PassAtEnd {
    fn drop(&mut self) {
        self.0.pass();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.pass();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn turns_come_in_order_and_a_dropped_one_holds_up_nobody() {
        let turns = Arc::new(Turns::default());
        let (first, second, third) = (turns.take(), turns.take(), turns.take());
        assert!(first.has_come() && !second.has_come());
        let mut waiting = Box::pin(third.come());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(second);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        first.pass();
        assert!(futures_util::poll!(&mut waiting).is_ready());
        assert!(third.has_come());
    }
}

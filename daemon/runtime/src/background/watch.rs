//! When lines that a process was watched for become a notice, and when there are too many (spec 40 §6.2).
//! Pure: the time comes in.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// At most one notice per process in this time; lines that match meanwhile are counted.
const WINDOW: Duration = Duration::from_secs(15);
/// After so many windows in a row in which lines were held back, watching ends.
const MAX_STRIKES: u32 = 3;
/// More notices than this, of all processes …
const MAX_AT_ONCE: usize = 15;
/// … within this time …
const AT_ONCE: Duration = Duration::from_secs(10);
/// … make all be silent for this long.
const PAUSE: Duration = Duration::from_secs(30);

/// What to do with lines that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matched {
    /// Tell them, and that so many were held back since the last notice.
    Tell { suppressed: u64 },
    /// They are counted for later.
    Held,
    /// Too much, again and again: tell that watching ends. Its exit is told instead.
    GivenUp { suppressed: u64 },
}

/// The watch over one process.
#[derive(Debug, Default)]
pub(super) struct Watch {
    window: Option<Instant>,
    held: u64,
    strikes: u32,
    given_up: bool,
}

impl Watch {
    /// Takes `lines` lines that match.
    pub(super) fn matched(&mut self, lines: u64, now: Instant) -> Matched {
        if self.given_up {
            return Matched::Held;
        }
        if let Some(begun) = self.window {
            let age = now.saturating_duration_since(begun);
            if age < WINDOW {
                self.held += lines;
                return Matched::Held;
            }
            // A window in which nothing matched lies between.
            let quiet = age >= WINDOW * 2;
            self.strikes = if self.held > 0 && !quiet { self.strikes + 1 } else { 0 };
        }
        let suppressed = std::mem::take(&mut self.held);
        self.window = Some(now);
        if self.strikes >= MAX_STRIKES {
            self.given_up = true;
            return Matched::GivenUp { suppressed: suppressed + lines };
        }
        Matched::Tell { suppressed }
    }

    /// A notice that was not given after all.
    pub(super) fn take_back(&mut self, lines: u64) {
        self.held += lines;
    }
}

/// What the limit over all processes says to one notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Open,
    /// Tell once that there is silence now.
    Closing,
    Closed,
}

/// The limit over all processes.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    told: VecDeque<Instant>,
    silent_until: Option<Instant>,
}

impl Breaker {
    /// Whether a notice may be given at `now`.
    pub(super) fn ask(&mut self, now: Instant) -> Flow {
        if self.silent_until.is_some_and(|until| now < until) {
            return Flow::Closed;
        }
        self.silent_until = None;
        while self.told.front().is_some_and(|told| now.saturating_duration_since(*told) >= AT_ONCE) {
            self.told.pop_front();
        }
        if self.told.len() >= MAX_AT_ONCE {
            self.told.clear();
            self.silent_until = Some(now + PAUSE);
            return Flow::Closing;
        }
        self.told.push_back(now);
        Flow::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn one_notice_per_window_and_the_rest_is_counted() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let told: Vec<Matched> =
            [0, 1, 14, 15, 16].iter().map(|seconds| watch.matched(2, at(start, *seconds))).collect();
        let expected = [
            Matched::Tell { suppressed: 0 },
            Matched::Held,
            Matched::Held,
            Matched::Tell { suppressed: 4 },
            Matched::Held,
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn three_windows_with_held_lines_in_a_row_end_the_watch() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let mut last = Matched::Held;
        for second in 0..=45 {
            last = watch.matched(1, at(start, second));
        }
        assert_eq!(last, Matched::GivenUp { suppressed: 15 });
        assert_eq!(watch.matched(1, at(start, 1000)), Matched::Held);
    }

    #[test]
    fn a_quiet_window_forgives() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        for base in [0, 100, 200, 300, 400] {
            assert!(matches!(watch.matched(1, at(start, base)), Matched::Tell { .. }), "{base}");
            assert_eq!(watch.matched(1, at(start, base + 1)), Matched::Held);
        }
    }

    #[test]
    fn too_many_notices_of_all_processes_bring_silence_with_one_word_about_it() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        let said: Vec<Flow> = (0..18).map(|_| breaker.ask(start)).collect();
        assert_eq!(said.iter().filter(|flow| **flow == Flow::Open).count(), 15);
        assert_eq!(said.get(15..), Some([Flow::Closing, Flow::Closed, Flow::Closed].as_slice()));
        assert_eq!(breaker.ask(at(start, 29)), Flow::Closed);
        assert_eq!(breaker.ask(at(start, 30)), Flow::Open);
    }

    #[test]
    fn notices_at_a_walk_are_never_silenced() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        assert!((0..100).all(|second| breaker.ask(at(start, second)) == Flow::Open));
    }
}

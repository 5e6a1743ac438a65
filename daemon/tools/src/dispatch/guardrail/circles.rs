//! The same calls with the same results, one after the other or in rounds (spec 10 §11).

use std::collections::VecDeque;

use super::signature::Signature;

/// Longest round that is recognised, in calls.
const LONGEST_CYCLE: usize = 4;
/// From this repetition on the model is told.
pub(super) const NOTE_AFTER: usize = 3;
/// With this repetition the turn is ended.
pub(super) const HALT_AFTER: usize = 5;
/// Calls that are remembered: more than any circle needs, and whole laps of every length.
const REMEMBERED: usize = 24;

/// One call with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) signature: Signature,
    pub(super) result: blake3::Hash,
}

/// A repetition that ends with the newest call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Circle {
    Streak { times: usize },
    Cycle { length: usize, laps: usize },
}

/// The newest calls of a turn.
#[derive(Debug, Default)]
pub(super) struct Trail(VecDeque<Step>);

impl Trail {
    /// Adds a call, and says whether it closes a circle that is worth a word.
    pub(super) fn push(&mut self, step: Step, is_poller: impl Fn(&str) -> bool) -> Option<Circle> {
        self.0.push_back(step);
        if self.0.len() > REMEMBERED {
            self.0.pop_front();
        }
        let polls =
            |length: usize| self.0.iter().rev().take(length).all(|step| is_poller(&step.signature.tool));
        let times = self.repeated(1);
        if times >= NOTE_AFTER {
            return (!polls(1)).then_some(Circle::Streak { times });
        }
        (2..=LONGEST_CYCLE).find_map(|length| {
            let run = self.repeated(length);
            let laps = run / length;
            // Once a lap, when it is complete; a cycle of equal calls is a streak.
            (run.is_multiple_of(length) && laps >= NOTE_AFTER && times == 1 && !polls(length))
                .then_some(Circle::Cycle { length, laps })
        })
    }

    /// Calls at the end that are equal to the one `period` before them, and those first ones.
    fn repeated(&self, period: usize) -> usize {
        let newest = self.0.len();
        let equal =
            (period..newest).rev().take_while(|at| self.0.get(*at) == self.0.get(at - period)).count();
        if equal == 0 { 1 } else { equal + period }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    /// What each of these calls closes: a letter is a call, a capital the same call with another result.
    fn circles(calls: &str) -> Vec<Option<Circle>> {
        let mut trail = Trail::default();
        calls
            .chars()
            .map(|letter| {
                let signature = Signature::of("t", &json!(letter.to_ascii_lowercase().to_string()));
                let result = blake3::hash(if letter.is_uppercase() { b"new" } else { b"old" });
                trail.push(Step { signature, result }, |_| false)
            })
            .collect()
    }

    #[test]
    fn a_streak_counts_only_what_is_equal_in_both() {
        let last = |calls: &str| circles(calls).pop().unwrap();
        assert_eq!(last("aa"), None);
        assert_eq!(last("aaa"), Some(Circle::Streak { times: 3 }));
        assert_eq!(last("aaaaa"), Some(Circle::Streak { times: 5 }));
        assert_eq!(last("aaA"), None);
        assert_eq!(last("aabaa"), None);
    }

    #[test]
    fn a_cycle_is_told_once_a_lap() {
        let last = |calls: &str| circles(calls).pop().unwrap();
        assert_eq!(last("ababab"), Some(Circle::Cycle { length: 2, laps: 3 }));
        assert_eq!(last("abababa"), None);
        assert_eq!(last("ababababab"), Some(Circle::Cycle { length: 2, laps: 5 }));
        assert_eq!(last("xabcabcabc"), Some(Circle::Cycle { length: 3, laps: 3 }));
        assert_eq!(last(&"abcd".repeat(5)), Some(Circle::Cycle { length: 4, laps: 5 }));
        assert_eq!(last("abaBab"), None);
        assert_eq!(last(&"abcde".repeat(5)), None);
    }

    #[test]
    fn pollers_may_ask_again() {
        let mut trail = Trail::default();
        let step = || Step { signature: Signature::of("process", &json!({})), result: blake3::hash(b"") };
        assert!((0..20).all(|_| trail.push(step(), |tool| tool == "process").is_none()));
    }
}

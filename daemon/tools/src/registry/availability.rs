//! Remembers whether tools can be used, since finding out may be slow (spec 40 §1.3).

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use hermes_core::Instant;

use crate::tool::Tool;

/// Seconds for which an answer is believed.
const BELIEVED_S: f64 = 30.0;

/// Seconds after the last yes within which a no is taken for a flake.
const FLAKE_S: f64 = 60.0;

#[derive(Debug, Clone, Copy)]
struct Answer {
    yes: bool,
    at: Instant,
}

#[derive(Debug, Default)]
struct Known {
    answer: Option<Answer>,
    last_yes: Option<Instant>,
}

/// Answers by tool name.
#[derive(Debug, Default)]
pub(super) struct Availability {
    // Never held while a tool is asked.
    known: Mutex<HashMap<String, Known>>,
}

impl Availability {
    /// Whether `tool` can be used. A tool that panics when it is asked cannot.
    pub(super) fn ask(&self, tool: &dyn Tool, now: Instant) -> bool {
        let fresh = |answer: &Answer| (0.0..BELIEVED_S).contains(&now.seconds_since(answer.at));
        let cached = self.locked().get(tool.name()).and_then(|known| known.answer).filter(fresh);
        if let Some(answer) = cached {
            return answer.yes;
        }
        let yes = catch_unwind(AssertUnwindSafe(|| tool.available())).unwrap_or_else(|_| {
            tracing::warn!(tool = tool.name(), "availability check panicked");
            false
        });
        let mut locked = self.locked();
        let known = locked.entry(tool.name().to_owned()).or_default();
        let flake = !yes && known.last_yes.is_some_and(|last| now.seconds_since(last) < FLAKE_S);
        if flake {
            tracing::info!(tool = tool.name(), "tool not available for a moment; taken as available");
            return true;
        }
        if !yes {
            tracing::debug!(tool = tool.name(), "tool not available");
        }
        if yes {
            known.last_yes = Some(now);
        }
        known.answer = Some(Answer { yes, at: now });
        yes
    }

    /// Forgets the answer of one tool: another one has its name now.
    pub(super) fn forget(&self, name: &str) {
        self.locked().remove(name);
    }

    /// Forgets all answers: settings changed.
    pub(super) fn flush(&self) {
        self.locked().clear();
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

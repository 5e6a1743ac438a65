//! Exit codes: what each means, and which one a turn's result has (spec 80 §4.2).

use hermes_proto::v1::TurnResult;

/// How this process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Completed with a non-empty answer, or a command that did its work.
    Success,
    /// General failure: refused, not found, an empty answer, no credentials.
    Failure,
    /// Usage error, or a turn that ended failed, cut off, partial or out of budget.
    Usage,
    /// A check found problems.
    Problems,
    /// Temporary: rate limit or quota.
    Temporary,
    /// The own `--timeout` was reached.
    Timeout,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Problems => 3,
            Self::Temporary => 75,
            Self::Timeout => 124,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

/// Why this client itself ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    Interrupt,
    Terminate,
    Timeout,
}

impl StopCause {
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate => Exit::Terminated,
            Self::Timeout => Exit::Timeout,
        }
    }

    /// One sentence for the user.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupted",
            Self::Terminate => "terminated",
            Self::Timeout => "the time limit (--timeout) was reached",
        }
    }
}

/// Failure classes that pass by themselves: limits of rate and quota (spec 30 §13).
const TEMPORARY: [&str; 3] = ["rate_limit", "upstream_rate_limit", "billing"];

/// The exit code of a turn that has its result.
pub(crate) fn of_turn(result: &TurnResult) -> Exit {
    let temporary = result.failure_reason.as_deref().is_some_and(|reason| TEMPORARY.contains(&reason));
    match result.interrupt_cause.as_deref() {
        Some("deadline") => Exit::Timeout,
        _ if result.interrupted => Exit::Usage,
        _ if !result.completed && temporary => Exit::Temporary,
        _ if result.failed || result.partial || !result.completed => Exit::Usage,
        _ if is_empty(result) => Exit::Failure,
        _ => Exit::Success,
    }
}

/// Whether there is no answer to show.
pub(crate) fn is_empty(result: &TurnResult) -> bool {
    result.text.as_deref().is_none_or(|text| text.trim().is_empty())
}

/// Why a turn did not succeed, in one sentence; `None` when it did.
pub(crate) fn reason(result: &TurnResult) -> Option<String> {
    let given = result.error.as_deref().map(str::trim).filter(|text| !text.is_empty());
    if result.interrupted {
        let cause = match result.interrupt_cause.as_deref() {
            Some("user_stop") => "the turn was stopped",
            Some("new_message") => "the turn was stopped by a newer message",
            Some("client_disconnect") => "the turn was stopped, because its client was lost",
            Some("watchdog") => "the turn was stopped, because nothing moved any more",
            Some("deadline") => "the turn was stopped at its time limit",
            Some("shutdown") => "the turn was stopped, because the daemon was shut down",
            Some("restart") => "the turn was interrupted by a restart of the daemon",
            Some("inactivity") => "the turn was stopped after a long silence",
            _ => "the turn was interrupted",
        };
        return Some(given.map_or_else(|| cause.to_owned(), |text| format!("{cause}: {text}")));
    }
    if result.completed && !result.failed && !result.partial {
        let why = &result.turn_exit_reason;
        return is_empty(result).then(|| format!("the model gave no answer ({why})"));
    }
    let general = if result.failed { "the turn failed" } else { "the turn ended early" };
    let why = &result.turn_exit_reason;
    let mut text = match given.or(result.warning.as_deref()) {
        Some(text) => text.to_owned(),
        None => format!("{general} ({why})"),
    };
    let out_of_budget = why.starts_with("max_iterations_reached") || why == "budget_exhausted";
    if out_of_budget && !text.contains("max_turns") {
        text.push_str("; raise the limit with --max-turns or `agent.max_turns`");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered() -> TurnResult {
        TurnResult { text: Some("hi".into()), completed: true, ..Default::default() }
    }

    fn failed(reason: &str) -> TurnResult {
        TurnResult { failed: true, failure_reason: Some(reason.into()), ..Default::default() }
    }

    fn interrupted(cause: &str) -> TurnResult {
        TurnResult { interrupted: true, interrupt_cause: Some(cause.into()), ..Default::default() }
    }

    #[test]
    fn every_ending_of_a_turn_has_its_code() {
        let table = [
            ("answer", answered(), 0),
            ("empty answer", TurnResult { text: Some(" \n".into()), ..answered() }, 1),
            ("no answer", TurnResult { text: None, ..answered() }, 1),
            ("failed", failed("server_error"), 2),
            ("wrong key", failed("auth"), 2),
            ("partial", TurnResult { partial: true, ..answered() }, 2),
            ("out of budget, with a summary", TurnResult { completed: false, ..answered() }, 2),
            ("rate limit", failed("rate_limit"), 75),
            ("quota", failed("billing"), 75),
            ("deadline", interrupted("deadline"), 124),
            ("stopped by another client", interrupted("user_stop"), 2),
            ("daemon crash", interrupted("restart"), 2),
        ];
        for (name, result, code) in table {
            assert_eq!(of_turn(&result).code(), code, "{name}");
        }
    }

    #[test]
    fn every_way_to_stop_has_its_code() {
        let table = [(StopCause::Interrupt, 130), (StopCause::Terminate, 143), (StopCause::Timeout, 124)];
        for (cause, code) in table {
            assert_eq!(cause.exit().code(), code);
        }
        assert_eq!((Exit::Usage.code(), Exit::Problems.code()), (2, 3));
    }

    #[test]
    fn a_turn_that_did_not_succeed_says_why() {
        assert_eq!(reason(&answered()), None);
        let crash = reason(&interrupted("restart")).unwrap();
        assert!(crash.contains("interrupted by a restart of the daemon"), "{crash}");
        let told = TurnResult { error: Some("wrong key (401)".into()), ..failed("auth") };
        assert_eq!(reason(&told).as_deref(), Some("wrong key (401)"));
        let empty =
            TurnResult { text: None, turn_exit_reason: "empty_response_exhausted".into(), ..answered() };
        assert_eq!(reason(&empty).as_deref(), Some("the model gave no answer (empty_response_exhausted)"));
        let budget = TurnResult {
            completed: false,
            turn_exit_reason: "max_iterations_reached(3/3)".into(),
            ..answered()
        };
        let told = reason(&budget).unwrap();
        assert!(told.contains("max_iterations_reached(3/3)") && told.contains("--max-turns"), "{told}");
    }
}

//! What the model is told about its repetitions. One place, so that a snapshot shows every word.

use super::circles::Circle;

/// A rule of the guardrail: its name in results, logs and events, and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    ExactFailureWarning,
    ExactFailureBlock,
    SameToolWarning,
    SameToolHalt,
    NoProgressWarning,
    NoProgressBlock,
    StreakNote,
    StreakHalt,
    CycleNote,
    CycleHalt,
    WebSearchCap,
    SubagentCap,
}

impl Rule {
    pub(super) fn of_circle(circle: Circle, halt: bool) -> Self {
        match (circle, halt) {
            (Circle::Streak { .. }, false) => Self::StreakNote,
            (Circle::Streak { .. }, true) => Self::StreakHalt,
            (Circle::Cycle { .. }, false) => Self::CycleNote,
            (Circle::Cycle { .. }, true) => Self::CycleHalt,
        }
    }

    pub(super) fn code(self) -> &'static str {
        match self {
            Self::ExactFailureWarning => "repeated_exact_failure_warning",
            Self::ExactFailureBlock => "repeated_exact_failure_block",
            Self::SameToolWarning => "same_tool_failure_warning",
            Self::SameToolHalt => "same_tool_failure_halt",
            Self::NoProgressWarning => "idempotent_no_progress_warning",
            Self::NoProgressBlock => "idempotent_no_progress_block",
            Self::StreakNote => "identical_call_streak_note",
            Self::StreakHalt => "identical_call_streak_halt",
            Self::CycleNote => "identical_cycle_note",
            Self::CycleHalt => "identical_cycle_halt",
            Self::WebSearchCap => "loop_web_search_cap",
            Self::SubagentCap => "loop_subagent_cap",
        }
    }

    /// What the model reads.
    pub(super) fn message(self, tool: &str, count: u32) -> String {
        match self {
            Self::ExactFailureWarning => format!(
                "{tool} has failed {count} times with exactly these arguments. Read the error and change something \
                 before you try again."
            ),
            Self::ExactFailureBlock => format!(
                "not run: {tool} has failed {count} times with exactly these arguments, and nothing has changed since. \
                 Take another way, or tell the user what stands in the way."
            ),
            Self::SameToolWarning => format!(
                "{tool} has failed {count} times in this turn. Find out why before you call it again, or use another \
                 tool."
            ),
            Self::SameToolHalt => {
                format!("{tool} has failed {count} times in this turn, so the turn is ended.")
            }
            Self::NoProgressWarning => format!(
                "{tool} gave the same result {count} times for the same arguments. Use what it said, or ask something \
                 else."
            ),
            Self::NoProgressBlock => format!(
                "not run: {tool} gave the same result {count} times for the same arguments. Use what it said."
            ),
            Self::StreakNote => format!(
                "this is the same call with the same result, {count} times in a row. Go on with something else."
            ),
            Self::StreakHalt => {
                format!(
                    "the same call of {tool} gave the same result {count} times in a row, so the turn is ended."
                )
            }
            Self::CycleNote => format!(
                "the last calls repeat an earlier round, {count} rounds with the same results. Step back and take \
                 another way."
            ),
            Self::CycleHalt => {
                format!("the same round of calls gave the same results {count} times, so the turn is ended.")
            }
            Self::WebSearchCap => format!(
                "not run: this turn has made {count} web searches, which is its cap. Answer from what was found."
            ),
            Self::SubagentCap => {
                format!(
                    "not run: this turn has started {count} children, which is its cap. Go on without more."
                )
            }
        }
    }

    /// What the user can do, for the row that ends the turn.
    pub(super) fn next_step(self) -> &'static str {
        match self {
            Self::ExactFailureWarning | Self::ExactFailureBlock => {
                "Look at the last error: something that the agent cannot change may be missing."
            }
            Self::SameToolWarning | Self::SameToolHalt => {
                "Look at the last errors, then tell the agent what to do differently."
            }
            Self::NoProgressWarning
            | Self::NoProgressBlock
            | Self::StreakNote
            | Self::StreakHalt
            | Self::CycleNote
            | Self::CycleHalt => "Say what is missing, or send a new message to go on from here.",
            Self::WebSearchCap => {
                "Send a new message to go on, or raise `tool_loop_guardrails.loop_caps.max_web_searches`."
            }
            Self::SubagentCap => {
                "Send a new message to go on, or raise `tool_loop_guardrails.loop_caps.max_subagents`."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_as_reviewed() {
        let all = [
            Rule::ExactFailureWarning,
            Rule::ExactFailureBlock,
            Rule::SameToolWarning,
            Rule::SameToolHalt,
            Rule::NoProgressWarning,
            Rule::NoProgressBlock,
            Rule::StreakNote,
            Rule::StreakHalt,
            Rule::CycleNote,
            Rule::CycleHalt,
            Rule::WebSearchCap,
            Rule::SubagentCap,
        ];
        let shown: Vec<String> = all
            .map(|rule| {
                format!("{}\n  {}\n  {}", rule.code(), rule.message("read_file", 5), rule.next_step())
            })
            .into();
        insta::assert_snapshot!("guardrail_texts", shown.join("\n"));
    }
}

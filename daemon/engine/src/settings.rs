//! Settings that the engine acts on, and what a session and a turn freeze of them.

use std::num::NonZeroU32;

use hermes_core::{BusyMode, TurnOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Section `agent`, as far as the engine acts on it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct AgentSettings {
    /// Most model calls of one turn: a number from 1, or `unlimited`.
    pub max_turns: MaxTurns,
    /// Seconds that a question of the agent waits in chats; `clarify.timeout` holds on local surfaces.
    #[schemars(range(min = 1))]
    pub clarify_timeout: u64,
}

impl Default for AgentSettings {
    fn default() -> Self {
        const DEFAULT: NonZeroU32 = NonZeroU32::new(90).expect("90 is not zero");
        Self { max_turns: MaxTurns::Limited(DEFAULT), clarify_timeout: 3_600 }
    }
}

/// An iteration cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum MaxTurns {
    /// At most this many model calls.
    Limited(NonZeroU32),
    /// No cap.
    Unlimited(Unlimited),
}

/// The word `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unlimited {
    /// No cap.
    Unlimited,
}

impl MaxTurns {
    fn limit(self) -> Option<u32> {
        match self {
            Self::Limited(limit) => Some(limit.get()),
            Self::Unlimited(Unlimited::Unlimited) => None,
        }
    }
}

/// Section `display`, as far as the engine acts on it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct BusySettings {
    /// What an input does while a turn runs: `interrupt` it, wait in the `queue`, or `steer` it.
    pub busy_input_mode: BusyInputMode,
}

impl Default for BusySettings {
    fn default() -> Self {
        Self { busy_input_mode: BusyInputMode::Interrupt }
    }
}

/// A busy mode as it is written in `config.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BusyInputMode {
    /// The running turn is interrupted and the input takes its place.
    Interrupt,
    /// The input waits for the running turn.
    Queue,
    /// The input is given to the running turn.
    Steer,
}

impl From<BusyInputMode> for BusyMode {
    fn from(mode: BusyInputMode) -> Self {
        match mode {
            BusyInputMode::Interrupt => Self::Interrupt,
            BusyInputMode::Queue => Self::Queue,
            BusyInputMode::Steer => Self::Steer,
        }
    }
}

/// What one turn goes by from its beginning to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnSettings {
    /// `None` = unlimited.
    pub(crate) max_iterations: Option<u32>,
    /// Attempts of one model call.
    pub(crate) max_attempts: u32,
}

impl TurnSettings {
    pub(crate) fn freeze(agent: &AgentSettings, max_attempts: u32, options: &TurnOptions) -> Self {
        Self {
            max_iterations: options.max_turns.or(agent.max_turns.limit()),
            max_attempts: max_attempts.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turns_own_cap_wins_over_the_settings() {
        let agent = AgentSettings::default();
        let freeze = |max_turns| {
            let options = TurnOptions { max_turns, ..TurnOptions::default() };
            TurnSettings::freeze(&agent, 3, &options).max_iterations
        };
        assert_eq!(freeze(None), Some(90));
        assert_eq!(freeze(Some(2)), Some(2));
    }

    #[test]
    fn max_turns_is_a_positive_number_or_the_word() {
        let parse = |text: &str| serde_json::from_str::<MaxTurns>(text).map(MaxTurns::limit);
        assert_eq!(parse("7").unwrap(), Some(7));
        assert_eq!(parse("\"unlimited\"").unwrap(), None);
        assert!(parse("0").is_err() && parse("-1").is_err() && parse("\"many\"").is_err());
    }
}

//! Inputs that wait for their turn: durable rows in `inputs`, and their order in memory.

use hermes_core::{BusyMode, Json, Principal, QueuedInput, TurnId, TurnOptions};
use hermes_state::InputRow;
use serde_json::{Value, json};

use crate::api::SubmitInput;

/// Inputs that may wait in one session; one more is refused, never dropped (spec 10 §16.1).
pub(crate) const MAX_WAITING: usize = 32;

/// Notices of processes that may wait in one session beside them; one more stays with its process.
pub(crate) const MAX_NOTICES: usize = 32;

/// The `mode` of inputs, and of notices that no user wrote.
const QUEUE: &str = "queue";
const NOTICE: &str = "notice";

/// One waiting input with the turn id that was promised to its sender.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) turn_id: TurnId,
    pub(crate) input: SubmitInput,
    /// A background process sent it.
    pub(crate) is_notice: bool,
}

impl Waiting {
    fn mode(&self) -> &'static str {
        if self.is_notice { NOTICE } else { QUEUE }
    }

    pub(crate) fn to_row(&self, created_at: hermes_core::Instant) -> InputRow {
        let options = &self.input.options;
        let options = json!({
            "max_turns": options.max_turns,
            "yolo": options.yolo,
            "deadline_s": options.deadline_s,
        });
        InputRow {
            id: self.turn_id.as_str().to_owned(),
            session_id: self.input.session_id.clone(),
            principal: self.input.principal.to_string(),
            mode: self.mode().into(),
            text: self.input.text.clone(),
            options: Json::from(options),
            client_message_id: self.input.client_message_id.clone(),
            created_at,
        }
    }

    /// Reads a row that an earlier daemon left. The right to skip approvals does not outlive the
    /// process in which it was given.
    pub(crate) fn from_row(row: InputRow) -> Option<Self> {
        let turn_id = TurnId::parse(&row.id).ok()?;
        let principal = Principal::parse(&row.principal)?;
        let options = row.options.to_value();
        let options = TurnOptions {
            max_turns: options.get("max_turns").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()),
            yolo: false,
            busy_mode: Some(BusyMode::Queue),
            deadline_s: options.get("deadline_s").and_then(Value::as_f64),
            model_once: None,
            one_shot: false,
        };
        let input = SubmitInput {
            session_id: row.session_id,
            text: row.text,
            principal,
            client_message_id: row.client_message_id,
            options,
        };
        Some(Self { turn_id, input, is_notice: row.mode == NOTICE })
    }

    pub(crate) fn shown(&self, index: usize) -> QueuedInput {
        QueuedInput {
            id: self.turn_id.as_str().to_owned(),
            mode: self.mode(),
            state: "pending",
            position: u32::try_from(index + 1).unwrap_or(u32::MAX),
            text: self.input.text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::{Instant, SessionId};
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_waiting_input_survives_its_row_but_its_yolo_does_not() {
        let waiting = Waiting {
            turn_id: TurnId::mint(),
            is_notice: false,
            input: SubmitInput {
                session_id: SessionId::parse("s").unwrap(),
                text: "do it".into(),
                principal: Principal::Owner,
                client_message_id: Some("c1".into()),
                options: TurnOptions { max_turns: Some(3), yolo: true, ..TurnOptions::default() },
            },
        };
        let back = Waiting::from_row(waiting.to_row(Instant(5.0))).unwrap();
        assert_eq!(back.turn_id, waiting.turn_id);
        assert_eq!(back.input.text, "do it");
        assert_eq!(back.input.options.max_turns, Some(3));
        assert!(!back.input.options.yolo);
    }
}

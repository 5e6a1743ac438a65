//! One input, followed to its one result, whatever happens to connections and daemons on the way.

use std::collections::VecDeque;
use std::time::Duration;

use hermes_proto::v1::{self, event::Payload};
use tokio::time::{Instant, sleep};

use crate::call::CallErrorKind;
use crate::watch::{Attachment, SessionWatch, WatchError, WatchItem};

/// How often a submit is sent again after a lost connection. The id keeps it one turn.
const SUBMIT_TRIES: u32 = 5;
/// How long a daemon that is on its way out is waited for, and how often it is asked meanwhile: it takes no
/// new input, but its running turns may need their time.
const LEAVING_LIMIT: Duration = Duration::from_secs(45);
const LEAVING_LOOK: Duration = Duration::from_millis(200);
/// What a turn that a dead daemon left behind says, when that daemon took its own words with it.
const CUT_OFF: &str = "the daemon ended while this turn ran; what was done until then is kept in the session";

/// One input to send.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTurn {
    pub text: String,
    pub options: v1::TurnOptions,
    /// Names this input for all time, so that sending it again never makes a second turn.
    pub client_message_id: String,
}

impl NewTurn {
    /// An input with default options and a new id.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            options: v1::TurnOptions::default(),
            client_message_id: uuid::Uuid::now_v7().to_string(),
        }
    }
}

/// What following a turn yields. Events of other turns of the session come too: look at `turn_id`.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStep {
    Event(Box<v1::Event>),
    Reattached(Box<Attachment>),
    /// The turn has its result; nothing follows.
    Ended(Box<TurnEnd>),
}

/// How the turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    pub result: v1::TurnResult,
    /// The result was put together from what is stored, because the daemon that ran the turn is gone.
    pub recovered: bool,
    /// Sequence number and time of the `message.complete` that told it; absent when that was missed.
    pub seen: Option<(u64, f64)>,
}

/// A turn that was submitted.
#[derive(Debug)]
pub struct TurnRun {
    watch: SessionWatch,
    request: v1::SubmitRequest,
    turn_id: String,
    /// The answer to the submit: `streaming`, `queued`, `steered` or `done`.
    status: String,
    position: Option<u32>,
    /// Steps that are known already.
    ready: VecDeque<TurnStep>,
    /// A new daemon or a gap: the turn may have ended unseen.
    unsure: bool,
    restarted: bool,
    /// Durable rows that came with a gap.
    rows: Vec<v1::Row>,
}

impl TurnRun {
    /// Sends an input to the watched session. Over a lost connection it is sent again.
    pub async fn submit(mut watch: SessionWatch, turn: NewTurn) -> Result<Self, WatchError> {
        let request = v1::SubmitRequest {
            session_id: watch.session_id().to_owned(),
            text: turn.text,
            options: Some(turn.options),
            client_message_id: Some(turn.client_message_id),
        };
        let mut ready = VecDeque::new();
        let mut restarted = false;
        let mut tries = 0;
        let leaving_until = Instant::now() + LEAVING_LIMIT;
        let answer = loop {
            match watch.client().submit(request.clone()).await {
                Ok(answer) => break answer,
                // Its socket closes in the end, and the next try finds it lost.
                Err(error)
                    if error.kind() == CallErrorKind::ShuttingDown && Instant::now() < leaving_until =>
                {
                    sleep(LEAVING_LOOK).await;
                }
                Err(error) if error.is_lost() && tries < SUBMIT_TRIES => {
                    tries += 1;
                    watch.forget_connection();
                    let attachment = watch.reattach().await?;
                    restarted |= attachment.restarted;
                    ready.push_back(TurnStep::Reattached(Box::new(attachment)));
                }
                Err(error) => return Err(error.into()),
            }
        };
        let rows = ready
            .iter()
            .flat_map(|step| match step {
                TurnStep::Reattached(attachment) => attachment.attached.rows.clone(),
                _ => Vec::new(),
            })
            .collect();
        Ok(Self {
            watch,
            request,
            turn_id: answer.turn_id,
            // `done`: an earlier try was taken, and its turn has ended before this one arrived.
            unsure: tries > 0 || answer.status == "done",
            status: answer.status,
            position: answer.position,
            ready,
            restarted,
            rows,
        })
    }

    pub fn turn_id(&self) -> &str {
        &self.turn_id
    }

    /// How the input was taken: `streaming`, `queued`, `steered` or `done`.
    pub fn status(&self) -> &str {
        &self.status
    }

    /// Place in the queue, from 1, when it was queued.
    pub fn position(&self) -> Option<u32> {
        self.position
    }

    /// The watch of the session, as it stands.
    pub fn watch(&self) -> &SessionWatch {
        &self.watch
    }

    /// The watch, to go on with the session.
    pub fn into_watch(self) -> SessionWatch {
        self.watch
    }

    /// Asks the daemon to stop this turn. Its end still comes as [`TurnStep::Ended`].
    pub async fn interrupt(&self) -> Result<(), WatchError> {
        let request = v1::InterruptRequest {
            session_id: self.request.session_id.clone(),
            turn_id: Some(self.turn_id.clone()),
        };
        self.watch.client().interrupt(request).await?;
        Ok(())
    }

    /// The next step. Do not call it after [`TurnStep::Ended`].
    ///
    /// Cancel-safe, as [`SessionWatch::next`] is.
    pub async fn next(&mut self) -> Result<TurnStep, WatchError> {
        if let Some(step) = self.ready.pop_front() {
            return Ok(step);
        }
        if self.unsure {
            match self.look_up().await {
                Ok(end) => {
                    self.unsure = false;
                    if let Some(end) = end {
                        return Ok(TurnStep::Ended(Box::new(end)));
                    }
                }
                // The next attach leads to another look.
                Err(WatchError::Call(error)) if error.is_lost() => self.watch.forget_connection(),
                Err(error) => return Err(error),
            }
        }
        match self.watch.next().await? {
            WatchItem::Event(event) => Ok(self.step_of(event)),
            WatchItem::Reattached(attachment) => {
                self.unsure |= attachment.attached.gap || attachment.restarted;
                self.restarted |= attachment.restarted;
                self.rows.extend(attachment.attached.rows.iter().cloned());
                Ok(TurnStep::Reattached(attachment))
            }
        }
    }

    fn step_of(&self, event: Box<v1::Event>) -> TurnStep {
        match &event.payload {
            Some(Payload::MessageComplete(result)) if result.turn_id == self.turn_id => {
                let seen = Some((event.seq, event.time));
                TurnStep::Ended(Box::new(TurnEnd { result: (**result).clone(), recovered: false, seen }))
            }
            _ => TurnStep::Event(event),
        }
    }

    /// What the daemon knows of the turn after events were missed; `None` when it still runs or waits.
    async fn look_up(&mut self) -> Result<Option<TurnEnd>, WatchError> {
        let request =
            v1::GetTurnRequest { session_id: self.request.session_id.clone(), turn_id: self.turn_id.clone() };
        let turn = match self.watch.client().turn(request).await {
            Ok(turn) => turn,
            Err(error) if error.kind() == CallErrorKind::NotFound => {
                // It waited in a queue that is gone, or waits still: the same id tells which.
                let answer = self.watch.client().submit(self.request.clone()).await?;
                if answer.status == "done" {
                    return Err(WatchError::Contract("a turn is done, and nobody knows it"));
                }
                self.turn_id = answer.turn_id;
                self.status = answer.status;
                self.position = answer.position;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if !matches!(turn.state.as_str(), "completed" | "failed" | "interrupted") {
            return Ok(None);
        }
        if let Some(result) = turn.result {
            return Ok(Some(TurnEnd { result, recovered: false, seen: None }));
        }
        // Only a turn that completed has an answer; what closes another one in the history is a note.
        let answer = match answer_in(&self.rows) {
            _ if turn.state != "completed" => None,
            None => answer_in(&self.stored_rows().await?),
            known => known,
        };
        let result = self.result_from(&turn, answer);
        Ok(Some(TurnEnd { result, recovered: true, seen: None }))
    }

    /// All rows of the session, for a turn whose own rows were not seen.
    async fn stored_rows(&self) -> Result<Vec<v1::Row>, WatchError> {
        let mut rows: Vec<v1::Row> = Vec::new();
        loop {
            let request = v1::GetSessionRequest {
                reference: self.request.session_id.clone(),
                with_rows: true,
                after_message_id: rows.last().map_or(0, |row| row.id),
                limit: 0,
            };
            let part = self.watch.client().get_session(request).await?;
            let more = part.more_rows && !part.rows.is_empty();
            rows.extend(part.rows);
            if !more {
                return Ok(rows);
            }
        }
    }

    fn result_from(&self, turn: &v1::GetTurnResponse, answer: Option<v1::Row>) -> v1::TurnResult {
        let interrupted = turn.state == "interrupted";
        let completed = turn.state == "completed";
        let status = match turn.state.as_str() {
            "completed" => "complete",
            "interrupted" => "interrupted",
            _ => "error",
        };
        v1::TurnResult {
            session_id: self.request.session_id.clone(),
            turn_id: self.turn_id.clone(),
            status: status.into(),
            turn_exit_reason: turn.exit_reason.clone().unwrap_or_default(),
            message_id: answer.as_ref().map(|row| row.id),
            reasoning: answer.as_ref().and_then(|row| row.reasoning.clone()),
            text: answer.map(|row| row.content),
            completed,
            failed: !completed && !interrupted,
            interrupted,
            interrupt_cause: interrupted.then(|| {
                let named = cause_in(turn.exit_reason.as_deref().unwrap_or_default());
                named.unwrap_or(if self.restarted { "restart" } else { "user_stop" }).to_owned()
            }),
            error: (!completed).then(|| CUT_OFF.to_owned()),
            ..v1::TurnResult::default()
        }
    }
}

/// The answer among a turn's rows: the last assistant text that asked for no tool.
fn answer_in(rows: &[v1::Row]) -> Option<v1::Row> {
    let last = rows.iter().rev().find(|row| row.role == "assistant")?;
    (last.tool_calls.is_empty() && !last.content.is_empty()).then(|| last.clone())
}

/// The cause within an exit reason such as `interrupted(restart)`.
fn cause_in(exit_reason: &str) -> Option<&str> {
    let (name, rest) = exit_reason.split_once('(')?;
    name.starts_with("interrupted").then(|| rest.trim_end_matches(')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, role: &str, content: &str) -> v1::Row {
        v1::Row { id, role: role.into(), content: content.into(), ..v1::Row::default() }
    }

    #[test]
    fn the_answer_is_the_last_assistant_text_without_calls() {
        let call = v1::ToolCall { id: "c".into(), name: "read_file".into(), arguments: "{}".into() };
        let asking = v1::Row { tool_calls: vec![call], ..row(2, "assistant", "let me look") };
        assert_eq!(answer_in(&[row(1, "user", "hi"), asking.clone()]), None);
        let rows = [row(1, "user", "hi"), asking, row(3, "tool", "{}"), row(4, "assistant", "done")];
        assert_eq!(answer_in(&rows).map(|row| row.id), Some(4));
        assert_eq!(answer_in(&[]), None);
    }

    #[test]
    fn an_exit_reason_names_its_cause() {
        assert_eq!(cause_in("interrupted(restart)"), Some("restart"));
        assert_eq!(cause_in("interrupted_during_api_call(deadline)"), Some("deadline"));
        assert_eq!(cause_in("interrupted_by_user"), None);
        assert_eq!(cause_in("text_response(finish_reason=stop)"), None);
    }

    #[test]
    fn every_input_has_an_id_of_its_own() {
        assert_ne!(NewTurn::new("a").client_message_id, NewTurn::new("a").client_message_id);
    }
}

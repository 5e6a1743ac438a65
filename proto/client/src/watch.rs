//! One session's events as a stream that outlives connections and daemons (contract §4).

use hermes_proto::v1::{self, attach_frame::Frame};
use tonic::Streaming;

use crate::call::{CallError, Client};
use crate::connect::{ConnectError, Connector};

/// Attachments in a row that ended without one event, before the watch gives up: a daemon that takes
/// every watcher and drops it at once would otherwise be asked for ever.
const FRUITLESS_LIMIT: u32 = 8;

/// What a first attach brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// All durable rows of the session.
    #[default]
    All,
    /// None: only what happens from now on.
    Skip,
}

/// How to watch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchOptions {
    pub history: History,
    /// Kinds of prompts that this client can answer: `approval`, `clarify`, `sudo`, `secret`.
    pub can_answer: Vec<String>,
}

/// Where a watch stands after an attach.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// As the daemon answered. `rows` is complete: all further batches are joined to it.
    pub attached: v1::Attached,
    /// Another daemon answered than the one before: sequence numbers began anew.
    pub restarted: bool,
}

/// What a watch yields.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchItem {
    Event(Box<v1::Event>),
    /// The connection was lost and found again. Without a gap the missed events follow; with one, `rows`
    /// tells what became durable meanwhile.
    Reattached(Box<Attachment>),
}

/// Why a watch ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    #[error("the daemon was lost and could not be reached again")]
    Reconnect(#[source] ConnectError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the daemon ended {FRUITLESS_LIMIT} attachments at once")]
    KeepsDropping,
    #[error("the daemon broke the contract: {0}")]
    Contract(&'static str),
}

impl WatchError {
    /// What the user can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Reconnect(error) => Some(error.hint()),
            Self::Call(error) => error.hint().map(str::to_owned),
            Self::KeepsDropping | Self::Contract(_) => Some("look at its log: hermes-cli daemon logs".into()),
        }
    }
}

/// What was seen so far.
#[derive(Debug, Default)]
struct Position {
    epoch: Option<String>,
    seq: u64,
    /// `None` until a row is known, when the history was skipped.
    message_id: Option<i64>,
}

/// A watch of one session.
#[derive(Debug)]
pub struct SessionWatch {
    connector: Connector,
    client: Client,
    session_id: String,
    can_answer: Vec<String>,
    position: Position,
    /// `None` between a lost connection and the next attach.
    stream: Option<Streaming<v1::AttachFrame>>,
    fruitless: u32,
}

impl SessionWatch {
    /// Attaches to a session over `client`; later reconnects go through `connector`.
    pub async fn attach(
        connector: &Connector,
        client: Client,
        session_id: &str,
        options: WatchOptions,
    ) -> Result<(Self, Attachment), WatchError> {
        let message_id = match options.history {
            History::All => Some(0),
            History::Skip => None,
        };
        let mut watch = Self {
            connector: connector.clone(),
            client,
            session_id: session_id.to_owned(),
            can_answer: options.can_answer,
            position: Position { message_id, ..Position::default() },
            stream: None,
            fruitless: 0,
        };
        let attachment = match watch.attach_now().await {
            Err(WatchError::Call(error)) if error.is_lost() => watch.reattach().await?,
            settled => settled?,
        };
        Ok((watch, attachment))
    }

    /// The session that is watched.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The connection in use. It changes with a reconnect, so do not keep it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The next event, or the news that the connection was lost and found again.
    ///
    /// Cancel-safe: a cancelled call loses no event. A reconnect that is cancelled begins anew with the
    /// next call.
    ///
    /// # Errors
    /// When no daemon can be reached or started, or when it refuses the session. The watch can be asked
    /// again; it then tries once more.
    pub async fn next(&mut self) -> Result<WatchItem, WatchError> {
        loop {
            let Some(stream) = &mut self.stream else {
                return Ok(WatchItem::Reattached(Box::new(self.reattach().await?)));
            };
            match stream.message().await {
                Ok(Some(v1::AttachFrame { frame: Some(Frame::Event(event)) })) => {
                    if self.position.advance(&event) {
                        self.fruitless = 0;
                        return Ok(WatchItem::Event(Box::new(event)));
                    }
                }
                // A frame of a newer daemon, or one out of its place: nothing that this client can use.
                Ok(Some(_)) => {}
                Ok(None) => self.stream = None,
                Err(status) => {
                    self.stream = None;
                    let error = CallError::from_status("watch the session", &status);
                    if !error.is_lost() {
                        return Err(error.into());
                    }
                }
            }
        }
    }

    /// The next event over the connection that is there; `None` once it is lost. Connects to nothing and starts
    /// nothing: for a client that only waits for its user meanwhile. Cancel-safe.
    pub async fn next_here(&mut self) -> Option<Box<v1::Event>> {
        loop {
            match self.stream.as_mut()?.message().await {
                Ok(Some(v1::AttachFrame { frame: Some(Frame::Event(event)) })) => {
                    if self.position.advance(&event) {
                        self.fruitless = 0;
                        return Some(Box::new(event));
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => self.stream = None,
            }
        }
    }

    /// Makes sure that the connection works: after an error of a call that says the daemon is lost.
    pub(crate) fn forget_connection(&mut self) {
        self.stream = None;
    }

    pub(crate) async fn reattach(&mut self) -> Result<Attachment, WatchError> {
        loop {
            if self.fruitless >= FRUITLESS_LIMIT {
                self.fruitless = 0;
                return Err(WatchError::KeepsDropping);
            }
            self.fruitless += 1;
            self.client = self.connector.recover(self.client.hello()).await.map_err(WatchError::Reconnect)?;
            match self.attach_now().await {
                Err(WatchError::Call(error)) if error.is_lost() => {}
                settled => return settled,
            }
        }
    }

    async fn attach_now(&mut self) -> Result<Attachment, WatchError> {
        let request = v1::AttachRequest {
            session_id: self.session_id.clone(),
            epoch: self.position.epoch.clone(),
            after_seq: self.position.seq,
            // Nothing comes after the last possible row: no history is sent.
            after_message_id: self.position.message_id.unwrap_or(i64::MAX),
            can_answer: self.can_answer.clone(),
        };
        let mut stream = self.client.attach(request).await?;
        let Some(Frame::Attached(mut attached)) = next_frame(&mut stream).await? else {
            return Err(WatchError::Contract("a watch did not begin with `attached`"));
        };
        let mut more = attached.more_rows;
        while more {
            let Some(Frame::Rows(batch)) = next_frame(&mut stream).await? else {
                return Err(WatchError::Contract("rows were announced and did not come"));
            };
            attached.rows.extend(batch.rows);
            more = batch.more_rows;
        }
        attached.more_rows = false;

        let restarted = self.position.epoch.as_ref().is_some_and(|epoch| *epoch != attached.epoch);
        self.position.settle(&attached);
        self.stream = Some(stream);
        Ok(Attachment { attached, restarted })
    }
}

async fn next_frame(stream: &mut Streaming<v1::AttachFrame>) -> Result<Option<Frame>, CallError> {
    const DOING: &str = "watch the session";
    match stream.message().await {
        Ok(Some(frame)) => Ok(frame.frame),
        Ok(None) => Err(CallError::lost(DOING, "the daemon ended the watch")),
        Err(status) => Err(CallError::from_status(DOING, &status)),
    }
}

impl Position {
    /// Takes an event in; `false` for one that was seen before.
    fn advance(&mut self, event: &v1::Event) -> bool {
        if event.seq <= self.seq {
            return false;
        }
        self.seq = event.seq;
        if let Some(id) = durable_row(event) {
            self.message_id = Some(self.message_id.map_or(id, |seen| seen.max(id)));
        }
        true
    }

    /// Takes the answer to an attach in.
    fn settle(&mut self, attached: &v1::Attached) {
        let first = self.epoch.is_none();
        let other_epoch = self.epoch.as_deref() != Some(attached.epoch.as_str());
        // Without a gap the missed events follow, and each of them moves the position.
        if attached.gap || first || other_epoch {
            self.seq = attached.last_seq;
        }
        self.epoch = Some(attached.epoch.clone());
        if let Some(last) = attached.rows.iter().map(|row| row.id).max() {
            self.message_id = Some(self.message_id.map_or(last, |seen| seen.max(last)));
        }
    }
}

/// The durable row that an event reports.
fn durable_row(event: &v1::Event) -> Option<i64> {
    use v1::event::Payload;
    match event.payload.as_ref()? {
        Payload::TurnAccepted(accepted) => accepted.message_id,
        Payload::MessageInterim(interim) => interim.message_id,
        Payload::ToolStart(start) => start.message_id,
        Payload::ToolComplete(complete) => complete.message_id,
        Payload::MessageComplete(result) => result.message_id,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use v1::event::Payload;

    fn event(seq: u64, message_id: Option<i64>) -> v1::Event {
        let payload = Payload::TurnAccepted(v1::TurnAccepted { client_message_id: None, message_id });
        v1::Event { seq, payload: Some(payload), ..v1::Event::default() }
    }

    fn attached(epoch: &str, last_seq: u64, gap: bool, rows: &[i64]) -> v1::Attached {
        let rows = rows.iter().map(|id| v1::Row { id: *id, ..v1::Row::default() }).collect();
        v1::Attached { epoch: epoch.into(), last_seq, gap, rows, ..v1::Attached::default() }
    }

    #[test]
    fn an_event_seen_twice_is_dropped() {
        let mut position = Position::default();
        assert!(position.advance(&event(1, None)));
        assert!(!position.advance(&event(1, None)));
        assert!(position.advance(&event(2, Some(7))));
        assert_eq!((position.seq, position.message_id), (2, Some(7)));
    }

    #[test]
    fn a_replay_within_the_epoch_keeps_the_position_so_that_missed_events_count() {
        let mut position = Position { epoch: Some("e".into()), seq: 3, message_id: Some(5) };
        position.settle(&attached("e", 9, false, &[]));
        assert_eq!(position.seq, 3);
        assert!(position.advance(&event(4, None)));
    }

    #[test]
    fn a_new_epoch_begins_counting_anew() {
        let mut position = Position { epoch: Some("old".into()), seq: 40, message_id: Some(5) };
        position.settle(&attached("new", 2, true, &[6, 9]));
        assert_eq!((position.seq, position.message_id), (2, Some(9)));
        assert!(position.advance(&event(3, None)));
    }

    #[test]
    fn a_first_attach_starts_behind_what_was_before() {
        let mut position = Position::default();
        position.settle(&attached("e", 12, true, &[]));
        assert_eq!((position.seq, position.message_id), (12, None));
    }
}

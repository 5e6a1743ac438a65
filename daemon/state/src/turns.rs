//! Turns: begun with the user's row, written to as they run, finished once.
//!
//! A turn's *generation* is the fence of spec 10 §21. It is raised in the transaction that writes
//! the user row; every later write names it and is refused once another turn of the session began
//! or this one was finished, so that a wedged or revoked owner writes nothing.

use hermes_core::{Instant, Message, MessageId, SessionId, TurnId, TurnState};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::column;
use crate::db::Db;
use crate::error::{BeginTurnError, StateError};
use crate::rows;
use crate::usage::{UsageDelta, book};
use crate::writer::Fault;

/// Names a running turn to the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnKey {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub generation: i64,
}

/// What begins a turn.
#[derive(Debug, Clone)]
pub struct BeginTurn {
    pub turn_id: TurnId,
    pub session_id: SessionId,
    /// The principal's text form.
    pub principal: String,
    /// The same id again is a [`BeginTurnError::Duplicate`].
    pub client_message_id: Option<String>,
    /// The user's row.
    pub user: Message,
    pub started_at: Instant,
    /// The queue entry that becomes this turn: it leaves the queue in the same transaction, so
    /// that a crash can neither lose it nor run it twice.
    pub queued_input: Option<String>,
}

/// A turn that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BegunTurn {
    pub generation: i64,
    pub message_id: MessageId,
}

/// Something that a running turn adds.
#[derive(Debug, Clone, Default)]
pub struct TurnWrite {
    /// Rows in order. One that carries an id was written before and is not written again.
    pub rows: Vec<Message>,
    pub usage: Option<UsageDelta>,
}

/// The end of a turn.
#[derive(Debug, Clone)]
pub struct FinishTurn {
    pub state: TurnState,
    pub exit_reason: String,
    /// Last rows, for instance those that close open tool calls.
    pub rows: Vec<Message>,
    pub ended_at: Instant,
}

/// A turn as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRecord {
    pub turn_id: TurnId,
    pub session_id: SessionId,
    pub generation: i64,
    pub principal: String,
    pub client_message_id: Option<String>,
    /// The row that began it.
    pub user_message_id: Option<MessageId>,
    pub state: TurnState,
    pub exit_reason: Option<String>,
    pub started_at: Instant,
    pub ended_at: Option<Instant>,
}

impl TurnRecord {
    /// The key under which this turn can be written to.
    pub fn key(&self) -> TurnKey {
        TurnKey {
            session_id: self.session_id.clone(),
            turn_id: self.turn_id.clone(),
            generation: self.generation,
        }
    }
}

impl Db {
    /// Begins a turn, as one transaction: turn row, user row, counters, a session that had ended
    /// is open again, a turn that still ran in it is closed as `superseded`.
    ///
    /// # Errors
    /// [`BeginTurnError::Duplicate`] when the client's id had its turn already;
    /// [`StateError::UnknownSession`].
    pub async fn begin_turn(&self, turn: BeginTurn) -> Result<BegunTurn, BeginTurnError> {
        let now = self.now();
        self.write_transcript(move |conn| begin(conn, &turn, now)).await
    }

    /// Appends rows and books usage for a running turn. Returns the rows' ids, in order.
    ///
    /// # Errors
    /// [`StateError::StaleGeneration`] when the turn is no longer the session's running one.
    pub async fn write_turn(&self, key: &TurnKey, write: TurnWrite) -> Result<Vec<MessageId>, StateError> {
        let (key, now) = (key.clone(), self.now());
        self.write_transcript(move |conn| {
            check_fence(conn, &key)?;
            let ids = append(conn, &key.session_id, &write.rows, now)?;
            if let Some(delta) = &write.usage {
                book(conn, &key.session_id, delta, now)?;
            }
            Ok(ids)
        })
        .await
    }

    /// Appends the last rows and closes the turn.
    ///
    /// # Errors
    /// [`StateError::StaleGeneration`] when the turn is no longer running: it ends once.
    pub async fn finish_turn(&self, key: &TurnKey, finish: FinishTurn) -> Result<Vec<MessageId>, StateError> {
        let (key, now) = (key.clone(), self.now());
        self.write_transcript(move |conn| {
            check_fence(conn, &key)?;
            let ids = append(conn, &key.session_id, &finish.rows, now)?;
            conn.prepare_cached(
                "UPDATE turns SET state = ?2, exit_reason = ?3, ended_at = ?4 WHERE id = ?1",
            )?
            .execute(params![
                key.turn_id.as_str(),
                finish.state.as_str(),
                finish.exit_reason,
                finish.ended_at.unix_seconds(),
            ])?;
            Ok(ids)
        })
        .await
    }

    /// Turns that never ended, oldest first: after a crash they have to be closed.
    pub async fn unfinished_turns(&self) -> Result<Vec<TurnRecord>, StateError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT * FROM turns WHERE state = 'running' ORDER BY started_at, rowid")?
                .query_map([], record)?
                .filter_map(Result::transpose)
                .collect()
        })
        .await
    }

    /// One turn of a session.
    pub async fn turn(&self, session: &SessionId, turn: &TurnId) -> Result<Option<TurnRecord>, StateError> {
        let (session, turn) = (session.clone(), turn.clone());
        self.read(move |conn| {
            conn.prepare_cached("SELECT * FROM turns WHERE id = ?1 AND session_id = ?2")?
                .query_row([turn.as_str(), session.as_str()], record)
                .optional()
                .map(Option::flatten)
        })
        .await
    }

    /// The turn that a client's input became.
    pub async fn turn_of_client_message(
        &self,
        session: &SessionId,
        client_message_id: &str,
    ) -> Result<Option<TurnRecord>, StateError> {
        let (session, id) = (session.clone(), client_message_id.to_owned());
        self.read(move |conn| {
            conn.prepare_cached("SELECT * FROM turns WHERE session_id = ?1 AND client_message_id = ?2")?
                .query_row([session.as_str(), &id], record)
                .optional()
                .map(Option::flatten)
        })
        .await
    }

    /// The newest turn of a session.
    pub async fn last_turn(&self, session: &SessionId) -> Result<Option<TurnRecord>, StateError> {
        let session = session.clone();
        self.read(move |conn| {
            conn.prepare_cached("SELECT * FROM turns WHERE session_id = ?1 ORDER BY generation DESC LIMIT 1")?
                .query_row([session.as_str()], record)
                .optional()
                .map(Option::flatten)
        })
        .await
    }
}

fn begin(conn: &Connection, turn: &BeginTurn, now: Instant) -> Result<BegunTurn, Fault<BeginTurnError>> {
    let session = turn.session_id.as_str();
    if let Some(client_id) = &turn.client_message_id {
        let known = conn
            .prepare_cached("SELECT * FROM turns WHERE session_id = ?1 AND client_message_id = ?2")?
            .query_row([session, client_id], record)
            .optional()?
            .flatten();
        if let Some(TurnRecord { turn_id, state, exit_reason, .. }) = known {
            return Err(Fault::Refused(BeginTurnError::Duplicate { turn_id, state, exit_reason }));
        }
    }
    let last_generation: Option<i64> = conn
        .prepare_cached(
            "SELECT COALESCE((SELECT max(generation) FROM turns WHERE session_id = ?1), 0)
             FROM sessions WHERE id = ?1",
        )?
        .query_row([session], |row| row.get(0))
        .optional()?;
    let Some(last_generation) = last_generation else {
        return Err(Fault::Refused(StateError::UnknownSession(turn.session_id.clone()).into()));
    };
    conn.prepare_cached(
        "UPDATE turns SET state = 'interrupted', exit_reason = 'superseded', ended_at = ?2
         WHERE session_id = ?1 AND state = 'running'",
    )?
    .execute(params![session, now.unix_seconds()])?;
    conn.prepare_cached(
        "UPDATE sessions SET ended_at = NULL, end_reason = NULL
         WHERE id = ?1 AND (ended_at IS NOT NULL OR end_reason IS NOT NULL)",
    )?
    .execute([session])?;
    let ids = append(conn, &turn.session_id, std::slice::from_ref(&turn.user), now)?;
    let message_id = ids.first().copied().unwrap_or(MessageId(0));
    let generation = last_generation + 1;
    conn.prepare_cached(
        "INSERT INTO turns (id, session_id, generation, principal, client_message_id, user_message_id, state, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'running', ?7)",
    )?
    .execute(params![
        turn.turn_id.as_str(),
        session,
        generation,
        turn.principal,
        turn.client_message_id,
        message_id.0,
        turn.started_at.unix_seconds(),
    ])?;
    if let Some(input) = &turn.queued_input {
        conn.prepare_cached("DELETE FROM inputs WHERE id = ?1")?.execute([input])?;
    }
    Ok(BegunTurn { generation, message_id })
}

/// At most one turn of a session runs, and it has the newest generation: one lookup tells.
fn check_fence(conn: &Connection, key: &TurnKey) -> Result<(), Fault<StateError>> {
    let holds = conn
        .prepare_cached(
            "SELECT 1 FROM turns WHERE id = ?1 AND session_id = ?2 AND generation = ?3 AND state = 'running'",
        )?
        .exists(params![key.turn_id.as_str(), key.session_id.as_str(), key.generation])?;
    if holds {
        return Ok(());
    }
    Err(Fault::Refused(StateError::StaleGeneration { turn_id: key.turn_id.clone() }))
}

/// Appends rows that have no id yet, and keeps the session's counters in step.
fn append(
    conn: &Connection,
    session: &SessionId,
    messages: &[Message],
    now: Instant,
) -> rusqlite::Result<Vec<MessageId>> {
    let mut ids = Vec::with_capacity(messages.len());
    let (mut written, mut calls) = (0_u64, 0_u64);
    for message in messages {
        if let Some(id) = message.id {
            ids.push(id);
            continue;
        }
        ids.push(rows::insert(conn, session, message)?);
        written += 1;
        calls += message.tool_calls.len() as u64;
    }
    if written > 0 {
        conn.prepare_cached(
            "UPDATE sessions SET message_count = COALESCE(message_count, 0) + ?2,
                 tool_call_count = COALESCE(tool_call_count, 0) + ?3,
                 last_activity_at = max(COALESCE(last_activity_at, 0), ?4)
             WHERE id = ?1",
        )?
        .execute(params![
            session.as_str(),
            column::stored(written),
            column::stored(calls),
            now.unix_seconds()
        ])?;
    }
    Ok(ids)
}

/// Reads a row of `turns`; `None` for one whose ids could not be passed on.
fn record(row: &Row<'_>) -> rusqlite::Result<Option<TurnRecord>> {
    let turn_id = column::text(row, "id")?.and_then(|id| TurnId::parse(&id).ok());
    let (Some(turn_id), Some(session_id)) = (turn_id, column::session_id(row, "session_id")?) else {
        return Ok(None);
    };
    let state = column::text(row, "state")?.unwrap_or_default();
    Ok(Some(TurnRecord {
        turn_id,
        session_id,
        generation: column::integer(row, "generation")?,
        principal: column::text(row, "principal")?.unwrap_or_default(),
        client_message_id: column::text(row, "client_message_id")?,
        user_message_id: row.get::<_, Option<i64>>("user_message_id")?.map(MessageId),
        // The table's own check allows no other names.
        state: TurnState::parse(&state).unwrap_or(TurnState::Failed),
        exit_reason: column::filled(row, "exit_reason")?,
        started_at: column::instant(row, "started_at")?.unwrap_or_default(),
        ended_at: column::instant(row, "ended_at")?,
    }))
}

//! The durable queue of inputs that wait for their turn.

use hermes_core::{Instant, Json, SessionId};
use rusqlite::{Row, params};

use crate::column;
use crate::db::Db;
use crate::error::StateError;
use crate::writer::Fault;

/// One waiting input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRow {
    pub id: String,
    pub session_id: SessionId,
    /// The principal's text form.
    pub principal: String,
    /// `queue` or `steer`.
    pub mode: String,
    pub text: String,
    pub options: Json,
    pub client_message_id: Option<String>,
    pub created_at: Instant,
}

impl Db {
    /// Puts an input at the end of its session's queue. `false` when the same id, or the client's
    /// id in this session, waits already.
    ///
    /// # Errors
    /// [`StateError::UnknownSession`].
    pub async fn push_input(&self, input: InputRow) -> Result<bool, StateError> {
        self.write_transcript(move |conn| {
            let mut session = conn.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?;
            if !session.exists([input.session_id.as_str()])? {
                return Err(Fault::Refused(StateError::UnknownSession(input.session_id.clone())));
            }
            let added = conn
                .prepare_cached(
                    "INSERT INTO inputs (id, session_id, principal, mode, text, options, client_message_id, created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
                )?
                .execute(params![
                    input.id,
                    input.session_id.as_str(),
                    input.principal,
                    input.mode,
                    input.text,
                    input.options.as_str(),
                    input.client_message_id,
                    input.created_at.unix_seconds(),
                ])?;
            Ok(added > 0)
        })
        .await
    }

    /// The session's queue, first to run first.
    pub async fn list_inputs(&self, session: &SessionId) -> Result<Vec<InputRow>, StateError> {
        let session = session.clone();
        self.read(move |conn| {
            conn.prepare_cached("SELECT * FROM inputs WHERE session_id = ?1 ORDER BY seq")?
                .query_map([session.as_str()], |row| input(row, &session))?
                .collect()
        })
        .await
    }

    /// Takes an input out of its queue; `false` when it is not there any more.
    pub async fn take_input(&self, id: &str) -> Result<bool, StateError> {
        let id = id.to_owned();
        self.write(move |conn| {
            Ok(conn.prepare_cached("DELETE FROM inputs WHERE id = ?1")?.execute([&id])? > 0)
        })
        .await
    }

    /// Sessions in which inputs of people wait, longest waiting first. Notices of processes (mode `notice`)
    /// wait until somebody opens their session.
    pub async fn sessions_with_inputs(&self) -> Result<Vec<SessionId>, StateError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT session_id FROM inputs WHERE mode <> 'notice' GROUP BY session_id ORDER BY min(seq)",
            )?
            .query_map([], |row| column::session_id(row, 0))?
            .filter_map(Result::transpose)
            .collect()
        })
        .await
    }
}

fn input(row: &Row<'_>, session: &SessionId) -> rusqlite::Result<InputRow> {
    Ok(InputRow {
        id: column::text(row, "id")?.unwrap_or_default(),
        session_id: session.clone(),
        principal: column::text(row, "principal")?.unwrap_or_default(),
        mode: column::text(row, "mode")?.unwrap_or_default(),
        text: column::text(row, "text")?.unwrap_or_default(),
        options: column::json(row, "options")?.unwrap_or_else(|| Json::from(serde_json::json!({}))),
        client_message_id: column::text(row, "client_message_id")?,
        created_at: column::instant(row, "created_at")?.unwrap_or_default(),
    })
}

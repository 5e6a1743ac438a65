//! Reading a session's messages.

use hermes_core::{Message, MessageId, SessionId};
use rusqlite::{Connection, Params, params};

use crate::db::Db;
use crate::error::StateError;
use crate::rows;

impl Db {
    /// What the model knows: the rows of the live generation, in order, with their ids.
    pub async fn load_messages(&self, session: &SessionId) -> Result<Vec<Message>, StateError> {
        let id = session.clone();
        self.read(move |conn| {
            let columns = rows::COLUMNS;
            let sql =
                format!("SELECT {columns} FROM messages WHERE session_id = ?1 AND active = 1 ORDER BY id");
            collect(conn, &sql, [id.as_str()])
        })
        .await
    }

    /// What a person may see, compacted rows included and rewound ones not: the first `limit`
    /// rows after `after`, in order.
    pub async fn display_rows(
        &self,
        session: &SessionId,
        after: MessageId,
        limit: u32,
    ) -> Result<Vec<Message>, StateError> {
        let id = session.clone();
        self.read(move |conn| {
            let columns = rows::COLUMNS;
            let sql = format!(
                "SELECT {columns} FROM messages
                 WHERE session_id = ?1 AND id > ?2 AND (active = 1 OR compacted = 1) ORDER BY id LIMIT ?3"
            );
            collect(conn, &sql, params![id.as_str(), after.0, limit])
        })
        .await
    }
}

fn collect(conn: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<Vec<Message>> {
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map(params, rows::read)?;
    rows.filter_map(Result::transpose).collect()
}

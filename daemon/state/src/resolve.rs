//! Finding the session that a person means.

use hermes_core::SessionId;
use rusqlite::{Connection, Row};

use crate::column;
use crate::db::Db;
use crate::error::{ResolveError, SessionRef, StateError};
use crate::{lineage, titles};

/// How many sessions an error names.
const NEAR: usize = 5;
const MATCHES: usize = 10;

impl Db {
    /// The session that `reference` names: an exact id, the unique beginning of an id, or a title
    /// (its newest numbered variant, else exactly it). Every character stands for itself. Of a
    /// conversation that compression divided, the part in which it goes on is returned.
    ///
    /// # Errors
    /// [`ResolveError::NotFound`], [`ResolveError::Ambiguous`].
    pub async fn resolve_session(&self, reference: &str) -> Result<SessionId, ResolveError> {
        let reference = reference.trim().to_owned();
        self.read_or(move |conn| resolve(conn, &reference)).await
    }

    /// The conversation that was last active and has messages, of one source or of any.
    pub async fn latest_session(&self, source: Option<&str>) -> Result<Option<SessionId>, StateError> {
        let source = source.map(str::to_owned);
        let sql = format!(
            "SELECT s.id FROM sessions AS s
             WHERE {} AND COALESCE(s.archived, 0) = 0 AND COALESCE(s.message_count, 0) > 0
               AND (?1 IS NULL OR s.source = ?1)
             ORDER BY COALESCE(s.last_activity_at, s.started_at) DESC, s.started_at DESC",
            lineage::listed()
        );
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(&sql)?;
            let mut found = statement.query_map([source], |row| column::session_id(row, 0))?;
            found.find_map(Result::transpose).transpose()
        })
        .await
    }
}

fn resolve(conn: &Connection, reference: &str) -> Result<SessionId, ResolveError> {
    if reference.is_empty() {
        return Err(ResolveError::NotFound { reference: String::new(), near: Vec::new() });
    }
    let by_id = with_prefix(conn, reference).map_err(StateError::from)?;
    let exact = by_id.iter().find(|session| session.id.as_str() == reference);
    if let Some(session) = exact.or(if by_id.len() == 1 { by_id.first() } else { None }) {
        return follow(conn, session.id.as_str(), reference);
    }
    if let Some(id) = by_title(conn, reference).map_err(StateError::from)? {
        return follow(conn, &id, reference);
    }
    if by_id.is_empty() {
        let near = near(conn, reference).map_err(StateError::from)?;
        return Err(ResolveError::NotFound { reference: reference.to_owned(), near });
    }
    // All parts of one conversation are one match.
    let mut tips = Vec::new();
    for session in &by_id {
        tips.push(lineage::tip(conn, session.id.as_str()).map_err(StateError::from)?);
    }
    match tips.first() {
        Some(tip) if by_id.len() <= MATCHES && tips.iter().all(|other| other == tip) => {
            follow(conn, tip, reference)
        }
        _ => {
            let matches = by_id.into_iter().take(MATCHES).collect();
            Err(ResolveError::Ambiguous { reference: reference.to_owned(), matches })
        }
    }
}

fn follow(conn: &Connection, id: &str, reference: &str) -> Result<SessionId, ResolveError> {
    let tip = lineage::tip(conn, id).map_err(StateError::from)?;
    SessionId::parse(&tip)
        .map_err(|_| ResolveError::NotFound { reference: reference.to_owned(), near: Vec::new() })
}

/// Sessions whose id begins with `prefix`, one more than an error would name at most. Ids sort by
/// bytes, so all of one prefix stand together from the prefix itself on.
fn with_prefix(conn: &Connection, prefix: &str) -> rusqlite::Result<Vec<SessionRef>> {
    let mut statement = conn.prepare_cached("SELECT id, title FROM sessions WHERE id >= ?1 ORDER BY id")?;
    let mut rows = statement.query([prefix])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = column::text(row, 0)?.unwrap_or_default();
        if !id.starts_with(prefix) || found.len() > MATCHES {
            break;
        }
        found.extend(session_ref(row)?);
    }
    Ok(found)
}

fn by_title(conn: &Connection, title: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = conn.prepare_cached(
        "SELECT id, title FROM sessions WHERE title = ?1 OR (title >= ?1 || ' #' AND title < ?1 || ' $')
         ORDER BY title = ?1, started_at DESC, id DESC",
    )?;
    let mut rows = statement.query([title])?;
    while let Some(row) = rows.next()? {
        let stored = column::text(row, 1)?.unwrap_or_default();
        if stored == title || titles::number_of(&stored, title).is_some() {
            return column::text(row, 0);
        }
    }
    Ok(None)
}

fn near(conn: &Connection, reference: &str) -> rusqlite::Result<Vec<SessionRef>> {
    let limit = NEAR;
    let sql = format!(
        "SELECT id, title FROM sessions WHERE instr(lower(COALESCE(title, '')), lower(?1)) > 0 OR instr(id, ?1) > 0
         ORDER BY COALESCE(last_activity_at, started_at) DESC LIMIT {limit}"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let found = statement.query_map([reference], session_ref)?;
    found.filter_map(Result::transpose).collect()
}

fn session_ref(row: &Row<'_>) -> rusqlite::Result<Option<SessionRef>> {
    let title = column::filled(row, 1)?;
    Ok(column::session_id(row, 0)?.map(|id| SessionRef { id, title }))
}

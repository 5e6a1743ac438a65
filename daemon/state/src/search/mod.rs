//! Search over all messages: by the word index, and by a scan where that cannot answer.
//!
//! The scan (CJK, words glued to CJK, a database without our index) has the same meaning of AND,
//! OR and NOT and sees the same rows; it looks at the newest 200,000 messages.

mod query;
mod snippet;

use hermes_core::{Instant, MessageId, Role, SessionId};
use rusqlite::{Connection, Row, params, params_from_iter};

use crate::column;
use crate::db::Db;
use crate::error::StateError;
use crate::rows;
use query::Query;

/// Hits of the index that are looked at before roles and visibility are known.
const SCANNED_HITS: u32 = 300;
/// Newest messages that a scan goes through.
const SCANNED_ROWS: i64 = 200_000;
/// Results at most.
const MAX_RESULTS: u32 = 200;

/// One message that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    pub session_id: SessionId,
    pub message_id: MessageId,
    pub role: Role,
    /// Some forty words around the match, which stands between `>>>` and `<<<`; `...` marks gaps.
    pub snippet: String,
    pub timestamp: Instant,
    /// The session's title.
    pub title: Option<String>,
}

impl Db {
    /// Messages that fit `text`, best first. Compacted rows are found, rewound ones are not. Tool
    /// results are returned only when nothing that was said fits. Any text is a legal query; one
    /// without words finds nothing.
    pub async fn search(&self, text: &str, limit: u32) -> Result<Vec<SearchHit>, StateError> {
        let query = Query::parse(text);
        if query.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let (limit, has_index) = (limit.min(MAX_RESULTS) as usize, self.has_index());
        self.read(move |conn| {
            if has_index && !query.has_cjk() {
                let hits = by_index(conn, &query, limit)?;
                if !hits.is_empty() {
                    return Ok(hits);
                }
            }
            by_scan(conn, &query, limit)
        })
        .await
    }
}

fn by_index(conn: &Connection, query: &Query, limit: usize) -> rusqlite::Result<Vec<SearchHit>> {
    let asked = query.to_match();
    // Ranked inside the index first: looking up the row of every hit of a common word would cost
    // far more than the search.
    let mut statement = conn.prepare_cached(
        "SELECT m.id, m.session_id, m.role, m.timestamp, s.title
         FROM (SELECT rowid AS id, rank AS place FROM messages_fts
               WHERE messages_fts MATCH ?1 AND rank MATCH 'bm25(3.0, 2.0, 1.0)' ORDER BY rank LIMIT ?2) AS found
         JOIN messages AS m ON m.id = found.id
         JOIN sessions AS s ON s.id = m.session_id
         WHERE (m.active = 1 OR m.compacted = 1) AND COALESCE(s.hidden, 0) = 0 AND s.source <> 'tool'
         ORDER BY found.place",
    )?;
    let hits =
        statement.query_map(params![asked, SCANNED_HITS.max(MAX_RESULTS)], |row| hit(row, String::new()))?;
    let hits: Vec<SearchHit> = hits.filter_map(Result::transpose).collect::<rusqlite::Result<_>>()?;
    let mut snippet = conn.prepare_cached(
        "SELECT snippet(messages_fts, -1, '>>>', '<<<', '...', 40) FROM messages_fts
         WHERE messages_fts MATCH ?1 AND rowid = ?2",
    )?;
    choose(hits, limit, |hit| {
        snippet
            .query_row(params![asked, hit.message_id.0], |row| column::text(row, 0))
            .map(Option::unwrap_or_default)
    })
}

fn by_scan(conn: &Connection, query: &Query, limit: usize) -> rusqlite::Result<Vec<SearchHit>> {
    let (condition, patterns) = query.to_condition();
    let sql = format!(
        "SELECT m.id, m.session_id, m.role, m.timestamp, s.title, m.content, m.tool_calls
         FROM messages AS m JOIN sessions AS s ON s.id = m.session_id
         WHERE m.id > (SELECT COALESCE(max(id), 0) - {SCANNED_ROWS} FROM messages) AND {condition}
           AND (m.active = 1 OR m.compacted = 1) AND COALESCE(s.hidden, 0) = 0 AND s.source <> 'tool'
         ORDER BY m.id DESC LIMIT {SCANNED_HITS}"
    );
    let mut statement = conn.prepare(&sql)?;
    let terms: Vec<&str> = query.positive_terms().map(|term| term.text.as_str()).collect();
    let hits = statement.query_map(params_from_iter(patterns), |row| {
        let content = column::text(row, 5)?.map(rows::decode_content);
        let text = content.as_ref().map_or_else(Default::default, hermes_core::Content::text);
        let snippet = snippet::around(&text, &terms)
            .or(column::text(row, 6)?.and_then(|calls| snippet::around(&calls, &terms)))
            .unwrap_or_default();
        hit(row, snippet)
    })?;
    let hits: Vec<SearchHit> = hits.filter_map(Result::transpose).collect::<rusqlite::Result<_>>()?;
    choose(hits, limit, |hit| Ok(hit.snippet.clone()))
}

/// Takes the first `limit` hits that people and the model said, or, when there is none, tool
/// results. A row that compaction copied counts once.
fn choose(
    hits: Vec<SearchHit>,
    limit: usize,
    mut snippet: impl FnMut(&SearchHit) -> rusqlite::Result<String>,
) -> rusqlite::Result<Vec<SearchHit>> {
    let said = |hit: &SearchHit| matches!(hit.role, Role::User | Role::Assistant);
    let only_said = hits.iter().any(said);
    let mut chosen: Vec<SearchHit> = Vec::new();
    for mut hit in hits.into_iter().filter(|hit| !only_said || said(hit)) {
        if chosen.len() == limit {
            break;
        }
        hit.snippet = snippet(&hit)?;
        let copy = chosen.iter().any(|other| {
            other.session_id == hit.session_id
                && other.role == hit.role
                && other.timestamp == hit.timestamp
                && other.snippet == hit.snippet
        });
        if !copy {
            chosen.push(hit);
        }
    }
    Ok(chosen)
}

fn hit(row: &Row<'_>, snippet: String) -> rusqlite::Result<Option<SearchHit>> {
    let role = column::text(row, 2)?.and_then(|role| Role::parse(&role));
    let (Some(session_id), Some(role)) = (column::session_id(row, 1)?, role) else { return Ok(None) };
    Ok(Some(SearchHit {
        session_id,
        message_id: MessageId(row.get(0)?),
        role,
        snippet,
        timestamp: column::instant(row, 3)?.unwrap_or_default(),
        title: column::filled(row, 4)?,
    }))
}

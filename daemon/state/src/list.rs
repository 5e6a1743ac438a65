//! Lists of sessions. Prompts and other long columns never leave the database for them.

use hermes_core::{CostStatus, Instant, SessionId, Usage};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::db::Db;
use crate::error::StateError;
use crate::{column, lineage, rows};

/// What a list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFilter {
    pub source: Option<String>,
    /// A repository root or a directory: sessions that work in it or below.
    pub workspace: Option<String>,
    /// A part of the id or title; case and punctuation do not matter.
    pub text: Option<String>,
    pub include_archived: bool,
    /// Rows at most; default 50.
    pub limit: u32,
    pub offset: u32,
}

impl Default for ListFilter {
    fn default() -> Self {
        Self { source: None, workspace: None, text: None, include_archived: false, limit: 50, offset: 0 }
    }
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    pub id: SessionId,
    pub source: String,
    pub title: Option<String>,
    /// The first words that the user said, at most 60 characters on one line; may be empty.
    pub preview: String,
    pub model: Option<String>,
    pub started_at: Instant,
    pub last_active: Instant,
    pub message_count: u64,
    pub tool_call_count: u64,
    pub api_call_count: u64,
    pub cwd: Option<String>,
    pub git_branch: Option<String>,
    pub usage: Usage,
    pub estimated_cost_usd: Option<f64>,
    pub cost_status: CostStatus,
    pub end_reason: Option<String>,
    pub archived: bool,
}

impl Db {
    /// Conversations, last active first. Sub-agents, tool sessions and hidden ones are left out; a
    /// conversation that compression divided appears once, as the part in which it goes on.
    pub async fn list_sessions(&self, filter: ListFilter) -> Result<Vec<SessionSummary>, StateError> {
        self.read(move |conn| {
            let ids = matching(conn, &filter)?;
            ids.iter().filter_map(|id| summary(conn, id).transpose()).collect()
        })
        .await
    }

    /// One session as a list shows it, whether a list would show it or not.
    pub async fn session_summary(&self, id: &SessionId) -> Result<Option<SessionSummary>, StateError> {
        let id = id.clone();
        self.read(move |conn| summary(conn, &id)).await
    }
}

fn matching(conn: &Connection, filter: &ListFilter) -> rusqlite::Result<Vec<SessionId>> {
    let sql = format!(
        "SELECT s.id, s.title FROM sessions AS s
         WHERE {} AND (?1 OR COALESCE(s.archived, 0) = 0) AND (?2 IS NULL OR s.source = ?2)
           AND (?3 IS NULL OR s.git_repo_root = ?3 OR s.cwd = ?3 OR substr(s.cwd, 1, length(?4)) = ?4)
         ORDER BY COALESCE(s.last_activity_at, s.started_at) DESC, s.started_at DESC",
        lineage::listed()
    );
    let workspace = filter.workspace.as_ref().map(|path| match path.trim_end_matches('/') {
        "" => "/",
        trimmed => trimmed,
    });
    let below = workspace.map(|path| if path == "/" { path.to_owned() } else { format!("{path}/") });
    let wanted = filter.text.as_deref().map(Wanted::new);
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![filter.include_archived, filter.source, workspace, below])?;
    let (mut skipped, mut found) = (0, Vec::new());
    while found.len() < filter.limit as usize
        && let Some(row) = rows.next()?
    {
        let Some(id) = column::session_id(row, 0)? else { continue };
        if let Some(wanted) = &wanted
            && !wanted.is_in(id.as_str())
            && !wanted.is_in(&column::text(row, 1)?.unwrap_or_default())
        {
            continue;
        }
        if skipped < filter.offset {
            skipped += 1;
            continue;
        }
        found.push(id);
    }
    Ok(found)
}

/// A text to look for, with and without its punctuation.
struct Wanted {
    lower: String,
    bare: String,
}

impl Wanted {
    fn new(text: &str) -> Self {
        let lower = text.trim().to_lowercase();
        let bare = bare(&lower);
        Self { lower, bare }
    }

    fn is_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        text.contains(&self.lower) || (!self.bare.is_empty() && bare(&text).contains(&self.bare))
    }
}

fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn summary(conn: &Connection, id: &SessionId) -> rusqlite::Result<Option<SessionSummary>> {
    // As bytes: a text function would stop at the NUL with which the original's structured rows begin.
    let preview = conn
        .prepare_cached(
            "SELECT substr(CAST(content AS BLOB), 1, 600) FROM messages
             WHERE session_id = ?1 AND role = 'user' AND content IS NOT NULL AND (active = 1 OR compacted = 1)
               AND COALESCE(_compressed_summary, 0) = 0 AND COALESCE(display_kind, '') <> 'hidden'
               AND substr(content, 1, 19) <> '[CONTEXT COMPACTION' AND substr(content, 1, 16) <> '[CONTEXT SUMMARY'
             ORDER BY id LIMIT 1",
        )?
        .query_row([id.as_str()], |row| Ok(rows::preview(row.get_ref(0)?.as_bytes().unwrap_or_default())))
        .optional()?
        .unwrap_or_default();
    conn.prepare_cached(
        "SELECT source, title, model, started_at, last_activity_at, message_count, tool_call_count, api_call_count,
             cwd, git_branch, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
             estimated_cost_usd, cost_status, end_reason, archived
         FROM sessions WHERE id = ?1",
    )?
    .query_row([id.as_str()], |row| line(row, id, preview))
    .optional()
}

fn line(row: &Row<'_>, id: &SessionId, preview: String) -> rusqlite::Result<SessionSummary> {
    let started_at = column::instant(row, "started_at")?.unwrap_or_default();
    Ok(SessionSummary {
        id: id.clone(),
        source: column::text(row, "source")?.unwrap_or_default(),
        title: column::filled(row, "title")?,
        preview,
        model: column::filled(row, "model")?,
        started_at,
        last_active: column::instant(row, "last_activity_at")?.unwrap_or(started_at),
        message_count: column::count(row, "message_count")?,
        tool_call_count: column::count(row, "tool_call_count")?,
        api_call_count: column::count(row, "api_call_count")?,
        cwd: column::filled(row, "cwd")?,
        git_branch: column::filled(row, "git_branch")?,
        usage: column::usage(row)?,
        estimated_cost_usd: column::real(row, "estimated_cost_usd")?,
        cost_status: column::cost_status(row, "cost_status")?,
        end_reason: column::filled(row, "end_reason")?,
        archived: column::flag(row, "archived")?,
    })
}

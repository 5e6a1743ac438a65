//! Session rows: made when a conversation opens, read when it is taken up again.

use hermes_core::{CostStatus, Instant, Json, SessionId, Usage};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::db::Db;
use crate::error::StateError;
use crate::lineage::{AUTOMATIC_REASONS, BOUNDARY_REASONS};
use crate::writer::Fault;
use crate::{column, prompts, titles};

/// A session that begins. What is frozen for its life (prompt, tools) is stored byte for byte.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    /// `cli`, `tui`, `cron`, `telegram`, …
    pub source: String,
    /// The surface that decided toolset and platform hint.
    pub platform: Option<String>,
    pub user_id: Option<String>,
    pub model: String,
    pub provider: String,
    pub base_url: String,
    pub system_prompt: String,
    pub tool_names: Vec<String>,
    /// The exact JSON that is sent as `tools`.
    pub tool_schemas: String,
    pub parent: Option<SessionId>,
    pub cwd: Option<String>,
    pub git_branch: Option<String>,
    pub git_repo_root: Option<String>,
    /// Chosen by a person; takes the next number when it is taken.
    pub title: Option<String>,
    pub started_at: Instant,
    pub profile_name: String,
    pub model_config: Option<Json>,
}

/// A session as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    pub id: SessionId,
    pub source: String,
    pub platform: Option<String>,
    pub user_id: Option<String>,
    /// The model of the session's beginning, or of the last [`Db::set_prompt`].
    pub model: Option<String>,
    pub provider: Option<String>,
    pub base_url: Option<String>,
    /// `None` when the row has none: an old row, or one that only usage made.
    pub system_prompt: Option<String>,
    /// `None` in rows that the original wrote before it froze the list.
    pub tool_names: Option<Vec<String>>,
    /// The exact JSON of the tool schemas; `None` in the original's rows.
    pub tool_schemas: Option<String>,
    pub parent: Option<SessionId>,
    pub cwd: Option<String>,
    pub git_branch: Option<String>,
    pub git_repo_root: Option<String>,
    pub title: Option<String>,
    /// `derived`, `llm`, `user`, `branch`, `branch_fallback`.
    pub title_source: Option<String>,
    pub started_at: Instant,
    pub ended_at: Option<Instant>,
    pub end_reason: Option<String>,
    pub message_count: u64,
    pub tool_call_count: u64,
    pub api_call_count: u64,
    pub usage: Usage,
    pub estimated_cost_usd: Option<f64>,
    pub actual_cost_usd: Option<f64>,
    pub cost_status: CostStatus,
    pub archived: bool,
    pub last_activity: Instant,
    pub profile_name: Option<String>,
    pub model_config: Option<Json>,
}

impl Db {
    /// Stores a new session.
    ///
    /// # Errors
    /// [`StateError::SessionExists`] when the id is taken.
    pub async fn create_session(&self, session: NewSession) -> Result<(), StateError> {
        self.write_transcript(move |conn| insert(conn, &session)).await
    }

    /// Freezes the tools of a session that has none yet: one that the original wrote.
    pub async fn set_tools(
        &self,
        id: &SessionId,
        tool_names: &[String],
        tool_schemas: &str,
    ) -> Result<(), StateError> {
        let (id, names, schemas) = (id.clone(), tool_names.to_vec(), tool_schemas.to_owned());
        self.write_transcript(move |conn| {
            let hash = prompts::store_schemas(conn, &schemas)?;
            let changed = conn
                .prepare_cached("UPDATE sessions SET tool_names = ?2, tool_schemas_hash = ?3 WHERE id = ?1")?
                .execute(params![id.as_str(), serde_json::json!(names).to_string(), hash])?;
            known(changed, &id)
        })
        .await
    }

    /// Replaces the frozen prompt, model and provider: after a model switch or a compression.
    pub async fn set_prompt(
        &self,
        id: &SessionId,
        system_prompt: &str,
        model: &str,
        provider: &str,
    ) -> Result<(), StateError> {
        let (id, prompt) = (id.clone(), system_prompt.to_owned());
        let (model, provider) = (model.to_owned(), provider.to_owned());
        self.write_transcript(move |conn| {
            let hash = prompts::store_prompt(conn, &prompt)?;
            let changed = conn
                .prepare_cached(
                    "UPDATE sessions SET system_prompt = NULL, system_prompt_hash = ?2, model = ?3,
                     billing_provider = ?4 WHERE id = ?1",
                )?
                .execute(params![id.as_str(), hash, model, provider])?;
            known(changed, &id)
        })
        .await
    }

    /// The session of exactly this id.
    pub async fn load_session(&self, id: &SessionId) -> Result<Option<StoredSession>, StateError> {
        let id = id.clone();
        self.read(move |conn| load(conn, &id)).await
    }

    /// Ends a session. The first reason wins; only a boundary (`session_reset`, `new_session`, …)
    /// takes the place of a reason that clean-up wrote. A session that is not there is no error.
    pub async fn end_session(&self, id: &SessionId, reason: &str) -> Result<(), StateError> {
        let (id, reason, now) = (id.clone(), reason.to_owned(), self.now());
        let replaceable = if BOUNDARY_REASONS.contains(&reason.as_str()) {
            AUTOMATIC_REASONS.map(|name| format!("'{name}'")).join(", ")
        } else {
            "NULL".to_owned()
        };
        let sql = format!(
            "UPDATE sessions SET end_reason = ?2, ended_at = COALESCE(ended_at, ?3)
             WHERE id = ?1 AND (ended_at IS NULL OR end_reason IS NULL OR end_reason IN ({replaceable}))"
        );
        self.write(move |conn| {
            conn.prepare_cached(&sql)?.execute(params![id.as_str(), reason, now.unix_seconds()])?;
            Ok(())
        })
        .await
    }
}

fn insert(conn: &Connection, session: &NewSession) -> Result<(), Fault<StateError>> {
    let id = session.id.as_str();
    if conn.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?.exists([id])? {
        return Err(Fault::Refused(StateError::SessionExists(session.id.clone())));
    }
    let prompt = prompts::store_prompt(conn, &session.system_prompt)?;
    let schemas = prompts::store_schemas(conn, &session.tool_schemas)?;
    let title = session.title.as_deref().map(|title| titles::free(conn, title)).transpose()?.flatten();
    let tool_names = serde_json::Value::from(session.tool_names.clone()).to_string();
    // A parent that is gone must not keep its child from being stored.
    conn.prepare_cached(
        "INSERT INTO sessions (id, source, created_source, platform, user_id, model, model_config,
             system_prompt_hash, tool_names, tool_schemas_hash, parent_session_id, started_at, last_activity_at,
             billing_provider, billing_base_url, title, title_source, cwd, git_branch, git_repo_root, profile_name)
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, (SELECT id FROM sessions WHERE id = ?10), ?11, ?11,
             ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
    )?
    .execute(params![
        id,
        session.source,
        session.platform,
        session.user_id,
        session.model,
        session.model_config.as_ref().map(Json::as_str),
        prompt,
        tool_names,
        schemas,
        session.parent.as_ref().map(SessionId::as_str),
        session.started_at.unix_seconds(),
        session.provider,
        session.base_url,
        title,
        title.as_ref().map(|_| titles::TitleSource::User.as_str()),
        session.cwd,
        session.git_branch,
        session.git_repo_root,
        session.profile_name,
    ])?;
    Ok(())
}

fn load(conn: &Connection, id: &SessionId) -> rusqlite::Result<Option<StoredSession>> {
    conn.prepare_cached(
        "SELECT s.*, COALESCE(prompts.prompt, s.system_prompt) AS frozen_prompt, sets.schemas AS frozen_schemas
         FROM sessions AS s
         LEFT JOIN system_prompts AS prompts ON prompts.hash = s.system_prompt_hash
         LEFT JOIN tool_schema_sets AS sets ON sets.hash = s.tool_schemas_hash
         WHERE s.id = ?1",
    )?
    .query_row([id.as_str()], |row| stored(row, id))
    .optional()
}

fn stored(row: &Row<'_>, id: &SessionId) -> rusqlite::Result<StoredSession> {
    let started_at = column::instant(row, "started_at")?.unwrap_or_default();
    Ok(StoredSession {
        id: id.clone(),
        source: column::text(row, "source")?.unwrap_or_default(),
        platform: column::filled(row, "platform")?,
        user_id: column::filled(row, "user_id")?,
        model: column::filled(row, "model")?,
        provider: column::filled(row, "billing_provider")?,
        base_url: column::filled(row, "billing_base_url")?,
        system_prompt: column::text(row, "frozen_prompt")?,
        tool_names: column::text(row, "tool_names")?.and_then(|names| serde_json::from_str(&names).ok()),
        tool_schemas: column::text(row, "frozen_schemas")?,
        parent: column::session_id(row, "parent_session_id")?,
        cwd: column::filled(row, "cwd")?,
        git_branch: column::filled(row, "git_branch")?,
        git_repo_root: column::filled(row, "git_repo_root")?,
        title: column::filled(row, "title")?,
        title_source: column::filled(row, "title_source")?,
        started_at,
        ended_at: column::instant(row, "ended_at")?,
        end_reason: column::filled(row, "end_reason")?,
        message_count: column::count(row, "message_count")?,
        tool_call_count: column::count(row, "tool_call_count")?,
        api_call_count: column::count(row, "api_call_count")?,
        usage: column::usage(row)?,
        estimated_cost_usd: column::real(row, "estimated_cost_usd")?,
        actual_cost_usd: column::real(row, "actual_cost_usd")?,
        cost_status: column::cost_status(row, "cost_status")?,
        archived: column::flag(row, "archived")?,
        last_activity: column::instant(row, "last_activity_at")?.unwrap_or(started_at),
        profile_name: column::filled(row, "profile_name")?,
        model_config: column::json(row, "model_config")?,
    })
}

/// An update that met no row means that there is no such session.
pub(crate) fn known(changed: usize, id: &SessionId) -> Result<(), Fault<StateError>> {
    if changed == 0 { Err(Fault::Refused(StateError::UnknownSession(id.clone()))) } else { Ok(()) }
}

//! The data steps that a file of the original may still lack (spec 70 §2). Each fills only what is
//! empty, so one that ran before changes nothing.

use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::Value;

use crate::lineage::{BOUNDARY_REASONS, MARKER};
use crate::prompts;
use crate::schema::columns_of;

/// What must happen before our indexes are built.
pub(super) fn before_migrations(conn: &Connection, path: &Path, version: i64) -> rusqlite::Result<()> {
    let has = |table: &str| columns_of(conn, table).map(|columns| !columns.is_empty());
    if has("messages")? {
        conn.execute("UPDATE messages SET active = 1 WHERE active IS NULL", [])?;
    }
    if !has("sessions")? {
        return Ok(());
    }
    if version < 16 {
        tag_sub_agents(conn)?;
    }
    if version < 18 {
        let folder = path.parent().unwrap_or(Path::new("."));
        fill_gateway_metadata(conn, &folder.join("sessions").join("sessions.json"))?;
    }
    free_duplicate_titles(conn)
}

/// What needs our tables.
pub(super) fn after_migrations(conn: &Connection) -> rusqlite::Result<()> {
    seed_usage(conn)?;
    share_prompts(conn)?;
    take_over_deliveries(conn)?;
    // Lists go by this column alone; the original let it lag behind the messages.
    conn.execute_batch(
        "UPDATE sessions SET last_activity_at = latest.at
         FROM (SELECT session_id, max(timestamp) AS at FROM messages GROUP BY session_id) AS latest
         WHERE latest.session_id = sessions.id
           AND latest.at > COALESCE(sessions.last_activity_at, sessions.started_at)",
    )
}

/// Version 16: marks the sessions of sub-agents, so that lists leave them out.
fn tag_sub_agents(conn: &Connection) -> rusqlite::Result<()> {
    let boundary = BOUNDARY_REASONS.map(|reason| format!("'{reason}'")).join(", ");
    let branched = MARKER.replace("{session}", "sessions").replace("{name}", "_branched_from");
    let delegated = MARKER.replace("{session}", "sessions").replace("{name}", "_delegate_from");
    let reset = MARKER.replace("{session}", "sessions").replace("{name}", "_reset_from");
    conn.execute_batch(&format!(
        "UPDATE sessions SET model_config = json_set(
             CASE WHEN json_valid(model_config) THEN model_config ELSE '{{}}' END,
             '$._delegate_from', parent_session_id)
         WHERE parent_session_id IS NOT NULL
           AND {branched} IS NULL AND {delegated} IS NULL AND {reset} IS NULL
           AND NOT EXISTS (
               SELECT 1 FROM sessions AS parent WHERE parent.id = sessions.parent_session_id AND (
                   parent.end_reason IN ('branched', 'compression')
                   OR (parent.end_reason IN ({boundary})
                       AND sessions.session_key <> '' AND sessions.session_key = parent.session_key)))"
    ))
}

/// Version 18: routing facts of chats, which an older version kept in `sessions.json` alone. A
/// file that is missing or broken is no hindrance: the facts come back with the next message.
fn fill_gateway_metadata(conn: &Connection, file: &Path) -> rusqlite::Result<()> {
    let Ok(text) = std::fs::read_to_string(file) else { return Ok(()) };
    let Ok(Value::Object(entries)) = serde_json::from_str::<Value>(&text) else {
        tracing::warn!(file = %file.display(), "the old session index cannot be read and is passed over");
        return Ok(());
    };
    let mut update = conn.prepare(
        "UPDATE sessions SET
             session_key = COALESCE(session_key, ?2), chat_id = COALESCE(chat_id, ?3),
             chat_type = COALESCE(chat_type, ?4), thread_id = COALESCE(thread_id, ?5),
             user_id = COALESCE(user_id, ?6), display_name = COALESCE(display_name, ?7),
             origin_json = COALESCE(origin_json, ?8),
             expiry_finalized = max(COALESCE(expiry_finalized, 0), ?9)
         WHERE id = ?1",
    )?;
    for (session_key, entry) in entries.iter().filter(|(key, _)| !key.starts_with('_')) {
        let Some(session_id) = entry.get("session_id").and_then(Value::as_str) else { continue };
        let origin = entry.get("origin").filter(|origin| origin.is_object());
        let fact = |name: &str| {
            origin.and_then(|origin| origin.get(name)).or_else(|| entry.get(name)).and_then(|value| {
                match value {
                    Value::String(text) if !text.is_empty() => Some(text.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    _ => None,
                }
            })
        };
        let finalized = ["expiry_finalized", "memory_flushed"]
            .iter()
            .any(|name| entry.get(*name).and_then(Value::as_bool) == Some(true));
        let display_name = entry.get("display_name").and_then(Value::as_str).map(str::to_owned);
        update.execute(params![
            session_id,
            session_key,
            fact("chat_id"),
            fact("chat_type"),
            fact("thread_id"),
            fact("user_id"),
            display_name.or_else(|| fact("chat_name")),
            origin.map(Value::to_string),
            finalized,
        ])?;
    }
    Ok(())
}

/// The newest session of a title keeps it: the index that makes titles unique comes next.
fn free_duplicate_titles(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "UPDATE sessions SET title = NULL WHERE title = '';
         UPDATE sessions SET title = NULL WHERE rowid IN (
             SELECT rowid FROM (
                 SELECT rowid, row_number() OVER (PARTITION BY title ORDER BY started_at DESC, rowid DESC) AS place
                 FROM sessions WHERE title IS NOT NULL)
             WHERE place > 1)",
    )
}

/// Version 20: one usage row for each session that has totals and none, under its model.
fn seed_usage(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "INSERT OR IGNORE INTO session_model_usage (
             session_id, model, billing_provider, billing_base_url, billing_mode, task, api_call_count,
             input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
             estimated_cost_usd, actual_cost_usd, cost_status, cost_source, first_seen, last_seen)
         SELECT id, COALESCE(model, 'unknown'), COALESCE(billing_provider, ''), COALESCE(billing_base_url, ''),
             COALESCE(billing_mode, ''), '', COALESCE(api_call_count, 0),
             COALESCE(input_tokens, 0), COALESCE(output_tokens, 0), COALESCE(cache_read_tokens, 0),
             COALESCE(cache_write_tokens, 0), COALESCE(reasoning_tokens, 0),
             COALESCE(estimated_cost_usd, 0), COALESCE(actual_cost_usd, 0), cost_status, cost_source,
             started_at, COALESCE(ended_at, started_at)
         FROM sessions
         WHERE COALESCE(input_tokens, 0) + COALESCE(output_tokens, 0) + COALESCE(cache_read_tokens, 0)
               + COALESCE(cache_write_tokens, 0) + COALESCE(reasoning_tokens, 0) > 0
           AND NOT EXISTS (SELECT 1 FROM session_model_usage AS usage
                           WHERE usage.session_id = sessions.id AND usage.task = '')",
    )
}

/// Prompts that stand inline in their rows are stored once by hash, as new ones are: a list of
/// sessions would otherwise read past each of them.
fn share_prompts(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "UPDATE sessions SET system_prompt = NULL WHERE system_prompt_hash IS NOT NULL AND EXISTS (
        SELECT 1 FROM system_prompts WHERE hash = system_prompt_hash)",
    )?;
    let inline: Vec<(i64, String)> = conn
        .prepare("SELECT rowid, id FROM sessions WHERE typeof(system_prompt) = 'text'")?
        .query_map([], |row| Ok((row.get(0)?, crate::column::text(row, 1)?.unwrap_or_default())))?
        .collect::<rusqlite::Result<_>>()?;
    let mut read = conn.prepare("SELECT system_prompt FROM sessions WHERE rowid = ?1")?;
    let mut update =
        conn.prepare("UPDATE sessions SET system_prompt_hash = ?2, system_prompt = NULL WHERE rowid = ?1")?;
    for (rowid, id) in inline {
        // One that is not UTF-8 stays where it is, where it is read too.
        match read.query_row([rowid], |row| row.get::<_, String>(0)) {
            Ok(prompt) => update.execute(params![rowid, prompts::store_prompt(conn, &prompt)?])?,
            Err(rusqlite::Error::SqliteFailure(code, text)) => {
                return Err(rusqlite::Error::SqliteFailure(code, text));
            }
            Err(error) => {
                tracing::warn!(%error, session = id, "an old system prompt is not text and stays inline");
                0
            }
        };
    }
    Ok(())
}

/// Replies that the original still owed become rows of our outbox. Its own table stays unread.
fn take_over_deliveries(conn: &Connection) -> rusqlite::Result<()> {
    let columns = columns_of(conn, "delivery_obligations")?;
    if !["obligation_id", "session_key", "platform", "chat_id", "content", "state"]
        .iter()
        .all(|needed| columns.iter().any(|column| column == needed))
    {
        return Ok(());
    }
    let optional = |name: &str, otherwise: &str| {
        if columns.iter().any(|column| column == name) { name.to_owned() } else { otherwise.to_owned() }
    };
    conn.execute_batch(&format!(
        "INSERT OR IGNORE INTO outbox (
             obligation_id, session_key, inbound_id, content_hash, profile, platform, chat_id, thread_id, content,
             state, attempts, not_before, created_at, updated_at, owner_pid, last_error)
         SELECT obligation_id, session_key, obligation_id, '', CAST({profile} AS TEXT), platform,
             CAST(chat_id AS TEXT), CAST({thread} AS TEXT), content, state, CAST({attempts} AS INTEGER),
             CAST({not_before} AS REAL), CAST({created} AS REAL), CAST({updated} AS REAL),
             CAST({owner} AS INTEGER), CAST({error} AS TEXT)
         FROM delivery_obligations
         WHERE state IN ('pending', 'attempting', 'failed')
           AND obligation_id IS NOT NULL AND session_key IS NOT NULL AND platform IS NOT NULL
           AND chat_id IS NOT NULL AND content IS NOT NULL",
        profile = if columns.iter().any(|column| column == "profile") {
            "profile".to_owned()
        } else {
            optional("adapter_profile", "NULL")
        },
        thread = optional("thread_id", "NULL"),
        attempts = optional("attempts", "0"),
        not_before = optional("not_before", "NULL"),
        created = optional("created_at", "0"),
        updated = optional("updated_at", "0"),
        owner = optional("owner_pid", "NULL"),
        error = optional("last_error", "NULL"),
    ))
}

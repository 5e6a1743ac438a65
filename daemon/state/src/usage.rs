//! What model calls cost, on the session's row and per model (spec 70 §5).

use hermes_core::{CostStatus, Instant, SessionId, Usage};
use rusqlite::{Connection, params};

use crate::column::stored;
use crate::db::Db;
use crate::error::StateError;

/// What one or more calls of one model used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageDelta {
    pub model: String,
    pub provider: String,
    pub base_url: String,
    /// How the route is billed; empty when unknown.
    pub mode: String,
    /// Empty for the main loop, else the auxiliary task (`title_generation`, …), which counts only
    /// in the usage per model.
    pub task: String,
    pub api_calls: u64,
    pub usage: Usage,
    /// What the calls cost; the provider's own figure when `cost_status` is `Actual`.
    pub estimated_cost_usd: Option<f64>,
    pub cost_status: CostStatus,
}

impl Db {
    /// Books usage outside a turn. A session that is not there is made (source `unknown`) rather
    /// than losing the numbers.
    pub async fn record_usage(&self, session: &SessionId, delta: UsageDelta) -> Result<(), StateError> {
        let (session, now) = (session.clone(), self.now());
        self.write(move |conn| {
            conn.prepare_cached(
                "INSERT OR IGNORE INTO sessions (id, source, created_source, started_at) VALUES (?1, 'unknown', 'unknown', ?2)",
            )?
            .execute(params![session.as_str(), now.unix_seconds()])?;
            Ok(book(conn, &session, &delta, now)?)
        })
        .await
    }
}

/// Adds `delta` to the session and to its row for this model, route and task.
pub(crate) fn book(
    conn: &Connection,
    session: &SessionId,
    delta: &UsageDelta,
    now: Instant,
) -> rusqlite::Result<()> {
    let actual = (delta.cost_status == CostStatus::Actual).then_some(delta.estimated_cost_usd).flatten();
    if delta.task.is_empty() {
        // The route fills only what is empty: the row names the route of the session's beginning.
        // One call without a known price makes the sum a lower bound: the status says unknown then.
        conn.prepare_cached(
            "UPDATE sessions SET
                 api_call_count = COALESCE(api_call_count, 0) + ?2,
                 input_tokens = COALESCE(input_tokens, 0) + ?3,
                 output_tokens = COALESCE(output_tokens, 0) + ?4,
                 cache_read_tokens = COALESCE(cache_read_tokens, 0) + ?5,
                 cache_write_tokens = COALESCE(cache_write_tokens, 0) + ?6,
                 reasoning_tokens = COALESCE(reasoning_tokens, 0) + ?7,
                 estimated_cost_usd = CASE WHEN ?8 IS NULL THEN estimated_cost_usd
                     ELSE COALESCE(estimated_cost_usd, 0) + ?8 END,
                 actual_cost_usd = CASE WHEN ?9 IS NULL THEN actual_cost_usd
                     ELSE COALESCE(actual_cost_usd, 0) + ?9 END,
                 cost_status = CASE
                     WHEN cost_status IS NULL OR cost_status = '' OR cost_status = ?10 THEN ?10
                     WHEN cost_status = 'unknown' OR ?10 = 'unknown' THEN 'unknown'
                     WHEN cost_status = 'included' THEN ?10
                     WHEN ?10 = 'included' THEN cost_status
                     ELSE 'estimated' END,
                 model = COALESCE(model, ?11),
                 billing_provider = COALESCE(billing_provider, ?12),
                 billing_base_url = COALESCE(billing_base_url, ?13),
                 billing_mode = COALESCE(billing_mode, ?14)
             WHERE id = ?1",
        )?
        .execute(params![
            session.as_str(),
            stored(delta.api_calls),
            stored(delta.usage.input),
            stored(delta.usage.output),
            stored(delta.usage.cache_read),
            stored(delta.usage.cache_write),
            stored(delta.usage.reasoning),
            delta.estimated_cost_usd,
            actual,
            delta.cost_status.as_str(),
            delta.model,
            delta.provider,
            delta.base_url,
            delta.mode,
        ])?;
    }
    conn.prepare_cached(
        "INSERT INTO session_model_usage (
             session_id, model, billing_provider, billing_base_url, billing_mode, task, api_call_count,
             input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
             estimated_cost_usd, actual_cost_usd, cost_status, first_seen, last_seen)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, COALESCE(?13, 0), COALESCE(?14, 0), ?15, ?16, ?16)
         ON CONFLICT (session_id, model, billing_provider, billing_base_url, billing_mode, task) DO UPDATE SET
             api_call_count = api_call_count + excluded.api_call_count,
             input_tokens = input_tokens + excluded.input_tokens,
             output_tokens = output_tokens + excluded.output_tokens,
             cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
             cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
             reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
             estimated_cost_usd = estimated_cost_usd + excluded.estimated_cost_usd,
             actual_cost_usd = actual_cost_usd + excluded.actual_cost_usd,
             cost_status = CASE
                 WHEN cost_status IS NULL OR cost_status = excluded.cost_status THEN excluded.cost_status
                 WHEN cost_status = 'unknown' OR excluded.cost_status = 'unknown' THEN 'unknown'
                 ELSE 'estimated' END,
             last_seen = excluded.last_seen",
    )?
    .execute(params![
        session.as_str(),
        delta.model,
        delta.provider,
        delta.base_url,
        delta.mode,
        delta.task,
        stored(delta.api_calls),
        stored(delta.usage.input),
        stored(delta.usage.output),
        stored(delta.usage.cache_read),
        stored(delta.usage.cache_write),
        stored(delta.usage.reasoning),
        delta.estimated_cost_usd,
        actual,
        delta.cost_status.as_str(),
        now.unix_seconds(),
    ])?;
    Ok(())
}

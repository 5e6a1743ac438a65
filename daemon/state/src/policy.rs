//! What people have allowed the agent: standing approvals and accepted policy keys (contract §7).

use std::collections::BTreeMap;

use hermes_core::{Instant, Json};
use rusqlite::{Row, params};

use crate::column;
use crate::db::Db;
use crate::error::StateError;

/// Something that was allowed for all sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct StandingApproval {
    pub id: String,
    pub rule: String,
    /// What exactly.
    pub shape: String,
    pub granted_at: Instant,
}

/// Policy keys by dotted name, with the value that was accepted; `None` = accepted as absent.
pub type AcceptedPolicy = BTreeMap<String, Option<Json>>;

impl Db {
    /// Standing approvals, oldest first.
    pub async fn standing_approvals(&self) -> Result<Vec<StandingApproval>, StateError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT id, rule, shape, granted_at FROM approvals ORDER BY granted_at, id")?
                .query_map([], approval)?
                .collect()
        })
        .await
    }

    /// Keeps an approval. The same rule and shape are kept once, with the newest id.
    pub async fn save_approval(&self, approval: StandingApproval) -> Result<(), StateError> {
        self.write(move |conn| {
            conn.prepare_cached(
                "INSERT OR REPLACE INTO approvals (id, rule, shape, granted_at) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                approval.id,
                approval.rule,
                approval.shape,
                approval.granted_at.unix_seconds()
            ])?;
            Ok(())
        })
        .await
    }

    /// Forgets an approval; `false` when there is none with this id.
    pub async fn remove_approval(&self, id: &str) -> Result<bool, StateError> {
        let id = id.to_owned();
        self.write(move |conn| {
            Ok(conn.prepare_cached("DELETE FROM approvals WHERE id = ?1")?.execute([&id])? > 0)
        })
        .await
    }

    /// The policy keys as they were last accepted; empty when nothing ever was.
    pub async fn accepted_policy(&self) -> Result<AcceptedPolicy, StateError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT key, value FROM policy_accepted")?
                .query_map([], |row| Ok((column::text(row, 0)?.unwrap_or_default(), column::json(row, 1)?)))?
                .collect()
        })
        .await
    }

    /// Replaces the accepted policy keys, all at once. Rows that stay as they are keep their time.
    pub async fn accept_policy(&self, policy: AcceptedPolicy) -> Result<(), StateError> {
        let now = self.now();
        self.write(move |conn| {
            let known: Vec<String> = conn
                .prepare_cached("SELECT key FROM policy_accepted")?
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            for gone in known.iter().filter(|key| !policy.contains_key(*key)) {
                conn.prepare_cached("DELETE FROM policy_accepted WHERE key = ?1")?.execute([gone])?;
            }
            for (key, value) in &policy {
                conn.prepare_cached(
                    "INSERT INTO policy_accepted (key, value, accepted_at) VALUES (?1, ?2, ?3)
                     ON CONFLICT (key) DO UPDATE SET value = excluded.value, accepted_at = excluded.accepted_at
                     WHERE value IS NOT excluded.value",
                )?
                .execute(params![key, value.as_ref().map(Json::as_str), now.unix_seconds()])?;
            }
            Ok(())
        })
        .await
    }
}

fn approval(row: &Row<'_>) -> rusqlite::Result<StandingApproval> {
    Ok(StandingApproval {
        id: column::text(row, 0)?.unwrap_or_default(),
        rule: column::text(row, 1)?.unwrap_or_default(),
        shape: column::text(row, 2)?.unwrap_or_default(),
        granted_at: column::instant(row, 3)?.unwrap_or_default(),
    })
}

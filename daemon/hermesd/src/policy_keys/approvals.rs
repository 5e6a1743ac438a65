//! [`ApprovalStore`] over the database.

use async_trait::async_trait;
use hermes_runtime::{ApprovalEntry, ApprovalStore, Approvals};
use hermes_state::{Db, StandingApproval, StateError};
use std::sync::Arc;

/// What was allowed for good, and a place for more of it.
pub(crate) async fn standing_approvals(db: &Db) -> Result<Approvals, StateError> {
    let kept = match db.standing_approvals().await {
        Ok(kept) => kept,
        // A database of a later version, opened for reading, may keep them otherwise.
        Err(_) if db.read_only().is_some() => Vec::new(),
        Err(error) => return Err(error),
    };
    let entries = kept
        .into_iter()
        .map(|kept| ApprovalEntry {
            id: kept.id,
            rule: kept.rule,
            shape: kept.shape,
            session: None,
            granted_at: kept.granted_at,
        })
        .collect();
    Ok(Approvals::new(entries, Arc::new(Kept(db.clone()))))
}

#[derive(Debug)]
struct Kept(Db);

#[async_trait]
impl ApprovalStore for Kept {
    async fn save(&self, entry: &ApprovalEntry) -> Result<(), String> {
        let approval = StandingApproval {
            id: entry.id.clone(),
            rule: entry.rule.clone(),
            shape: entry.shape.clone(),
            granted_at: entry.granted_at,
        };
        self.0.save_approval(approval).await.map_err(|error| error.to_string())
    }

    async fn remove(&self, id: &str) -> Result<bool, String> {
        self.0.remove_approval(id).await.map_err(|error| error.to_string())
    }
}

//! What people have allowed beyond one call: kept by rule and by what exactly was to be done (spec 40 §8.6).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hermes_core::Instant;

use super::Finding;
use crate::terminal::SessionKey;

/// How far an approval reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalScope {
    /// This call.
    Once,
    /// The same thing for the rest of the session.
    Session,
    /// The same thing from now on.
    Always,
}

impl ApprovalScope {
    /// The word for it, as people answer it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }

    /// Reads a person's word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Once, Self::Session, Self::Always].into_iter().find(|scope| scope.as_str() == text)
    }
}

/// One thing that was allowed for a session or for good.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalEntry {
    /// Names it to `revoke`.
    pub id: String,
    pub rule: String,
    /// Program and operand shape; see [`Finding::shape`].
    pub shape: String,
    /// The session that it holds for; `None` = all.
    pub session: Option<SessionKey>,
    pub granted_at: Instant,
}

/// Keeps what was allowed for good. Implemented over the database, outside every tool's reach.
#[async_trait]
pub trait ApprovalStore: Send + Sync + fmt::Debug {
    /// Keeps an entry; it must be durable before this returns.
    async fn save(&self, entry: &ApprovalEntry) -> Result<(), String>;

    /// Forgets an entry; `false` when there is none with this id.
    async fn remove(&self, id: &str) -> Result<bool, String>;
}

/// A store that forgets with the process, for tests and for a read-only home.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForgetfulStore;

#[async_trait]
impl ApprovalStore for ForgetfulStore {
    async fn save(&self, _: &ApprovalEntry) -> Result<(), String> {
        Ok(())
    }

    async fn remove(&self, _: &str) -> Result<bool, String> {
        Ok(true)
    }
}

/// The approvals in force. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Approvals {
    entries: Arc<Mutex<Vec<ApprovalEntry>>>,
    store: Arc<dyn ApprovalStore>,
}

impl Approvals {
    /// Takes over what was allowed for good before.
    pub fn new(standing: Vec<ApprovalEntry>, store: Arc<dyn ApprovalStore>) -> Self {
        Self { entries: Arc::new(Mutex::new(standing)), store }
    }

    /// Whether somebody has allowed this already, for this session or for good.
    pub fn covers(&self, session: &SessionKey, finding: &Finding) -> bool {
        self.lock().iter().any(|entry| {
            entry.rule == finding.rule
                && entry.shape == finding.shape
                && entry.session.as_ref().is_none_or(|of| of == session)
        })
    }

    /// Remembers an answer. `Once` leaves nothing behind. An error says why it could not be kept for good;
    /// it then holds for the session.
    pub async fn grant(
        &self,
        session: &SessionKey,
        findings: &[Finding],
        scope: ApprovalScope,
        now: Instant,
    ) -> Result<(), String> {
        if scope == ApprovalScope::Once {
            return Ok(());
        }
        let mut failed = None;
        for finding in findings {
            let mut entry = ApprovalEntry {
                id: format!("ap_{}", &uuid::Uuid::new_v4().simple()),
                rule: finding.rule.to_owned(),
                shape: finding.shape.clone(),
                session: (scope == ApprovalScope::Session).then(|| session.clone()),
                granted_at: now,
            };
            if scope == ApprovalScope::Always
                && let Err(error) = self.store.save(&entry).await
            {
                entry.session = Some(session.clone());
                failed = Some(error);
            }
            let mut entries = self.lock();
            let known = |old: &ApprovalEntry| {
                old.rule == entry.rule && old.shape == entry.shape && old.session == entry.session
            };
            if !entries.iter().any(known) {
                entries.push(entry);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// All that is in force, oldest first.
    pub fn list(&self) -> Vec<ApprovalEntry> {
        self.lock().clone()
    }

    /// Takes an approval back; `false` when there is none with this id.
    pub async fn revoke(&self, id: &str) -> Result<bool, String> {
        let found = self.lock().iter().find(|entry| entry.id == id).cloned();
        let Some(entry) = found else { return Ok(false) };
        if entry.session.is_none() {
            self.store.remove(id).await?;
        }
        self.lock().retain(|known| known.id != id);
        Ok(true)
    }

    /// Forgets what a session was allowed, when it is deleted.
    pub fn forget_session(&self, session: &SessionKey) {
        self.lock().retain(|entry| entry.session.as_ref() != Some(session));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<ApprovalEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Approvals {
    fn default() -> Self {
        Self::new(Vec::new(), Arc::new(ForgetfulStore))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &'static str, shape: &str) -> Finding {
        Finding { rule, description: String::new(), shape: shape.to_owned() }
    }

    #[tokio::test]
    async fn an_approval_covers_the_same_thing_in_its_scope_and_nothing_else() {
        let approvals = Approvals::default();
        let (mine, other) = (SessionKey::new("a"), SessionKey::new("b"));
        let build = finding("delete.recursive", "rm -r /w/build");
        approvals
            .grant(&mine, std::slice::from_ref(&build), ApprovalScope::Once, Instant(1.0))
            .await
            .unwrap();
        assert!(!approvals.covers(&mine, &build));
        approvals
            .grant(&mine, std::slice::from_ref(&build), ApprovalScope::Session, Instant(1.0))
            .await
            .unwrap();
        assert!(approvals.covers(&mine, &build) && !approvals.covers(&other, &build));
        assert!(!approvals.covers(&mine, &finding("delete.recursive", "rm -r /home/u/docs")));
        assert!(!approvals.covers(&mine, &finding("git.reset_hard", "rm -r /w/build")));
        approvals
            .grant(&mine, std::slice::from_ref(&build), ApprovalScope::Always, Instant(1.0))
            .await
            .unwrap();
        assert!(approvals.covers(&other, &build));
        approvals.forget_session(&mine);
        let [standing] = approvals.list().try_into().unwrap();
        assert!(approvals.revoke(&standing.id).await.unwrap() && !approvals.covers(&other, &build));
        assert!(!approvals.revoke(&standing.id).await.unwrap());
    }
}

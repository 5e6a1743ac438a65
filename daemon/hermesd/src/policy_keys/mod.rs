//! Settings that say what the agent may do are widened only by a person (contract §7).
//!
//! What was accepted is kept in the database. At the start and at each change of the files, every policy key is
//! held against it: a narrower value holds at once and is the accepted one from then on; a wider one waits, is
//! announced, and holds when an admin accepts it. Everything else in the file is not touched by this.
//!
//! [`PolicyKeys`] keeps it all; `decide` is the pure decision, `table` says which keys count, `desk` answers admins.

mod approvals;
mod compare;
mod decide;
mod desk;
mod table;

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hermes_config::{Home, LoadInput, Settings};
use hermes_core::Json;
use hermes_engine::Engine;
use hermes_runtime::PolicySettings;
use hermes_server::{Notices, WaitingEdit};
use hermes_state::{AcceptedPolicy, Db, StateError};
use tokio::sync::watch;

use decide::{Accepted, Decision};

pub(crate) use approvals::standing_approvals;

/// What tells one state of a file from another; unlike the time of the last change, this one cannot be set back.
type Stamp = Option<(u64, i64, i64, u64)>;

/// What the keeper starts from.
#[derive(Debug)]
pub(crate) struct PolicyKeysInput<'a> {
    pub(crate) home: &'a Home,
    pub(crate) db: &'a Db,
    /// The settings as the files say them.
    pub(crate) file: &'a Settings,
    /// There is no database any more, though a daemon served this home before.
    pub(crate) lost: bool,
    pub(crate) notices: Notices,
}

/// Holds the policy keys. A cheap clone.
#[derive(Clone)]
pub(crate) struct PolicyKeys(Arc<Inner>);

struct Inner {
    home: Home,
    db: Db,
    notices: Notices,
    engine: OnceLock<Engine>,
    live: watch::Sender<Arc<PolicySettings>>,
    /// One change at a time; held over reading, deciding and keeping.
    changing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    accepted: Accepted,
    waiting: Vec<WaitingEdit>,
    stamps: [Stamp; 2],
}

impl PolicyKeys {
    /// Decides over the settings as they were read. Returns what is in force.
    pub(crate) async fn open(input: PolicyKeysInput<'_>) -> Result<(Self, Settings), StateError> {
        let PolicyKeysInput { home, db, file, lost, notices } = input;
        let stamps = stamps(home);
        let stored = read_accepted(db).await?;
        let accepted = if !stored.is_empty() {
            stored
        } else if lost {
            tracing::warn!(
                "what was accepted is gone from this home; wider settings of policy wait for `hermes-cli approvals accept`"
            );
            decide::accept_defaults(file)
        } else {
            tracing::info!("first start: the settings of policy are accepted as they stand");
            decide::accept_all(file)
        };
        let Decision { settings, accepted: next, waiting } = decide::decide(file, &accepted);
        let (live, _) = watch::channel(Arc::new(PolicySettings::from_settings(&settings)));
        let state = Mutex::new(State { accepted: next.clone(), waiting: Vec::new(), stamps });
        let inner = Inner {
            home: home.clone(),
            db: db.clone(),
            notices,
            engine: OnceLock::new(),
            live,
            changing: tokio::sync::Mutex::default(),
            state,
        };
        let keys = Self(Arc::new(inner));
        keys.keep(&next).await?;
        keys.announce(&waiting);
        Ok((keys, settings))
    }

    /// The settings that the policy reads at each judgement.
    pub(crate) fn live(&self) -> watch::Receiver<Arc<PolicySettings>> {
        self.0.live.subscribe()
    }

    /// From now on users of live sessions are told too.
    pub(crate) fn tell_sessions_of(&self, engine: Engine) {
        // Set twice means that the wiring built two engines; the first one speaks.
        let _ = self.0.engine.set(engine);
    }

    /// Looks whether the files have changed, and applies what may be applied.
    pub(crate) async fn look(&self) {
        // Whoever looks while a change is being applied waits for it.
        let _changing = self.0.changing.lock().await;
        let stamps = stamps(&self.0.home);
        if stamps == self.state().stamps {
            return;
        }
        self.state().stamps = stamps;
        match self.read_file() {
            Ok(file) => {
                let accepted = self.state().accepted.clone();
                if let Err(error) = self.apply(&file, accepted).await {
                    tracing::error!(%error, "what was accepted cannot be kept");
                }
            }
            Err(reason) => {
                tracing::warn!(%reason, "the changed settings cannot be used; the last good ones hold");
                self.tell(&format!(
                    "the settings changed and cannot be used, so the last good ones hold: {reason}"
                ));
            }
        }
    }

    /// The files' settings, or why they cannot be used.
    fn read_file(&self) -> Result<Settings, String> {
        let loaded = hermes_config::load(&LoadInput::new(&self.0.home)).map_err(|error| error.to_string())?;
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        if errors.is_empty() { Ok(loaded.settings) } else { Err(errors.join("; ")) }
    }

    /// Decides over a file, keeps what is accepted from now on, and puts into force what is read live.
    async fn apply(&self, file: &Settings, accepted: Accepted) -> Result<Decision, StateError> {
        let decision = decide::decide(file, &accepted);
        self.keep(&decision.accepted).await?;
        self.state().accepted = decision.accepted.clone();
        let policy = Arc::new(PolicySettings::from_settings(&decision.settings));
        self.0.live.send_if_modified(|current| {
            let changed = **current != *policy;
            if changed {
                tracing::info!("settings of policy changed and hold from now on");
                *current = Arc::clone(&policy);
            }
            changed
        });
        self.announce(&decision.waiting);
        Ok(decision)
    }

    /// Makes the accepted values durable.
    async fn keep(&self, accepted: &Accepted) -> Result<(), StateError> {
        if self.0.db.read_only().is_some() {
            return Ok(());
        }
        let policy: AcceptedPolicy =
            accepted.iter().map(|(key, value)| (key.clone(), value.as_ref().map(Json::from))).collect();
        self.0.db.accept_policy(policy).await
    }

    /// Replaces what waits, and tells of what is new among it.
    fn announce(&self, waiting: &[WaitingEdit]) {
        let before = std::mem::replace(&mut self.state().waiting, waiting.to_vec());
        for edit in waiting.iter().filter(|edit| !before.contains(edit)) {
            let text = edit.warning();
            tracing::warn!(key = %edit.key, "a setting that would let the agent do more waits to be accepted");
            self.tell(&text);
        }
    }

    /// Tells everyone who watches the profile or a session.
    fn tell(&self, text: &str) {
        self.0.notices.send(text);
        if let Some(engine) = self.0.engine.get() {
            engine.notice_all(text);
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PolicyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyKeys").field("waiting", &self.state().waiting.len()).finish_non_exhaustive()
    }
}

async fn read_accepted(db: &Db) -> Result<Accepted, StateError> {
    // A database of another program's version, opened for reading, has no such table.
    if db.read_only().is_some() {
        return Ok(db.accepted_policy().await.map(values).unwrap_or_default());
    }
    Ok(values(db.accepted_policy().await?))
}

fn values(stored: AcceptedPolicy) -> Accepted {
    stored
        .into_iter()
        .map(|(key, value)| (key, value.and_then(|value| serde_json::from_str(value.as_str()).ok())))
        .collect()
}

fn stamps(home: &Home) -> [Stamp; 2] {
    [home.config_yaml(), home.dot_env()].map(|path| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.len()))
    })
}

#[cfg(test)]
mod tests;

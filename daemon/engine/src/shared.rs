//! What the engine's handle and its actors share: the parts it works with, and who lives.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_config::{Home, Settings};
use hermes_context::{LocalDate, MachineFacts};
use hermes_core::{Clock, Epoch, Instant, InterruptCause, Message, SessionId, SessionOptions, TurnId};
use hermes_providers::{OfflineFacts, Providers, ResolveError, Route, RouteChoice, RouteSettings};
use hermes_runtime::{SecretScope, Tasks};
use hermes_state::{Db, SessionRef, SessionSummary};
use hermes_tools::Dispatcher;
use serde::de::DeserializeOwned;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::api::{EngineError, SessionChanged};
use crate::broker::PromptBroker;
use crate::recover;
use crate::session::{SessionFacts, SessionHandle};
use crate::stream::StreamCount;
use crate::tools::TodoLists;
use crate::wake::WakeRelay;

/// Changes of the session list that a profile-wide watcher may lag behind.
const CHANGES_BACKLOG: usize = 256;

/// Tells local time. The machine's time zone is an argument too.
pub trait LocalTime: Send + Sync + std::fmt::Debug {
    /// `YYYYMMDD_HHMMSS`, for session ids.
    fn stamp(&self, at: Instant) -> String;
    /// The date as the system prompt names it.
    fn date(&self, at: Instant) -> LocalDate;
}

/// What the engine works with.
#[derive(Debug)]
pub struct EngineDeps {
    pub db: Db,
    pub providers: Arc<Providers>,
    pub dispatcher: Arc<Dispatcher>,
    /// The newest good settings.
    pub settings: watch::Receiver<Arc<Settings>>,
    pub secrets: SecretScope,
    pub home: Home,
    pub clock: Arc<dyn Clock>,
    pub local: Arc<dyn LocalTime>,
    pub machine: MachineFacts,
    pub offline_facts: OfflineFacts,
    /// The same broker that the tools ask through.
    pub prompts: Arc<PromptBroker>,
    /// The same lists that the tool `todo` keeps.
    pub todos: Arc<TodoLists>,
    /// The same relay that processes speak through; the engine binds it to itself.
    pub wake: Arc<WakeRelay>,
    pub tasks: Tasks,
    pub epoch: Epoch,
}

/// Shared by the engine's handle and its actors.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) deps: EngineDeps,
    /// Cancelled when running turns must end with the daemon.
    pub(crate) turns_stop: CancellationToken,
    pub(crate) live: Mutex<HashMap<SessionId, SessionHandle>>,
    /// Serialises loading, so that no session is ever loaded twice.
    pub(crate) loading: tokio::sync::Mutex<()>,
    pub(crate) streams: Arc<StreamCount>,
    pub(crate) changes: broadcast::Sender<SessionChanged>,
    pub(crate) draining: AtomicBool,
    pub(crate) uses: AtomicU64,
    jitter: AtomicU64,
}

impl Shared {
    pub(crate) fn new(deps: EngineDeps) -> Self {
        let seed = deps.clock.now().unix_seconds().to_bits() ^ u64::from(std::process::id()).rotate_left(32);
        Self {
            deps,
            turns_stop: CancellationToken::new(),
            live: Mutex::default(),
            loading: tokio::sync::Mutex::default(),
            streams: Arc::default(),
            changes: broadcast::channel(CHANGES_BACKLOG).0,
            draining: AtomicBool::new(false),
            uses: AtomicU64::new(0),
            jitter: AtomicU64::new(seed),
        }
    }

    /// A settings section as it stands now.
    pub(crate) fn section<T: DeserializeOwned + Default>(&self, path: &str) -> T {
        self.deps.settings.borrow().section(path)
    }

    /// The model route for a choice, by the settings as they stand now.
    pub(crate) fn route(&self, choice: &RouteChoice<'_>) -> Result<Route, ResolveError> {
        let settings = RouteSettings::from_settings(&self.deps.settings.borrow());
        hermes_providers::resolve(&settings, &self.deps.secrets, choice)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// A number in 0..1 that spreads retries; quality does not matter.
    pub(crate) fn jitter(&self) -> f64 {
        let state = self.jitter.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mixed = (state ^ (state >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let top = u32::try_from(mixed >> 32).unwrap_or(0);
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }

    /// Takes an actor that ends out of the registry.
    pub(crate) fn forget(&self, handle: &SessionHandle) {
        let mut live = self.live();
        if live.get(&handle.id).is_some_and(|known| Arc::ptr_eq(&known.stream, &handle.stream)) {
            live.remove(&handle.id);
        }
    }

    /// Tells profile-wide watchers, if there are any, that a session changed.
    pub(crate) fn session_changed(self: &Arc<Self>, id: &SessionId) {
        if self.changes.receiver_count() == 0 {
            return;
        }
        let (shared, id) = (Arc::clone(self), id.clone());
        self.deps.tasks.spawn("session-changed", async move {
            if let Ok(summary) = shared.summary(&id).await {
                let running = shared.is_running(&id);
                let _ = shared.changes.send(SessionChanged { summary, running });
            }
        });
    }

    /// Closes what a dead turn left and reads the session again.
    pub(crate) async fn reload_after_fault(
        &self,
        handle: &SessionHandle,
        turn_id: &TurnId,
    ) -> Result<(SessionFacts, Vec<Arc<Message>>), EngineError> {
        if let Some(record) = self.deps.db.turn(&handle.id, turn_id).await? {
            recover::close_turn(&self.deps, &record, InterruptCause::Watchdog).await?;
        }
        handle.stream.end_turn();
        recover::announce_fault(&handle.stream, turn_id);
        let stored = self.stored(&handle.id).await?;
        let opened = SessionFacts::reopen(self, stored, &SessionOptions::default())?;
        let history = self.transcript(&handle.id).await?;
        self.deps.todos.restore(&handle.id, &history);
        Ok((opened.facts, history))
    }

    pub(crate) async fn stored(&self, id: &SessionId) -> Result<hermes_state::StoredSession, EngineError> {
        self.deps.db.load_session(id).await?.ok_or_else(|| not_found(id.as_str(), &[]))
    }

    /// The transcript as the model may see it.
    pub(crate) async fn transcript(&self, id: &SessionId) -> Result<Vec<Arc<Message>>, EngineError> {
        let rows = self.deps.db.load_messages(id).await?;
        let repaired = hermes_context::repair_history(rows.into_iter().map(Arc::new).collect());
        Ok(repaired.messages)
    }

    pub(crate) async fn summary(&self, id: &SessionId) -> Result<SessionSummary, EngineError> {
        let found = self.deps.db.session_summary(id).await?;
        found.ok_or_else(|| not_found(id.as_str(), &[]))
    }

    pub(crate) fn is_running(&self, id: &SessionId) -> bool {
        self.live().get(id).is_some_and(|handle| handle.activity.running.load(Ordering::Relaxed))
    }

    pub(crate) fn live(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, SessionHandle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn handles(&self) -> Vec<SessionHandle> {
        self.live().values().cloned().collect()
    }
}

/// There is no such session, and what is called alike.
pub(crate) fn not_found(reference: &str, near: &[SessionRef]) -> EngineError {
    let hint = if near.is_empty() {
        "see what there is with `hermes-cli sessions list`".to_owned()
    } else {
        {
            let near: Vec<String> = near.iter().map(ToString::to_string).collect();
            format!("did you mean {}?", near.join(", "))
        }
    };
    EngineError::NotFound { what: format!("there is no session `{reference}`"), hint }
}

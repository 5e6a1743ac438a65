//! The engine's calls: what others ask of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hermes_core::{
    EventPayload, Instant, Message, MessageId, PromptId, SessionId, SessionInfo, SessionOptions, TurnId,
};
use hermes_state::{ListFilter, ResolveError as ReferenceError, SearchHit, SessionSummary};
use tokio::sync::broadcast;
use tracing::{Instrument as _, info, info_span, warn};

use crate::api::{
    AttachInput, Attached, CreateInput, EngineError, EngineStatus, InterruptInput, OpenInput, PendingPrompt,
    RecoveryReport, SessionChanged, SessionDetail, SubmitInput, Submitted, TurnSnapshot,
};
use crate::recover;
use crate::session::{Command, SessionActor, SessionFacts, SessionHandle, Waiting};
use crate::shared::{EngineDeps, Shared, not_found};
use crate::stream::{SessionStream, Watch};

/// Idle sessions kept loaded; a cache size, it refuses nothing (spec 70 §8).
const MAX_IDLE_SESSIONS: usize = 16;
/// Rows that a gap sends at most; a client that lacks more reads the history.
const GAP_ROWS: u32 = 10_000;
/// Time that interrupted turns get to write their end before the daemon gives up on them.
const INTERRUPT_GRACE: Duration = Duration::from_secs(10);

/// The turn engine. A cheap clone.
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

impl Engine {
    /// Starts an engine; call [`Engine::recover`] before the first input.
    pub fn new(deps: EngineDeps) -> Self {
        let shared = Arc::new(Shared::new(deps));
        shared.deps.wake.bind(&shared);
        Self { shared }
    }

    /// Closes the turns that an earlier daemon left unfinished, with a result for every open call
    /// and a word about what was cut off. Nothing is executed again.
    pub async fn recover(&self) -> Result<RecoveryReport, EngineError> {
        recover::close_all(&self.shared.deps).await
    }

    /// Wakes the sessions that have inputs waiting from before a restart.
    pub async fn resume_queues(&self) -> Result<(), EngineError> {
        for id in self.shared.deps.db.sessions_with_inputs().await? {
            match self.handle(&id, &SessionOptions::default()).await {
                Ok((handle, _)) => {
                    let _ = handle.mailbox.send(Command::WakeQueue).await;
                }
                Err(error) => {
                    warn!(session = %id, %error, "a session with waiting inputs could not be opened");
                }
            }
        }
        Ok(())
    }

    /// Opens a new session. Its row is written with its first turn.
    pub async fn create(&self, input: CreateInput) -> Result<SessionDetail, EngineError> {
        self.refuse_while_draining()?;
        refuse_unbuilt(&input.options)?;
        let shared = Arc::clone(&self.shared);
        let CreateInput { options, title, .. } = input;
        // Reads project files: not on an async thread.
        let opened = self
            .shared
            .deps
            .tasks
            .spawn_blocking("open-session", move || SessionFacts::create(&shared, &options, title))
            .await
            .map_err(|_| EngineError::ShuttingDown)??;
        let summary = unsaved_summary(&opened.facts);
        let info = opened.facts.info();
        self.start(opened.facts, Vec::new(), VecDeque::new());
        self.make_room().await;
        Ok(SessionDetail { summary, info, created: true, warnings: opened.warnings })
    }

    /// Opens an existing session by id, unique prefix, title or `latest`.
    pub async fn open(&self, input: OpenInput) -> Result<SessionDetail, EngineError> {
        self.refuse_while_draining()?;
        let id = self.resolve(&input.reference, input.source.as_deref()).await?;
        let (mut handle, mut warnings) = self.handle(&id, &input.options).await?;
        let mut info = describe(&handle).await?;
        if asks_for_another_model(&input.options, &info) {
            // Loaded with the model it had; an idle session can be loaded anew with the one that is asked for.
            if handle.ask(|reply| Command::CloseIfIdle { reply }).await == Some(true) {
                (handle, warnings) = self.handle(&id, &input.options).await?;
                info = describe(&handle).await?;
            } else {
                warnings.push(format!(
                    "The session is in use with {} ({}); it keeps that model for now.",
                    info.model, info.provider
                ));
            }
        }
        if input.options.toolsets.is_some() {
            warnings.push(
                "A session keeps the tools that it began with; the toolsets were not changed.".to_owned(),
            );
        }
        let summary = match self.shared.deps.db.session_summary(&id).await? {
            Some(summary) => summary,
            None => blank_summary(&id, &info, self.shared.deps.clock.now()),
        };
        if let Some(notice) = recover::notice(&self.shared.deps.db, &id).await? {
            warnings.push(notice);
        }
        Ok(SessionDetail { summary, info, created: false, warnings })
    }

    /// Takes an input. Returns when it is durable: as the user row of a turn that runs, or in the queue.
    pub async fn submit(&self, input: SubmitInput) -> Result<Submitted, EngineError> {
        if input.options.model_once.is_some() {
            return Err(not_built("options.model_once"));
        }
        // A session may be unloaded between finding it and asking it; then it is loaded again.
        for _ in 0..3 {
            let (handle, _) = self.handle(&input.session_id, &SessionOptions::default()).await?;
            let boxed = Box::new(input.clone());
            if let Some(answer) = handle.ask(|reply| Command::Submit { input: boxed, reply }).await {
                return answer;
            }
        }
        Err(EngineError::ShuttingDown)
    }

    /// Adds a text to the running turn; `false` when none runs or it takes no more.
    pub async fn steer(&self, session_id: &SessionId, text: String) -> Result<bool, EngineError> {
        let Some(handle) = self.live_handle(session_id) else { return Ok(false) };
        Ok(handle.ask(|reply| Command::Steer { text, reply }).await.unwrap_or(false))
    }

    /// Stops the running turn; `false` when none runs.
    pub async fn interrupt(&self, input: InterruptInput) -> Result<bool, EngineError> {
        let Some(handle) = self.live_handle(&input.session_id) else { return Ok(false) };
        let InterruptInput { turn_id, cause, .. } = input;
        Ok(handle.ask(|reply| Command::Interrupt { turn_id, cause, reply }).await.unwrap_or(false))
    }

    /// Watches a session from where the client was. See contract §4.
    pub async fn attach(&self, input: AttachInput) -> Result<(Attached, Watch), EngineError> {
        let (handle, _) = self.handle(&input.session_id, &SessionOptions::default()).await?;
        let same_life = input.epoch.as_ref() == Some(handle.stream.epoch());
        let after = same_life.then_some(input.after_seq);
        // Watching begins before the rows are read, so that nothing falls between them.
        let (mut watch, position) = handle.stream.watch(after);
        let shared = Arc::clone(&self.shared);
        let (id, mailbox) = (handle.id.clone(), handle.mailbox.clone());
        let watcher = self.shared.deps.prompts.arrive(&id, input.can_answer);
        watch.set_on_drop(Box::new(move || {
            shared.deps.prompts.leave(&id, watcher);
            // A full mailbox means a busy actor; it looks at its watchers again soon enough.
            let _ = mailbox.try_send(Command::WatcherLeft);
        }));
        let rows = if position.gap {
            self.shared.deps.db.display_rows(&handle.id, input.after_message_id, GAP_ROWS).await?
        } else {
            Vec::new()
        };
        let description =
            handle.ask(|reply| Command::Describe { reply }).await.ok_or(EngineError::ShuttingDown)?;
        let attached = Attached {
            epoch: handle.stream.epoch().clone(),
            first_seq: position.first_seq,
            last_seq: position.last_seq,
            gap: position.gap,
            rows,
            inflight: handle.stream.inflight(),
            pending_prompts: self.shared.deps.prompts.pending(&handle.id),
            queue: description.queue,
            info: description.info,
        };
        Ok((attached, watch))
    }

    /// What is known of one turn.
    pub async fn turn(&self, session_id: &SessionId, turn_id: &TurnId) -> Result<TurnSnapshot, EngineError> {
        let record = self.shared.deps.db.turn(session_id, turn_id).await?;
        let record = record.ok_or_else(|| EngineError::NotFound {
            what: format!("there is no turn {turn_id} in session {session_id}"),
            hint: "look at the session with `hermes-cli sessions show`".into(),
        })?;
        let result = match self.live_handle(session_id) {
            Some(handle) => {
                let turn_id = turn_id.clone();
                handle.ask(|reply| Command::FindResult { turn_id, reply }).await.flatten()
            }
            None => None,
        };
        Ok(TurnSnapshot {
            turn_id: turn_id.clone(),
            state: record.state,
            exit_reason: record.exit_reason,
            result,
        })
    }

    /// Answers a question; `false` when it is gone.
    pub fn answer(&self, session_id: &SessionId, request_id: &PromptId, answer: &str, by: &str) -> bool {
        self.shared.deps.prompts.answer(session_id, request_id, answer, by)
    }

    /// Questions that a session waits for.
    pub fn pending(&self, session_id: &SessionId) -> Vec<PendingPrompt> {
        self.shared.deps.prompts.pending(session_id)
    }

    /// The session list; the second value says whether a turn runs.
    pub async fn list(&self, filter: ListFilter) -> Result<Vec<(SessionSummary, bool)>, EngineError> {
        let sessions = self.shared.deps.db.list_sessions(filter).await?;
        Ok(sessions
            .into_iter()
            .map(|summary| {
                let running = self.shared.is_running(&summary.id);
                (summary, running)
            })
            .collect())
    }

    /// One session, and its rows as people read them when asked for.
    pub async fn get(
        &self,
        reference: &str,
        with_rows: bool,
    ) -> Result<(SessionSummary, bool, Vec<Message>), EngineError> {
        let id = self.resolve(reference, None).await?;
        let summary = self.shared.summary(&id).await?;
        let rows = if with_rows {
            self.shared.deps.db.display_rows(&id, MessageId(0), u32::MAX).await?
        } else {
            Vec::new()
        };
        Ok((summary, self.shared.is_running(&id), rows))
    }

    /// Full-text search over all sessions.
    pub async fn search(&self, query: &str, limit: u32) -> Result<Vec<SearchHit>, EngineError> {
        Ok(self.shared.deps.db.search(query, limit).await?)
    }

    /// The engine at a glance.
    pub fn status(&self) -> EngineStatus {
        let mut status = EngineStatus { draining: self.shared.is_draining(), ..EngineStatus::default() };
        for handle in self.shared.handles() {
            status.live_sessions += 1;
            status.active_turns += u32::from(handle.activity.running.load(Ordering::Relaxed));
            status.queued_inputs += handle.activity.queued.load(Ordering::Relaxed);
            status.watchers += u32::try_from(handle.stream.watcher_count()).unwrap_or(u32::MAX);
        }
        status
    }

    /// Tells everyone who watches a live session something that concerns all of them.
    pub fn notice_all(&self, text: &str) {
        for handle in self.shared.handles() {
            handle.stream.emit(None, EventPayload::SessionNotice { text: text.to_owned() });
        }
    }

    /// Whether a turn runs or waits.
    pub fn busy(&self) -> bool {
        let status = self.status();
        status.active_turns > 0 || status.queued_inputs > 0
    }

    /// Changes of the session list: hints, which a slow receiver may lose.
    pub fn changes(&self) -> broadcast::Receiver<SessionChanged> {
        self.shared.changes.subscribe()
    }

    /// Takes no new input, gives running turns `grace` to finish, then interrupts them, and
    /// returns when each has its durable end.
    pub async fn drain(&self, grace: Duration) {
        self.shared.draining.store(true, Ordering::Release);
        if !self.wait_until_idle(grace).await {
            info!(active = self.status().active_turns, "interrupting the turns that still run");
            self.shared.turns_stop.cancel();
            if !self.wait_until_idle(INTERRUPT_GRACE).await {
                warn!(active = self.status().active_turns, "turns did not end in time and are abandoned");
            }
        }
    }

    /// Polls, because a turn's end is known to its actor alone and a drain is rare.
    async fn wait_until_idle(&self, limit: Duration) -> bool {
        let waiting = async {
            let mut tick = tokio::time::interval(Duration::from_millis(20));
            while self.status().active_turns > 0 {
                tick.tick().await;
            }
        };
        tokio::time::timeout(limit, waiting).await.is_ok()
    }

    fn refuse_while_draining(&self) -> Result<(), EngineError> {
        if self.shared.is_draining() { Err(EngineError::ShuttingDown) } else { Ok(()) }
    }

    async fn resolve(&self, reference: &str, source: Option<&str>) -> Result<SessionId, EngineError> {
        let reference = reference.trim();
        if let Ok(id) = SessionId::parse(reference)
            && self.live_handle(&id).is_some()
        {
            return Ok(id);
        }
        let db = &self.shared.deps.db;
        if reference == "latest" {
            let mut found = db.latest_session(source).await?;
            if found.is_none() && source.is_some() {
                found = db.latest_session(None).await?;
            }
            return found.ok_or_else(|| EngineError::NotFound {
                what: "there is no session yet".into(),
                hint: "start one with `hermes-cli -q \"…\"`".into(),
            });
        }
        match db.resolve_session(reference).await {
            Ok(id) => Ok(id),
            Err(ReferenceError::NotFound { near, .. }) => Err(not_found(reference, &near)),
            Err(ReferenceError::Ambiguous { matches, .. }) => {
                let matches = matches.iter().map(ToString::to_string).collect();
                Err(EngineError::Ambiguous { reference: reference.to_owned(), matches })
            }
            Err(ReferenceError::State(error)) => Err(error.into()),
            Err(other) => Err(EngineError::NotFound { what: other.to_string(), hint: String::new() }),
        }
    }

    fn live_handle(&self, id: &SessionId) -> Option<SessionHandle> {
        let handle = self.shared.live().get(id).cloned()?;
        handle.activity.last_used.store(self.shared.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(handle)
    }

    /// The live session, loaded if need be, and what the loading has to say.
    async fn handle(
        &self,
        id: &SessionId,
        options: &SessionOptions,
    ) -> Result<(SessionHandle, Vec<String>), EngineError> {
        if let Some(handle) = self.live_handle(id) {
            return Ok((handle, Vec::new()));
        }
        let _one_at_a_time = self.shared.loading.lock().await;
        if let Some(handle) = self.live_handle(id) {
            return Ok((handle, Vec::new()));
        }
        let stored = self.shared.stored(id).await?;
        let history = self.shared.transcript(id).await?;
        let queue =
            self.shared.deps.db.list_inputs(id).await?.into_iter().filter_map(Waiting::from_row).collect();
        let (shared, options) = (Arc::clone(&self.shared), options.clone());
        let opened = self
            .shared
            .deps
            .tasks
            .spawn_blocking("open-session", move || SessionFacts::reopen(&shared, stored, &options))
            .await
            .map_err(|_| EngineError::ShuttingDown)??;
        let handle = self.start(opened.facts, history, queue);
        self.make_room().await;
        Ok((handle, opened.warnings))
    }

    fn start(
        &self,
        facts: SessionFacts,
        history: Vec<Arc<Message>>,
        queue: VecDeque<Waiting>,
    ) -> SessionHandle {
        let deps = &self.shared.deps;
        let id = facts.id.clone();
        let stream = Arc::new(SessionStream::new(
            id.clone(),
            deps.epoch.clone(),
            Arc::clone(&deps.clock),
            Arc::clone(&self.shared.streams),
        ));
        let (handle, inbox) = SessionHandle::new(id.clone(), stream);
        handle.activity.last_used.store(self.shared.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        deps.prompts.register(&id, &handle.stream);
        deps.todos.restore(&id, &history);
        let something_waits = !queue.is_empty();
        self.shared.live().insert(id.clone(), handle.clone());
        let actor = SessionActor::new(Arc::clone(&self.shared), handle.clone(), facts, history, queue);
        let span = info_span!("session", session = %id);
        deps.tasks.spawn("session", actor.run(inbox).instrument(span));
        if something_waits {
            // The mailbox is new, so there is room.
            let _ = handle.mailbox.try_send(Command::WakeQueue);
        }
        handle
    }

    /// Unloads the idle sessions that were not used for longest, beyond the cache's size.
    async fn make_room(&self) {
        let mut idle: Vec<SessionHandle> = self
            .shared
            .handles()
            .into_iter()
            .filter(|handle| {
                !handle.activity.running.load(Ordering::Relaxed) && handle.stream.watcher_count() == 0
            })
            .collect();
        if idle.len() <= MAX_IDLE_SESSIONS {
            return;
        }
        idle.sort_by_key(|handle| handle.activity.last_used.load(Ordering::Relaxed));
        let surplus = idle.len() - MAX_IDLE_SESSIONS;
        for handle in idle.into_iter().take(surplus) {
            handle.ask(|reply| Command::CloseIfIdle { reply }).await;
        }
    }
}

/// Options that the contract has and this version does not act on: refused, since a client that keeps a
/// session out of the database must not find it there.
fn refuse_unbuilt(options: &SessionOptions) -> Result<(), EngineError> {
    if options.ephemeral {
        return Err(not_built("options.persist"));
    }
    if !options.skills.is_empty() {
        return Err(not_built("options.skills"));
    }
    Ok(())
}

fn not_built(field: &'static str) -> EngineError {
    EngineError::Invalid { field, reason: "this version cannot do that yet".into() }
}

async fn describe(handle: &SessionHandle) -> Result<SessionInfo, EngineError> {
    let description = handle.ask(|reply| Command::Describe { reply }).await;
    Ok(description.ok_or(EngineError::ShuttingDown)?.info)
}

fn asks_for_another_model(options: &SessionOptions, info: &SessionInfo) -> bool {
    let differs = |asked: &Option<String>, is: &str| asked.as_deref().is_some_and(|asked| asked != is);
    differs(&options.model, &info.model) || differs(&options.provider, &info.provider)
}

fn unsaved_summary(facts: &SessionFacts) -> SessionSummary {
    let started_at = facts.unsaved.as_ref().map_or(Instant::default(), |unsaved| unsaved.started_at);
    let summary = blank_summary(&facts.id, &facts.info(), started_at);
    match &facts.unsaved {
        Some(unsaved) => SessionSummary { source: unsaved.source.clone(), ..summary },
        None => summary,
    }
}

/// The summary of a session that has no row yet.
fn blank_summary(id: &SessionId, info: &SessionInfo, at: Instant) -> SessionSummary {
    SessionSummary {
        id: id.clone(),
        source: String::new(),
        title: info.title.clone(),
        preview: String::new(),
        model: Some(info.model.clone()),
        started_at: at,
        last_active: at,
        message_count: 0,
        tool_call_count: 0,
        api_call_count: 0,
        cwd: info.cwd.clone(),
        git_branch: None,
        usage: hermes_core::Usage::default(),
        estimated_cost_usd: None,
        cost_status: hermes_core::CostStatus::Unknown,
        end_reason: None,
        archived: false,
    }
}

//! The session actor: one task a live session, one turn at a time.
//!
//! It owns the session's facts, transcript and queue outright and never waits for a turn: the turn
//! is a child task that borrows the transcript and gives it back when it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hermes_context::prompts;
use hermes_core::{
    BusyMode, EventPayload, InterruptCause, Message, Principal, SessionInfo, TurnId, TurnOptions, TurnResult,
};
use hermes_state::StateError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, info_span, warn};

use crate::api::{EngineError, SubmitInput, SubmitStatus, Submitted};
use crate::session::queue::{MAX_NOTICES, MAX_WAITING, Waiting};
use crate::session::{Command, Description, SessionFacts, SessionHandle};
use crate::settings::BusySettings;
use crate::shared::Shared;
use crate::turn::{self, Accepted, Interrupt, SteerSlot, TurnEnd, TurnInput};
use crate::wake;

/// How long a one-shot's turn waits for its client to come back before it is interrupted.
const LOST_CLIENT_GRACE: Duration = Duration::from_secs(2);
/// Ended turns whose results are kept for `Turns.Get`.
const KEPT_RESULTS: usize = 8;

/// The owner of one live session.
#[derive(Debug)]
pub(crate) struct SessionActor {
    shared: Arc<Shared>,
    handle: SessionHandle,
    /// Both are lent to the running turn.
    facts: Option<Box<SessionFacts>>,
    history: Vec<Arc<Message>>,
    info: SessionInfo,
    running: Option<Running>,
    queue: VecDeque<Waiting>,
    results: VecDeque<Arc<TurnResult>>,
}

#[derive(Debug)]
struct Running {
    turn_id: TurnId,
    client_message_id: Option<String>,
    principal: Principal,
    one_shot: bool,
    interrupt: Interrupt,
    steer: SteerSlot,
    deadline: Option<Instant>,
    client_lost: Option<Instant>,
    end: oneshot::Receiver<TurnEnd>,
}

impl SessionActor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        handle: SessionHandle,
        facts: SessionFacts,
        history: Vec<Arc<Message>>,
        queue: VecDeque<Waiting>,
    ) -> Self {
        let info = facts.info();
        handle.activity.queued.store(u32::try_from(queue.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
        Self {
            shared,
            handle,
            facts: Some(Box::new(facts)),
            history,
            info,
            running: None,
            queue,
            results: VecDeque::new(),
        }
    }

    /// Serves the mailbox until the session is unloaded or the daemon stops.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        let stop = self.shared.deps.tasks.stopping();
        loop {
            let wake = self.running.as_ref().and_then(|r| earlier(r.deadline, r.client_lost));
            tokio::select! {
                biased;
                end = turn_end(&mut self.running) => self.on_turn_end(end).await,
                // The daemon drains its turns first; a session without one has nothing left to do.
                () = stop.cancelled(), if self.running.is_none() => return,
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.on_alarm(),
                command = inbox.recv() => match command {
                    Some(Command::CloseIfIdle { reply }) => {
                        let idle = self.running.is_none()
                            && self.queue.is_empty()
                            && self.handle.stream.watcher_count() == 0
                            && inbox.is_empty();
                        if idle {
                            // Before another actor can take the session up.
                            self.shared.deps.todos.forget(&self.handle.id);
                            self.shared.forget(&self.handle);
                        }
                        let _ = reply.send(idle);
                        if idle {
                            return self.unload().await;
                        }
                    }
                    Some(command) => self.on_command(command).await,
                    None => return,
                },
            }
        }
    }

    /// Gives back what the session holds of the machine.
    async fn unload(self) {
        self.shared.deps.prompts.close_session(&self.handle.id);
        if let Some(facts) = &self.facts {
            let services = self.shared.deps.dispatcher.services();
            services.backend.close_session(facts.workspace.shell()).await;
        }
    }

    async fn on_command(&mut self, command: Command) {
        match command {
            Command::Submit { input, reply } => self.on_submit(*input, reply).await,
            Command::Steer { text, reply } => {
                let taken = self.running.as_ref().is_some_and(|running| running.steer.offer(&text));
                let _ = reply.send(taken);
            }
            Command::Interrupt { turn_id, cause, reply } => {
                let hit = self
                    .running
                    .as_ref()
                    .filter(|running| turn_id.as_ref().is_none_or(|id| *id == running.turn_id));
                if let Some(running) = hit {
                    running.interrupt.raise(cause);
                }
                let _ = reply.send(hit.is_some());
            }
            Command::Describe { reply } => {
                let _ = reply.send(self.describe());
            }
            Command::FindResult { turn_id, reply } => {
                let found = self.results.iter().find(|result| result.turn_id == turn_id);
                let _ = reply.send(found.cloned());
            }
            Command::WatcherLeft => {
                if self.handle.stream.watcher_count() == 0
                    && let Some(running) = self.running.as_mut().filter(|running| running.one_shot)
                {
                    running.client_lost = Some(Instant::now() + LOST_CLIENT_GRACE);
                }
            }
            Command::Notice { waiting, reply } => {
                let kept = self.on_notice(*waiting).await;
                let _ = reply.send(kept);
            }
            Command::WakeQueue => self.start_next(),
            // Handled where the loop can end.
            Command::CloseIfIdle { reply } => {
                let _ = reply.send(false);
            }
        }
    }

    fn on_alarm(&mut self) {
        let now = Instant::now();
        let Some(running) = self.running.as_mut() else { return };
        if running.client_lost.is_some_and(|at| at <= now) {
            running.client_lost = None;
            if self.handle.stream.watcher_count() == 0 {
                running.interrupt.raise(InterruptCause::ClientDisconnect);
            }
        }
        if running.deadline.is_some_and(|at| at <= now) {
            running.deadline = None;
            running.interrupt.raise(InterruptCause::Deadline);
        }
    }

    async fn on_submit(
        &mut self,
        input: SubmitInput,
        reply: oneshot::Sender<Result<Submitted, EngineError>>,
    ) {
        if self.shared.is_draining() {
            let _ = reply.send(Err(EngineError::ShuttingDown));
            return;
        }
        if input.text.trim().is_empty() {
            let reason = "the message is empty".into();
            let _ = reply.send(Err(EngineError::Invalid { field: "text", reason }));
            return;
        }
        // An idle session learns of a repeated input when its turn begins.
        if self.running.is_none() && self.queue.is_empty() {
            self.start(Waiting { turn_id: TurnId::mint(), input, is_notice: false }, Some(reply));
            return;
        }
        match self.already_taken(input.client_message_id.as_deref()).await {
            Ok(None) => {}
            Ok(Some(known)) => {
                let _ = reply.send(Ok(known));
                return;
            }
            Err(error) => {
                let _ = reply.send(Err(error.into()));
                return;
            }
        }
        let mode = input
            .options
            .busy_mode
            .unwrap_or_else(|| self.shared.section::<BusySettings>("display").busy_input_mode.into());
        let room = self.inputs_waiting() < MAX_WAITING;
        if let Some(running) = &self.running {
            match mode {
                BusyMode::Steer if running.steer.offer(&input.text) => {
                    let turn_id = running.turn_id.clone();
                    let _ =
                        reply.send(Ok(Submitted { turn_id, status: SubmitStatus::Steered, position: None }));
                    return;
                }
                // A turn is not stopped for an input that cannot be taken.
                BusyMode::Interrupt if room => running.interrupt.raise(InterruptCause::NewMessage),
                BusyMode::Interrupt | BusyMode::Queue | BusyMode::Steer => {}
            }
        }
        let answer = self.enqueue(input).await;
        let _ = reply.send(answer);
    }

    /// The answer to a repeated `client_message_id`: of a turn that runs, waits, or has ended.
    async fn already_taken(&self, client_message_id: Option<&str>) -> Result<Option<Submitted>, StateError> {
        let Some(id) = client_message_id else { return Ok(None) };
        if let Some(known) = self.taken_here(id) {
            return Ok(Some(known));
        }
        let record = self.shared.deps.db.turn_of_client_message(&self.handle.id, id).await?;
        Ok(record.map(|record| Submitted {
            turn_id: record.turn_id,
            status: SubmitStatus::Done,
            position: None,
        }))
    }

    fn taken_here(&self, id: &str) -> Option<Submitted> {
        let running = self.running.as_ref().filter(|r| r.client_message_id.as_deref() == Some(id));
        if let Some(running) = running {
            let turn_id = running.turn_id.clone();
            return Some(Submitted { turn_id, status: SubmitStatus::Streaming, position: None });
        }
        let index = self.queue.iter().position(|w| w.input.client_message_id.as_deref() == Some(id))?;
        let turn_id = self.queue.get(index)?.turn_id.clone();
        let position = u32::try_from(index + 1).ok();
        Some(Submitted { turn_id, status: SubmitStatus::Queued, position })
    }

    async fn enqueue(&mut self, input: SubmitInput) -> Result<Submitted, EngineError> {
        let queued = self.inputs_waiting();
        if queued >= MAX_WAITING {
            return Err(EngineError::QueueFull { queued: u32::try_from(queued).unwrap_or(u32::MAX) });
        }
        let waiting = Waiting { turn_id: TurnId::mint(), input, is_notice: false };
        let added = self.shared.deps.db.push_input(waiting.to_row(self.shared.deps.clock.now())).await?;
        debug_assert!(added, "a repeated input was answered before");
        let turn_id = waiting.turn_id.clone();
        self.queue.push_back(waiting);
        self.announce_queue();
        let position = u32::try_from(self.queue.len()).ok();
        Ok(Submitted { turn_id, status: SubmitStatus::Queued, position })
    }

    /// A notice waits behind what runs, and begins a turn when nothing does. It interrupts nobody.
    async fn on_notice(&mut self, waiting: Waiting) -> bool {
        let id = waiting.input.client_message_id.as_deref();
        if id.is_some_and(|id| self.taken_here(id).is_some()) {
            return true;
        }
        if self.queue.iter().filter(|waiting| waiting.is_notice).count() >= MAX_NOTICES {
            warn!("too many notices of processes wait; one more stays with its process");
            return false;
        }
        match wake::keep(&self.shared, &self.handle.id, &waiting).await {
            Ok(false) => true,
            Ok(true) => {
                self.queue.push_back(waiting);
                self.announce_queue();
                self.start_next();
                true
            }
            Err(error) => {
                warn!(%error, "a process's notice could not be kept");
                false
            }
        }
    }

    /// Starts the turn of the oldest waiting input, if none runs.
    fn start_next(&mut self) {
        if self.running.is_some() || self.shared.is_draining() {
            return;
        }
        let Some(waiting) = self.queue.pop_front() else { return };
        self.announce_queue();
        // Its row in `inputs` goes in the transaction that writes the user row.
        self.start(waiting, None);
    }

    fn start(&mut self, waiting: Waiting, reply: Option<oneshot::Sender<Result<Submitted, EngineError>>>) {
        let Some(facts) = self.facts.take() else {
            // Only a running turn holds the facts, and callers start a turn only when none runs.
            return;
        };
        let Waiting { turn_id, input, is_notice } = waiting;
        let interrupt = Interrupt::below(&self.shared.turns_stop);
        let steer = SteerSlot::default();
        let (end_tx, end) = oneshot::channel();
        let deadline = input
            .options
            .deadline_s
            .filter(|seconds| seconds.is_finite() && *seconds > 0.0)
            .map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.min(31_536_000.0)));
        self.running = Some(Running {
            turn_id: turn_id.clone(),
            client_message_id: input.client_message_id.clone(),
            principal: input.principal.clone(),
            one_shot: input.options.one_shot,
            interrupt: interrupt.clone(),
            steer: steer.clone(),
            deadline,
            client_lost: None,
            end,
        });
        self.info.running = true;
        self.info.yolo = input.options.yolo;
        self.handle.activity.running.store(true, Ordering::Relaxed);

        let span = info_span!("turn", turn = %turn_id);
        let turn_input = TurnInput {
            turn_id: turn_id.clone(),
            text: if is_notice { prompts::process_notice(&input.text) } else { input.text },
            principal: input.principal,
            client_message_id: input.client_message_id,
            options: input.options,
            queued_input: reply.is_none().then(|| turn_id.as_str().to_owned()),
            accepted: Accepted::new(turn_id, reply),
        };
        let history = std::mem::take(&mut self.history);
        let shared = Arc::clone(&self.shared);
        let stream = Arc::clone(&self.handle.stream);
        let work = async move {
            let end = turn::run(&shared, &stream, facts, history, turn_input, interrupt, steer).await;
            let _ = end_tx.send(end);
        };
        self.shared.deps.tasks.spawn("turn", work.instrument(span));
    }

    async fn on_turn_end(&mut self, end: Result<TurnEnd, oneshot::error::RecvError>) {
        let Some(running) = self.running.take() else { return };
        self.info.running = false;
        self.info.yolo = false;
        self.handle.activity.running.store(false, Ordering::Relaxed);
        if let Ok(end) = end {
            self.history = end.history;
            self.info = end.facts.info();
            self.facts = Some(end.facts);
            if let Some(result) = end.result {
                self.results.push_front(result);
                self.results.truncate(KEPT_RESULTS);
            }
            if let Some(text) = end.pending_steer {
                self.requeue_steer(&running, text).await;
            }
        } else {
            // The turn's task died without an end: a fault of ours. What is durable is the truth.
            warn!(turn = %running.turn_id, "a turn ended without a result");
            self.reload(&running).await;
        }
        self.shared.session_changed(&self.handle.id);
        self.start_next();
    }

    /// A steer that came too late becomes the next turn's input.
    async fn requeue_steer(&mut self, running: &Running, text: String) {
        let input = SubmitInput {
            session_id: self.handle.id.clone(),
            text,
            principal: running.principal.clone(),
            client_message_id: None,
            options: TurnOptions { one_shot: running.one_shot, ..TurnOptions::default() },
        };
        if let Err(error) = self.enqueue(input).await {
            warn!(%error, "an undelivered steer could not be queued");
            let text = "Your last addition could not be delivered. Please send it again.".into();
            self.handle.stream.emit(None, EventPayload::SessionNotice { text });
        }
    }

    async fn reload(&mut self, running: &Running) {
        match self.shared.reload_after_fault(&self.handle, &running.turn_id).await {
            Ok((facts, history)) => {
                self.info = facts.info();
                self.facts = Some(Box::new(facts));
                self.history = history;
            }
            Err(error) => {
                warn!(%error, "the session could not be reloaded and is unloaded");
                self.shared.forget(&self.handle);
            }
        }
    }

    /// What people sent and what waits; notices have room of their own.
    fn inputs_waiting(&self) -> usize {
        self.queue.iter().filter(|waiting| !waiting.is_notice).count()
    }

    fn describe(&self) -> Description {
        Description {
            info: self.info.clone(),
            queue: self.queue.iter().enumerate().map(|(index, waiting)| waiting.shown(index)).collect(),
        }
    }

    fn announce_queue(&self) {
        let queued = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        self.handle.activity.queued.store(queued, Ordering::Relaxed);
        let queue = self.describe().queue;
        self.handle.stream.emit(None, EventPayload::InputState { queue });
    }
}

/// Pends for ever while no turn runs, so that it can stand in a `select!`.
async fn turn_end(running: &mut Option<Running>) -> Result<TurnEnd, oneshot::error::RecvError> {
    match running {
        Some(running) => (&mut running.end).await,
        None => std::future::pending().await,
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

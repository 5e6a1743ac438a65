//! The prompt broker: questions of tools to a person (contract §7).
//!
//! It stands outside the actors, so that a question can be answered while its session is busy.
//! Nobody who can answer means the answer is no, at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{EventPayload, PromptId, SessionId, TurnId};
use hermes_runtime::{ApprovalScope, Secret};
use hermes_tools::{ApproveAnswer, ApproveRequest, Ask, Question, QuestionAnswer, SudoRequest};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::PendingPrompt;
use crate::stream::SessionStream;

/// The kind of prompt that a tool's effect asks for.
const APPROVAL: &str = "approval";
/// A question of the model.
const CLARIFY: &str = "clarify";
/// The password that a command's `sudo` wants.
const SUDO: &str = "sudo";
/// Characters of a reason that the model is told.
const REASON_CHARS: usize = 2_000;
/// The answer that refuses; a reason may follow it after a blank.
const DENY: &str = "deny";
/// How often watchers and watchdogs hear that the turn waits for a person (spec 40 §8.7).
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long a person may look for their password (spec 40 §6.1).
const SUDO_TIMEOUT: Duration = Duration::from_secs(45);

/// Open questions of all sessions, and who could answer them.
#[derive(Debug, Default)]
pub struct PromptBroker {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: Vec<OpenPrompt>,
    streams: HashMap<SessionId, Weak<SessionStream>>,
    /// Per session: what each watcher can answer.
    answerers: HashMap<SessionId, Vec<(u64, Vec<String>)>>,
    next_watcher: u64,
}

#[derive(Debug)]
struct OpenPrompt {
    session_id: SessionId,
    prompt: PendingPrompt,
    reply: oneshot::Sender<Reply>,
    /// Whether somebody is there who can answer.
    attended: watch::Sender<bool>,
}

#[derive(Debug)]
struct Reply {
    answer: String,
    by: String,
}

impl Inner {
    /// Whether a watcher of the session can answer prompts of this kind.
    fn can_answer(&self, session_id: &SessionId, kind: &str) -> bool {
        let watchers = self.answerers.get(session_id);
        watchers
            .is_some_and(|watchers| watchers.iter().any(|(_, kinds)| kinds.iter().any(|known| known == kind)))
    }

    /// Lets the session's open prompts know whether somebody is there.
    fn count_again(&self, session_id: &SessionId) {
        for open in self.open.iter().filter(|open| open.session_id == *session_id) {
            let attended = self.can_answer(session_id, open.prompt.kind);
            open.attended.send_if_modified(|was| std::mem::replace(was, attended) != attended);
        }
    }
}

impl PromptBroker {
    /// Lets the broker speak on a session's stream, as long as that lives.
    pub(crate) fn register(&self, session_id: &SessionId, stream: &Arc<SessionStream>) {
        let mut inner = self.lock();
        inner.streams.retain(|_, known| known.strong_count() > 0);
        inner.streams.insert(session_id.clone(), Arc::downgrade(stream));
    }

    /// Registers what a watcher can answer; the number takes it back.
    pub(crate) fn arrive(&self, session_id: &SessionId, can_answer: Vec<String>) -> u64 {
        let mut inner = self.lock();
        inner.next_watcher += 1;
        let id = inner.next_watcher;
        if !can_answer.is_empty() {
            inner.answerers.entry(session_id.clone()).or_default().push((id, can_answer));
            inner.count_again(session_id);
        }
        id
    }

    pub(crate) fn leave(&self, session_id: &SessionId, watcher: u64) {
        let mut inner = self.lock();
        if let Some(watchers) = inner.answerers.get_mut(session_id) {
            watchers.retain(|(id, _)| *id != watcher);
            if watchers.is_empty() {
                inner.answerers.remove(session_id);
            }
            inner.count_again(session_id);
        }
    }

    /// Ends all questions of a session that closes; each counts as a no.
    pub(crate) fn close_session(&self, session_id: &SessionId) {
        self.lock().open.retain(|open| open.session_id != *session_id);
    }

    /// Gives the answer; `false` when the question is gone. The first answer wins.
    pub(crate) fn answer(
        &self,
        session_id: &SessionId,
        request_id: &PromptId,
        answer: &str,
        by: &str,
    ) -> bool {
        let mut inner = self.lock();
        let found = inner
            .open
            .iter()
            .position(|open| open.session_id == *session_id && open.prompt.request_id == *request_id);
        let Some(index) = found else { return false };
        let open = inner.open.remove(index);
        open.reply.send(Reply { answer: answer.to_owned(), by: by.to_owned() }).is_ok()
    }

    /// Questions that a session waits for.
    pub(crate) fn pending(&self, session_id: &SessionId) -> Vec<PendingPrompt> {
        let inner = self.lock();
        inner
            .open
            .iter()
            .filter(|open| open.session_id == *session_id)
            .map(|open| open.prompt.clone())
            .collect()
    }

    /// Puts the question up; `None` when nobody could answer it.
    fn put_up(&self, session_id: &SessionId, prompt: PendingPrompt) -> Option<PutUp> {
        let mut inner = self.lock();
        if !inner.can_answer(session_id, prompt.kind) {
            return None;
        }
        let stream = inner.streams.get(session_id)?.upgrade()?;
        let (reply, answer) = oneshot::channel();
        let (attended, attendance) = watch::channel(true);
        inner.open.push(OpenPrompt { session_id: session_id.clone(), prompt, reply, attended });
        Some(PutUp { stream, answer, attendance })
    }

    fn take_down(&self, request_id: &PromptId) {
        self.lock().open.retain(|open| open.prompt.request_id != *request_id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is up.
struct PutUp {
    stream: Arc<SessionStream>,
    answer: oneshot::Receiver<Reply>,
    attendance: watch::Receiver<bool>,
}

/// A prompt on its way to its answer.
struct Asking<'a> {
    session_id: &'a SessionId,
    turn_id: &'a TurnId,
    prompt: PendingPrompt,
    event: EventPayload,
    timeout: Duration,
    /// How long it stays open, at most, once the last person who could answer has left.
    alone: Duration,
}

/// How a prompt ended.
enum Asked {
    Answered(String),
    TimedOut,
    Nobody,
}

/// How the waiting for it ended.
enum Waited {
    Reply(Reply),
    TimeOver,
    Interrupted,
    SessionClosed,
}

impl PromptBroker {
    /// Puts the question up, waits, takes it down and says how it ended. What `shown` makes of an answer is
    /// what everybody who watches may see of it.
    async fn put(
        &self,
        asking: Asking<'_>,
        cancel: &CancellationToken,
        shown: impl Fn(&str) -> String,
    ) -> Asked {
        let Asking { session_id, turn_id, prompt, event, timeout, alone } = asking;
        let request_id = prompt.request_id.clone();
        let Some(up) = self.put_up(session_id, prompt) else { return Asked::Nobody };
        let stream = Arc::clone(&up.stream);
        // Also when the caller goes away, nothing is left that could be answered.
        let _down = TakeDown { broker: self, request_id: request_id.clone() };
        stream.emit(Some(turn_id), event);
        let (by, decision, asked) = match wait(up, turn_id, timeout, alone, cancel).await {
            Waited::Reply(Reply { answer, by }) => (by, shown(&answer), Asked::Answered(answer)),
            Waited::TimeOver => ("timeout".to_owned(), "timeout".to_owned(), Asked::TimedOut),
            Waited::Interrupted => ("interrupt".to_owned(), DENY.to_owned(), Asked::TimedOut),
            Waited::SessionClosed => ("session_end".to_owned(), DENY.to_owned(), Asked::TimedOut),
        };
        stream.emit(Some(turn_id), EventPayload::PromptResolved { request_id, by, decision });
        asked
    }
}

/// Takes a question down when it is dropped.
struct TakeDown<'a> {
    broker: &'a PromptBroker,
    request_id: PromptId,
}

impl Drop for TakeDown<'_> {
    fn drop(&mut self) {
        self.broker.take_down(&self.request_id);
    }
}

/// Waits for the answer. While nobody is there who could give it, the time is short; who comes back in time can
/// still answer.
async fn wait(
    up: PutUp,
    turn_id: &TurnId,
    timeout: Duration,
    alone: Duration,
    cancel: &CancellationToken,
) -> Waited {
    let PutUp { stream, mut answer, mut attendance } = up;
    let began = Instant::now();
    let deadline = began + timeout;
    let mut left_alone: Option<Instant> = None;
    let mut heartbeat = tokio::time::interval_at(began + HEARTBEAT, HEARTBEAT);
    loop {
        let until = left_alone.map_or(deadline, |alone| alone.min(deadline));
        tokio::select! {
            biased;
            reply = &mut answer => return reply.map_or(Waited::SessionClosed, Waited::Reply),
            () = cancel.cancelled() => return Waited::Interrupted,
            () = tokio::time::sleep_until(until) => return Waited::TimeOver,
            Ok(()) = attendance.changed() => {
                left_alone = (!*attendance.borrow_and_update()).then(|| Instant::now() + alone);
            }
            _ = heartbeat.tick() => {
                let text = format!("waiting for an answer ({} s)", began.elapsed().as_secs());
                stream.emit(Some(turn_id), EventPayload::StatusUpdate { kind: "process", text });
            }
        }
    }
}

/// The answers that are offered, narrowest first.
fn choices(widest: ApprovalScope) -> Vec<String> {
    [ApprovalScope::Once, ApprovalScope::Session, ApprovalScope::Always]
        .into_iter()
        .filter(|scope| *scope <= widest)
        .map(ApprovalScope::as_str)
        .chain([DENY])
        .map(str::to_owned)
        .collect()
}

/// Reads a person's answer; whatever is not a yes is a no.
fn read_approval(answer: &str, widest: ApprovalScope) -> ApproveAnswer {
    let answer = answer.trim();
    if let Some(scope) = ApprovalScope::parse(answer)
        && scope <= widest
    {
        return ApproveAnswer::Allow(scope);
    }
    let reason =
        answer.strip_prefix(DENY).filter(|rest| rest.starts_with(char::is_whitespace)).map(str::trim);
    let reason = reason.filter(|reason| !reason.is_empty());
    ApproveAnswer::Deny { reason: reason.map(|reason| reason.chars().take(REASON_CHARS).collect()) }
}

#[async_trait]
impl Ask for PromptBroker {
    async fn approve(&self, request: ApproveRequest, cancel: &CancellationToken) -> ApproveAnswer {
        let request_id = PromptId::mint();
        let choices = choices(request.widest);
        let prompt = PendingPrompt {
            request_id: request_id.clone(),
            kind: APPROVAL,
            text: format!("{}: {}", request.description, request.subject),
            choices: choices.clone(),
        };
        let event = EventPayload::ApprovalRequest {
            request_id,
            tool: request.tool,
            command: request.subject,
            description: request.description,
            choices,
        };
        let (session_id, turn_id) = (&request.session_id, &request.turn_id);
        let timeout = request.timeout;
        let asking = Asking { session_id, turn_id, prompt, event, timeout, alone: timeout };
        let shown = |answer: &str| match read_approval(answer, request.widest) {
            ApproveAnswer::Allow(scope) => scope.as_str().to_owned(),
            _ => DENY.to_owned(),
        };
        match self.put(asking, cancel, shown).await {
            Asked::Answered(answer) => read_approval(&answer, request.widest),
            Asked::TimedOut => ApproveAnswer::TimedOut,
            Asked::Nobody => ApproveAnswer::Nobody,
        }
    }

    async fn question(&self, question: Question, cancel: &CancellationToken) -> QuestionAnswer {
        let request_id = PromptId::mint();
        let prompt = PendingPrompt {
            request_id: request_id.clone(),
            kind: CLARIFY,
            text: question.question.clone(),
            choices: question.choices.clone(),
        };
        let event = EventPayload::ClarifyRequest {
            request_id,
            question: question.question,
            choices: question.choices,
        };
        let (session_id, turn_id) = (&question.session_id, &question.turn_id);
        let (timeout, alone) = (question.timeout, question.alone);
        let asking = Asking { session_id, turn_id, prompt, event, timeout, alone };
        match self.put(asking, cancel, str::to_owned).await {
            Asked::Answered(answer) => QuestionAnswer::Answered(answer),
            Asked::TimedOut => QuestionAnswer::TimedOut,
            Asked::Nobody => QuestionAnswer::Nobody,
        }
    }

    async fn sudo_password(&self, request: SudoRequest, cancel: &CancellationToken) -> Option<Secret> {
        let request_id = PromptId::mint();
        let prompt = PendingPrompt {
            request_id: request_id.clone(),
            kind: SUDO,
            text: request.command.clone(),
            choices: Vec::new(),
        };
        let event = EventPayload::SudoRequest { request_id, command: request.command };
        let (session_id, turn_id) = (&request.session_id, &request.turn_id);
        let asking =
            Asking { session_id, turn_id, prompt, event, timeout: SUDO_TIMEOUT, alone: SUDO_TIMEOUT };
        // Whoever watches learns that it was given, never what it is.
        match self.put(asking, cancel, |_| "given".to_owned()).await {
            Asked::Answered(password) if !password.is_empty() => Some(Secret::from(password)),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "broker_tests.rs"]
mod tests;

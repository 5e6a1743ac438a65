//! The prompt broker: questions of tools to a person (contract §7).
//!
//! It stands outside the actors, so that a question can be answered while its session is busy.
//! Nobody who can answer means the answer is no, at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{EventPayload, PromptId, SessionId};
use hermes_tools::{Ask, AskAnswer, AskRequest};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::api::PendingPrompt;
use crate::stream::SessionStream;

/// The kind of prompt that a tool's effect asks for.
const APPROVAL: &str = "approval";
/// What a person may answer to it. Wider answers come with the rules that remember them.
const CHOICES: [&str; 2] = ["once", "deny"];
/// How long a person may think about it.
const APPROVAL_TIMEOUT: Duration = Duration::from_mins(5);

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
}

#[derive(Debug)]
struct Reply {
    answer: String,
    by: String,
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
        }
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
        let open = inner.open.swap_remove(index);
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
    fn put_up(
        &self,
        session_id: &SessionId,
        prompt: PendingPrompt,
    ) -> Option<(Arc<SessionStream>, oneshot::Receiver<Reply>)> {
        let mut inner = self.lock();
        let watchers = inner.answerers.get(session_id)?;
        if !watchers.iter().any(|(_, kinds)| kinds.iter().any(|kind| kind == prompt.kind)) {
            return None;
        }
        let stream = inner.streams.get(session_id)?.upgrade()?;
        let (reply, answer) = oneshot::channel();
        inner.open.push(OpenPrompt { session_id: session_id.clone(), prompt, reply });
        Some((stream, answer))
    }

    fn take_down(&self, request_id: &PromptId) {
        self.lock().open.retain(|open| open.prompt.request_id != *request_id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Ask for PromptBroker {
    async fn ask(&self, request: AskRequest, cancel: &CancellationToken) -> AskAnswer {
        let request_id = PromptId::mint();
        let prompt = PendingPrompt {
            request_id: request_id.clone(),
            kind: APPROVAL,
            text: format!("{}: {}", request.description, request.subject),
            choices: CHOICES.map(str::to_owned).to_vec(),
        };
        let Some((stream, answer)) = self.put_up(&request.session_id, prompt) else {
            return AskAnswer::Nobody;
        };
        stream.emit(
            Some(&request.turn_id),
            EventPayload::ApprovalRequest {
                request_id: request_id.clone(),
                tool: request.tool,
                command: request.subject,
                description: request.description,
                choices: CHOICES.map(str::to_owned).to_vec(),
            },
        );
        let reply = tokio::select! {
            reply = answer => reply.ok(),
            () = tokio::time::sleep(APPROVAL_TIMEOUT) => None,
            () = cancel.cancelled() => None,
        };
        self.take_down(&request_id);
        let (by, decision, outcome) = match reply {
            Some(Reply { answer, by }) if answer == "once" => (by, answer, AskAnswer::Allow),
            Some(Reply { answer, by }) => (by, answer, AskAnswer::Deny { reason: None }),
            None => ("timeout".to_owned(), "deny".to_owned(), AskAnswer::Nobody),
        };
        stream.emit(Some(&request.turn_id), EventPayload::PromptResolved { request_id, by, decision });
        outcome
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::{Epoch, Principal, SystemClock, ToolCallId, TurnId};
    use pretty_assertions::assert_eq;

    use super::*;

    fn fixture() -> (PromptBroker, Arc<SessionStream>, SessionId) {
        let id = SessionId::parse("s").unwrap();
        let stream =
            SessionStream::new(id.clone(), Epoch::from_wire("e"), Arc::new(SystemClock), Arc::default());
        let (broker, stream) = (PromptBroker::default(), Arc::new(stream));
        broker.register(&id, &stream);
        (broker, stream, id)
    }

    fn request(session_id: &SessionId) -> AskRequest {
        AskRequest {
            session_id: session_id.clone(),
            turn_id: TurnId::mint(),
            call_id: ToolCallId::new("c"),
            principal: Principal::Owner,
            tool: "terminal".into(),
            subject: "rm -r build".into(),
            rule: "recursive-delete",
            description: "deletes a folder".into(),
        }
    }

    #[tokio::test]
    async fn nobody_who_can_answer_means_no_at_once() {
        let (broker, _stream, id) = fixture();
        broker.arrive(&id, vec!["clarify".into()]);
        assert_eq!(broker.ask(request(&id), &CancellationToken::new()).await, AskAnswer::Nobody);
    }

    #[tokio::test]
    async fn the_first_answer_wins() {
        let (broker, _stream, id) = fixture();
        broker.arrive(&id, vec!["approval".into()]);
        let cancel = CancellationToken::new();
        let asking = broker.ask(request(&id), &cancel);
        let answering = async {
            loop {
                if let Some(prompt) = broker.pending(&id).first() {
                    let first = broker.answer(&id, &prompt.request_id, "once", "client-a");
                    return (first, broker.answer(&id, &prompt.request_id, "deny", "client-b"));
                }
                tokio::task::yield_now().await;
            }
        };
        let (answer, answered) = tokio::join!(asking, answering);
        assert_eq!(answer, AskAnswer::Allow);
        assert_eq!(answered, (true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_no_and_leaves_nothing_behind() {
        let (broker, _stream, id) = fixture();
        let watcher = broker.arrive(&id, vec!["approval".into()]);
        assert_eq!(broker.ask(request(&id), &CancellationToken::new()).await, AskAnswer::Nobody);
        broker.leave(&id, watcher);
        assert!(broker.lock().answerers.is_empty() && broker.lock().open.is_empty());
    }
}

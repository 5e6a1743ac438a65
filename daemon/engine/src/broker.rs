//! The prompt broker: questions of tools to a person (contract §7).
//!
//! It stands outside the actors, so that a question can be answered while its session is busy.
//! Nobody who can answer means the answer is no, at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hermes_core::{EventPayload, PromptId, SessionId};
use tokio::sync::oneshot;

use crate::api::PendingPrompt;
use crate::stream::SessionStream;

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Given(String),
    /// Nobody who watches can answer this kind of question.
    NobodyCanAnswer,
    TimedOut,
}

/// Open questions of all sessions, and who could answer them.
#[derive(Debug, Default)]
pub(crate) struct PromptBroker {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: Vec<OpenPrompt>,
    /// Per session: what each watcher can answer.
    answerers: HashMap<SessionId, Vec<(u64, Vec<String>)>>,
    next_watcher: u64,
}

#[derive(Debug)]
struct OpenPrompt {
    session_id: SessionId,
    prompt: PendingPrompt,
    reply: oneshot::Sender<(String, String)>,
}

impl PromptBroker {
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

    /// Asks on the session's stream and waits for the first answer.
    pub(crate) async fn ask(
        &self,
        stream: &SessionStream,
        session_id: &SessionId,
        prompt: PendingPrompt,
        request: EventPayload,
        timeout: Duration,
    ) -> Answer {
        let (reply, answer) = oneshot::channel();
        let request_id = prompt.request_id.clone();
        {
            let mut inner = self.lock();
            let somebody = inner
                .answerers
                .get(session_id)
                .is_some_and(|watchers| watchers.iter().any(|(_, kinds)| kinds.iter().any(|k| k == prompt.kind)));
            if !somebody {
                return Answer::NobodyCanAnswer;
            }
            inner.open.push(OpenPrompt { session_id: session_id.clone(), prompt, reply });
        }
        stream.emit(None, request);
        let (outcome, by, decision) = match tokio::time::timeout(timeout, answer).await {
            Ok(Ok((answer, by))) => (Answer::Given(answer.clone()), by, answer),
            Ok(Err(_)) | Err(_) => (Answer::TimedOut, "timeout".to_owned(), "deny".to_owned()),
        };
        self.lock().open.retain(|open| open.prompt.request_id != request_id);
        stream.emit(None, EventPayload::PromptResolved { request_id, by, decision });
        outcome
    }

    /// Gives the answer; `false` when the question is gone. The first answer wins.
    pub(crate) fn answer(&self, session_id: &SessionId, request_id: &PromptId, answer: &str, by: &str) -> bool {
        let mut inner = self.lock();
        let found = inner
            .open
            .iter()
            .position(|open| open.session_id == *session_id && open.prompt.request_id == *request_id);
        let Some(index) = found else { return false };
        let open = inner.open.swap_remove(index);
        open.reply.send((answer.to_owned(), by.to_owned())).is_ok()
    }

    /// Questions that a session waits for.
    pub(crate) fn pending(&self, session_id: &SessionId) -> Vec<PendingPrompt> {
        let inner = self.lock();
        inner.open.iter().filter(|open| open.session_id == *session_id).map(|open| open.prompt.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hermes_core::{Epoch, SystemClock};

    use super::*;

    fn fixture() -> (PromptBroker, SessionStream, SessionId, PendingPrompt) {
        let id = SessionId::parse("s").unwrap();
        let stream =
            SessionStream::new(id.clone(), Epoch::from_wire("e"), Arc::new(SystemClock), Arc::default());
        let prompt = PendingPrompt {
            request_id: PromptId::mint(),
            kind: "approval",
            text: "run it?".into(),
            choices: vec!["once".into(), "deny".into()],
        };
        (PromptBroker::default(), stream, id, prompt)
    }

    fn request(prompt: &PendingPrompt) -> EventPayload {
        EventPayload::ApprovalRequest {
            request_id: prompt.request_id.clone(),
            tool: "terminal".into(),
            command: "rm".into(),
            description: prompt.text.clone(),
        }
    }

    #[tokio::test]
    async fn nobody_who_can_answer_means_no_at_once() {
        let (broker, stream, id, prompt) = fixture();
        broker.arrive(&id, vec!["clarify".into()]);
        let event = request(&prompt);
        let answer = broker.ask(&stream, &id, prompt, event, Duration::from_secs(3600)).await;
        assert_eq!(answer, Answer::NobodyCanAnswer);
    }

    #[tokio::test]
    async fn the_first_answer_wins() {
        let (broker, stream, id, prompt) = fixture();
        broker.arrive(&id, vec!["approval".into()]);
        let (event, request_id) = (request(&prompt), prompt.request_id.clone());
        let asking = broker.ask(&stream, &id, prompt, event, Duration::from_secs(3600));
        let answering = async {
            while broker.pending(&id).is_empty() {
                tokio::task::yield_now().await;
            }
            let first = broker.answer(&id, &request_id, "once", "client-a");
            (first, broker.answer(&id, &request_id, "deny", "client-b"))
        };
        let (answer, answered) = tokio::join!(asking, answering);
        assert_eq!(answer, Answer::Given("once".into()));
        assert_eq!(answered, (true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_told_as_a_timeout() {
        let (broker, stream, id, prompt) = fixture();
        let watcher = broker.arrive(&id, vec!["approval".into()]);
        let event = request(&prompt);
        assert_eq!(broker.ask(&stream, &id, prompt, event, Duration::from_secs(5)).await, Answer::TimedOut);
        broker.leave(&id, watcher);
        assert!(broker.lock().answerers.is_empty() && broker.lock().open.is_empty());
    }
}

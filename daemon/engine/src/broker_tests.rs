//! Tests of the prompt broker.

use hermes_core::{Epoch, Principal, SystemClock, ToolCallId};
use pretty_assertions::assert_eq;

use super::*;

fn fixture() -> (PromptBroker, Arc<SessionStream>, SessionId) {
    let id = SessionId::parse("s").unwrap();
    let stream = SessionStream::new(id.clone(), Epoch::from_wire("e"), Arc::new(SystemClock), Arc::default());
    let (broker, stream) = (PromptBroker::default(), Arc::new(stream));
    broker.register(&id, &stream);
    (broker, stream, id)
}

fn request(session_id: &SessionId) -> ApproveRequest {
    ApproveRequest {
        session_id: session_id.clone(),
        turn_id: TurnId::mint(),
        call_id: ToolCallId::new("c"),
        principal: Principal::Owner,
        tool: "terminal".into(),
        subject: "rm -r build".into(),
        description: "deletes a folder".into(),
        rules: vec!["delete.recursive"],
        widest: ApprovalScope::Session,
        timeout: Duration::from_mins(1),
    }
}

#[tokio::test]
async fn nobody_who_can_answer_means_no_at_once() {
    let (broker, _stream, id) = fixture();
    broker.arrive(&id, vec!["clarify".into()]);
    assert_eq!(broker.approve(request(&id), &CancellationToken::new()).await, ApproveAnswer::Nobody);
}

#[tokio::test]
async fn the_first_answer_wins() {
    let (broker, _stream, id) = fixture();
    broker.arrive(&id, vec!["approval".into()]);
    let cancel = CancellationToken::new();
    let asking = broker.approve(request(&id), &cancel);
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
    assert_eq!(answer, ApproveAnswer::Allow(ApprovalScope::Once));
    assert_eq!(answered, (true, false));
}

#[tokio::test(start_paused = true)]
async fn silence_is_no_and_leaves_nothing_behind() {
    let (broker, _stream, id) = fixture();
    let watcher = broker.arrive(&id, vec!["approval".into()]);
    assert_eq!(broker.approve(request(&id), &CancellationToken::new()).await, ApproveAnswer::TimedOut);
    broker.leave(&id, watcher);
    assert!(broker.lock().answerers.is_empty() && broker.lock().open.is_empty());
}

/// Waits, without sleeping, until the session has an open question.
async fn open_question(broker: &PromptBroker, id: &SessionId) -> PromptId {
    loop {
        if let Some(prompt) = broker.pending(id).first() {
            return prompt.request_id.clone();
        }
        tokio::task::yield_now().await;
    }
}

fn question(session_id: &SessionId, timeout: u64, alone: u64) -> Question {
    Question {
        session_id: session_id.clone(),
        turn_id: TurnId::mint(),
        call_id: ToolCallId::new("c"),
        question: "which?".into(),
        choices: Vec::new(),
        timeout: Duration::from_secs(timeout),
        alone: Duration::from_secs(alone),
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_one_who_could_answer_leaves_the_rest_of_the_time() {
    let (broker, _stream, id) = fixture();
    let watcher = broker.arrive(&id, vec!["approval".into()]);
    let cancel = CancellationToken::new();
    let began = Instant::now();
    let leaving = async {
        open_question(&broker, &id).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        broker.leave(&id, watcher);
    };
    let (answer, ()) = tokio::join!(broker.approve(request(&id), &cancel), leaving);
    assert_eq!((answer, began.elapsed()), (ApproveAnswer::TimedOut, Duration::from_mins(1)));
}

#[tokio::test(start_paused = true)]
async fn a_long_question_that_is_left_alone_ends_early_unless_somebody_comes_back() {
    for (comes_back, ends) in [(None, 160), (Some(10), 3_600), (Some(70), 160)] {
        let (broker, _stream, id) = fixture();
        let watcher = broker.arrive(&id, vec!["clarify".into()]);
        let cancel = CancellationToken::new();
        let began = Instant::now();
        let leaving = async {
            open_question(&broker, &id).await;
            tokio::time::sleep(Duration::from_secs(100)).await;
            broker.leave(&id, watcher);
            if let Some(after) = comes_back {
                tokio::time::sleep(Duration::from_secs(after)).await;
                broker.arrive(&id, vec!["clarify".into()]);
            }
        };
        let asking = async {
            let answer = broker.question(question(&id, 3_600, 60), &cancel).await;
            (answer, began.elapsed().as_secs())
        };
        let (waited, ()) = tokio::join!(asking, leaving);
        assert_eq!(waited, (QuestionAnswer::TimedOut, ends), "{comes_back:?}");
    }
}

#[tokio::test]
async fn an_interrupt_or_the_end_of_the_session_is_a_no_for_that_session_only() {
    let (broker, stream, id) = fixture();
    let other = SessionId::parse("other").unwrap();
    broker.register(&other, &stream);
    for session in [&id, &other] {
        broker.arrive(session, vec!["approval".into()]);
    }
    let (cancel, never) = (CancellationToken::new(), CancellationToken::new());
    let ending = async {
        let question = open_question(&broker, &id).await;
        let kept = open_question(&broker, &other).await;
        cancel.cancel();
        while !broker.pending(&id).is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(!broker.answer(&id, &question, "once", "late"), "a late answer is known to be late");
        broker.close_session(&id);
        assert!(broker.answer(&other, &kept, "once", "in time"));
    };
    let (denied, allowed, ()) =
        tokio::join!(broker.approve(request(&id), &cancel), broker.approve(request(&other), &never), ending);
    assert_eq!(denied, ApproveAnswer::TimedOut);
    assert_eq!(allowed, ApproveAnswer::Allow(ApprovalScope::Once));

    let closing = async {
        open_question(&broker, &id).await;
        broker.close_session(&id);
    };
    let (denied, ()) = tokio::join!(broker.approve(request(&id), &never), closing);
    assert_eq!(denied, ApproveAnswer::TimedOut);
}

#[tokio::test]
async fn questions_stand_in_the_order_in_which_they_were_asked() {
    let (broker, _stream, id) = fixture();
    broker.arrive(&id, vec!["approval".into()]);
    let never = CancellationToken::new();
    let ask =
        |subject: &str| broker.approve(ApproveRequest { subject: subject.into(), ..request(&id) }, &never);
    let answering = async {
        while broker.pending(&id).len() < 3 {
            tokio::task::yield_now().await;
        }
        for subject in ["a", "b", "c"] {
            let first = broker.pending(&id).first().unwrap().clone();
            assert!(first.text.ends_with(&format!(": {subject}")), "{}", first.text);
            broker.answer(&id, &first.request_id, "deny", "x");
        }
    };
    tokio::join!(ask("a"), ask("b"), ask("c"), answering);
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_hears_that_a_turn_waits_for_a_person() {
    let (broker, stream, id) = fixture();
    broker.arrive(&id, vec!["approval".into()]);
    let (mut watch, _) = stream.watch(None);
    broker.approve(request(&id), &CancellationToken::new()).await;
    let beats = std::iter::from_fn(|| watch.try_next())
        .filter(|event| matches!(event.payload, EventPayload::StatusUpdate { kind: "process", .. }))
        .count();
    assert_eq!(beats, 5);
}

#[test]
fn whatever_is_not_a_yes_is_a_no() {
    let deny = |reason: Option<&str>| ApproveAnswer::Deny { reason: reason.map(str::to_owned) };
    for (answer, want) in [
        ("once", ApproveAnswer::Allow(ApprovalScope::Once)),
        (" session ", ApproveAnswer::Allow(ApprovalScope::Session)),
        ("always", deny(None)),
        ("", deny(None)),
        ("yes", deny(None)),
        ("deny", deny(None)),
        ("deny  use git rm ", deny(Some("use git rm"))),
        ("denyonce", deny(None)),
    ] {
        assert_eq!(read_approval(answer, ApprovalScope::Session), want, "{answer}");
    }
}

//! The client library against a scripted daemon on a real socket: greeting, attaching, losing the
//! daemon in every phase of a turn, and finding it again.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod fake;

use std::collections::VecDeque;

use fake::{AttachScript, FakeDaemon, Script, SubmitScript, connector, hello, install_losing_hermesd};
use hermes_client::{
    CallErrorKind, ConnectError, History, NewTurn, SessionWatch, TurnRun, TurnStep, WatchError, WatchItem,
    WatchOptions,
};
use hermes_proto::v1::{self, attach_frame::Frame, event::Payload};
use pretty_assertions::assert_eq;
use tokio::sync::mpsc;
use tonic::Status;

const SESSION: &str = "20260101_000000_00000000";
const TURN: &str = "turn-1";

fn frame(frame: Frame) -> v1::AttachFrame {
    v1::AttachFrame { frame: Some(frame) }
}

fn attached(epoch: &str, last_seq: u64) -> v1::Attached {
    v1::Attached { epoch: epoch.into(), last_seq, ..Default::default() }
}

fn event(seq: u64, payload: Payload) -> v1::Event {
    v1::Event {
        session_id: SESSION.into(),
        seq,
        turn_id: Some(TURN.into()),
        time: 0.0,
        payload: Some(payload),
    }
}

fn delta(seq: u64, text: &str) -> v1::AttachFrame {
    frame(Frame::Event(event(seq, Payload::MessageDelta(v1::TextDelta { text: text.into() }))))
}

fn complete(seq: u64, text: &str) -> v1::AttachFrame {
    frame(Frame::Event(event(seq, Payload::MessageComplete(Box::new(result(text))))))
}

fn result(text: &str) -> v1::TurnResult {
    v1::TurnResult {
        turn_id: TURN.into(),
        status: "complete".into(),
        text: Some(text.into()),
        completed: true,
        ..Default::default()
    }
}

fn row(id: i64, role: &str, content: &str) -> v1::Row {
    v1::Row { id, role: role.into(), content: content.into(), ..Default::default() }
}

fn taken() -> SubmitScript {
    SubmitScript::Answer(v1::SubmitResponse {
        turn_id: TURN.into(),
        status: "streaming".into(),
        position: None,
    })
}

fn script(epoch: &str, attaches: impl Into<VecDeque<AttachScript>>) -> Script {
    Script { hello: hello(epoch), attaches: attaches.into(), ..Default::default() }
}

fn ends(frames: Vec<v1::AttachFrame>) -> AttachScript {
    AttachScript { frames, stay: false }
}

fn stays(frames: Vec<v1::AttachFrame>) -> AttachScript {
    AttachScript { frames, stay: true }
}

/// What a consumer sees, in short.
async fn see(watch: &mut SessionWatch) -> String {
    match watch.next().await.unwrap() {
        WatchItem::Event(event) => match event.payload {
            Some(Payload::MessageDelta(delta)) => format!("{} {}", event.seq, delta.text),
            _ => format!("{} other", event.seq),
        },
        WatchItem::Reattached(attachment) => {
            let rows: Vec<i64> = attachment.attached.rows.iter().map(|row| row.id).collect();
            let restarted = if attachment.restarted { "restarted" } else { "same daemon" };
            format!("reattached, {restarted}, gap {}, rows {rows:?}", attachment.attached.gap)
        }
    }
}

#[tokio::test]
async fn a_protocol_skew_is_an_error_that_names_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let newer = v1::HelloResponse { protocol: hermes_proto::PROTOCOL + 1, ..hello("e") };
    let _daemon = FakeDaemon::start(&connector.place().socket, Script { hello: newer, ..Default::default() });

    let error = connector.ensure().await.unwrap_err();

    assert!(matches!(error, ConnectError::ProtocolSkew { .. }), "{error}");
    assert!(error.hint().contains("this client is the older side"), "{}", error.hint());
}

#[tokio::test]
async fn connecting_alone_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let error = connector(dir.path()).connect().await.unwrap_err();
    assert!(matches!(error, ConnectError::NotRunning { .. }), "{error}");
}

#[tokio::test]
async fn a_watch_goes_on_where_it_left_off() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let daemon = FakeDaemon::start(
        &connector.place().socket,
        script(
            "e",
            [
                ends(vec![frame(Frame::Attached(attached("e", 0))), delta(1, "a"), delta(2, "b")]),
                // The daemon repeats one event that was seen already.
                stays(vec![frame(Frame::Attached(attached("e", 3))), delta(2, "b"), delta(3, "c")]),
            ],
        ),
    );
    let client = connector.connect().await.unwrap();
    let options = WatchOptions { can_answer: vec!["clarify".into()], ..Default::default() };
    let (mut watch, first) = SessionWatch::attach(&connector, client, SESSION, options).await.unwrap();
    assert!(!first.restarted);

    assert_eq!(see(&mut watch).await, "1 a");
    assert_eq!(see(&mut watch).await, "2 b");
    assert_eq!(see(&mut watch).await, "reattached, same daemon, gap false, rows []");
    assert_eq!(see(&mut watch).await, "3 c");

    let asked = daemon.asked(|script| script.asked_attach.clone());
    let seen: Vec<_> = asked.iter().map(|ask| (ask.epoch.as_deref(), ask.after_seq)).collect();
    assert_eq!(seen, [(None, 0), (Some("e"), 2)]);
    assert!(asked.iter().all(|ask| ask.can_answer == ["clarify"]));
}

#[tokio::test]
async fn after_a_restart_the_watch_yields_the_rows_it_missed() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let accepted = v1::TurnAccepted { client_message_id: None, message_id: Some(7) };
    let first = FakeDaemon::start(
        &connector.place().socket,
        script(
            "old",
            [stays(vec![
                frame(Frame::Attached(attached("old", 0))),
                frame(Frame::Event(event(1, Payload::TurnAccepted(accepted)))),
            ])],
        ),
    );
    let client = connector.connect().await.unwrap();
    let options = WatchOptions { history: History::Skip, ..Default::default() };
    let (mut watch, _) = SessionWatch::attach(&connector, client, SESSION, options).await.unwrap();
    assert_eq!(see(&mut watch).await, "1 other");
    assert_eq!(first.asked(|script| script.asked_attach[0].after_message_id), i64::MAX);

    first.kill();
    let rows = vec![row(8, "assistant", "x")];
    let gap = v1::Attached { gap: true, rows, more_rows: true, ..attached("new", 0) };
    let more = v1::RowBatch { rows: vec![row(9, "tool", "y")], more_rows: false };
    let second = FakeDaemon::start(
        &connector.place().socket,
        script("new", [stays(vec![frame(Frame::Attached(gap)), frame(Frame::Rows(more)), delta(1, "z")])]),
    );

    assert_eq!(see(&mut watch).await, "reattached, restarted, gap true, rows [8, 9]");
    assert_eq!(see(&mut watch).await, "1 z");
    let asked = second.asked(|script| script.asked_attach[0].clone());
    assert_eq!((asked.epoch.as_deref(), asked.after_seq, asked.after_message_id), (Some("old"), 1, 7));
}

#[tokio::test]
async fn a_session_that_is_gone_ends_the_watch_with_the_daemons_words() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let _daemon = FakeDaemon::start(
        &connector.place().socket,
        script("e", [ends(vec![frame(Frame::Attached(attached("e", 0)))])]),
    );
    let client = connector.connect().await.unwrap();
    let (mut watch, _) =
        SessionWatch::attach(&connector, client, SESSION, WatchOptions::default()).await.unwrap();
    let Err(WatchError::Call(error)) = watch.next().await else { panic!("the watch went on") };
    assert_eq!((error.kind(), error.message()), (CallErrorKind::NotFound, "no such session"));
}

#[tokio::test]
async fn a_daemon_that_drops_every_watch_is_not_asked_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let drops: Vec<AttachScript> =
        (0..50).map(|_| ends(vec![frame(Frame::Attached(attached("e", 0)))])).collect();
    let daemon = FakeDaemon::start(&connector.place().socket, script("e", drops));
    let client = connector.connect().await.unwrap();
    let (mut watch, _) =
        SessionWatch::attach(&connector, client, SESSION, WatchOptions::default()).await.unwrap();
    let error = loop {
        if let Err(error) = watch.next().await {
            break error;
        }
    };
    assert!(matches!(error, WatchError::KeepsDropping), "{error}");
    assert!(daemon.asked(|script| script.asked_attach.len()) < 12);
}

/// Attaches and submits one input.
async fn run(connector: &hermes_client::Connector) -> Result<TurnRun, WatchError> {
    let client = connector.connect().await.unwrap();
    let (watch, _) = SessionWatch::attach(connector, client, SESSION, WatchOptions::default()).await.unwrap();
    TurnRun::submit(watch, NewTurn::new("hello")).await
}

/// All steps of a turn, in short, and its end.
async fn follow(mut turn: TurnRun) -> (Vec<&'static str>, hermes_client::TurnEnd) {
    let mut steps = Vec::new();
    loop {
        match turn.next().await.unwrap() {
            TurnStep::Event(_) => steps.push("event"),
            TurnStep::Reattached(_) => steps.push("reattached"),
            TurnStep::Ended(end) => return (steps, *end),
        }
    }
}

#[tokio::test]
async fn a_turn_is_followed_to_its_result() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let events = vec![frame(Frame::Attached(attached("e", 0))), delta(1, "hi"), complete(2, "hi")];
    let mut script = script("e", [stays(events)]);
    script.submits = [taken()].into();
    let _daemon = FakeDaemon::start(&connector.place().socket, script);

    let (steps, end) = follow(run(&connector).await.unwrap()).await;
    assert_eq!(steps, ["event"]);
    assert_eq!((end.result, end.recovered, end.seen), (result("hi"), false, Some((2, 0.0))));
}

#[tokio::test]
async fn a_submit_to_a_leaving_daemon_is_sent_again_under_the_same_id() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let mut script = script("e", [stays(vec![frame(Frame::Attached(attached("e", 0))), complete(1, "hi")])]);
    script.submits = [SubmitScript::Refuse(Status::unavailable("shutting down")), taken()].into();
    let daemon = FakeDaemon::start(&connector.place().socket, script);

    let (steps, end) = follow(run(&connector).await.unwrap()).await;
    assert!(steps.is_empty());
    assert_eq!(end.result.text.as_deref(), Some("hi"));
    let ids = daemon.asked(|script| {
        script.asked_submit.iter().map(|ask| ask.client_message_id.clone().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_daemon_that_dies_over_a_submit_costs_nothing_but_time() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let (calls, mut called) = mpsc::unbounded_channel();
    let mut first = script("old", [stays(vec![frame(Frame::Attached(attached("old", 0)))])]);
    first.submits = [SubmitScript::Hang].into();
    first.calls = Some(calls);
    let socket = connector.place().socket.clone();
    let first = FakeDaemon::start(&socket, first);

    let replace = async {
        while called.recv().await != Some("submit") {}
        let id = first.asked(|script| script.asked_submit[0].client_message_id.clone());
        first.kill();
        // The first daemon had made the row durable: to the second one the id is known.
        let gap = v1::Attached { gap: true, rows: vec![row(1, "user", "hello")], ..attached("new", 0) };
        let mut second = script("new", [stays(vec![frame(Frame::Attached(gap))])]);
        second.submits = [SubmitScript::Answer(v1::SubmitResponse {
            turn_id: TURN.into(),
            status: "done".into(),
            position: None,
        })]
        .into();
        second.turn = Some(v1::GetTurnResponse {
            turn_id: TURN.into(),
            state: "interrupted".into(),
            exit_reason: Some("interrupted(restart)".into()),
            result: None,
        });
        (FakeDaemon::start(&socket, second), id)
    };
    let (turn, (second, id)) = tokio::join!(run(&connector), replace);
    let (_, end) = follow(turn.unwrap()).await;

    assert_eq!(second.asked(|script| script.asked_submit[0].client_message_id.clone()), id);
    assert!(end.recovered && end.result.interrupted);
    assert_eq!(end.result.interrupt_cause.as_deref(), Some("restart"));
    assert!(end.result.error.is_some());
}

#[tokio::test]
async fn a_turn_cut_off_by_a_crash_ends_as_interrupted_by_restart() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let mut first = script("old", [stays(vec![frame(Frame::Attached(attached("old", 0))), delta(1, "par")])]);
    first.submits = [taken()].into();
    let first = FakeDaemon::start(&connector.place().socket, first);
    let mut turn = run(&connector).await.unwrap();
    assert!(matches!(turn.next().await.unwrap(), TurnStep::Event(_)));

    first.kill();
    let gap = v1::Attached { gap: true, rows: vec![row(4, "user", "hello")], ..attached("new", 0) };
    let mut second = script("new", [stays(vec![frame(Frame::Attached(gap))])]);
    second.turn = Some(v1::GetTurnResponse { state: "interrupted".into(), ..Default::default() });
    let _second = FakeDaemon::start(&connector.place().socket, second);

    let (steps, end) = follow(turn).await;
    assert_eq!(steps, ["reattached"]);
    assert_eq!(end.result.status, "interrupted");
    assert_eq!(end.result.interrupt_cause.as_deref(), Some("restart"));
}

#[tokio::test]
async fn a_turn_that_ended_unseen_gives_the_answer_that_was_stored() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let mut first = script("old", [stays(vec![frame(Frame::Attached(attached("old", 0)))])]);
    first.submits = [taken()].into();
    let first = FakeDaemon::start(&connector.place().socket, first);
    let turn = run(&connector).await.unwrap();

    first.kill();
    let gap = v1::Attached { gap: true, ..attached("new", 0) };
    let mut second = script("new", [stays(vec![frame(Frame::Attached(gap))])]);
    second.turn = Some(v1::GetTurnResponse {
        state: "completed".into(),
        exit_reason: Some("text_response(finish_reason=stop)".into()),
        ..Default::default()
    });
    second.stored = vec![row(4, "user", "hello"), row(5, "assistant", "stored answer")];
    let _second = FakeDaemon::start(&connector.place().socket, second);

    let (_, end) = follow(turn).await;
    assert!(end.recovered && end.result.completed);
    assert_eq!((end.result.text.as_deref(), end.result.message_id), (Some("stored answer"), Some(5)));
}

#[tokio::test]
async fn after_a_gap_within_one_daemon_its_own_result_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let gap = v1::Attached { gap: true, ..attached("e", 5_000) };
    let mut script = script(
        "e",
        [
            ends(vec![frame(Frame::Attached(attached("e", 0))), delta(1, "x")]),
            stays(vec![frame(Frame::Attached(gap))]),
        ],
    );
    script.submits = [taken()].into();
    script.turn = Some(v1::GetTurnResponse {
        state: "completed".into(),
        result: Some(result("all")),
        ..Default::default()
    });
    let _daemon = FakeDaemon::start(&connector.place().socket, script);

    let (_, end) = follow(run(&connector).await.unwrap()).await;
    assert_eq!((end.result, end.recovered), (result("all"), false));
}

#[tokio::test]
async fn an_idle_on_demand_daemon_of_an_older_version_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    install_losing_hermesd(dir.path());
    let connector = connector(dir.path());
    let (calls, mut called) = mpsc::unbounded_channel();
    let old = v1::HelloResponse { version: "0.9.0".into(), ..hello("old") };
    let socket = connector.place().socket.clone();
    let first = FakeDaemon::start(&socket, Script { hello: old, calls: Some(calls), ..Default::default() });

    let replace = async {
        while called.recv().await != Some("shutdown") {}
        first.kill();
        FakeDaemon::start(&socket, script("new", []))
    };
    let (client, _second) = tokio::join!(connector.ensure(), replace);
    assert_eq!(client.unwrap().hello().epoch, "new");
}

#[tokio::test]
async fn a_busy_or_a_lasting_daemon_of_an_older_version_is_kept() {
    let older = |on_demand| v1::HelloResponse { version: "0.9.0".into(), on_demand, ..hello("old") };
    for (hello, active_turns) in [(older(true), 1), (older(false), 0)] {
        let dir = tempfile::tempdir().unwrap();
        let connector = connector(dir.path());
        let script = Script { hello, active_turns, ..Default::default() };
        let _daemon = FakeDaemon::start(&connector.place().socket, script);
        assert_eq!(connector.ensure().await.unwrap().hello().epoch, "old");
    }
}

#[tokio::test]
async fn a_text_beyond_the_message_limit_is_refused_with_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let connector = connector(dir.path());
    let _daemon = FakeDaemon::start(&connector.place().socket, script("e", []));
    let client = connector.connect().await.unwrap();
    let text = "x".repeat(hermes_proto::MAX_MESSAGE_BYTES);
    let error = client.submit(v1::SubmitRequest { text, ..Default::default() }).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TooLarge);
    assert!(error.to_string().contains("16 MiB"), "{error}");
}

//! Runs from fixtures of events, as each view shows them.

use hermes_client::TurnEnd;
use pretty_assertions::assert_eq;

use super::super::Style;
use super::super::testing::captured;
use super::*;

const TURN: &str = "turn-1";

fn event(payload: Payload) -> TurnStep {
    TurnStep::Event(Box::new(v1::Event {
        session_id: "s".into(),
        seq: 1,
        turn_id: Some(TURN.into()),
        time: 1.5,
        payload: Some(payload),
    }))
}

fn delta(text: &str) -> TurnStep {
    event(Payload::MessageDelta(v1::TextDelta { text: text.into() }))
}

fn started(id: &str, context: &str) -> TurnStep {
    event(Payload::ToolStart(v1::ToolStart {
        tool_id: id.into(),
        name: "read_file".into(),
        context: context.into(),
        message_id: Some(2),
    }))
}

fn ended(id: &str) -> TurnStep {
    event(Payload::ToolComplete(v1::ToolComplete {
        tool_id: id.into(),
        name: "read_file".into(),
        args: Some(v1::Json { raw: r#"{"path":"a.txt"}"#.into() }),
        result: Some(v1::Json { raw: r#"{"content":"x"}"#.into() }),
        duration_s: 0.25,
        status: "ok".into(),
        message_id: Some(3),
        ..Default::default()
    }))
}

fn report(text: Option<&str>) -> Report {
    let result = v1::TurnResult {
        session_id: "s".into(),
        turn_id: TURN.into(),
        status: "complete".into(),
        text: text.map(str::to_owned),
        completed: true,
        ..Default::default()
    };
    Report { session_id: Some("s".into()), result: Some(result), ..Default::default() }
}

/// What a run writes to stdout and stderr.
fn show(mut view: TurnView, steps: &[TurnStep], report: &Report) -> (String, String) {
    let (mut output, out, err) = captured(Style::default());
    let intro = SessionIntro {
        session_id: "s".into(),
        model: "fake".into(),
        provider: "custom".into(),
        cwd: Some("/work".into()),
        resumed: false,
    };
    view.begin(&mut output, &intro).unwrap();
    for step in steps {
        view.step(&mut output, TURN, step).unwrap();
    }
    view.end(&mut output, report).unwrap();
    (out.text(), err.text())
}

fn feed(steps: &[TurnStep], answer: Option<&str>) -> String {
    show(TurnView::feed(), steps, &report(answer)).0
}

/// A run with text before a tool call, the call, and the answer.
fn whole_run() -> Vec<TurnStep> {
    let result = report(Some("It says x.")).result.unwrap();
    vec![
        event(Payload::TurnAccepted(v1::TurnAccepted { client_message_id: None, message_id: Some(1) })),
        event(Payload::MessageStart(v1::MessageStart { model: "fake".into() })),
        event(Payload::ReasoningDelta(v1::TextDelta { text: "hm".into() })),
        delta("Let me "),
        delta("look."),
        started("c1", "a.txt"),
        ended("c1"),
        delta("It says"),
        delta(" x."),
        TurnStep::Ended(Box::new(TurnEnd { result, recovered: false, seen: Some((9, 2.5)) })),
    ]
}

#[test]
fn a_feed_shows_text_tools_and_the_answer_once() {
    insta::assert_snapshot!(feed(&whole_run(), Some("It says x.")));
}

#[test]
fn the_answer_view_shows_the_final_text_alone() {
    let (out, err) = show(TurnView::Answer, &whole_run(), &report(Some("It says x.\n\n")));
    assert_eq!((out.as_str(), err.as_str()), ("It says x.\n", ""));
    assert_eq!(show(TurnView::Answer, &[], &report(None)).0, "");
}

#[test]
fn stream_json_prints_one_event_a_line_and_the_result_last() {
    insta::assert_snapshot!(show(TurnView::StreamJson, &whole_run(), &report(Some("It says x."))).0);
}

#[test]
fn json_prints_one_object() {
    let (out, _) = show(TurnView::Json, &whole_run(), &report(Some("It says x.")));
    assert_eq!(out.lines().count(), 1);
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object.get("final_response"), Some(&json!("It says x.")));
}

#[test]
fn an_answer_that_was_not_streamed_is_shown_at_the_end() {
    assert_eq!(feed(&[], Some("whole")), "whole\n");
    assert_eq!(feed(&[started("c", "a"), ended("c")], Some("whole")), "┊ 📖 read a  0.2s\nwhole\n");
}

#[test]
fn what_was_added_to_the_streamed_answer_is_shown_behind_it() {
    assert_eq!(feed(&[delta("answer")], Some("answer\n\nfooter")), "answer\n\nfooter\n");
    assert_eq!(feed(&[delta("answer\n")], Some("answer")), "answer\n");
    assert_eq!(feed(&[delta("answer")], Some("answer\n")), "answer\n");
    assert_eq!(feed(&[delta("answer \n")], Some("answer")), "answer \n");
    assert_eq!(feed(&[delta("answer ")], Some("answer and more")), "answer and more\n");
}

#[test]
fn an_answer_that_differs_from_the_stream_is_shown_whole() {
    assert_eq!(feed(&[delta("half an ans")], Some("another")), "half an ans\nanother\n");
}

#[test]
fn an_interrupted_stream_ends_its_line() {
    assert_eq!(feed(&[delta("half")], None), "half\n");
}

#[test]
fn interim_text_is_shown_once() {
    let interim = |already_streamed| {
        event(Payload::MessageInterim(v1::MessageInterim {
            text: "first".into(),
            already_streamed,
            message_id: None,
        }))
    };
    assert_eq!(feed(&[delta("first"), interim(true), delta("second")], Some("second")), "first\nsecond\n");
    assert_eq!(feed(&[interim(false), delta("second")], Some("second")), "first\nsecond\n");
}

#[test]
fn another_turns_events_are_not_shown() {
    let other = TurnStep::Event(Box::new(v1::Event {
        turn_id: Some("turn-0".into()),
        payload: Some(Payload::MessageDelta(v1::TextDelta { text: "not mine".into() })),
        ..Default::default()
    }));
    assert_eq!(feed(&[other, delta("mine")], Some("mine")), "mine\n");
}

#[test]
fn notices_go_to_stderr_and_are_told_once() {
    let notice =
        || event(Payload::StatusUpdate(v1::StatusUpdate { kind: "warn".into(), text: "retrying".into() }));
    let (out, err) =
        show(TurnView::feed(), &[delta("a"), notice(), notice(), delta("b")], &report(Some("ab")));
    assert_eq!(err, "· retrying\n");
    assert_eq!(out, "a\nb\n");
}

#[test]
fn a_run_goes_on_in_the_text_where_the_connection_broke() {
    let reattached = |assistant: &str| {
        let attached = v1::Attached {
            gap: true,
            inflight: Some(v1::Inflight {
                turn_id: TURN.into(),
                assistant: assistant.into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        TurnStep::Reattached(Box::new(Attachment { attached, restarted: false }))
    };
    assert_eq!(
        feed(&[delta("one "), reattached("one two "), delta("three")], Some("one two three")),
        "one two three\n"
    );
    assert_eq!(feed(&[delta("old"), reattached("new "), delta("text")], Some("new text")), "old\nnew text\n");
}

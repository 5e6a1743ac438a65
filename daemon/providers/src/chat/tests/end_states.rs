//! What a stream that ended is worth, row by row of the table in spec 30 §3.

use std::fmt::Write as _;

use hermes_core::FinishReason;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Seen;
use crate::chat::assembly::{Assembly, Circumstances, Ending, Fault, Unanswered};
use crate::failure::FailureClass;
use crate::provider::ModelResponse;

const ABOUT: Circumstances<'_> = Circumstances { model: "asked", streamed: true, may_misreport_stop: false };

fn text(text: &str) -> Value {
    json!({"choices": [{"delta": {"content": text}}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": reason}]})
}

fn call(name: &str, arguments: &str) -> Value {
    json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": arguments}}]}}]})
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"delta": delta}]})
}

fn conclude_about(
    events: &[Value],
    ending: Ending,
    about: Circumstances<'_>,
) -> (Result<ModelResponse, Unanswered>, Vec<String>) {
    let mut assembly = Assembly::default();
    let mut seen = Seen::default();
    for event in events {
        assembly.event(event, &mut seen).unwrap();
    }
    let outcome = assembly.conclude(ending, about, &mut seen);
    (outcome, seen.0)
}

fn conclude(events: &[Value], ending: Ending) -> Result<ModelResponse, Unanswered> {
    conclude_about(events, ending, ABOUT).0
}

fn broken(class: FailureClass) -> Ending {
    Ending::Broken(Fault::new(class, "it broke"))
}

/// The outcome in one line.
fn worth(outcome: &Result<ModelResponse, Unanswered>) -> String {
    match outcome {
        Ok(answer) => {
            let calls: Vec<String> =
                answer.tool_calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
            let mut line = format!(
                "{} text={:?} calls={}",
                answer.finish_reason.as_str(),
                answer.content.as_deref().unwrap_or_default(),
                calls.join("+")
            );
            if let Some(broken) = &answer.interrupted_stream {
                let _ = write!(line, " interrupted dropped={:?}", broken.dropped_calls);
            }
            if answer.truncated_call {
                line.push_str(" truncated");
            }
            line
        }
        Err(unanswered) => format!(
            "{} shown={:?} in_flight={} dropped={:?}",
            unanswered.fault.class,
            unanswered.streamed_text,
            unanswered.tool_in_flight,
            unanswered.dropped_calls
        ),
    }
}

#[test]
fn every_end_state_of_the_table_is_kept() {
    use FailureClass::{Auth, Cancelled, Connection, Overloaded, Stale};
    let whole = r#"{"a":1}"#;
    let cut = r#"{"a":"#;
    let cases: Vec<(&str, Vec<Value>, Ending, &str)> = vec![
        ("nothing at all", vec![], Ending::Eof, r#"empty_stream shown="" in_flight=false dropped=[]"#),
        ("nothing but DONE", vec![], Ending::Done, r#"empty_stream shown="" in_flight=false dropped=[]"#),
        (
            "only a role",
            vec![delta(&json!({"role": "assistant", "content": ""}))],
            Ending::Eof,
            r#"empty_stream shown="" in_flight=false dropped=[]"#,
        ),
        ("a reason and nothing else", vec![finish("stop")], Ending::Done, r#"stop text="" calls="#),
        ("text and a reason", vec![text("hi"), finish("stop")], Ending::Done, r#"stop text="hi" calls="#),
        ("text and DONE without a reason", vec![text("hi")], Ending::Done, r#"stop text="hi" calls="#),
        (
            "text, no reason, no DONE",
            vec![text("hi")],
            Ending::Eof,
            r#"length text="hi" calls= interrupted dropped=[]"#,
        ),
        (
            "thinking only, no reason",
            vec![delta(&json!({"reasoning": "hm"}))],
            Ending::Eof,
            r#"connection shown="" in_flight=false dropped=[]"#,
        ),
        (
            "a cut call, no reason",
            vec![text("hi"), call("f", cut)],
            Ending::Eof,
            r#"length text="hi" calls= interrupted dropped=["f"]"#,
        ),
        (
            "a call without arguments, no reason",
            vec![call("f", "")],
            Ending::Eof,
            r#"length text="" calls= interrupted dropped=["f"]"#,
        ),
        (
            "a cut call, DONE without a reason",
            vec![call("f", cut)],
            Ending::Done,
            r#"length text="" calls= interrupted dropped=["f"]"#,
        ),
        (
            "a whole call, no reason",
            vec![call("f", whole)],
            Ending::Eof,
            r#"tool_calls text="" calls=f({"a":1})"#,
        ),
        (
            "a cut call with a reason",
            vec![call("f", cut), finish("tool_calls")],
            Ending::Done,
            r#"length text="" calls=f({"a":) truncated"#,
        ),
        (
            "a broken call with a reason",
            vec![call("f", "{a:1}"), finish("tool_calls")],
            Ending::Done,
            r#"tool_calls text="" calls=f({a:1})"#,
        ),
        (
            "a whole call that stops",
            vec![call("f", whole), finish("stop")],
            Ending::Done,
            r#"tool_calls text="" calls=f({"a":1})"#,
        ),
        (
            "a whole call at the length limit",
            vec![call("f", whole), finish("length")],
            Ending::Done,
            r#"length text="" calls=f({"a":1})"#,
        ),
        (
            "a call without arguments",
            vec![call("f", ""), finish("tool_calls")],
            Ending::Done,
            "tool_calls text=\"\" calls=f({})",
        ),
        (
            "a call without a name",
            vec![call("", whole), finish("tool_calls")],
            Ending::Done,
            r#"tool_calls text="" calls="#,
        ),
        (
            "a refusal",
            vec![delta(&json!({"refusal": "no"})), finish("stop")],
            Ending::Done,
            r#"content_filter text="no" calls="#,
        ),
        (
            "a refusal beside text",
            vec![delta(&json!({"refusal": "no"})), text("yes"), finish("stop")],
            Ending::Done,
            r#"stop text="yes" calls="#,
        ),
        (
            "a number as reason",
            vec![text("hi"), json!({"choices": [{"finish_reason": 1}]})],
            Ending::Done,
            r#"1 text="hi" calls="#,
        ),
        (
            "a reason of another dialect",
            vec![text("hi"), finish("MAX_TOKENS")],
            Ending::Done,
            r#"length text="hi" calls="#,
        ),
        (
            "an error as reason",
            vec![text("hi"), finish("error")],
            Ending::Done,
            r#"server_error shown="hi" in_flight=false dropped=[]"#,
        ),
        (
            "broken before anything",
            vec![],
            broken(Connection),
            r#"connection shown="" in_flight=false dropped=[]"#,
        ),
        (
            "broken after text",
            vec![text("hi")],
            broken(Connection),
            r#"length text="hi" calls= interrupted dropped=[]"#,
        ),
        (
            "stale after text",
            vec![text("hi")],
            broken(Stale),
            r#"length text="hi" calls= interrupted dropped=[]"#,
        ),
        (
            "overloaded after text",
            vec![text("hi")],
            broken(Overloaded),
            r#"length text="hi" calls= interrupted dropped=[]"#,
        ),
        (
            "refused after text",
            vec![text("hi")],
            broken(Auth),
            r#"auth shown="hi" in_flight=false dropped=[]"#,
        ),
        (
            "broken within a call",
            vec![text("hi"), call("f", cut)],
            broken(Connection),
            r#"connection shown="hi" in_flight=true dropped=["f"]"#,
        ),
        (
            "broken after the reason",
            vec![text("hi"), finish("stop")],
            broken(Connection),
            r#"stop text="hi" calls="#,
        ),
        (
            "cancelled after text",
            vec![text("hi")],
            broken(Cancelled),
            r#"cancelled shown="hi" in_flight=false dropped=[]"#,
        ),
        (
            "cancelled after the reason",
            vec![text("hi"), finish("stop")],
            broken(Cancelled),
            r#"cancelled shown="hi" in_flight=false dropped=[]"#,
        ),
    ];
    for (name, events, ending, expected) in cases {
        assert_eq!(worth(&conclude(&events, ending)), expected, "{name}");
    }
}

#[test]
fn text_after_a_call_began_is_kept_but_not_shown() {
    let events = [text("before "), call("f", "{}"), text("after"), finish("tool_calls")];
    let (outcome, seen) = conclude_about(&events, Ending::Done, ABOUT);
    assert_eq!(outcome.unwrap().content.as_deref(), Some("before after"));
    assert_eq!(seen, ["text:before ", "tool:f"]);
    let mut broken_events = events.to_vec();
    broken_events.pop();
    assert_eq!(
        conclude(&broken_events, broken(FailureClass::Connection)).unwrap_err().streamed_text,
        "before "
    );
}

#[test]
fn thinking_is_found_in_every_place_and_never_in_the_text() {
    let reasoning = |events: &[Value]| {
        let (outcome, seen) = conclude_about(events, Ending::Done, ABOUT);
        let answer = outcome.unwrap();
        (answer.reasoning, answer.reasoning_content, answer.content, seen)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        reasoning(&[delta(&json!({"reasoning_content": "hm", "reasoning": "hm"})), text("hi")]),
        (some("hm"), some("hm"), some("hi"), vec!["think:hm".to_owned(), "text:hi".to_owned()])
    );
    assert_eq!(
        reasoning(&[
            delta(&json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]})),
            text("hi")
        ]),
        (some("hm"), None, some("hi"), vec!["think:hm".to_owned(), "text:hi".to_owned()])
    );
    assert_eq!(
        reasoning(&[text("<thi"), text("nk>hm</think>\n\nhi")]),
        (some("hm"), None, some("hi"), vec!["think:hm".to_owned(), "text:hi".to_owned()])
    );
    assert_eq!(
        reasoning(&[delta(
            &json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "hi"}]})
        )]),
        (some("hm"), None, some("hi"), vec!["think:hm".to_owned(), "text:hi".to_owned()])
    );
}

#[test]
fn the_last_real_count_wins_and_names_are_remembered() {
    let events = [
        json!({"id": "r1", "model": "really", "choices": [{"delta": {"content": "hi\u{0}"}}], "usage": null}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}),
        json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}}),
        json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}),
    ];
    let answer = conclude(&events, Ending::Done).unwrap();
    assert_eq!(answer.usage.unwrap().prompt_total(), 10);
    assert_eq!((answer.model.as_str(), answer.response_id.as_deref()), ("really", Some("r1")));
    assert_eq!((answer.provider_cost_usd, answer.content.as_deref()), (Some(0.5), Some("hi")));
    assert_eq!(conclude(&[text("x")], Ending::Done).unwrap().model, "asked");
}

#[test]
fn only_a_backend_known_for_it_is_doubted_when_it_says_stop() {
    let cut = [text("The three files that I found are"), finish("stop")];
    let doubted = Circumstances { may_misreport_stop: true, ..ABOUT };
    let reason =
        |events: &[Value], about| conclude_about(events, Ending::Done, about).0.unwrap().finish_reason;
    assert_eq!(reason(&cut, doubted), FinishReason::Length);
    assert_eq!(reason(&cut, ABOUT), FinishReason::Stop);
    assert_eq!(reason(&[text("The three files are all here."), finish("stop")], doubted), FinishReason::Stop);
    assert_eq!(reason(&[text("done"), finish("stop")], doubted), FinishReason::Stop);
}

#[test]
fn an_error_object_in_the_stream_is_an_error_with_its_code_as_status() {
    let mut assembly = Assembly::default();
    let event = json!({"error": {"code": 502, "message": "upstream"}, "choices": [{"delta": {}, "finish_reason": "error"}]});
    let facts = assembly.event(&event, &mut Seen::default()).unwrap_err();
    assert_eq!((facts.status, facts.message.as_str()), (Some(502), "upstream"));
    assert!(assembly.event(&json!({"error": null, "choices": []}), &mut Seen::default()).is_ok());
    assert!(
        assembly
            .event(&json!({"object": "error", "message": "boo", "code": 400}), &mut Seen::default())
            .is_err()
    );
}

#[test]
fn keep_alives_in_json_are_no_progress() {
    let mut assembly = Assembly::default();
    let mut progress = |event: Value| assembly.event(&event, &mut Seen::default()).unwrap();
    assert!(!progress(json!({"choices": []})));
    assert!(!progress(delta(&json!({"role": "assistant"}))));
    assert!(!progress(delta(&json!({"content": "", "tool_calls": []}))));
    assert!(progress(text("x")));
    assert!(progress(json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})));
    assert!(!progress(json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})));
}

/// Values that servers might put anywhere.
fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(0)),
        Just(json!(1.5)),
        Just(json!(true)),
        Just(json!("")),
        Just(json!("stop")),
        Just(json!("{\"a\":1}")),
        Just(json!("<think>")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"text": "x"}])),
        Just(json!("a\u{0}b")),
        Just(json!(["x", 1, null])),
    ]
}

fn event() -> impl Strategy<Value = Value> {
    let call = (anything(), anything(), anything(), anything(), anything()).prop_map(|(index, id, name, arguments, extra)| {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}, "extra_content": extra})
    });
    let delta = (anything(), anything(), anything(), anything(), proptest::collection::vec(call, 0..3), anything()).prop_map(
        |(content, reasoning, details, refusal, calls, other)| {
            json!({"content": content, "reasoning": reasoning, "reasoning_content": other, "reasoning_details": details,
                   "refusal": refusal, "tool_calls": calls})
        },
    );
    (delta, anything(), anything(), anything(), anything(), any::<bool>()).prop_map(
        |(delta, finish, usage, model, choices, is_well_formed)| {
            let choices =
                if is_well_formed { json!([{"delta": delta, "finish_reason": finish}]) } else { choices };
            json!({"id": model, "model": model, "usage": usage, "choices": choices})
        },
    )
}

proptest! {
    #[test]
    fn whatever_a_server_sends_the_answer_is_sound(events in proptest::collection::vec(event(), 0..6), ending in 0..3) {
        let ending = match ending {
            0 => Ending::Done,
            1 => Ending::Eof,
            _ => broken(FailureClass::Connection),
        };
        let (outcome, seen) = conclude_about(&events, ending, ABOUT);
        let shown: String = seen.iter().filter_map(|delta| delta.strip_prefix("text:")).collect();
        match outcome {
            Ok(answer) => {
                let content = answer.content.clone().unwrap_or_default();
                prop_assert!(content.starts_with(shown.trim_end()) || shown.trim().is_empty() || answer.finish_reason == FinishReason::ContentFilter);
                let mut ids: Vec<&str> = answer.tool_calls.iter().map(|call| call.id.as_str()).collect();
                ids.sort_unstable();
                ids.dedup();
                prop_assert_eq!(ids.len(), answer.tool_calls.len());
                prop_assert!(answer.tool_calls.iter().all(|call| !call.id.as_str().is_empty() && !call.name.is_empty()));
                prop_assert!(!answer.truncated_call || answer.finish_reason == FinishReason::Length);
                prop_assert!(answer.interrupted_stream.is_none() || answer.tool_calls.is_empty());
            }
            Err(unanswered) => prop_assert_eq!(unanswered.streamed_text, shown),
        }
    }
}

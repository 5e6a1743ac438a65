//! The repairs one by one, then the claims over arbitrary histories.

use hermes_core::{Content, EffectDisposition, Instant, Json, Part, ToolCall};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::prompts;

const AT: Instant = Instant(1.0);

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: ToolCallId::new(id), name: name.into(), arguments: arguments.into(), provider_data: None }
}

fn user(text: &str) -> Message {
    Message::user(text, AT)
}

fn says(text: &str) -> Message {
    Message::assistant(text, AT)
}

fn calls(calls: &[ToolCall]) -> Message {
    Message { tool_calls: calls.to_vec(), ..Message::new(Role::Assistant, AT) }
}

fn result(id: &str, text: &str) -> Message {
    Message {
        tool_call_id: Some(ToolCallId::new(id)),
        tool_name: Some("read_file".into()),
        content: Some(text.into()),
        ..Message::new(Role::Tool, AT)
    }
}

fn arcs(rows: Vec<Message>) -> Vec<Arc<Message>> {
    rows.into_iter().map(Arc::new).collect()
}

/// Repairs, checks the general claims, and shows the rows in short.
fn repaired(rows: Vec<Message>) -> (Vec<String>, RepairReport) {
    let Repaired { messages, report } = repair_history(arcs(rows));
    assert_eq!(legal(&messages), Ok(()));
    let shown = messages
        .iter()
        .map(|row| {
            let calls: Vec<String> = row
                .tool_calls
                .iter()
                .map(|call| format!("{}={}{}", call.id, call.name, call.arguments))
                .collect();
            let id = row.tool_call_id.as_ref().map(|id| format!("->{id}")).unwrap_or_default();
            let role = row.role.as_str();
            format!(
                "{role}{id}: {}{}",
                row.wire_text(),
                if calls.is_empty() { String::new() } else { format!(" {calls:?}") }
            )
        })
        .collect();
    (shown, report)
}

fn check(rows: Vec<Message>, wanted: &[&str], wanted_report: RepairReport) {
    let (shown, report) = repaired(rows);
    assert_eq!(shown, wanted);
    assert_eq!(report, wanted_report);
}

const NONE: RepairReport = RepairReport {
    display_rows: 0,
    system_rows: 0,
    empty_assistants: 0,
    merged_assistants: 0,
    merged_users: 0,
    orphan_results: 0,
    late_results: 0,
    missing_results: 0,
    duplicate_calls: 0,
    renamed_calls: 0,
    blank_names: 0,
    repaired_arguments: 0,
    corrupted_arguments: 0,
};

const MISSING: &str = r#"{"error":"no result was recorded for this call: it did not complete"}"#;

#[test]
fn a_legal_history_keeps_every_arc() {
    let rows = arcs(vec![
        user("go"),
        calls(&[call("a", "read_file", "{}"), call("b", "read_file", " {\"b\": 1}")]),
        result("b", "B"),
        result("a", "A"),
        says("done"),
        user("more"),
    ]);
    let repaired = repair_history(rows.clone());
    assert!(repaired.report.is_clean());
    assert!(rows.iter().zip(&repaired.messages).all(|(a, b)| Arc::ptr_eq(a, b)));
    assert_eq!(rows.len(), repaired.messages.len());
}

#[test]
fn users_merge_with_visible_order() {
    let head = prompts::MERGED_USERS;
    check(
        vec![user("one"), user(" "), user("two")],
        &[&format!("user: {head}\n\n[Message 1]\none\n\n[Message 2]\ntwo")],
        RepairReport { merged_users: 2, ..NONE },
    );
    check(vec![user(""), user("two")], &["user: two"], RepairReport { merged_users: 1, ..NONE });
    check(vec![user(""), user("")], &["user: "], RepairReport { merged_users: 1, ..NONE });
    check(vec![user("")], &["user: "], NONE);
}

#[test]
fn a_merge_more_on_the_way_gives_the_same_bytes() {
    let at_once = repair_history(arcs(vec![user("a"), user("b"), user("c")]));
    let mut in_steps = repair_history(arcs(vec![user("a"), user("b")])).messages;
    in_steps.push(Arc::new(user("c")));
    assert_eq!(repair_history(in_steps).messages, at_once.messages);
}

#[test]
fn merged_rows_keep_what_the_model_was_told_and_no_stale_sidecar() {
    let mut first = user("one");
    first.api_content = Some("one + memory".into());
    let Repaired { messages, .. } = repair_history(arcs(vec![first, user("two")]));
    let [row] = messages.as_slice() else { panic!("one row") };
    assert!(row.text().contains("[Message 1]\none\n"));
    assert!(row.api_content.as_deref().unwrap().contains("[Message 1]\none + memory\n"));
}

#[test]
fn images_of_merged_users_stay_parts() {
    let image = Part::Image { url: "https://x/1.png".into(), detail: None };
    let picture = Message::user(Content::Parts(vec![Part::Text("see".into()), image.clone()]), AT);
    let Repaired { messages, .. } = repair_history(arcs(vec![user("one"), picture]));
    let head = prompts::MERGED_USERS;
    assert_eq!(
        messages[0].content,
        Some(Content::Parts(vec![
            Part::Text(format!("{head}\n\n[Message 1]")),
            Part::Text("one".into()),
            Part::Text("[Message 2]".into()),
            Part::Text("see".into()),
            image,
        ]))
    );
}

#[test]
fn assistants_merge_their_words_and_calls() {
    check(
        vec![
            user("go"),
            Message { content: Some("first".into()), ..calls(&[call("a", "read_file", "{}")]) },
            Message {
                content: Some("second".into()),
                ..calls(&[call("b", "read_file", "{}"), call("a", "patch", "{}")])
            },
            result("b", "B"),
            result("a", "A"),
        ],
        &[
            "user: go",
            r#"assistant: first
second ["a=read_file{}", "b=read_file{}"]"#,
            "tool->b: B",
            "tool->a: A",
        ],
        RepairReport { merged_assistants: 1, duplicate_calls: 1, ..NONE },
    );
}

#[test]
fn merged_reasoning_items_are_joined() {
    let mut first = says("one");
    first.reasoning_details = Some(Json::parse("[1]").unwrap());
    first.reasoning = Some("r1".into());
    let mut second = says("two");
    second.reasoning_details = Some(Json::parse("[2,3]").unwrap());
    let Repaired { messages, .. } = repair_history(arcs(vec![user("go"), first, second]));
    assert_eq!(messages[1].reasoning_details.as_ref().unwrap().as_str(), "[1,2,3]");
    assert_eq!(messages[1].reasoning.as_deref(), Some("r1"));
}

#[test]
fn a_later_answer_takes_the_place_of_a_provisional_one() {
    let mut held = says("it works");
    held.finish_reason = Some(FinishReason::Other("verification_required".into()));
    check(
        vec![user("go"), held.clone(), says("it works, tests passed")],
        &["user: go", "assistant: it works, tests passed"],
        RepairReport { merged_assistants: 1, ..NONE },
    );
    // Without later words it is all there is.
    check(
        vec![user("go"), held, calls(&[call("a", "terminal", "{}")]), result("a", "A")],
        &["user: go", r#"assistant: it works ["a=terminal{}"]"#, "tool->a: A"],
        RepairReport { merged_assistants: 1, ..NONE },
    );
}

#[test]
fn responses_interim_rows_stand_alone() {
    let mut interim = says("thinking on");
    interim.finish_reason = Some(FinishReason::Incomplete);
    interim.codex_message_items = Some(Json::parse("[]").unwrap());
    check(
        vec![user("go"), interim, says("done")],
        &["user: go", "assistant: thinking on", "assistant: done"],
        NONE,
    );
}

#[test]
fn results_pair_with_their_calls() {
    check(
        vec![
            result("x", "before any call"),
            user("go"),
            calls(&[call("a", "read_file", "{}"), call("b", "terminal", "{}")]),
            result("a", "A"),
            result("a", "again"),
            result("y", "of nobody"),
            user("hurry"),
            result("b", "late"),
            says("done"),
            result("b", "too late"),
        ],
        &[
            "user: go",
            r#"assistant:  ["a=read_file{}", "b=terminal{}"]"#,
            "tool->a: A",
            "tool->b: late",
            "user: hurry",
            "assistant: done",
        ],
        RepairReport { orphan_results: 4, late_results: 1, ..NONE },
    );
}

#[test]
fn a_call_without_a_result_gets_one_that_says_so() {
    let rows = vec![
        user("go"),
        calls(&[call("a", "terminal", "{}"), call("b", "patch", "{}")]),
        result("b", "B"),
        user("?"),
    ];
    check(
        rows.clone(),
        &[
            "user: go",
            r#"assistant:  ["a=terminal{}", "b=patch{}"]"#,
            "tool->b: B",
            &format!("tool->a: {MISSING}"),
            "user: ?",
        ],
        RepairReport { missing_results: 1, ..NONE },
    );
    let stub = &repair_history(arcs(rows)).messages[3];
    assert_eq!(stub.effect, Some(EffectDisposition::Unknown));
    assert_eq!(stub.tool_name.as_deref(), Some("terminal"));
}

#[test]
fn a_result_may_name_its_call_by_the_providers_other_id() {
    let mut item = call("fc_1", "read_file", "{}");
    item.provider_data = Some(Json::parse(r#"{"call_id":"call_1"}"#).unwrap());
    check(
        vec![user("go"), calls(&[item]), result("call_1", "A")],
        &["user: go", r#"assistant:  ["fc_1=read_file{}"]"#, "tool->fc_1: A"],
        NONE,
    );
}

#[test]
fn an_id_that_an_earlier_round_used_is_renamed_with_its_result() {
    check(
        vec![
            user("go"),
            calls(&[call("call_0", "read_file", "{}")]),
            result("call_0", "A"),
            calls(&[call("call_0", "read_file", "{}")]),
            result("call_0", "B"),
            calls(&[call("call_0", "read_file", "{}"), call("call_0_2", "read_file", "{}")]),
            result("call_0_2", "D"),
            result("call_0", "C"),
        ],
        &[
            "user: go",
            r#"assistant:  ["call_0=read_file{}"]"#,
            "tool->call_0: A",
            r#"assistant:  ["call_0_2=read_file{}"]"#,
            "tool->call_0_2: B",
            r#"assistant:  ["call_0_3=read_file{}", "call_0_2_2=read_file{}"]"#,
            "tool->call_0_2_2: D",
            "tool->call_0_3: C",
        ],
        RepairReport { renamed_calls: 3, ..NONE },
    );
}

#[test]
fn blank_ids_and_names_are_filled_in_and_stay_pairs() {
    let mut unnamed = result("", "A");
    unnamed.tool_call_id = None;
    unnamed.tool_name = None;
    let (shown, report) = repaired(vec![
        user("go"),
        calls(&[call("", " ", "{}"), call("", "read_file", "{}")]),
        unnamed,
        result(" ", "B"),
    ]);
    assert_eq!(
        shown,
        [
            "user: go",
            r#"assistant:  ["call_a45f3c05f428=invalid_tool_call{}", "call_5f4a1802aaf7=read_file{}"]"#,
            "tool->call_a45f3c05f428: A",
            "tool->call_5f4a1802aaf7: B",
        ]
    );
    assert_eq!(report, RepairReport { renamed_calls: 2, blank_names: 1, ..NONE });
}

#[test]
fn damaged_arguments_are_read_or_given_up_with_a_mark() {
    check(
        vec![
            user("go"),
            calls(&[
                call("a", "patch", "{\"x\":1,}"),
                call("b", "terminal", "rm -rf"),
                call("c", "terminal", "[1]"),
                call("d", "terminal", ""),
            ]),
            result("a", "A"),
            result("b", "B"),
            result("d", "D"),
        ],
        &[
            "user: go",
            r#"assistant:  ["a=patch{\"x\":1}", "b=terminal{}", "c=terminal{}", "d=terminal{}"]"#,
            "tool->a: A",
            "tool->b: [The stored arguments of this call were damaged and are shown as {}.]\nB",
            "tool->d: D",
            &format!(
                "tool->c: [The stored arguments of this call were damaged and are shown as {{}}.]\n{MISSING}"
            ),
        ],
        RepairReport { repaired_arguments: 2, corrupted_arguments: 2, missing_results: 1, ..NONE },
    );
}

#[test]
fn rows_that_say_nothing_or_are_not_for_the_model_are_left_out() {
    let mut partial = says("half");
    partial.display = Some(DisplayKind(DisplayKind::PARTIAL.into()));
    let mut hidden = user("marker");
    hidden.display = Some(DisplayKind(DisplayKind::HIDDEN.into()));
    let mut thinking = says("");
    thinking.reasoning = Some("hm".into());
    check(
        vec![
            Message { content: Some("old prompt".into()), ..Message::new(Role::System, AT) },
            user("a"),
            partial,
            hidden,
        ],
        &["user: a"],
        RepairReport { system_rows: 1, display_rows: 2, ..NONE },
    );
    check(
        vec![user("a"), thinking, user("b")],
        &[&format!("user: {}\n\n[Message 1]\na\n\n[Message 2]\nb", prompts::MERGED_USERS)],
        RepairReport { empty_assistants: 1, merged_users: 1, ..NONE },
    );
    check(vec![], &[], NONE);
}

#[test]
fn every_broken_rule_is_named() {
    let check = |rows: Vec<Message>, wanted: &str| {
        assert_eq!(legal(&arcs(rows)).unwrap_err().to_string(), wanted);
    };
    let a = || calls(&[call("a", "t", "{}")]);
    check(vec![Message::new(Role::System, AT)], "row 0 is a system row inside the history");
    check(vec![user("a"), user("b")], "row 1 has the same role as the row before it (user)");
    check(vec![user("a"), says(" ")], "assistant row 1 has neither words nor calls");
    check(vec![result("a", "x")], "the result in row 0 answers no open call before it");
    check(
        vec![a(), result("a", "x"), result("a", "x")],
        "the result in row 2 answers no open call before it",
    );
    check(vec![a(), user("b")], "the call `a` of row 0 has no result");
    check(vec![a()], "the call `a` of row 0 has no result");
    check(vec![a(), result("a", "x"), a()], "row 2 uses the call id `a` a second time");
    check(vec![calls(&[call(" ", "t", "{}")])], "a tool call of row 0 has no id");
    check(vec![calls(&[call("a", "", "{}")])], "the call `a` of row 0 has no name");
    check(vec![calls(&[call("a", "t", "{")])], "the arguments of call `a` of row 0 are no JSON object");
    let mut hidden = user("x");
    hidden.display = Some(DisplayKind(DisplayKind::HIDDEN.into()));
    check(vec![hidden], "row 0 is for display only");
}

fn arbitrary_call() -> impl Strategy<Value = ToolCall> {
    let id = prop_oneof![Just(""), Just("a"), Just("b"), Just("a_2"), Just("c")];
    let name = prop_oneof![Just(" "), Just("read_file"), Just("terminal")];
    let arguments =
        prop_oneof![Just("{}"), Just("{\"x\": 1}"), Just(""), Just("{\"x\":1,"), Just("nope"), Just("[1]")];
    let data = prop_oneof![3 => Just(None), 1 => Just(Some(Json::parse(r#"{"call_id":"b"}"#).unwrap()))];
    (id, name, arguments, data)
        .prop_map(|(id, name, arguments, data)| ToolCall { provider_data: data, ..call(id, name, arguments) })
}

fn arbitrary_content() -> impl Strategy<Value = Option<Content>> {
    let image = Part::Image { url: "https://x/1.png".into(), detail: None };
    prop_oneof![
        1 => Just(None),
        1 => Just(Some("  ".into())),
        5 => "[a-c]{1,3}".prop_map(|text| Some(text.into())),
        1 => "[a-c]{0,3}".prop_map(move |text| Some(Content::Parts(vec![Part::Text(text), image.clone()]))),
        1 => Just(Some(Content::Parts(Vec::new()))),
    ]
}

fn arbitrary_message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![1 => Just(Role::System), 6 => Just(Role::User), 8 => Just(Role::Assistant), 8 => Just(Role::Tool)];
    let result_id =
        prop_oneof![Just(None), Just(Some("")), Just(Some("a")), Just(Some("b")), Just(Some("a_2"))];
    let finish = prop_oneof![
        4 => Just(None),
        1 => Just(Some(FinishReason::Incomplete)),
        1 => Just(Some(FinishReason::Other("verification_required".into()))),
    ];
    let display = prop_oneof![8 => Just(None), 1 => Just(Some("partial")), 1 => Just(Some("hidden")), 1 => Just(Some("summary"))];
    let extras = (any::<bool>(), any::<bool>(), any::<bool>());
    let tool_calls = proptest::collection::vec(arbitrary_call(), 0..4);
    (role, arbitrary_content(), tool_calls, result_id, finish, display, extras).prop_map(
        |(role, content, tool_calls, result_id, finish_reason, display, (sidecar, codex, details))| Message {
            api_content: (sidecar && !matches!(content, Some(Content::Parts(_)))).then(|| "sent".to_owned()),
            content,
            tool_calls: if role == Role::Assistant { tool_calls } else { Vec::new() },
            tool_call_id: result_id.filter(|_| role == Role::Tool).map(ToolCallId::new),
            finish_reason,
            display: display.map(|kind| DisplayKind(kind.into())),
            codex_message_items: codex.then(|| Json::parse("[1]").unwrap()),
            reasoning_details: details.then(|| Json::parse("[{}]").unwrap()),
            ..Message::new(role, AT)
        },
    )
}

fn arbitrary_history() -> impl Strategy<Value = Vec<Arc<Message>>> {
    proptest::collection::vec(arbitrary_message(), 0..14).prop_map(arcs)
}

/// A history as a healthy session writes it.
fn healthy_history() -> impl Strategy<Value = Vec<Arc<Message>>> {
    let turn = (proptest::collection::vec(1_usize..4, 0..3), any::<bool>());
    proptest::collection::vec(turn, 0..5).prop_map(|turns| {
        let mut rows = Vec::new();
        let mut next = 0;
        for (rounds, answered) in turns {
            if rows.last().is_none_or(|row: &Message| row.role != Role::User) {
                rows.push(user("ask"));
            }
            for size in rounds {
                let ids: Vec<String> = (0..size).map(|n| format!("call_{}", next + n)).collect();
                next += size;
                rows.push(calls(&ids.iter().map(|id| call(id, "read_file", "{}")).collect::<Vec<_>>()));
                rows.extend(ids.iter().rev().map(|id| result(id, "x")));
            }
            if answered {
                rows.push(says("answer"));
            }
        }
        arcs(rows)
    })
}

fn same_arcs(a: &[Arc<Message>], b: &[Arc<Message>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_output_is_legal_and_a_second_pass_changes_nothing(history in arbitrary_history()) {
        let once = repair_history(history);
        prop_assert_eq!(legal(&once.messages), Ok(()));
        let twice = repair_history(once.messages.clone());
        prop_assert!(twice.report.is_clean(), "{:?}", twice.report);
        prop_assert!(same_arcs(&once.messages, &twice.messages));
    }

    #[test]
    fn a_legal_history_is_not_touched(history in arbitrary_history()) {
        let repaired = repair_history(history.clone());
        if legal(&history).is_ok() {
            prop_assert!(same_arcs(&history, &repaired.messages));
            prop_assert!(repaired.report.is_clean());
        }
        // And the other way round: what is reported as clean was legal, but for rows that are never sent.
        let sendable: Vec<Arc<Message>> = history.iter().filter(|row| !is_display_only(row)).cloned().collect();
        prop_assert_eq!(repaired.report.is_clean() && same_arcs(&sendable, &repaired.messages), legal(&sendable).is_ok());
    }

    #[test]
    fn a_healthy_history_is_legal(history in healthy_history()) {
        prop_assert_eq!(legal(&history), Ok(()));
    }

    #[test]
    fn no_words_of_a_user_are_lost_and_their_order_stays(history in arbitrary_history()) {
        let words = |rows: &[Arc<Message>]| -> Vec<String> {
            rows.iter()
                .filter(|row| row.role == Role::User && !is_display_only(row))
                .map(|row| row.wire_text().into_owned())
                .collect()
        };
        let sent = words(&repair_history(history.clone()).messages).join("\n");
        let mut rest = sent.as_str();
        for text in words(&history) {
            let found = rest.split_once(text.trim());
            prop_assert!(found.is_some(), "{text:?} is not in {sent:?}");
            rest = found.map_or("", |(_, after)| after);
        }
    }

    #[test]
    fn a_repair_never_invents_a_call(history in arbitrary_history()) {
        let names = |rows: &[Arc<Message>]| -> usize {
            rows.iter().filter(|row| row.role == Role::Assistant && !is_display_only(row)).map(|row| row.tool_calls.len()).sum()
        };
        prop_assert!(names(&repair_history(history.clone()).messages) <= names(&history));
    }
}

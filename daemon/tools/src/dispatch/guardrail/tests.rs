//! Tables of the guardrail: what it says after which calls.

use pretty_assertions::assert_eq;

use super::*;

/// A guard that stops turns, and one that only warns.
fn guards() -> [TurnGuard; 2] {
    ["telegram", "cli"].map(|platform| TurnGuard::new(&GuardrailSettings::default(), platform))
}

fn failure(text: &str) -> ToolOutput {
    ToolOutput::error(text)
}

/// One call: what keeps it from running, else what its result says.
fn call(guard: &TurnGuard, tool: &str, arguments: &Value, output: &ToolOutput) -> Option<&'static str> {
    if let Some(stop) = guard.check(tool, arguments) {
        return Some(stop.code);
    }
    let observed = guard.observe(tool, arguments, output, None);
    guard.told(&observed, &ToolCallId::new("c"), None);
    if let Some(stop) = observed.stop {
        return Some(stop.code);
    }
    let said = observed.warning?;
    [
        Rule::ExactFailureWarning,
        Rule::SameToolWarning,
        Rule::NoProgressWarning,
        Rule::StreakNote,
        Rule::CycleNote,
    ]
    .into_iter()
    .find(|rule| (0..30).any(|count| rule.message(tool, count) == said))
    .map(Rule::code)
}

fn codes(
    guard: &TurnGuard,
    calls: impl IntoIterator<Item = (&'static str, Value, ToolOutput)>,
) -> Vec<Option<&'static str>> {
    calls.into_iter().map(|(tool, arguments, output)| call(guard, tool, &arguments, &output)).collect()
}

#[test]
fn the_same_failing_call_is_warned_of_and_then_not_run() {
    let [stops, warns] = guards();
    let calls = || (0..7).map(|_| ("terminal", json!({ "command": "make" }), failure("no")));
    let warning = Some("repeated_exact_failure_warning");
    let halt = Some("identical_call_streak_halt");
    let block = Some("repeated_exact_failure_block");
    assert_eq!(codes(&stops, calls()), [None, warning, warning, warning, halt, block, block]);
    assert_eq!(stops.stop().unwrap().code, "identical_call_streak_halt", "the first reason counts");
    assert_eq!(codes(&warns, calls()), [None, warning, warning, warning, warning, warning, warning]);
    assert_eq!(warns.stop(), None);
}

#[test]
fn another_error_each_time_is_still_the_same_failing_call() {
    let [stops, _] = guards();
    let calls = (0..6).map(|n| ("patch", json!({ "path": "x" }), failure(&format!("error {n}"))));
    assert_eq!(codes(&stops, calls).last().unwrap(), &Some("repeated_exact_failure_block"));
}

#[test]
fn a_tool_that_fails_with_any_arguments_ends_the_turn_unless_it_may_keep_failing() {
    let [stops, _] = guards();
    let failing = |tool: &'static str| (0..9).map(move |n| (tool, json!({ "n": n }), failure("no")));
    let said = codes(&stops, failing("patch"));
    assert_eq!(said[..2], [None, None]);
    assert_eq!(said[2..7], [Some("same_tool_failure_warning"); 5]);
    assert_eq!(said[7], Some("same_tool_failure_halt"));
    let [stops, _] = guards();
    codes(&stops, failing("terminal"));
    assert_eq!(stops.stop(), None);
}

#[test]
fn success_clears_the_calls_own_counts_and_lets_others_begin_anew() {
    let [stops, _] = guards();
    let make = || json!({ "command": "make" });
    let fails =
        |n: usize| (0..n).map(|at| ("terminal", json!({ "command": "make" }), failure(&at.to_string())));
    codes(&stops, fails(5));
    assert!(stops.check("terminal", &make()).is_some(), "five failures are enough");
    let [stops, _] = guards();
    codes(&stops, fails(5));
    let edit = ToolOutput::done(json!({ "success": true }));
    assert_eq!(call(&stops, "patch", &json!({ "path": "Makefile" }), &edit), None);
    assert_eq!(call(&stops, "terminal", &make(), &failure("other")), Some("same_tool_failure_warning"));
    assert_eq!(call(&stops, "terminal", &make(), &ToolOutput::done(json!({ "exit_code": 0 }))), None);
    assert_eq!(call(&stops, "terminal", &make(), &failure("again")), None);
}

#[test]
fn asking_the_same_for_the_same_answer_is_no_progress() {
    let [stops, warns] = guards();
    let answer = || ToolOutput::looked(json!({ "matches": [] }));
    // Other reads in between, with other answers, so that this is neither a streak nor a cycle.
    let reads = || {
        (0..6).flat_map(move |n| {
            let other = ToolOutput::looked(json!({ "content": n }));
            [
                ("search_files", json!({ "pattern": "x" }), answer()),
                ("read_file", json!({ "path": n }), other),
            ]
        })
    };
    let searches = |guard: &TurnGuard| codes(guard, reads()).into_iter().step_by(2).collect::<Vec<_>>();
    let warning = Some("idempotent_no_progress_warning");
    let block = Some("idempotent_no_progress_block");
    assert_eq!(searches(&stops), [None, warning, warning, warning, warning, block]);
    assert_eq!(searches(&warns), [None, warning, warning, warning, warning, warning]);
}

#[test]
fn a_round_of_calls_is_noted_and_ends_the_turn() {
    let [stops, _] = guards();
    let done = |n: i32| ToolOutput::done(json!({ "n": n }));
    let rounds = (0..5)
        .flat_map(|_| [("terminal", json!({ "c": 1 }), done(1)), ("terminal", json!({ "c": 2 }), done(2))]);
    let said = codes(&stops, rounds);
    assert_eq!(said[5], Some("identical_cycle_note"));
    assert_eq!(said[9], Some("identical_cycle_halt"));
    assert_eq!(said.iter().flatten().count(), 3);
}

#[test]
fn pollers_may_ask_again_and_again() {
    let [stops, _] = guards();
    let poll =
        || ("process", json!({ "action": "poll" }), ToolOutput::looked(json!({ "status": "running" })));
    assert_eq!(codes(&stops, (0..12).map(|_| poll())), [None; 12]);
}

#[test]
fn caps_hold_where_somebody_watches_too() {
    let caps = LoopCaps { max_web_searches: 2, max_subagents: 3 };
    let settings =
        GuardrailSettings { loop_caps: caps, warnings_enabled: false, ..GuardrailSettings::default() };
    let guard = TurnGuard::new(&settings, "cli");
    let found = |n: usize| ToolOutput::looked(json!({ "n": n }));
    let searches = (0..3).map(|n| ("web_search", json!({ "query": n }), found(n)));
    assert_eq!(codes(&guard, searches), [None, None, Some("loop_web_search_cap")]);
    let two = || json!({ "tasks": ["a", "b"] });
    assert_eq!(call(&guard, "delegate_task", &two(), &failure("none was built")), None);
    assert_eq!(call(&guard, "delegate_task", &two(), &found(1)), None);
    assert_eq!(call(&guard, "delegate_task", &two(), &found(2)), Some("loop_subagent_cap"));
    assert_eq!(guard.stop().unwrap().code, "loop_web_search_cap");
    let free = LoopCaps { max_web_searches: 0, max_subagents: 0 };
    let guard = TurnGuard::new(&GuardrailSettings { loop_caps: free, ..settings }, "cli");
    let searches = (0..200).map(|n| ("web_search", json!({ "query": n }), found(n)));
    assert!(codes(&guard, searches).iter().all(Option::is_none));
}

#[test]
fn calls_whose_verdicts_could_meet_are_run_in_order() {
    let [stops, _] = guards();
    let one = ("read_file".to_owned(), json!({ "path": "a", "offset": 1 }));
    let same = ("read_file".to_owned(), json!({ "offset": 1, "path": "a" }));
    let other = ("read_file".to_owned(), json!({ "path": "b" }));
    assert!(!stops.needs_order(&[one.clone(), other.clone()]));
    assert!(stops.needs_order(&[one.clone(), same]));
    codes(&stops, (0..5).map(|n| ("read_file", json!({ "path": "b" }), failure(&n.to_string()))));
    assert!(stops.needs_order(&[one, other]));
    let search = |n: u32| ("web_search".to_owned(), json!({ "query": n }));
    let many: Vec<_> = (0..51).map(search).collect();
    assert!(stops.needs_order(&many) && !stops.needs_order(&many[..50]));
}

#[test]
fn a_long_repeat_is_told_by_reference_and_a_short_one_as_it_is() {
    let [_, guard] = guards();
    let long = ToolOutput::looked(json!({ "content": "é".repeat(WORTH_A_STUB) }));
    let arguments = json!({ "path": "x".repeat(200) });
    let tell = |id: &str, output: &ToolOutput| {
        let observed = guard.observe("browser_get_images", &arguments, output, None);
        let content = observed.apply("browser_get_images", &arguments, output.content.clone());
        if !observed.is_repeat() {
            guard.told(&observed, &ToolCallId::new(id), None);
        }
        content
    };
    assert_eq!(tell("c1", &long), long.content);
    let repeat = tell("c2", &long);
    assert_eq!(repeat["same_as"], "c1");
    assert_eq!(repeat["arguments"].as_str().unwrap().chars().count(), REFERENCE_ARGUMENTS + 1);
    assert!(repeat["_warning"].as_str().unwrap().contains("2 times"), "{repeat}");
    assert_eq!(tell("c3", &long)["same_as"], "c1");
    let short = ToolOutput::looked(json!({ "content": "short" }));
    assert_eq!(tell("c4", &short), short.content);
    assert_eq!(tell("c5", &short)["content"], "short");
}

#[test]
fn what_the_guard_says_is_a_field_beside_the_tools_own() {
    let observed = Observed { warning: Some("slow down".to_owned()), stop: None, first: None, key: None };
    let arguments = json!({});
    assert_eq!(
        observed.apply("t", &arguments, json!({ "a": 1, "_warning": "own" })),
        json!({ "a": 1, "_warning": "own\nslow down" })
    );
    assert_eq!(
        observed.apply("t", &arguments, json!("text")),
        json!({ "result": "text", "_warning": "slow down" })
    );
}

//! Tests of the pipeline as a whole.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{Json, ToolSchema};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::*;
use hermes_runtime::{ApprovalScope, Secret};

use crate::ports::{
    ApproveAnswer, ApproveRequest, Ask, HookDecision, HookOutcome, Hooks, Question, QuestionAnswer,
    SudoRequest,
};
use crate::settings::ToolSettings;
use crate::testing::{Bench, SECRET, call};
use crate::tool::{OwnedEffect, ResultCap, Tool, ToolTraits};

/// What happened, in order.
type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, what: impl Into<String>) {
    log.lock().unwrap().push(what.into());
}

/// What the probe does when it runs.
#[derive(Debug, Clone)]
enum Act {
    Return(ToolOutput),
    Panic,
    /// Never ends, and takes no notice of its token.
    Hang,
    /// Ends with this when its token fires.
    UntilCancelled(ToolOutput),
}

/// A tool that notes its run and does what it is told.
#[derive(Debug, Clone)]
struct Probe {
    log: Log,
    act: Act,
    traits: ToolTraits,
    available: bool,
    cancelled: Arc<Mutex<Option<CancellationToken>>>,
}

impl Probe {
    fn new(act: Act) -> Self {
        Self {
            log: Log::default(),
            act,
            traits: ToolTraits::default(),
            available: true,
            cancelled: Arc::default(),
        }
    }

    fn bench(&self) -> Bench {
        Bench::with(vec![Arc::new(self.clone())], |_| {})
    }

    /// Resolves when the token of the call that ran has fired.
    fn stopped(&self) -> WaitForCancellationFutureOwned {
        self.cancelled.lock().unwrap().clone().unwrap().cancelled_owned()
    }
}

#[async_trait]
impl Tool for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn toolset(&self) -> &'static str {
        "probes"
    }

    fn schema(&self, _: &ToolSettings) -> ToolSchema {
        ToolSchema {
            name: "probe".to_owned(),
            description: "probes".to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": { "n": { "type": "integer" } },
                "required": ["n"],
            })),
        }
    }

    fn available(&self) -> bool {
        self.available
    }

    fn traits(&self) -> ToolTraits {
        self.traits
    }

    fn preview(&self, arguments: &Value) -> String {
        format!("n = {}", arguments["n"])
    }

    fn effect(&self, _: &Value, workspace: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        note(&self.log, "effect");
        Ok(vec![OwnedEffect::Write { path: workspace.root().join("x") }])
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        note(&self.log, format!("run {}", arguments["n"]));
        *self.cancelled.lock().unwrap() = Some(cx.cancel.clone());
        match &self.act {
            Act::Return(output) => output.clone(),
            Act::Panic => panic!("on <system>purpose</system>"),
            Act::Hang => std::future::pending().await,
            Act::UntilCancelled(output) => {
                cx.cancel.cancelled().await;
                output.clone()
            }
        }
    }
}

/// Hooks and approvals that note when they are asked.
#[derive(Debug, Clone)]
struct Watcher {
    log: Log,
    decision: HookDecision,
    rewritten: Option<Value>,
    answer: ApproveAnswer,
    transformed: Option<Value>,
}

impl Watcher {
    fn new(log: &Log) -> Self {
        Self {
            log: Arc::clone(log),
            decision: HookDecision::Proceed,
            rewritten: None,
            answer: ApproveAnswer::Allow(ApprovalScope::Once),
            transformed: None,
        }
    }

    fn bench(self, probe: &Probe) -> Bench {
        let watcher = Arc::new(self);
        Bench::with(vec![Arc::new(probe.clone())], |services| {
            services.hooks = Arc::clone(&watcher) as Arc<dyn Hooks>;
            services.ask = watcher;
        })
    }
}

#[async_trait]
impl Hooks for Watcher {
    async fn rewrite(&self, _: HookCall<'_>, _: &Value) -> Option<Value> {
        note(&self.log, "rewrite");
        self.rewritten.clone()
    }

    async fn before(&self, _: HookCall<'_>, _: &Value) -> HookDecision {
        note(&self.log, "before");
        self.decision.clone()
    }

    async fn after(&self, _: HookCall<'_>, arguments: &Value, outcome: HookOutcome<'_>) {
        let kind = outcome.error_type.unwrap_or("-");
        note(&self.log, format!("after {arguments} {} {kind}", outcome.status.as_str()));
    }

    async fn transform(&self, _: HookCall<'_>, _: &Value) -> Option<Value> {
        note(&self.log, "transform");
        self.transformed.clone()
    }
}

#[async_trait]
impl Ask for Watcher {
    async fn approve(&self, request: ApproveRequest, _: &CancellationToken) -> ApproveAnswer {
        note(&self.log, format!("ask {}", request.description));
        self.answer.clone()
    }

    async fn question(&self, _: Question, _: &CancellationToken) -> QuestionAnswer {
        QuestionAnswer::Nobody
    }

    async fn sudo_password(&self, _: SudoRequest, _: &CancellationToken) -> Option<Secret> {
        None
    }
}

fn fine() -> ToolOutput {
    ToolOutput::done(json!({ "success": true }))
}

fn logged(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

fn json_of(result: &CallResult) -> Value {
    serde_json::from_str(&result.content).unwrap()
}

#[tokio::test]
async fn the_stages_run_in_the_documented_order() {
    let probe = Probe::new(Act::Return(fine()));
    let watcher = Watcher {
        decision: HookDecision::Approve { reason: "because".to_owned() },
        rewritten: Some(json!({ "n": "8" })),
        transformed: Some(json!({ "other": SECRET })),
        ..Watcher::new(&probe.log)
    };
    let bench = watcher.bench(&probe);
    let result = bench.call_text("Probe", "{\"n\": \"7\",}").await;
    assert_eq!(
        logged(&probe.log),
        ["rewrite", "before", "effect", "ask because", "run 8", "after {\"n\":8} ok -", "transform"],
    );
    assert_eq!(
        (result.name.as_str(), result.status, result.effect),
        ("probe", ToolStatus::Ok, EffectDisposition::Done)
    );
    // What a hook puts in the result's place is masked as well.
    assert!(!result.content.contains(SECRET) && result.content.starts_with("{\"other\":"));
}

#[tokio::test]
async fn a_refused_call_has_one_result_and_one_post_hook_and_does_not_run() {
    let nobody = || ApproveAnswer::Nobody;
    let approve = || HookDecision::Approve { reason: "why".to_owned() };
    for (name, arguments, decision, answer, kind, status) in [
        ("probe", "{\"n\": 1", HookDecision::Proceed, nobody(), "invalid_arguments", ToolStatus::Error),
        ("probe", "[1]", HookDecision::Proceed, nobody(), "invalid_arguments", ToolStatus::Error),
        ("probe", "{}", HookDecision::Proceed, nobody(), "invalid_arguments", ToolStatus::Error),
        ("probe", "{\"n\": \"x\"}", HookDecision::Proceed, nobody(), "invalid_arguments", ToolStatus::Error),
        ("other_name", "{}", HookDecision::Proceed, nobody(), "tool_scope_block", ToolStatus::Blocked),
        ("", "{}", HookDecision::Proceed, nobody(), "tool_scope_block", ToolStatus::Blocked),
        (
            "probe",
            "{\"n\": 1}",
            HookDecision::Block { message: "no".to_owned() },
            nobody(),
            "plugin_block",
            ToolStatus::Blocked,
        ),
        ("probe", "{\"n\": 1}", approve(), nobody(), "policy_block", ToolStatus::Blocked),
        (
            "probe",
            "{\"n\": 1}",
            approve(),
            ApproveAnswer::Deny { reason: None },
            "policy_block",
            ToolStatus::Blocked,
        ),
    ] {
        let probe = Probe::new(Act::Return(fine()));
        let bench = Watcher { decision, answer, ..Watcher::new(&probe.log) }.bench(&probe);
        let result = bench.call_text(name, arguments).await;
        assert_eq!((result.status, result.effect), (status, EffectDisposition::None), "{name} {arguments}");
        assert!(json_of(&result)["error"].is_string());
        let log = logged(&probe.log);
        assert!(!log.iter().any(|entry| entry.starts_with("run")), "{log:?}");
        let ends: Vec<&String> = log.iter().filter(|entry| entry.starts_with("after")).collect();
        assert_eq!(ends.len(), 1, "{log:?}");
        assert!(ends[0].ends_with(&format!("{} {kind}", status.as_str())), "{log:?}");
    }
}

#[tokio::test]
async fn refusals_tell_the_model_what_to_do() {
    let probe = Probe::new(Act::Return(fine()));
    let bench = Watcher {
        decision: HookDecision::Approve { reason: "it is odd".to_owned() },
        answer: ApproveAnswer::Nobody,
        ..Watcher::new(&probe.log)
    }
    .bench(&probe);
    let mut texts = Vec::new();
    for (name, arguments) in [
        ("probe", "{\"n\": 1, \"text\": \"cut of"),
        ("probe", "{n: 1}"),
        ("probe", "7"),
        ("probe", "{}"),
        ("probe", "{\"n\": \"many\"}"),
        ("browser_click", "{}"),
        ("<tool", "{}"),
        ("probe", "{\"n\": 1}"),
    ] {
        let result = bench.call_text(name, arguments).await;
        texts.push(json_of(&result)["error"].as_str().unwrap().to_owned());
    }
    insta::assert_snapshot!("refusals", texts.join("\n"));
}

#[tokio::test]
async fn what_middleware_makes_is_checked_like_what_a_model_wrote() {
    let probe = Probe::new(Act::Return(fine()));
    for bad in [json!({ "n": "x" }), json!([])] {
        let bench = Watcher { rewritten: Some(bad), ..Watcher::new(&probe.log) }.bench(&probe);
        let result = bench.call("probe", json!({ "n": 1 })).await;
        assert_eq!(result.status, ToolStatus::Error);
    }
    assert!(!logged(&probe.log).iter().any(|entry| entry.starts_with("run")));
}

#[tokio::test]
async fn a_tool_that_is_gone_for_the_moment_does_not_run() {
    let probe = Probe::new(Act::Return(fine()));
    let bench = probe.bench();
    bench.dispatcher.registry().deregister("probe", "probes");
    let result = bench.call("probe", json!({ "n": 1 })).await;
    assert_eq!(json_of(&result)["error"], "`probe` is not available at the moment");
    let unavailable = Probe { available: false, ..probe };
    bench.dispatcher.registry().register(Arc::new(unavailable.clone())).unwrap();
    let result = bench.call("probe", json!({ "n": 1 })).await;
    assert_eq!((result.status, logged(&unavailable.log)), (ToolStatus::Error, Vec::<String>::new()));
}

#[tokio::test]
async fn a_panic_is_an_error_result() {
    let result = Probe::new(Act::Panic).bench().call("probe", json!({ "n": 1 })).await;
    assert_eq!(json_of(&result), json!({ "error": "[TOOL_ERROR] panic: probe: on purpose" }));
    assert_eq!((result.status, result.effect), (ToolStatus::Error, EffectDisposition::Unknown));
}

#[tokio::test]
async fn a_result_that_is_no_object_breaks_the_contract() {
    let output = ToolOutput::done(json!("text"));
    let result = Probe::new(Act::Return(output)).bench().call("probe", json!({ "n": 1 })).await;
    assert_eq!(
        json_of(&result),
        json!({
            "error": "probe gave a string instead of an object",
            "error_type": "tool_result_contract",
            "tool": "probe",
            "result_type": "a string",
        }),
    );
    assert_eq!((result.status, result.effect), (ToolStatus::Error, EffectDisposition::Done));
}

#[tokio::test(start_paused = true)]
async fn a_missed_deadline_stops_the_work() {
    let probe = Probe::new(Act::Hang);
    let bench = probe.bench();
    bench.settings.send_modify(|settings| {
        let timeouts = &mut Arc::make_mut(settings).timeouts;
        timeouts.tools.insert("probe".to_owned(), Some(5.0));
    });
    let begun = tokio::time::Instant::now();
    let result = bench.call("probe", json!({ "n": 1 })).await;
    assert_eq!((result.status, result.effect), (ToolStatus::Timeout, EffectDisposition::Unknown));
    assert_eq!(begun.elapsed(), Duration::from_secs(5 + 3));
    assert_eq!(
        json_of(&result)["error"],
        "probe did not finish within 5 s and was stopped. What it did until then is not known: look before you \
         repeat it",
    );
    probe.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_a_deadline_of_its_own_has_the_default_one() {
    let begun = tokio::time::Instant::now();
    let read_only =
        Probe { traits: ToolTraits { read_only: true, ..ToolTraits::default() }, ..Probe::new(Act::Hang) };
    let result = read_only.bench().call("probe", json!({ "n": 1 })).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(300 + 3));
    assert_eq!((result.status, result.effect), (ToolStatus::Timeout, EffectDisposition::None));
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_a_call_and_keeps_what_it_still_gives_back() {
    let partial = ToolOutput {
        status: ToolStatus::Cancelled,
        effect: EffectDisposition::Unknown,
        ..ToolOutput::looked(json!({ "output": "half", "exit_code": 130 }))
    };
    for (act, want, waits) in [
        (Act::UntilCancelled(partial.clone()), partial.content.clone(), 0),
        (Act::UntilCancelled(fine()), fine().content, 0),
        (
            Act::Hang,
            json!({
                "error": "probe was interrupted: the daemon was shut down. What it did until then is not known: look before you repeat it",
                "status": "cancelled",
            }),
            3,
        ),
    ] {
        let bench = Probe::new(act).bench();
        let mut running = Box::pin(bench.call("probe", json!({ "n": 1 })));
        assert!(futures_util::poll!(&mut running).is_pending());
        let begun = tokio::time::Instant::now();
        bench.cancel.cancel();
        let result = running.await;
        assert_eq!(json_of(&result), want);
        assert_eq!(begun.elapsed().as_secs(), waits);
        assert_eq!(
            result.status,
            if want == fine().content { ToolStatus::Ok } else { ToolStatus::Cancelled }
        );
    }
}

#[tokio::test]
async fn a_call_of_an_interrupted_turn_does_not_begin() {
    let probe = Probe::new(Act::Return(fine()));
    let bench = probe.bench();
    bench.cancel.cancel();
    let result = bench.call("probe", json!({ "n": 1 })).await;
    assert_eq!((result.status, result.effect), (ToolStatus::Cancelled, EffectDisposition::None));
    assert_eq!(logged(&probe.log), Vec::<String>::new());
}

#[tokio::test]
async fn dropping_a_call_stops_the_work_behind_it() {
    let probe = Probe::new(Act::Hang);
    let bench = probe.bench();
    let mut running = Box::pin(bench.call("probe", json!({ "n": 1 })));
    assert!(futures_util::poll!(&mut running).is_pending());
    let stopped = probe.stopped();
    drop(running);
    stopped.await;
    assert!(!bench.cancel.is_cancelled(), "the turn goes on");
}

#[tokio::test]
async fn secrets_are_masked_in_every_text_of_a_result() {
    let output = ToolOutput {
        summary: Some(format!("saw {SECRET}")),
        ..ToolOutput::done(json!({ "list": [{ "text": format!("a\n{SECRET}\nb") }], "n": 1 }))
    };
    let bench = Probe::new(Act::Return(output)).bench();
    let result = bench.call("probe", json!({ "n": 1 })).await;
    assert!(!result.content.contains(SECRET) && !result.summary.unwrap().contains(SECRET));
    assert!(result.content.starts_with("{\"list\":[{\"text\":\"a\\n"), "{}", result.content);
}

#[tokio::test]
async fn a_long_result_goes_to_a_file_and_leaves_a_preview() {
    let lines = (1..=200).map(|n| format!("line {n} {}\n", "=".repeat(100))).collect::<Vec<_>>().concat();
    let output = ToolOutput::done(json!({ "output": lines, "exit_code": 0 }));
    let mut bench = Probe::new(Act::Return(output)).bench();
    bench.limits = ResultLimits::for_window(Some(8_000));
    let result = bench.call("probe", json!({ "n": 1 })).await;
    let file = bench.dispatcher.services().results_dir.join("s1/call_1.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), lines);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert_eq!(result.chars, result.content.chars().count());
    let session = SessionId::parse("s1").unwrap();
    bench.dispatcher.forget_session(&session).await.unwrap();
    assert!(!file.exists());
    bench.dispatcher.forget_session(&session).await.unwrap();
    let shown = result.content.replace(file.to_str().unwrap(), "$FILE");
    insta::assert_snapshot!("persisted_output", shown);
}

#[tokio::test]
async fn a_result_that_cannot_be_saved_is_cut_and_says_so() {
    let output = ToolOutput::done(json!({ "output": "x".repeat(200_000) }));
    let probe = Probe::new(Act::Return(output));
    let bench = Bench::with(vec![Arc::new(probe)], |services| {
        services.results_dir = "/dev/null/none".into();
    });
    let result = bench.call("probe", json!({ "n": 1 })).await;
    assert!(result.content.contains("The rest is lost: it could not be saved"), "{}", result.content);
    assert!(result.chars < 2_500);
}

#[tokio::test]
async fn limits_are_the_setting_then_the_tools_own_then_the_default() {
    let long = |cap| {
        let output = ToolOutput::done(json!({ "text": "x".repeat(20_000) }));
        Probe {
            traits: ToolTraits { result_cap: cap, ..ToolTraits::default() },
            ..Probe::new(Act::Return(output))
        }
    };
    for (cap, overridden, spilled) in [
        (ResultCap::Default, None, false),
        (ResultCap::Chars(10_000), None, true),
        (ResultCap::Chars(10_000), Some(50_000), false),
        (ResultCap::Default, Some(10_000), true),
        (ResultCap::Unlimited, Some(10_000), false),
    ] {
        let bench = long(cap).bench();
        if let Some(chars) = overridden {
            bench.settings.send_modify(|settings| {
                Arc::make_mut(settings).output.overrides.insert("probe".to_owned(), chars);
            });
        }
        let result = bench.call("probe", json!({ "n": 1 })).await;
        assert_eq!(result.content.starts_with("<persisted-output>"), spilled, "{cap:?} {overridden:?}");
    }
}

#[tokio::test]
async fn a_full_batch_spills_what_is_worth_it() {
    for (chars, used, spilled) in [(20_000, 0, false), (20_000, 190_000, true), (1_000, 199_900, false)] {
        let output = ToolOutput::done(json!({ "text": "x".repeat(chars) }));
        let mut bench = Probe::new(Act::Return(output)).bench();
        bench.batch_used = used;
        let result = bench.call("probe", json!({ "n": 1 })).await;
        assert_eq!(result.content.starts_with("<persisted-output>"), spilled, "{chars} {used}");
    }
}

#[tokio::test]
async fn previews_are_one_line_and_never_fail() {
    let bench = Probe::new(Act::Return(fine())).bench();
    let preview =
        |name: &str, arguments: &str| bench.dispatcher.preview(&bench.tools, &call(name, arguments));
    assert_eq!(preview("probe", "{\"n\": 3}"), "n = 3");
    assert_eq!(preview("probe", "{\"n\": 3"), "n = null");
    assert_eq!(preview("unknown thing", "{}"), "");
}

#[tokio::test]
async fn a_plan_knows_names_and_arguments_as_the_pipeline_does() {
    let bench = Bench::new();
    bench.write("a", "x");
    std::os::unix::fs::symlink("a", bench.root.join("link")).unwrap();
    let calls = [
        call("read_file", "{\"path\": \"a\"}"),
        call("ReadFile", "{\"path\": \"b\",}"),
        call("write_file", "{\"path\": \"link\", \"content\": \"\"}"),
        call("search_files", "{\"pattern\": \"x\"}"),
        call("read_file", "{\"path\": \"a"),
        call("terminal", "{\"command\": \"ls\"}"),
    ];
    let segments = bench.dispatcher.plan(&bench.tools, &bench.workspace, &calls);
    let plain: Vec<_> = segments.into_iter().map(|segment| (segment.calls, segment.parallel)).collect();
    assert_eq!(plain, [(0..2, true), (2..6, false)]);
}

#[tokio::test]
async fn the_policy_judges_every_effect() {
    let bench = Bench::new();
    let outside = bench.outside.join("x.txt");
    let hermes = bench.outside.parent().unwrap().join("home/.hermes");
    let theirs = hermes.join("profiles/theirs/skills/x.md");
    std::fs::create_dir_all(hermes.join("profiles/mine")).unwrap();
    std::fs::write(hermes.join("profiles/mine/.env"), "KEY=value\n").unwrap();
    std::os::unix::fs::symlink(&bench.outside, bench.root.join("way_out")).unwrap();
    bench.write(".env", "KEY=value\n");
    let write = |path: &Path| json!({ "path": path, "content": "x" });
    let mut across = write(&theirs);
    across["cross_profile"] = json!(true);
    let edit = json!({ "path": outside, "old_string": "a", "new_string": "b" });
    let own_env = hermes.join("profiles/mine/.env");
    // Name, arguments, and whether it is allowed without and with yolo.
    for (name, arguments, plain, yolo) in [
        ("write_file", write(Path::new("inside.txt")), true, true),
        ("write_file", write(&outside), false, true),
        ("write_file", write(Path::new("../outside/y.txt")), false, true),
        ("write_file", write(Path::new("way_out/z.txt")), false, true),
        ("write_file", write(&own_env), false, false),
        ("write_file", write(&theirs), false, false),
        ("write_file", across, false, true),
        ("write_file", write(Path::new("/etc/hermes-test")), false, false),
        ("patch", edit, false, true),
        ("read_file", json!({ "path": ".env" }), false, false),
        ("read_file", json!({ "path": own_env }), false, false),
        ("read_file", json!({ "path": "/proc/self/environ" }), false, false),
        ("read_file", json!({ "path": "/dev/zero" }), false, false),
        ("terminal", json!({ "command": "ls" }), true, true),
        ("terminal", json!({ "command": "rm -rf x" }), false, true),
    ] {
        for (yolo, allowed) in [(false, plain), (true, yolo)] {
            let cx = CallCx { yolo, ..bench.cx() };
            let result = bench.dispatcher.call(cx, &call(name, &arguments.to_string())).await;
            let blocked = result.status == ToolStatus::Blocked;
            assert_eq!(!blocked, allowed, "{name} {arguments} yolo {yolo}: {}", result.content);
        }
    }
}

#[tokio::test]
async fn a_refused_command_has_the_shape_of_a_commands_result() {
    let bench = Bench::new();
    let value = bench.json("terminal", json!({ "command": "rm -rf x" })).await;
    assert_eq!(
        (&value["output"], &value["exit_code"], &value["status"]),
        (&json!(""), &json!(-1), &json!("blocked"))
    );
    assert!(value["error"].as_str().unwrap().contains("needs approval"));
    assert!(bench.backend.specs.lock().unwrap().is_empty());
}

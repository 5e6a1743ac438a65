//! Calls that run at the same time: how many, in which order they are told, and how they end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermes_core::{EventPayload, InterruptCause, ToolStatus};
use hermes_engine::InterruptInput;
use hermes_tools::ToolOutput;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::sync::{Barrier, Notify, watch};

use crate::kit::{Act, Bench, calls, results_since_user, says, until_complete};

/// Longer than any test takes.
const NEVER: f64 = 600.0;

/// A model that asks for so many calls at once, and then is done.
fn batch_of(
    count: usize,
) -> impl Fn(&[Arc<hermes_core::Message>]) -> hermes_providers::ModelResponse + Send + Sync {
    move |rows| if results_since_user(rows) == 0 { calls(0..count) } else { says("done") }
}

fn number(arguments: &serde_json::Value) -> usize {
    usize::try_from(arguments["n"].as_u64().unwrap()).unwrap()
}

#[tokio::test]
async fn eight_calls_work_at_the_same_time_and_no_more() {
    let meeting = Arc::new(Barrier::new(8));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = Arc::clone(&most);
    let act: Arc<Act> = Arc::new(move |_, _| {
        let (meeting, now, most) = (Arc::clone(&meeting), Arc::clone(&now), Arc::clone(&most));
        Box::pin(async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Ends only when seven others are here.
            meeting.wait().await;
            now.fetch_sub(1, Ordering::SeqCst);
            ToolOutput::done(json!({ "met": true }))
        })
    });
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(dir.path(), batch_of(24), act, NEVER).await;
    let id = bench.session().await;
    let (result, _) = bench.turn(&id, "go").await;
    assert_eq!((result.final_response.as_deref(), result.tool_calls), (Some("done"), 24));
    assert_eq!(peak.load(Ordering::SeqCst), 8);
    bench.end().await;
}

#[tokio::test]
async fn results_are_told_in_the_models_order_whatever_finishes_first() {
    // Call n ends after call n + 1 has.
    let (ended, _keep) = watch::channel(5_usize);
    let ended = Arc::new(ended);
    let act: Arc<Act> = Arc::new(move |_, arguments| {
        let ended = Arc::clone(&ended);
        Box::pin(async move {
            let n = number(&arguments);
            ended.subscribe().wait_for(|last| *last == n + 1).await.unwrap();
            ended.send_replace(n);
            ToolOutput::done(json!({ "n": n }))
        })
    });
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(dir.path(), batch_of(5), act, NEVER).await;
    let id = bench.session().await;
    let (_, events) = bench.turn(&id, "go").await;
    let told: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.payload {
            EventPayload::ToolStart { tool_id, .. } => Some(format!("start {tool_id}")),
            EventPayload::ToolComplete(done) => Some(format!("complete {}", done.tool_id)),
            _ => None,
        })
        .collect();
    let want: Vec<String> = ["start", "complete"]
        .into_iter()
        .flat_map(|what| (0..5).map(move |n| format!("{what} call_{n}")))
        .collect();
    assert_eq!(told, want);
    let rows: Vec<String> = bench.tool_rows(&id).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(rows, (0..5).map(|n| format!("call_{n}")).collect::<Vec<_>>());
    bench.end().await;
}

#[tokio::test]
async fn when_the_batchs_time_is_over_what_is_done_stays_and_the_rest_is_unknown() {
    let act: Arc<Act> = Arc::new(|cx, arguments| {
        Box::pin(async move {
            if number(&arguments) == 1 {
                cx.cancel.cancelled().await;
                return ToolOutput {
                    status: ToolStatus::Cancelled,
                    effect: hermes_core::EffectDisposition::Unknown,
                    ..ToolOutput::looked(json!({ "error": "stopped in the middle" }))
                };
            }
            ToolOutput::done(json!({ "fine": true }))
        })
    });
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(dir.path(), batch_of(3), act, 0.2).await;
    let id = bench.session().await;
    let (result, events) = bench.turn(&id, "go").await;
    assert_eq!(result.final_response.as_deref(), Some("done"), "the turn goes on");
    let statuses: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.payload {
            EventPayload::ToolComplete(done) => Some(done.status.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, ["ok", "timeout", "ok"]);
    let effects: Vec<&str> = bench.tool_rows(&id).await.into_iter().map(|(_, effect)| effect).collect();
    assert_eq!(effects, ["done", "unknown", "done"]);
    bench.end().await;
}

#[tokio::test]
async fn an_interrupt_ends_what_runs_and_begins_nothing_more() {
    let running = Arc::new((AtomicUsize::new(0), Notify::new()));
    let seen = Arc::clone(&running);
    let act: Arc<Act> = Arc::new(move |cx, _| {
        let running = Arc::clone(&running);
        Box::pin(async move {
            running.0.fetch_add(1, Ordering::SeqCst);
            running.1.notify_one();
            cx.cancel.cancelled().await;
            std::future::pending().await
        })
    });
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(dir.path(), batch_of(10), act, NEVER).await;
    let id = bench.session().await;
    let mut watch = bench.watch(&id).await;
    bench.submit(&id, "go").await;
    while seen.0.load(Ordering::SeqCst) < 8 {
        tokio::time::timeout(Duration::from_secs(20), seen.1.notified()).await.unwrap();
    }
    let input = InterruptInput { session_id: id.clone(), turn_id: None, cause: InterruptCause::NewMessage };
    assert!(bench.engine.interrupt(input).await.unwrap());
    let (_, events) = until_complete(&mut watch).await;
    assert_eq!(seen.0.load(Ordering::SeqCst), 8);
    let rows = bench.tool_rows(&id).await;
    let effects: Vec<&str> = rows.iter().map(|(_, effect)| *effect).collect();
    assert_eq!(effects, [["unknown"; 8].as_slice(), &["none"; 2]].concat());
    for event in &events {
        if let EventPayload::ToolComplete(done) = &event.payload {
            assert_eq!(done.status, ToolStatus::Cancelled);
            // Nobody is blamed who did not do it.
            assert!(done.result.contains("a new message came"), "{}", done.result);
        }
    }
    bench.end().await;
}

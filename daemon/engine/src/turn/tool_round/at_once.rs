//! Several calls at the same time, with the outcome of running them one after the other (spec 10 §10.3).
//!
//! Calls begin in the model's order and work side by side; their results are settled and recorded
//! in the model's order, each as soon as all before it are. So hooks, guardrail, policy, questions
//! to a person and the room for results see the same as if nothing had run at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hermes_core::ToolCall;
use hermes_state::StateError;
use hermes_tools::{Begun, Dispatcher, StopSignal, Worked};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::turn::Turn;
use crate::turn::tool_round::record::refused;
use crate::turn::tool_round::{Announce, Round};

/// Calls that work at the same time, at most.
const WORKERS: usize = 8;

pub(super) async fn run(
    round: &mut Round<'_>,
    turn: &mut Turn,
    calls: Range<usize>,
) -> Result<(), StateError> {
    let began = Instant::now();
    let stop = round.call_cx.stop.for_batch();
    // As many as there are calls, so it never fills.
    let (finished, mut arriving) = mpsc::channel(calls.len().max(1));
    let workers = Workers::new(round, &calls, &stop);
    let working = workers.run(finished);
    let recording = async {
        let recorded = record_all(round, turn, calls, &mut arriving, &stop).await;
        if recorded.is_err() {
            // Nothing goes on from memory alone: what still works is stopped.
            stop.token().cancel();
        }
        recorded
    };
    let (run, recorded) = tokio::join!(working, recording);
    turn.tool_calls += run;
    turn.tools_s += began.elapsed().as_secs_f64();
    recorded
}

/// Settles and records results in the model's order, as they come in any.
async fn record_all(
    round: &mut Round<'_>,
    turn: &mut Turn,
    calls: Range<usize>,
    arriving: &mut mpsc::Receiver<(usize, Worked)>,
    stop: &StopSignal,
) -> Result<(), StateError> {
    let mut waiting = BTreeMap::new();
    for place in calls {
        let Some(planned) = round.calls.get(place) else { continue };
        let result = if let Some(refusal) = &planned.refusal {
            round.announce(&planned.call);
            refused(&planned.call, refusal)
        } else {
            let worked = loop {
                if let Some(worked) = waiting.remove(&place) {
                    break worked;
                }
                match arriving.recv().await {
                    Some((at, worked)) => waiting.insert(at, worked),
                    // The workers answer for every call before they end.
                    None => return Ok(()),
                };
            };
            let call_cx = round.for_call(stop);
            round.dispatcher().settle(&call_cx, &planned.call, worked).await
        };
        round.record(turn, place, result).await?;
    }
    Ok(())
}

/// A call that is on its way through the stages before its work.
type Beginning<'a> = Pin<Box<dyn Future<Output = (usize, Begun)> + Send + 'a>>;

/// Begins the calls in order and lets them work, so many at a time. Owns what it needs, since the results are
/// recorded meanwhile.
struct Workers {
    dispatcher: Dispatcher,
    call_cx: hermes_tools::CallCx,
    calls: Vec<(usize, ToolCall)>,
    announce: Announce,
    limit: Option<std::time::Duration>,
}

impl Workers {
    fn new(round: &Round<'_>, calls: &Range<usize>, stop: &StopSignal) -> Self {
        let dispatcher = round.dispatcher().clone();
        let limit = dispatcher.services().settings.borrow().timeouts.batch();
        let to_run = calls.clone().filter_map(|place| Some((place, round.calls.get(place)?)));
        let to_run = to_run.filter(|(_, planned)| planned.refusal.is_none());
        Self {
            call_cx: round.for_call(stop),
            calls: to_run.map(|(place, planned)| (place, planned.call.clone())).collect(),
            announce: round.announcer(),
            limit,
            dispatcher,
        }
    }

    /// Runs all, and says how many of them began before anybody said stop.
    async fn run(self, finished: mpsc::Sender<(usize, Worked)>) -> u32 {
        let Self { dispatcher, call_cx, calls, announce, limit } = &self;
        let stop = &call_cx.stop;
        let mut time = std::pin::pin!(call_cx.patience.elapsed(*limit));
        let mut time_is_over = false;
        let mut next = calls.iter();
        let mut beginning: Option<Beginning<'_>> = None;
        let mut working = FuturesUnordered::new();
        let mut run = 0;
        loop {
            if beginning.is_none()
                && working.len() < WORKERS
                && let Some((place, call)) = next.next()
            {
                announce(call);
                run += u32::from(stop.reason().is_none());
                beginning = Some(Box::pin(async move { (*place, dispatcher.begin(call_cx, call).await) }));
            }
            if beginning.is_none() && working.is_empty() {
                return run;
            }
            tokio::select! {
                biased;
                (place, begun) = begun(&mut beginning) => {
                    beginning = None;
                    working.push(async move { (place, dispatcher.work(begun).await) });
                }
                Some(done) = working.next() => {
                    // Nobody listens any more when a row could not be written.
                    let _ = finished.send(done).await;
                }
                limit = &mut time, if !time_is_over => {
                    time_is_over = true;
                    stop.time_is_over(limit);
                }
            }
        }
    }
}

/// Pends for ever while nothing begins, so that it can stand in a `select!`.
async fn begun(beginning: &mut Option<Beginning<'_>>) -> (usize, Begun) {
    match beginning {
        Some(beginning) => beginning.await,
        None => std::future::pending().await,
    }
}

//! One session's event stream: numbering, the replay ring and the watchers (contract §4).
//!
//! Emitting never waits. A watcher that does not keep up loses deltas first; one that does not
//! even take its final events is cut off, and learns of the gap when it attaches again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hermes_core::{Clock, Epoch, Event, EventPayload, SessionId, TurnId};
// std's mutex: every section is short and none holds across an await.
use std::sync::Mutex;
use tokio::sync::Notify;

use crate::api::{Inflight, SharedEvent};

/// Events kept for replay, at most, per session.
const RING_EVENTS: usize = 2_000;
/// Bytes kept for replay, at most, per session.
const RING_BYTES: usize = 256 * 1024;
/// Bytes kept for replay over all sessions; each live session gets an equal share when that is less.
const RINGS_BYTES: usize = 64 * 1024 * 1024;
/// Events a watcher may have waiting before its deltas are dropped.
const WATCHER_SOFT_EVENTS: usize = 1_024;
/// Events a watcher may have waiting before it is cut off.
const WATCHER_HARD_EVENTS: usize = 8_192;

/// How many streams exist, so that the rings can share their total.
#[derive(Debug, Default)]
pub(crate) struct StreamCount(AtomicUsize);

/// The event stream of one live session.
#[derive(Debug)]
pub(crate) struct SessionStream {
    session_id: SessionId,
    epoch: Epoch,
    clock: Arc<dyn Clock>,
    count: Arc<StreamCount>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last_seq: u64,
    ring: VecDeque<RingEntry>,
    ring_bytes: usize,
    watchers: Vec<Arc<WatcherQueue>>,
    inflight: Option<Inflight>,
}

/// Deltas of one block are merged in place; `pieces` remembers where each of them began, so that
/// a client that saw half of them gets the other half.
#[derive(Debug)]
enum RingEntry {
    One(SharedEvent),
    Text(MergedText),
}

#[derive(Debug)]
struct MergedText {
    kind: DeltaKind,
    turn_id: Option<TurnId>,
    time: hermes_core::Instant,
    text: String,
    /// (sequence number, byte offset of its text)
    pieces: Vec<(u64, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeltaKind {
    Message,
    Reasoning,
}

impl DeltaKind {
    fn of(payload: &EventPayload) -> Option<(Self, &str)> {
        match payload {
            EventPayload::MessageDelta { text } => Some((Self::Message, text)),
            EventPayload::ReasoningDelta { text } => Some((Self::Reasoning, text)),
            _ => None,
        }
    }

    fn payload(self, text: String) -> EventPayload {
        match self {
            Self::Message => EventPayload::MessageDelta { text },
            Self::Reasoning => EventPayload::ReasoningDelta { text },
        }
    }
}

impl RingEntry {
    fn first_seq(&self) -> u64 {
        match self {
            Self::One(event) => event.seq,
            Self::Text(merged) => merged.pieces.first().map_or(0, |(seq, _)| *seq),
        }
    }

    fn last_seq(&self) -> u64 {
        match self {
            Self::One(event) => event.seq,
            Self::Text(merged) => merged.pieces.last().map_or(0, |(seq, _)| *seq),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::One(event) => payload_bytes(&event.payload),
            Self::Text(merged) => merged.text.len() + merged.pieces.len() * 16 + 96,
        }
    }

    fn replay(&self, session_id: &SessionId, after_seq: u64) -> Option<SharedEvent> {
        match self {
            Self::One(event) => (event.seq > after_seq).then(|| Arc::clone(event)),
            Self::Text(merged) => {
                let (_, from) = *merged.pieces.iter().find(|(seq, _)| *seq > after_seq)?;
                let text = merged.text.get(from..)?.to_owned();
                Some(Arc::new(Event {
                    session_id: session_id.clone(),
                    seq: self.last_seq(),
                    turn_id: merged.turn_id.clone(),
                    time: merged.time,
                    payload: merged.kind.payload(text),
                }))
            }
        }
    }
}

impl SessionStream {
    pub(crate) fn new(
        session_id: SessionId,
        epoch: Epoch,
        clock: Arc<dyn Clock>,
        count: Arc<StreamCount>,
    ) -> Self {
        count.0.fetch_add(1, Ordering::Relaxed);
        Self { session_id, epoch, clock, count, inner: Mutex::default() }
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Numbers the event, keeps it for replay and hands it to every watcher.
    pub(crate) fn emit(&self, turn_id: Option<&TurnId>, payload: EventPayload) {
        let time = self.clock.now();
        let mut inner = self.lock();
        inner.last_seq += 1;
        let event = Arc::new(Event {
            session_id: self.session_id.clone(),
            seq: inner.last_seq,
            turn_id: turn_id.cloned(),
            time,
            payload,
        });
        inner.follow(&event.payload);
        inner.keep(&event);
        let share = RINGS_BYTES / self.count.0.load(Ordering::Relaxed).max(1);
        inner.trim(RING_BYTES.min(share));
        inner.watchers.retain(|watcher| watcher.push(&event));
    }

    /// Notes that a turn runs, for clients that attach in the middle of it.
    pub(crate) fn begin_turn(&self, turn_id: &TurnId, user: &str) {
        self.lock().inflight = Some(Inflight {
            turn_id: turn_id.clone(),
            user: user.to_owned(),
            assistant: String::new(),
            streaming: false,
        });
    }

    /// Notes that no turn runs any more.
    pub(crate) fn end_turn(&self) {
        self.lock().inflight = None;
    }

    /// The running turn as far as it got.
    pub(crate) fn inflight(&self) -> Option<Inflight> {
        self.lock().inflight.clone()
    }

    /// Visible text of the running turn that is not a row yet.
    pub(crate) fn streamed_text(&self) -> String {
        self.lock().inflight.as_ref().map_or_else(String::new, |inflight| inflight.assistant.clone())
    }

    /// Starts a watcher. With `after`, it first gets what the ring still holds after that number;
    /// the second value says whether something was missed.
    pub(crate) fn watch(self: &Arc<Self>, after: Option<u64>) -> (Watch, Position) {
        let mut inner = self.lock();
        let first_seq = inner.ring.front().map_or(inner.last_seq + 1, RingEntry::first_seq);
        let last_seq = inner.last_seq;
        let gap = after.is_none_or(|seq| seq + 1 < first_seq || seq > last_seq);
        let queue = Arc::new(WatcherQueue::default());
        if let Some(seq) = after.filter(|_| !gap) {
            let missed = inner.ring.iter().filter_map(|entry| entry.replay(&self.session_id, seq));
            queue.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(missed);
        }
        inner.watchers.push(Arc::clone(&queue));
        let watch = Watch { queue, stream: Arc::clone(self), on_drop: None };
        (watch, Position { first_seq, last_seq, gap })
    }

    pub(crate) fn watcher_count(&self) -> usize {
        self.lock().watchers.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A panic while holding the lock leaves a ring that is still well formed.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        self.count.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    /// Keeps the running turn's visible text up to date; what became a row is no longer in flight.
    fn follow(&mut self, payload: &EventPayload) {
        let Some(inflight) = self.inflight.as_mut() else { return };
        match payload {
            EventPayload::MessageDelta { text } => {
                inflight.assistant.push_str(text);
                inflight.streaming = true;
            }
            EventPayload::MessageInterim { .. } | EventPayload::ToolStart { .. } => {
                inflight.assistant.clear();
                inflight.streaming = false;
            }
            _ => {}
        }
    }

    fn keep(&mut self, event: &SharedEvent) {
        if let Some((kind, text)) = DeltaKind::of(&event.payload) {
            if let Some(RingEntry::Text(merged)) = self.ring.back_mut()
                && merged.kind == kind
                && merged.turn_id == event.turn_id
            {
                merged.pieces.push((event.seq, merged.text.len()));
                merged.text.push_str(text);
                self.ring_bytes += text.len() + 16;
                return;
            }
            self.push(RingEntry::Text(MergedText {
                kind,
                turn_id: event.turn_id.clone(),
                time: event.time,
                text: text.to_owned(),
                pieces: vec![(event.seq, 0)],
            }));
        } else {
            self.push(RingEntry::One(Arc::clone(event)));
        }
    }

    fn push(&mut self, entry: RingEntry) {
        self.ring_bytes += entry.bytes();
        self.ring.push_back(entry);
    }

    fn trim(&mut self, max_bytes: usize) {
        while self.ring.len() > RING_EVENTS || (self.ring_bytes > max_bytes && self.ring.len() > 1) {
            if let Some(oldest) = self.ring.pop_front() {
                self.ring_bytes = self.ring_bytes.saturating_sub(oldest.bytes());
            }
        }
    }
}

/// Where the stream stands when a watcher begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) gap: bool,
}

#[derive(Debug, Default)]
struct WatcherQueue {
    waiting: Mutex<VecDeque<SharedEvent>>,
    arrived: Notify,
    cut_off: AtomicBool,
}

impl WatcherQueue {
    /// `false` cuts the watcher off.
    fn push(&self, event: &SharedEvent) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if waiting.len() >= WATCHER_SOFT_EVENTS {
            if event.payload.is_delta() {
                return true;
            }
            waiting.retain(|queued| !queued.payload.is_delta());
        }
        if waiting.len() >= WATCHER_HARD_EVENTS {
            self.cut_off.store(true, Ordering::Release);
            self.arrived.notify_one();
            return false;
        }
        waiting.push_back(Arc::clone(event));
        drop(waiting);
        self.arrived.notify_one();
        true
    }
}

/// Called once when a watcher leaves.
type OnDrop = Box<dyn FnOnce() + Send>;

/// A watcher of one session. Dropping it detaches.
pub struct Watch {
    queue: Arc<WatcherQueue>,
    stream: Arc<SessionStream>,
    on_drop: Option<OnDrop>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("session_id", &self.stream.session_id).finish_non_exhaustive()
    }
}

impl Watch {
    /// The next event; `None` when this watcher was too slow and must attach again.
    ///
    /// Cancel-safe: an event is taken only when it is returned.
    pub async fn next(&mut self) -> Option<SharedEvent> {
        loop {
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            if self.queue.cut_off.load(Ordering::Acquire) {
                return None;
            }
            self.queue.arrived.notified().await;
        }
    }

    /// The next event if one waits already.
    pub fn try_next(&mut self) -> Option<SharedEvent> {
        self.queue.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front()
    }

    pub(crate) fn set_on_drop(&mut self, on_drop: OnDrop) {
        self.on_drop = Some(on_drop);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stream.lock().watchers.retain(|watcher| !Arc::ptr_eq(watcher, &self.queue));
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
    }
}

/// A rough size, for the ring's bound.
fn payload_bytes(payload: &EventPayload) -> usize {
    let text = match payload {
        EventPayload::MessageDelta { text }
        | EventPayload::ReasoningDelta { text }
        | EventPayload::ReasoningAvailable { text }
        | EventPayload::ThinkingDelta { text }
        | EventPayload::MessageInterim { text, .. }
        | EventPayload::SessionNotice { text }
        | EventPayload::StatusUpdate { text, .. }
        | EventPayload::NotificationShow { text, .. } => text.len(),
        EventPayload::ToolComplete(done) => {
            done.result.len() + done.args.as_str().len() + done.inline_diff.as_ref().map_or(0, String::len)
        }
        EventPayload::ToolStart { context, .. } => context.len(),
        EventPayload::MessageComplete(done) => {
            done.result.final_response.as_ref().map_or(0, String::len)
                + done.result.last_reasoning.as_ref().map_or(0, String::len)
        }
        EventPayload::InputState { queue } => queue.iter().map(|input| input.text.len()).sum(),
        _ => 0,
    };
    text + 96
}

#[cfg(test)]
mod tests {
    use hermes_core::SystemClock;
    use pretty_assertions::assert_eq;

    use super::*;

    fn stream() -> Arc<SessionStream> {
        Arc::new(SessionStream::new(
            SessionId::parse("s1").unwrap(),
            Epoch::from_wire("e1"),
            Arc::new(SystemClock),
            Arc::default(),
        ))
    }

    fn delta(text: &str) -> EventPayload {
        EventPayload::MessageDelta { text: text.into() }
    }

    fn drain(watch: &mut Watch) -> Vec<(u64, EventPayload)> {
        std::iter::from_fn(|| watch.try_next()).map(|event| (event.seq, event.payload.clone())).collect()
    }

    #[test]
    fn a_client_that_saw_half_of_merged_deltas_gets_the_other_half() {
        let stream = stream();
        for text in ["a", "b", "c"] {
            stream.emit(None, delta(text));
        }
        let (mut watch, position) = stream.watch(Some(1));
        assert_eq!(position, Position { first_seq: 1, last_seq: 3, gap: false });
        assert_eq!(drain(&mut watch), [(3, delta("bc"))]);
    }

    #[test]
    fn a_first_attach_and_a_number_that_left_the_ring_are_gaps() {
        let stream = stream();
        for _ in 0..=RING_EVENTS {
            stream.emit(None, EventPayload::AgentStep { iteration: 1 });
        }
        assert!(stream.watch(None).1.gap);
        assert!(stream.watch(Some(0)).1.gap);
        assert!(!stream.watch(Some(1)).1.gap);
        assert!(stream.watch(Some(99_999)).1.gap, "a number from the future is of another life");
    }

    #[test]
    fn a_slow_watcher_loses_deltas_but_no_final_event() {
        let stream = stream();
        let (mut watch, _) = stream.watch(None);
        for _ in 0..WATCHER_SOFT_EVENTS * 2 {
            stream.emit(None, delta("x"));
        }
        for iteration in 0..10 {
            stream.emit(None, EventPayload::AgentStep { iteration });
        }
        let steps = drain(&mut watch)
            .into_iter()
            .filter(|(_, payload)| matches!(payload, EventPayload::AgentStep { .. }))
            .count();
        assert_eq!(steps, 10);
    }

    #[tokio::test]
    async fn a_watcher_that_takes_nothing_is_cut_off() {
        let stream = stream();
        let (mut watch, _) = stream.watch(None);
        for iteration in 0..=u32::try_from(WATCHER_HARD_EVENTS).unwrap() {
            stream.emit(None, EventPayload::AgentStep { iteration });
        }
        assert_eq!(stream.watcher_count(), 0);
        while watch.try_next().is_some() {}
        assert!(watch.next().await.is_none());
    }

    #[test]
    fn the_ring_is_bounded_in_bytes() {
        let stream = stream();
        for _ in 0..100 {
            stream.emit(None, EventPayload::SessionNotice { text: "x".repeat(10_000) });
        }
        let inner = stream.lock();
        assert!(inner.ring_bytes <= RING_BYTES);
        assert_eq!(inner.ring_bytes, inner.ring.iter().map(RingEntry::bytes).sum::<usize>());
    }
}

//! A live session: its handle, its actor, and how it comes to life.

mod actor;
mod facts;
mod git;
mod queue;

use std::sync::Arc;

use hermes_core::{InterruptCause, QueuedInput, SessionId, SessionInfo, TurnId, TurnResult};
use tokio::sync::{mpsc, oneshot};

use crate::api::{EngineError, SubmitInput, Submitted};
use crate::stream::SessionStream;

pub(crate) use actor::SessionActor;
pub(crate) use facts::SessionFacts;
pub(crate) use queue::Waiting;

/// Commands that may wait in an actor's mailbox; a sender waits for a place.
const MAILBOX: usize = 64;

/// What a session can be asked. Every command with an answer carries its own reply channel.
#[derive(Debug)]
pub(crate) enum Command {
    Submit {
        input: Box<SubmitInput>,
        reply: oneshot::Sender<Result<Submitted, EngineError>>,
    },
    Steer {
        text: String,
        reply: oneshot::Sender<bool>,
    },
    Interrupt {
        turn_id: Option<TurnId>,
        cause: InterruptCause,
        reply: oneshot::Sender<bool>,
    },
    Describe {
        reply: oneshot::Sender<Description>,
    },
    FindResult {
        turn_id: TurnId,
        reply: oneshot::Sender<Option<Arc<TurnResult>>>,
    },
    /// A background process speaks; answers whether the notice is durable.
    Notice {
        waiting: Box<Waiting>,
        reply: oneshot::Sender<bool>,
    },
    /// A watcher detached.
    WatcherLeft,
    /// Start what waits in the durable queue.
    WakeQueue,
    /// End the actor if nothing runs, waits or watches; answers whether it did.
    CloseIfIdle {
        reply: oneshot::Sender<bool>,
    },
}

/// A session as others see it.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) info: SessionInfo,
    pub(crate) queue: Vec<QueuedInput>,
}

/// How callers reach a live session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    pub(crate) id: SessionId,
    pub(crate) stream: Arc<SessionStream>,
    pub(crate) mailbox: mpsc::Sender<Command>,
    pub(crate) activity: Arc<Activity>,
}

/// Facts about an actor that the registry reads without asking it.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) running: std::sync::atomic::AtomicBool,
    pub(crate) queued: std::sync::atomic::AtomicU32,
    /// Rises with every use; the smallest is unloaded first.
    pub(crate) last_used: std::sync::atomic::AtomicU64,
}

impl SessionHandle {
    pub(crate) fn new(id: SessionId, stream: Arc<SessionStream>) -> (Self, mpsc::Receiver<Command>) {
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        (Self { id, stream, mailbox, activity: Arc::default() }, inbox)
    }

    /// Sends a command and waits for its answer; `None` when the actor has ended.
    pub(crate) async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(command(reply)).await.ok()?;
        answer.await.ok()
    }
}

//! The services of the contract. A handler reads the request, calls the engine and writes the answer.

mod control;
mod policy;
mod prompts;
mod sessions;
mod tools;
mod turns;

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

use crate::deps::ServerDeps;
use crate::peer::{ConfinedSessions, Grant};
use crate::policy_desk::WaitingEdit;

/// What all services share.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) deps: ServerDeps,
    /// What clients of the agent's own have created.
    pub(crate) confined: ConfinedSessions,
    /// Cancelled when open streams must end with the daemon.
    stop: CancellationToken,
}

impl Services {
    pub(crate) fn new(deps: ServerDeps, stop: CancellationToken) -> Self {
        Self { deps, confined: ConfinedSessions::default(), stop }
    }

    /// What every user must know who opens a session: edits of the settings that are not in force.
    pub(crate) fn waiting_edits(&self) -> Vec<String> {
        self.deps.policy.waiting().iter().map(WaitingEdit::warning).collect()
    }
}

#[derive(Debug)]
pub(crate) struct ControlService(pub(crate) Arc<Services>);
#[derive(Debug)]
pub(crate) struct SessionsService(pub(crate) Arc<Services>);
#[derive(Debug)]
pub(crate) struct TurnsService(pub(crate) Arc<Services>);
#[derive(Debug)]
pub(crate) struct PolicyService(pub(crate) Arc<Services>);
#[derive(Debug)]
pub(crate) struct PromptsService(pub(crate) Arc<Services>);
#[derive(Debug)]
pub(crate) struct ToolsService(pub(crate) Arc<Services>);

/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The rights that the gate attached.
fn grant<T>(request: &Request<T>) -> Result<&Grant, Status> {
    request.extensions().get().ok_or_else(|| Status::permission_denied("this connection has no known peer"))
}

/// How a stream ends with the daemon: clients connect again.
fn ended() -> Status {
    Status::unavailable("the daemon is shutting down; connect again")
}

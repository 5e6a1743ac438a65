//! The services of the contract. A handler reads the request, calls the engine and writes the answer.

mod control;
mod prompts;
mod sessions;
mod turns;

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use hermes_core::Principal;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

use crate::deps::ServerDeps;
use crate::peer::Grant;

/// What all services share.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) deps: ServerDeps,
    /// Cancelled when open streams must end with the daemon.
    stop: CancellationToken,
}

impl Services {
    pub(crate) fn new(deps: ServerDeps, stop: CancellationToken) -> Self {
        Self { deps, stop }
    }
}

#[derive(Debug)]
pub(crate) struct ControlService(pub(crate) Arc<Services>);
#[derive(Debug)]
pub(crate) struct SessionsService(pub(crate) Arc<Services>);
#[derive(Debug)]
pub(crate) struct TurnsService(pub(crate) Arc<Services>);
#[derive(Debug)]
pub(crate) struct PromptsService(pub(crate) Arc<Services>);

/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The rights that the gate attached.
fn grant<T>(request: &Request<T>) -> Result<&Grant, Status> {
    request.extensions().get().ok_or_else(|| Status::permission_denied("this connection has no known peer"))
}

/// The caller, as turns know it.
fn principal<T>(request: &Request<T>) -> Result<Principal, Status> {
    Ok(grant(request)?.principal.clone())
}

/// How a stream ends with the daemon: clients connect again.
fn ended() -> Status {
    Status::unavailable("the daemon is shutting down; connect again")
}

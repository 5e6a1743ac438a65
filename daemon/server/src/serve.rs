//! Serving: connections in, calls through the gate, and an end that waits for open streams only briefly.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use hermes_proto::MAX_MESSAGE_BYTES;
use hermes_proto::v1::control_server::ControlServer;
use hermes_proto::v1::policy_server::PolicyServer;
use hermes_proto::v1::prompts_server::PromptsServer;
use hermes_proto::v1::sessions_server::SessionsServer;
use hermes_proto::v1::tools_server::ToolsServer;
use hermes_proto::v1::turns_server::TurnsServer;
use hermes_runtime::kin::Family;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::clients::Clients;
use crate::deps::ServerDeps;
use crate::gate::GateLayer;
use crate::peer::PeerStream;
use crate::service::{
    ControlService, PolicyService, PromptsService, Services, SessionsService, ToolsService, TurnsService,
};

/// Streams that one connection may have open: a client may watch as many sessions as it likes.
const MAX_STREAMS: u32 = 10_000;
/// Streams that a client may give up before they were looked at.
const RESETS: usize = 10_000;
/// Pause after a failed accept (usually: too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long open connections get to close after the end was announced on their streams.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// The server ended by a fault.
#[derive(Debug, thiserror::Error)]
#[error("the socket's server failed")]
pub struct ServeError(#[from] tonic::transport::Error);

/// Serves calls on `listener` until `stop` is cancelled; then ends open streams with a word to their
/// clients and returns at the latest two seconds later.
///
/// The caller owns the listener and the token, so that tests need neither ports nor signals.
pub async fn serve(
    deps: ServerDeps,
    listener: UnixListener,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let (clients, family) = (deps.clients.clone(), deps.family.clone());
    let services = Arc::new(Services::new(deps, stop.clone()));
    let router = Server::builder()
        .max_concurrent_streams(Some(MAX_STREAMS))
        // A client that leaves many sessions at once is no attack.
        .http2_max_pending_accept_reset_streams(Some(RESETS))
        .layer(GateLayer { clients: clients.clone() })
        .add_service(
            ControlServer::new(ControlService(Arc::clone(&services)))
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
        .add_service(
            SessionsServer::new(SessionsService(Arc::clone(&services)))
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
        .add_service(
            TurnsServer::new(TurnsService(Arc::clone(&services)))
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
        .add_service(
            PolicyServer::new(PolicyService(Arc::clone(&services)))
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
        .add_service(
            ToolsServer::new(ToolsService(Arc::clone(&services)))
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
        .add_service(
            PromptsServer::new(PromptsService(services))
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        );
    let serving = router
        .serve_with_incoming_shutdown(connections(listener, clients, family), stop.clone().cancelled_owned());
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(CLOSE_GRACE).await;
    };
    tokio::select! {
        served = serving => Ok(served?),
        () = overdue => Ok(()),
    }
}

/// Accepted connections. A failed accept is logged and tried again: it must not end the daemon.
fn connections(
    listener: UnixListener,
    clients: Clients,
    family: Family,
) -> impl Stream<Item = io::Result<PeerStream>> {
    let own_uid = nix::unistd::geteuid().as_raw();
    futures_util::stream::unfold((listener, clients, family), move |(listener, clients, family)| async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let peer = PeerStream::new(stream, own_uid, &clients, &family);
                    return Some((Ok(peer), (listener, clients, family)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

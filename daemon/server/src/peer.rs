//! Who stands at the other end of a connection, and what that lets them do.
//!
//! What a connection may do is data ([`Access`]), decided once when it is accepted and looked up by
//! every call. Today the rule is short: the daemon's own user has scope `admin`, every other user is
//! refused. Ancestry and service units (contract §7) narrow [`judge`] without touching its callers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hermes_core::{Principal, Scope};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tonic::transport::server::Connected;

use crate::clients::{ClientGuard, Clients};

/// A peer as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) uid: u32,
}

/// What a connection may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    Granted(Grant),
    /// Every call is answered by this reason.
    Refused(String),
}

/// The rights of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) scope: Scope,
    pub(crate) principal: Principal,
}

/// Decides what a local peer may do. `own_uid` is the daemon's user.
pub(crate) fn judge(peer: Result<Credentials, io::Error>, own_uid: u32) -> Access {
    match peer {
        Ok(peer) if peer.uid == own_uid => {
            Access::Granted(Grant { scope: Scope::Admin, principal: Principal::Owner })
        }
        Ok(peer) => Access::Refused(format!(
            "this daemon serves user {own_uid}, and you are user {}; run the client as the daemon's user, \
             or use a profile of your own",
            peer.uid
        )),
        Err(error) => Access::Refused(format!("the system does not say who you are: {error}")),
    }
}

/// An accepted connection that knows its peer and counts as a client while it is open.
#[derive(Debug)]
pub(crate) struct PeerStream {
    stream: UnixStream,
    access: Access,
    _counted: ClientGuard,
}

impl PeerStream {
    pub(crate) fn new(stream: UnixStream, own_uid: u32, clients: &Clients) -> Self {
        let credentials = stream.peer_cred().map(|cred| Credentials { uid: cred.uid() });
        Self { access: judge(credentials, own_uid), stream, _counted: clients.open() }
    }
}

impl Connected for PeerStream {
    type ConnectInfo = Access;

    fn connect_info(&self) -> Access {
        self.access.clone()
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemons_own_user_is_its_owner() {
        let access = judge(Ok(Credentials { uid: 1000 }), 1000);
        assert_eq!(access, Access::Granted(Grant { scope: Scope::Admin, principal: Principal::Owner }));
    }

    #[test]
    fn another_user_is_refused_even_root() {
        for uid in [0, 1001] {
            let Access::Refused(reason) = judge(Ok(Credentials { uid }), 1000) else {
                panic!("{uid} was let in")
            };
            assert!(reason.contains("user 1000") && reason.contains(&format!("user {uid}")), "{reason}");
        }
    }

    #[test]
    fn a_peer_that_the_system_does_not_name_is_refused() {
        assert!(matches!(judge(Err(io::Error::other("no")), 1000), Access::Refused(_)));
    }
}

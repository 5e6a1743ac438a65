//! The connection itself: it knows its peer, and counts as a client while it is open.

use std::io;
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use hermes_runtime::kin::{Family, Kinship, Reason, Standing};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tonic::transport::server::Connected;

use super::{Access, Credentials, judge};
use crate::clients::{ClientGuard, Clients};

/// An accepted connection that knows its peer and counts as a client while it is open.
#[derive(Debug)]
pub(crate) struct PeerStream {
    stream: UnixStream,
    access: Access,
    _counted: ClientGuard,
}

impl PeerStream {
    pub(crate) fn new(stream: UnixStream, own_uid: u32, clients: &Clients, family: &Family) -> Self {
        let credentials = stream.peer_cred().map(|cred| Credentials { uid: cred.uid(), pid: cred.pid() });
        let access = judge(credentials, own_uid, |pid| standing(&stream, pid, family));
        Self { access, stream, _counted: clients.open() }
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

/// How the peer stands to the agent. Asked at once when it connects; that it still lives afterwards proves that
/// nobody else's process was looked at under its id.
fn standing(stream: &UnixStream, pid: Option<i32>, family: &Family) -> Standing {
    let standing = family.standing(pid.unwrap_or_default());
    match pid {
        Some(pid) if standing == Standing::Outside && !is_there(stream, pid) => {
            let reason = Reason::Unknown("it ended while it was looked at".to_owned());
            Standing::Kin(Kinship { reason, sessions: Vec::new() })
        }
        _ => standing,
    }
}

/// Whether the process that connected lives and has this id. A kernel before 6.5 cannot say, and is believed.
fn is_there(stream: &UnixStream, pid: i32) -> bool {
    match getsockopt(stream, PeerPidfd) {
        Ok(handle) => {
            let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd()));
            facts.is_ok_and(|facts| {
                facts.lines().any(|line| {
                    line.strip_prefix("Pid:").is_some_and(|found| found.trim().parse() == Ok(pid))
                })
            })
        }
        Err(errno) => matches!(errno, Errno::ENOPROTOOPT | Errno::EOPNOTSUPP),
    }
}

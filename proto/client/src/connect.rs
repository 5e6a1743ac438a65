//! From a [`Place`] to a [`Client`]: find the socket, greet, start what is missing, replace what is old.

use std::cmp::Ordering;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_proto::{PROTOCOL, v1};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::{Endpoint, Uri};

use crate::call::{self, CallError, Client};
use crate::launch::{Launch, StartError, StartMode};
use crate::place::Place;

/// How long a daemon that took the connection may need to greet: it may still close unfinished turns.
const HELLO_LIMIT: Duration = Duration::from_secs(30);
/// How long a daemon that is on its way out may take to leave: its drain and some more.
const LEAVE_LIMIT: Duration = Duration::from_secs(45);
/// How long a client that lost its daemon waits before it starts one itself: whoever restarts a daemon
/// on demand brings it back within a moment, and a service manager waits about five seconds.
const RETURN_LIMIT_ON_DEMAND: Duration = Duration::from_millis(500);
const RETURN_LIMIT_SERVICE: Duration = Duration::from_secs(10);
/// Pause between two looks at a socket.
const POLL: Duration = Duration::from_millis(20);
/// Rounds of "connect, else start" before giving up: each round ends in an answer or in an error of its
/// own, so more than a few mean that the daemon dies right after each start.
const ROUNDS: usize = 4;
/// Flow-control window, so that a prompt of megabytes does not go in small steps.
const WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// Who calls: shown in the daemon's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The client's name, such as `hermes-cli`.
    pub client: String,
    /// The client's version; an idle on-demand daemon of an older one is replaced.
    pub version: String,
}

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    #[error("no daemon answers at {}", socket.display())]
    NotRunning { socket: PathBuf, source: io::Error },
    #[error("cannot use the daemon's socket {}", socket.display())]
    Socket { socket: PathBuf, source: io::Error },
    #[error("the daemon at {} took the connection but does not answer", socket.display())]
    Unresponsive { socket: PathBuf, pid: Option<u32> },
    #[error(
        "the daemon (version {daemon_version}) speaks protocol {daemon}, this client (version {client_version}) speaks {client}"
    )]
    ProtocolSkew { daemon: u32, client: u32, daemon_version: String, client_version: String },
    #[error("the daemon at {} refused the connection", socket.display())]
    Refused { socket: PathBuf, source: CallError },
    #[error("the daemon did not start")]
    Start(#[from] StartError),
    #[error("the daemon ended again right after each start")]
    KeepsEnding { log: PathBuf },
    #[error("the daemon (process {pid}) did not leave within {waited_s} s")]
    StillLeaving { pid: u32, waited_s: u64 },
}

impl ConnectError {
    /// What the user can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::NotRunning { .. } => "start it: hermes-cli daemon start".into(),
            Self::Socket { socket, .. } => {
                format!("look at the owner and the mode of {} and its folder", socket.display())
            }
            Self::Unresponsive { pid: Some(pid), .. } | Self::StillLeaving { pid, .. } => {
                format!("look at its log (hermes-cli daemon logs); as a last resort: kill {pid}")
            }
            Self::Unresponsive { pid: None, .. } => "look at its log: hermes-cli daemon logs".into(),
            Self::ProtocolSkew { daemon, client, .. } if daemon < client => {
                "the daemon is the older side: update hermesd, then run hermes-cli daemon restart".into()
            }
            Self::ProtocolSkew { .. } => "this client is the older side: update it".into(),
            Self::Refused { source, .. } => {
                source.hint().unwrap_or("use the account that the daemon runs under").to_owned()
            }
            Self::Start(error) => error.hint(),
            Self::KeepsEnding { log } => format!("look at its log: {}", log.display()),
        }
    }

    /// Whether there is simply no daemon (any more), so that starting one may help.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::NotRunning { .. } => true,
            Self::Refused { source, .. } => source.is_lost(),
            _ => false,
        }
    }
}

/// Gets clients of one profile's daemon. A cheap clone.
#[derive(Debug, Clone)]
pub struct Connector {
    place: Arc<Place>,
    identity: Arc<Identity>,
    launch: Arc<Launch>,
}

/// A daemon that answered, whatever it speaks.
struct Greeted {
    client: Client,
    skew: Option<ConnectError>,
}

impl Connector {
    pub fn new(place: Place, identity: Identity, launch: Launch) -> Self {
        Self { place: place.into(), identity: identity.into(), launch: launch.into() }
    }

    /// Where this profile's daemon is sought.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How this profile's daemon is started.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Connects to a running daemon; starts none.
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        let greeted = self.greet().await?;
        match greeted.skew {
            Some(skew) => Err(skew),
            None => Ok(greeted.client),
        }
    }

    /// Connects, and starts a daemon on demand when none runs. An idle on-demand daemon of an older
    /// version, or with settings of yesterday, is replaced first.
    pub async fn ensure(&self) -> Result<Client, ConnectError> {
        self.ensure_mode(StartMode::OnDemand).await
    }

    /// [`Connector::ensure`] with a choice of how a missing daemon is started.
    pub async fn ensure_mode(&self, mode: StartMode) -> Result<Client, ConnectError> {
        for _ in 0..ROUNDS {
            match self.greet().await {
                Ok(greeted) => {
                    if let Some(client) = self.settle(greeted).await? {
                        return Ok(client);
                    }
                }
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(error),
            }
            self.launch.start(&self.place, mode).await?;
        }
        Err(ConnectError::KeepsEnding { log: self.place.agent_log.clone() })
    }

    /// Waits until the daemon with this epoch has left its socket and let its lock go.
    ///
    /// # Errors
    /// [`ConnectError::StillLeaving`] when it is there after its drain.
    pub async fn wait_until_gone(&self, hello: &v1::HelloResponse) -> Result<(), ConnectError> {
        let give_up = Instant::now() + LEAVE_LIMIT;
        loop {
            let recorded = self.place.daemon_file();
            let same = recorded.is_some_and(|file| file.epoch == hello.epoch && file.may_be_alive());
            // The lock goes last: a new daemon that starts before that would be turned away.
            let holds = self.place.holder() == Some(hello.pid);
            if !same && !holds && !self.same_daemon_answers(hello).await {
                return Ok(());
            }
            if Instant::now() >= give_up {
                return Err(ConnectError::StillLeaving { pid: hello.pid, waited_s: LEAVE_LIMIT.as_secs() });
            }
            sleep(POLL).await;
        }
    }

    /// Connects again after the daemon was lost: gives whoever restarts it a moment, then starts it.
    pub(crate) async fn recover(&self, lost: &v1::HelloResponse) -> Result<Client, ConnectError> {
        let patience = if lost.on_demand { RETURN_LIMIT_ON_DEMAND } else { RETURN_LIMIT_SERVICE };
        let give_up = Instant::now() + patience;
        loop {
            match self.connect().await {
                Err(error) if error.is_absent() => {}
                settled => return settled,
            }
            if Instant::now() >= give_up {
                return self.ensure().await;
            }
            sleep(POLL).await;
        }
    }

    async fn same_daemon_answers(&self, hello: &v1::HelloResponse) -> bool {
        matches!(self.greet().await, Ok(greeted) if greeted.client.hello().epoch == hello.epoch)
    }

    async fn greet(&self) -> Result<Greeted, ConnectError> {
        let (stream, socket) = self.reach().await?;
        let channel = channel_over(stream)
            .await
            .map_err(|error| refused(&socket, CallError::lost("greet the daemon", error.to_string())))?;
        let hello = call::hello(&channel, self.identity.client.clone(), self.identity.version.clone());
        let Ok(hello) = timeout(HELLO_LIMIT, hello).await else {
            let pid = self.place.daemon_file().map(|file| file.pid);
            return Err(ConnectError::Unresponsive { socket, pid });
        };
        let hello = hello.map_err(|error| refused(&socket, error))?;
        let skew = (hello.protocol != PROTOCOL).then(|| ConnectError::ProtocolSkew {
            daemon: hello.protocol,
            client: PROTOCOL,
            daemon_version: hello.version.clone(),
            client_version: self.identity.version.clone(),
        });
        Ok(Greeted { client: Client::new(channel, hello, socket), skew })
    }

    /// Opens the first socket that takes a connection.
    async fn reach(&self) -> Result<(UnixStream, PathBuf), ConnectError> {
        let mut first = None;
        for socket in self.place.sockets() {
            match UnixStream::connect(&socket).await {
                Ok(stream) => return Ok((stream, socket)),
                Err(error) => {
                    let error = unreachable_socket(socket, error);
                    if !error.is_absent() {
                        return Err(error);
                    }
                    first.get_or_insert(error);
                }
            }
        }
        Err(first.expect("the rule always names a socket"))
    }

    /// Keeps the daemon that answered (`Some`), or sends it away because it is idle, on demand and older
    /// than this client or than its own settings (`None`).
    async fn settle(&self, greeted: Greeted) -> Result<Option<Client>, ConnectError> {
        let Greeted { client, skew } = greeted;
        let hello = client.hello();
        let older = compare_versions(&hello.version, &self.identity.version) == Ordering::Less
            || hello.protocol < PROTOCOL;
        if hello.on_demand && (older || hello.settings_changed) && is_idle(&client).await {
            let request = v1::ShutdownRequest { restart: true, drain_s: None };
            if client.shutdown(request).await.is_ok() {
                self.wait_until_gone(client.hello()).await?;
                return Ok(None);
            }
        }
        match skew {
            Some(skew) => Err(skew),
            None => Ok(Some(client)),
        }
    }
}

/// Nothing would be lost by a restart: no turn, no waiting input, and no background process, whose input would close.
async fn is_idle(client: &Client) -> bool {
    let quiet = match client.status().await {
        Ok(status) => status.active_turns == 0 && status.queued_inputs == 0,
        Err(_) => false,
    };
    // A daemon that does not know the call has no such processes.
    let listed = client.list_processes(v1::ListProcessesRequest::default()).await;
    quiet && !listed.is_ok_and(|listed| listed.processes.iter().any(|process| process.status == "running"))
}

fn refused(socket: &Path, source: CallError) -> ConnectError {
    ConnectError::Refused { socket: socket.to_owned(), source }
}

fn unreachable_socket(socket: PathBuf, source: io::Error) -> ConnectError {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ConnectError::NotRunning { socket, source }
        }
        _ => ConnectError::Socket { socket, source },
    }
}

/// A channel over exactly this connection: when it breaks, calls fail instead of going, without a
/// greeting, to whatever daemon listens then.
async fn channel_over(stream: UnixStream) -> Result<tonic::transport::Channel, tonic::transport::Error> {
    let stream = Mutex::new(Some(stream));
    // The authority is never resolved; a Unix socket has none.
    Endpoint::from_static("http://hermesd.local")
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .connect_with_connector(tower::service_fn(move |_: Uri| {
            let stream = stream.lock().ok().and_then(|mut stream| stream.take());
            async move { stream.map(TokioIo::new).ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)) }
        }))
        .await
}

/// Orders versions such as `0.10.2` by their numbers; what follows a `-` or `+` does not count.
fn compare_versions(a: &str, b: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        let core = version.split(['-', '+']).next().unwrap_or_default();
        core.split('.').map(|part| part.parse().unwrap_or(0)).collect()
    };
    numbers(a).cmp(&numbers(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_not_by_text() {
        assert_eq!(compare_versions("0.9.0", "0.10.0"), Ordering::Less);
        assert_eq!(compare_versions("0.1.0", "0.1.0-dev+abc"), Ordering::Equal);
        assert_eq!(compare_versions("1.0.0", "0.99.9"), Ordering::Greater);
    }

    #[test]
    fn a_skew_says_which_side_to_update() {
        let skew = |daemon, client| ConnectError::ProtocolSkew {
            daemon,
            client,
            daemon_version: "0.1.0".into(),
            client_version: "0.2.0".into(),
        };
        assert!(skew(1, 2).hint().contains("update hermesd"));
        assert!(skew(2, 1).hint().contains("this client is the older side"));
    }

    #[test]
    fn only_a_missing_daemon_is_absent() {
        let at = || PathBuf::from("/run/s");
        let error = |kind| unreachable_socket(at(), io::Error::from(kind));
        assert!(error(io::ErrorKind::NotFound).is_absent());
        assert!(error(io::ErrorKind::ConnectionRefused).is_absent());
        assert!(!error(io::ErrorKind::PermissionDenied).is_absent());
    }
}

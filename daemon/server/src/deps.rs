//! What the services stand on: handed over by `main`'s wiring, one struct, no globals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_config::Settings;
use hermes_core::{Clock, Epoch, Instant};
use hermes_engine::Engine;
use hermes_runtime::kin::Family;
use hermes_runtime::{Approvals, Processes, Redactor, Snapshots};
use hermes_state::Db;
use tokio::sync::{mpsc, watch};

use crate::clients::Clients;
use crate::logs::LogFeed;
use crate::notices::Notices;
use crate::policy_desk::PolicyDesk;

/// Everything the services use.
#[derive(Debug, Clone)]
pub struct ServerDeps {
    pub engine: Engine,
    /// For reading lists, transcripts and search hits; the server never writes.
    pub db: Db,
    /// What turns have changed, and how it was before.
    pub snapshots: Snapshots,
    /// What tools have left running.
    pub processes: Processes,
    /// Masks what is shown of commands.
    pub redactor: Redactor,
    pub settings: watch::Receiver<Arc<Settings>>,
    pub identity: Identity,
    pub storage: StorageReport,
    /// The model of a session that names none, for `Status`.
    pub model: Arc<dyn DefaultModel>,
    /// For `Hello`: a client may send an idle daemon away so that new settings hold.
    pub settings_files: Arc<dyn SettingsFiles>,
    pub clock: Arc<dyn Clock>,
    pub clients: Clients,
    pub notices: Notices,
    pub logs: LogFeed,
    /// Tells clients of the agent's own from those of a person.
    pub family: Family,
    /// What people have allowed the agent for more than once.
    pub approvals: Approvals,
    /// The settings that say what the agent may do.
    pub policy: Arc<dyn PolicyDesk>,
    /// Where a client's wish to end the daemon goes.
    pub shutdown: mpsc::Sender<ShutdownCommand>,
}

/// Who this daemon is.
#[derive(Debug, Clone)]
pub struct Identity {
    pub version: &'static str,
    pub epoch: Epoch,
    pub profile: String,
    pub home: PathBuf,
    pub pid: u32,
    pub started_at: Instant,
    /// Started by a client on demand: ends when idle.
    pub on_demand: bool,
}

/// What opening the storage and the settings had to say.
#[derive(Debug, Clone, Default)]
pub struct StorageReport {
    /// Why the database is open for reading only.
    pub read_only: Option<String>,
    pub warnings: Vec<String>,
}

/// Which model a session gets that names none. Answered by the wiring, over the provider settings.
pub trait DefaultModel: Send + Sync + std::fmt::Debug {
    /// `(provider, model)`; empty texts when the settings do not resolve.
    fn current(&self) -> (String, String);
}

/// The files that the settings were read from.
pub trait SettingsFiles: Send + Sync + std::fmt::Debug {
    /// Whether they are others now than when they were read. Cheap: asked with every connection.
    fn changed(&self) -> bool;
}

/// A client asked the daemon to end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShutdownCommand {
    /// A new daemon follows: clients should reconnect.
    pub restart: bool,
    /// How long running turns may take to end; `None` = as configured, zero = interrupt at once.
    pub drain: Option<Duration>,
}

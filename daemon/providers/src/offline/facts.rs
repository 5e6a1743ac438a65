//! What the offline responder may tell about the machine. The caller gathers it.

use crate::local::LocalServer;

/// Seen, never used: a key in the environment or a server on this machine is the user's to set up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfflineFacts {
    /// Names of key variables that the client's or the daemon's environment holds (see
    /// [`crate::key_variables`]). Never their values.
    pub key_variables: Vec<String>,
    /// What [`crate::Providers::find_local_servers`] found.
    pub local_servers: Vec<LocalServer>,
    /// Path of the profile's `config.yaml`.
    pub config_path: Option<String>,
    /// Path of the profile's `.env`.
    pub env_path: Option<String>,
    /// The user's local time as text; without it the answer is in UTC.
    pub local_time: Option<String>,
}

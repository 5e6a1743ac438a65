//! The daemon's contact with the machine: tasks, child processes and terminal backends, the policy that
//! judges every effect, path safety, secrets and their redaction.
//!
//! This crate must not know models, messages, sessions (beyond a key), tools or any transport. It never
//! reads the process environment and never decides where a profile lives: both come in as arguments.
//!
//! Start with [`Tasks`], [`SecretScope`], [`Redactor`], [`TerminalBackend`].

mod child_env;
mod redact;
mod secret;
mod settings;
mod tasks;
mod terminal;

pub use child_env::{ChildEnv, ChildEnvInput, DaemonEnv, TOOL_MARK, is_blocked};
pub use redact::Redactor;
pub use secret::{Secret, SecretScope};
pub use settings::{SecuritySettings, TerminalSettings};
pub use tasks::Tasks;
pub use terminal::{
    CommandOutput, CommandSpec, EXIT_BAD_DIRECTORY, EXIT_INTERRUPTED, EXIT_TIMEOUT, LocalBackend,
    LocalBackendInput, SessionKey, TerminalBackend, TerminalError,
};

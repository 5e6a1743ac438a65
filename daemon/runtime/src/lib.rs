//! The daemon's contact with the machine: tasks, child processes and terminal backends, the policy that
//! judges every effect, path safety, secrets and their redaction.
//!
//! This crate must not know models, messages, sessions (beyond a key), tools or any transport. It never
//! reads the process environment and never decides where a profile lives: both come in as arguments.
//!
//! Start with [`Tasks`], [`SecretScope`], [`Redactor`], [`Policy`], [`TerminalBackend`].

mod background;
mod child_env;
pub mod kin;
mod paths;
mod policy;
mod redact;
mod secret;
mod settings;
mod snapshots;
mod tasks;
mod terminal;

pub use background::{
    EndReason, Killed, NobodyListens, Occasion, Output, Polled, ProcessEnd, ProcessError, ProcessListener,
    ProcessView, ProcessWord, Processes, ProcessesInput, StartError, StartSpec, WaitEnd,
};
pub use child_env::{ChildEnv, ChildEnvInput, DaemonEnv, TOOL_MARK, is_blocked};
pub use paths::{PathPolicy, PathPolicyInput, PathRefusal, PathRule};
pub use policy::{
    Approval, ApprovalEntry, ApprovalMode, ApprovalScope, ApprovalSettings, ApprovalStore, Approvals,
    CommandAllowlist, CommandFacts, CommandVerdict, Effect, Finding, ForgetfulStore, Policy, PolicyCx,
    PolicyInput, PolicySettings, Unattended, Verdict, command_verdict,
};
pub use redact::Redactor;
pub use secret::{Secret, SecretScope};
pub use settings::{SecuritySettings, TerminalSettings};
pub use snapshots::{
    CheckpointSettings, FileChange, Keeping, RestoreRequest, Restored, Snapshot, SnapshotCall, SnapshotDiff,
    SnapshotError, SnapshotFile, Snapshots, SnapshotsInput, Touch,
};
pub use tasks::Tasks;
pub use terminal::{
    BackgroundCommand, BackgroundSpec, CommandOutput, CommandSpec, EXIT_BAD_DIRECTORY, EXIT_INTERRUPTED,
    EXIT_TIMEOUT, LocalBackend, LocalBackendInput, SessionKey, TerminalBackend, TerminalError,
};

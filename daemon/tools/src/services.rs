//! What tools are given to work with.

use std::ffi::OsString;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{Clock, Principal, SessionId, ToolCallId, TurnId};
use hermes_runtime::{
    ChildEnv, ChildEnvInput, DaemonEnv, Policy, PolicyCx, Processes, Redactor, SecretScope, Snapshots, Tasks,
    TerminalBackend, Verdict,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::dispatch::{Patience, ResultLimits};
use crate::ports::{Ask, Hooks, Wake};
use crate::registry::SessionTools;
use crate::settings::ToolSettings;
use crate::tool::OwnedEffect;
use crate::workspace::{FileLedger, Turn, Workspace};

/// Services of the process (or of the profile), shared by all calls.
#[derive(Debug)]
pub struct ToolServices {
    pub policy: Policy,
    pub redactor: Redactor,
    pub backend: Arc<dyn TerminalBackend>,
    pub processes: Processes,
    pub child_env: ChildFacts,
    /// Read when a call begins.
    pub settings: watch::Receiver<Arc<ToolSettings>>,
    pub tasks: Tasks,
    pub clock: Arc<dyn Clock>,
    pub ask: Arc<dyn Ask>,
    pub wake: Arc<dyn Wake>,
    pub hooks: Arc<dyn Hooks>,
    pub snapshots: Snapshots,
    /// One for the process, whatever else there are several of.
    pub files: Arc<FileLedger>,
    /// Absolute folder for results that are too long for the model, a folder per session below it. Reading
    /// it must be allowed by the policy.
    pub results_dir: PathBuf,
}

/// What the environments of child processes are built from.
#[derive(Debug, Clone)]
pub struct ChildFacts {
    pub hermes_home: PathBuf,
    pub user_home: PathBuf,
    pub user: String,
    pub shell: Option<PathBuf>,
    pub temp_dir: PathBuf,
    /// Where our own binaries stand.
    pub bin_dir: Option<PathBuf>,
    pub daemon: DaemonEnv,
    pub secrets: SecretScope,
}

impl ChildFacts {
    /// The whole environment of a session's command.
    pub(crate) fn environment(
        &self,
        workspace: &Workspace,
        passthrough: &[String],
    ) -> Vec<(OsString, OsString)> {
        ChildEnv::terminal(
            workspace.client_env(),
            &ChildEnvInput {
                hermes_home: &self.hermes_home,
                user_home: &self.user_home,
                user: &self.user,
                shell: self.shell.as_deref(),
                temp_dir: &self.temp_dir,
                bin_dir: self.bin_dir.as_deref(),
                daemon: &self.daemon,
                passthrough,
                secrets: &self.secrets,
                session_id: workspace.session_id().as_str(),
            },
        )
    }
}

/// What one call of a tool knows.
#[derive(Debug, Clone)]
pub struct ToolCx {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub call_id: ToolCallId,
    pub principal: Principal,
    pub yolo: bool,
    pub workspace: Arc<Workspace>,
    pub services: Arc<ToolServices>,
    /// As they were when the call began.
    pub settings: Arc<ToolSettings>,
    /// What the session may call, so that a hint names no tool that is not there.
    pub tools: Arc<SessionTools>,
    /// Fires when the call must end: interrupt or deadline.
    pub cancel: CancellationToken,
    pub limits: ResultLimits,
    /// The session's surface: `cli`, `telegram`, `cron`, …
    pub platform: Arc<str>,
    /// Whether a notice that comes after the turn can begin another one (spec 40 §6.2): not in one-shots, jobs
    /// and stateless calls.
    pub wakeable: bool,
    /// See [`ToolCx::while_asking`].
    pub patience: Patience,
    /// The call's place among those that work at the same time.
    pub(crate) turn: Arc<Turn>,
}

impl ToolCx {
    /// Waits for a person's answer, with the call's deadline standing still. Every question of a tool to a
    /// person is awaited through this.
    pub async fn while_asking<T>(&self, answer: impl Future<Output = T>) -> T {
        self.patience.while_asking(answer).await
    }

    /// Waits until all calls that began before this one have noted what the session keeps about them. False
    /// when the call must end before.
    pub(crate) async fn turn_has_come(&self) -> bool {
        tokio::select! {
            biased;
            () = self.turn.come() => true,
            () = self.cancel.cancelled() => false,
        }
    }

    /// Runs blocking work on a thread of its own, under `cancel`, which the work must look at. A panic
    /// inside goes on in the caller.
    pub async fn blocking<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match self.services.tasks.spawn_blocking(name, work).await {
            Ok(value) => value,
            Err(error) => resume_unwind(match error.try_into_panic() {
                Ok(panic) => panic,
                // Blocking work that has begun cannot be aborted; before that only the runtime's end does it.
                Err(_) => Box::new("the daemon is shutting down"),
            }),
        }
    }

    /// What the policy says to `effect` of this call. It follows links on disk, some microseconds of blocking
    /// I/O, for which a hop to another thread would cost more.
    pub(crate) fn judge(&self, effect: &OwnedEffect) -> Verdict {
        let cx = PolicyCx {
            principal: &self.principal,
            yolo: self.yolo,
            workspace: self.workspace.root(),
            session: self.workspace.shell(),
        };
        self.services.policy.judge(&effect.as_effect(), &cx)
    }

    /// Why `effect`, which turned out to be what a judged call does, is out of the question. What needs
    /// asking was asked when the call was judged.
    pub(crate) fn denies(&self, effect: &OwnedEffect) -> Option<String> {
        match self.judge(effect) {
            Verdict::Allow | Verdict::Ask(_) => None,
            Verdict::Deny { reason, .. } => Some(reason),
        }
    }

    /// Whether `path` may be read without a question.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        self.judge(&OwnedEffect::Read { path: path.to_owned() }) == Verdict::Allow
    }

    /// `text` when the session has the tool that it speaks of.
    pub(crate) fn if_has<'a>(&self, tool: &str, text: &'a str) -> &'a str {
        if self.tools.allows(tool) { text } else { "" }
    }
}

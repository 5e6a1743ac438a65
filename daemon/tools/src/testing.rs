//! A bench for tests: real files in a temporary folder, the real policy and the real dispatcher.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{ClientEnv, Principal, SessionId, SystemClock, ToolCall, ToolCallId, TurnId};
use hermes_runtime::{
    Approvals, BackgroundCommand, BackgroundSpec, CommandOutput, CommandSpec, DaemonEnv, NobodyListens,
    PathPolicy, PathPolicyInput, Policy, PolicyInput, Processes, ProcessesInput, Redactor, SecretScope,
    SessionKey, Snapshots, Tasks, TerminalBackend, TerminalError,
};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::registry::{Registry, SessionTools, ToolsetChoice};
use crate::{
    CallCx, CallResult, ChildFacts, Dispatcher, NoHooks, NobodyCanAnswer, NobodyWakes, Patience,
    ResultLimits, StopSignal, Tool, ToolServices, ToolSettings, ToolsetSettings, TurnGuard, Workspace,
    WorkspaceInput, file_tools, terminal_tools,
};

/// A secret that the scope of every bench holds.
pub(crate) const SECRET: &str = "hunter2-hunter2-hunter2";

/// Everything that a call needs.
pub(crate) struct Bench {
    pub(crate) _dir: tempfile::TempDir,
    /// The session's directory.
    pub(crate) root: PathBuf,
    /// A folder beside it.
    pub(crate) outside: PathBuf,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) tools: Arc<SessionTools>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) backend: Arc<RecordingBackend>,
    pub(crate) settings: watch::Sender<Arc<ToolSettings>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) yolo: bool,
    pub(crate) limits: ResultLimits,
    pub(crate) batch_used: usize,
    pub(crate) guard: Arc<TurnGuard>,
}

impl Bench {
    /// A bench with the tools of this crate.
    pub(crate) fn new() -> Self {
        Self::with(file_tools().into_iter().chain(terminal_tools()).collect(), |_| {})
    }

    /// A bench with these tools and changed services.
    pub(crate) fn with(tools: Vec<Arc<dyn Tool>>, change: impl FnOnce(&mut ToolServices)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(dir.path()).unwrap();
        let (root, outside, home) = (base.join("work"), base.join("outside"), base.join("home"));
        for folder in [&root, &outside, &home] {
            std::fs::create_dir(folder).unwrap();
        }
        let registry = Arc::new(Registry::new(Arc::new(SystemClock)));
        let names: Vec<String> = tools.iter().map(|tool| tool.toolset().to_owned()).collect();
        for tool in tools {
            registry.register(tool).unwrap();
        }
        let settings = ToolSettings::default();
        let choice =
            ToolsetChoice { explicit: Some(&names), platform: "cli", settings: &ToolsetSettings::default() };
        let session_tools = Arc::new(registry.open_session(&choice, &settings));
        let backend = Arc::new(RecordingBackend::default());
        let secrets = SecretScope::from_pairs([("DEPLOY_TOKEN", SECRET)]);
        let processes = Processes::new(ProcessesInput {
            folder: base.join("processes"),
            register: base.join("processes.json"),
            backend: Arc::clone(&backend) as Arc<dyn TerminalBackend>,
            tasks: Tasks::new(),
            clock: Arc::new(SystemClock),
            listener: Arc::new(NobodyListens),
            grace: Duration::from_millis(300),
        });
        let (sender, receiver) = watch::channel(Arc::new(settings));
        let mut services = ToolServices {
            policy: policy(&home),
            redactor: Redactor::new(true, &secrets),
            backend: Arc::clone(&backend) as Arc<dyn TerminalBackend>,
            processes,
            child_env: ChildFacts {
                hermes_home: home.join(".hermes"),
                user_home: home.clone(),
                user: "tester".to_owned(),
                shell: None,
                temp_dir: std::env::temp_dir(),
                bin_dir: None,
                daemon: DaemonEnv::default(),
                secrets,
            },
            settings: receiver,
            tasks: Tasks::new(),
            clock: Arc::new(SystemClock),
            ask: Arc::new(NobodyCanAnswer),
            wake: Arc::new(NobodyWakes),
            hooks: Arc::new(NoHooks),
            snapshots: Snapshots::default(),
            files: Arc::default(),
            results_dir: base.join("results"),
        };
        change(&mut services);
        let workspace = Arc::new(Workspace::new(WorkspaceInput {
            session_id: SessionId::parse("s1").unwrap(),
            cwd: root.clone(),
            user_home: Some(home),
            client_env: ClientEnv::default(),
        }));
        Self {
            _dir: dir,
            root,
            outside,
            dispatcher: Dispatcher::new(registry, Arc::new(services)),
            tools: session_tools,
            workspace,
            backend,
            settings: sender,
            cancel: CancellationToken::new(),
            yolo: false,
            limits: ResultLimits::default(),
            batch_used: 0,
            guard: Arc::default(),
        }
    }

    /// The same session, opened by a client with another environment.
    pub(crate) fn reopen(&mut self, client_env: ClientEnv) {
        self.workspace = Arc::new(Workspace::new(WorkspaceInput {
            session_id: SessionId::parse("s1").unwrap(),
            cwd: self.root.clone(),
            user_home: Some(self.root.parent().unwrap().join("home")),
            client_env,
        }));
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).unwrap()
    }

    pub(crate) fn cx(&self) -> CallCx {
        CallCx {
            tools: Arc::clone(&self.tools),
            principal: Principal::Owner,
            yolo: self.yolo,
            session_id: SessionId::parse("s1").unwrap(),
            turn_id: TurnId::mint(),
            workspace: Arc::clone(&self.workspace),
            platform: "cli".into(),
            wakeable: true,
            stop: StopSignal::new(self.cancel.clone(), Arc::default()),
            patience: Patience::default(),
            limits: self.limits,
            batch_used: self.batch_used,
            guard: Arc::clone(&self.guard),
        }
    }

    /// Runs a call written as a model writes it.
    pub(crate) async fn call_text(&self, name: &str, arguments: &str) -> CallResult {
        self.dispatcher.call(self.cx(), &call(name, arguments)).await
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> CallResult {
        self.call_text(name, &arguments.to_string()).await
    }

    /// The result's JSON.
    pub(crate) async fn json(&self, name: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.call(name, arguments).await.content).unwrap()
    }

    /// The result's error, with the bench's folder written as `$DIR`.
    pub(crate) async fn error(&self, name: &str, arguments: Value) -> String {
        let value = self.json(name, arguments).await;
        let text = value["error"].as_str().unwrap_or_default();
        text.replace(self.root.parent().unwrap().to_str().unwrap(), "$DIR")
    }
}

pub(crate) fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: ToolCallId::new("call_1"),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        provider_data: None,
    }
}

fn policy(user_home: &Path) -> Policy {
    let paths = PathPolicy::new(PathPolicyInput {
        home: user_home.join(".hermes/profiles/mine"),
        root: user_home.join(".hermes"),
        user_home: user_home.to_owned(),
        safe_root: None,
        temp_dir: std::env::temp_dir(),
    });
    let (_, settings) = watch::channel(Arc::default());
    Policy::new(PolicyInput { paths, settings, approvals: Approvals::default() })
}

/// Answers every command with a prepared output and remembers what it was given.
#[derive(Debug, Default)]
pub(crate) struct RecordingBackend {
    pub(crate) specs: Mutex<Vec<CommandSpec>>,
    pub(crate) answer: Mutex<Option<CommandOutput>>,
}

#[async_trait]
impl TerminalBackend for RecordingBackend {
    fn name(&self) -> &'static str {
        "recording"
    }

    async fn run(&self, spec: CommandSpec, _: &CancellationToken) -> Result<CommandOutput, TerminalError> {
        let output = self.answer.lock().unwrap().clone().unwrap_or_else(|| CommandOutput {
            output: "done\n".to_owned(),
            exit_code: 0,
            timed_out: false,
            interrupted: false,
            cwd: spec.cwd.clone(),
            cwd_note: None,
            omitted_chars: 0,
            full_log: None,
            duration: Duration::ZERO,
        });
        self.specs.lock().unwrap().push(spec);
        Ok(output)
    }

    async fn prepare_background(
        &self,
        _: &BackgroundSpec,
        _: &CancellationToken,
    ) -> Result<BackgroundCommand, TerminalError> {
        Err(TerminalError::NoBackground { backend: "recording" })
    }

    async fn close_session(&self, _: &SessionKey) {}

    async fn close(&self) {}
}

//! A bench: an engine on a temporary home, a model that answers by script, and a tool that does as it is told.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_config::{Home, Settings};
use hermes_context::{LocalDate, MachineFacts};
use hermes_core::{
    Content, Epoch, Event, EventPayload, FinishReason, Instant, Json, Message, MessageId, Principal, Role,
    SessionId, SessionOptions, SystemClock, ToolCall, ToolCallId, ToolSchema, TurnId, TurnOptions,
    TurnResult,
};
use hermes_engine::{
    AttachInput, ConversationTools, CreateInput, Engine, EngineDeps, LocalTime, PromptBroker, SubmitInput,
    TodoLists, WakeRelay, Watch,
};
use hermes_providers::{
    CallError, CallRequest, HttpSettings, ModelResponse, OfflineFacts, Provider, Providers, StreamSink,
};
use hermes_runtime::{
    Approvals, DaemonEnv, LocalBackend, LocalBackendInput, NobodyListens, PathPolicy, PathPolicyInput,
    Policy, PolicyInput, Processes, ProcessesInput, Redactor, SecretScope, Snapshots, Tasks, TerminalBackend,
};
use hermes_state::{Db, OpenOptions};
use hermes_tools::{
    ChildFacts, Concurrency, Dispatcher, NoHooks, OwnedEffect, Registry, Tool, ToolCx, ToolOutput,
    ToolServices, ToolSettings, ToolTraits, Wake, Workspace,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the model says to a transcript.
pub(crate) type Script = dyn Fn(&[Arc<Message>]) -> ModelResponse + Send + Sync;
/// What the tool `probe` does.
pub(crate) type Act =
    dyn Fn(ToolCx, Value) -> futures_util::future::BoxFuture<'static, ToolOutput> + Send + Sync;

/// An answer in words.
pub(crate) fn says(text: &str) -> ModelResponse {
    ModelResponse { content: Some(text.to_owned()), ..ModelResponse::default() }
}

/// Calls of `probe`, one for each of these numbers.
pub(crate) fn calls(numbers: impl IntoIterator<Item = usize>) -> ModelResponse {
    let call = |n: usize| ToolCall {
        id: ToolCallId::new(format!("call_{n}")),
        name: "probe".to_owned(),
        arguments: json!({ "n": n }).to_string(),
        provider_data: None,
    };
    ModelResponse {
        tool_calls: numbers.into_iter().map(call).collect(),
        finish_reason: FinishReason::ToolCalls,
        ..ModelResponse::default()
    }
}

struct Model {
    script: Box<Script>,
    /// The last row of each request.
    asked: Mutex<Vec<String>>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}

#[async_trait]
impl Provider for Model {
    async fn call(
        &self,
        request: CallRequest<'_>,
        _: &mut dyn StreamSink,
        _: &CancellationToken,
    ) -> Result<ModelResponse, CallError> {
        let last = request.messages.last().map(|row| row.wire_text().into_owned()).unwrap_or_default();
        self.asked.lock().unwrap().push(last);
        Ok((self.script)(request.messages))
    }
}

/// A tool that may run beside others.
struct Probe(Arc<Act>);

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn toolset(&self) -> &'static str {
        "probes"
    }

    fn schema(&self, _: &ToolSettings) -> ToolSchema {
        let parameters = json!({
            "type": "object",
            "properties": { "n": { "type": "integer" } },
            "required": ["n"],
        });
        ToolSchema {
            name: "probe".to_owned(),
            description: "probes".to_owned(),
            parameters: Json::from(parameters),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits { concurrency: Concurrency::Safe, ..ToolTraits::default() }
    }

    fn preview(&self, arguments: &Value) -> String {
        arguments["n"].to_string()
    }

    fn effect(&self, _: &Value, _: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        (self.0)(cx.clone(), arguments).await
    }
}

#[derive(Debug)]
struct Noon;

impl LocalTime for Noon {
    fn stamp(&self, _: Instant) -> String {
        "20300101_120000".to_owned()
    }

    fn date(&self, _: Instant) -> LocalDate {
        LocalDate { date: "Tuesday, January 1, 2030".into(), zone: "UTC".into(), offset: "+00:00".into() }
    }
}

/// One life of a daemon on a home.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) wake: Arc<WakeRelay>,
    db: Db,
    tasks: Tasks,
    model: Arc<Model>,
    dir: std::path::PathBuf,
}

impl Bench {
    /// An engine on `dir`. Calls of `probe` that run at once may take `batch_s` together.
    pub(crate) async fn new(
        dir: &Path,
        script: impl Fn(&[Arc<Message>]) -> ModelResponse + Send + Sync + 'static,
        act: Arc<Act>,
        batch_s: f64,
    ) -> Self {
        let home = Home::at(dir.join("home"));
        home.ensure().unwrap();
        let clock = Arc::new(SystemClock);
        let tasks = Tasks::new();
        let secrets = SecretScope::from_pairs(Vec::<(String, String)>::new());
        let redactor = Redactor::new(true, &secrets);
        let backend: Arc<dyn TerminalBackend> = Arc::new(LocalBackend::new(LocalBackendInput {
            temp_dir: dir.to_owned(),
            settings: hermes_runtime::TerminalSettings::default(),
            secrets: secrets.clone(),
        }));
        let (_, settings) = watch::channel(Arc::new(Settings::defaults()));
        let mut tool_settings = ToolSettings::default();
        tool_settings.timeouts.concurrent_batch = Some(batch_s);
        let (_, tool_settings) = watch::channel(Arc::new(tool_settings));
        let (_, policy_settings) = watch::channel(Arc::default());
        let prompts = Arc::new(PromptBroker::default());
        let (wake, todos) = (Arc::new(WakeRelay::default()), Arc::new(TodoLists::default()));
        let paths = PathPolicy::new(PathPolicyInput {
            home: home.dir().to_owned(),
            root: home.root().to_owned(),
            user_home: dir.to_owned(),
            safe_root: None,
            temp_dir: dir.to_owned(),
        });
        let services = ToolServices {
            policy: Policy::new(PolicyInput {
                paths,
                settings: policy_settings,
                approvals: Approvals::default(),
            }),
            redactor: redactor.clone(),
            backend: Arc::clone(&backend),
            processes: Processes::new(ProcessesInput {
                folder: dir.join("processes"),
                register: dir.join("processes.json"),
                backend,
                tasks: tasks.clone(),
                clock: clock.clone(),
                listener: Arc::new(NobodyListens),
                grace: Duration::from_millis(300),
            }),
            child_env: ChildFacts {
                hermes_home: home.dir().to_owned(),
                user_home: dir.to_owned(),
                user: "tester".into(),
                shell: None,
                temp_dir: dir.to_owned(),
                bin_dir: None,
                daemon: DaemonEnv::default(),
                secrets: secrets.clone(),
            },
            settings: tool_settings,
            tasks: tasks.clone(),
            clock: clock.clone(),
            ask: Arc::clone(&prompts) as Arc<dyn hermes_tools::Ask>,
            wake: Arc::clone(&wake) as Arc<dyn Wake>,
            hooks: Arc::new(NoHooks),
            snapshots: Snapshots::default(),
            files: Arc::default(),
            results_dir: dir.join("results"),
        };
        let registry = Arc::new(Registry::new(clock.clone()));
        registry.register(Arc::new(Probe(act))).unwrap();
        let conversation = ConversationTools { todos: Arc::clone(&todos), settings: settings.clone() };
        for tool in hermes_engine::tools(conversation) {
            registry.register(tool).unwrap();
        }
        let model = Arc::new(Model { script: Box::new(script), asked: Mutex::default() });
        let providers = Providers::new(HttpSettings { redactor, clock: clock.clone() });
        let (db, _) = Db::open(&home.state_db(), clock.clone(), &OpenOptions::default()).unwrap();
        let engine = Engine::new(EngineDeps {
            db: db.clone(),
            providers: Arc::new(providers.with_only(Arc::clone(&model) as Arc<dyn Provider>)),
            dispatcher: Arc::new(Dispatcher::new(registry, Arc::new(services))),
            settings,
            secrets,
            home,
            clock,
            local: Arc::new(Noon),
            machine: MachineFacts::of_host(dir.to_owned(), None),
            offline_facts: OfflineFacts::default(),
            prompts,
            todos,
            wake: Arc::clone(&wake),
            tasks: tasks.clone(),
            epoch: Epoch::from_wire("epoch"),
        });
        engine.recover().await.unwrap();
        engine.resume_queues().await.unwrap();
        Self { engine, wake, db, tasks, model, dir: dir.to_owned() }
    }

    pub(crate) async fn session(&self) -> SessionId {
        let options = SessionOptions {
            cwd: Some(self.dir.clone()),
            toolsets: Some(vec!["probes".into(), "todo".into(), "clarify".into()]),
            ..SessionOptions::default()
        };
        let input = CreateInput { principal: Principal::Owner, options, title: None };
        self.engine.create(input).await.unwrap().summary.id
    }

    pub(crate) async fn watch(&self, id: &SessionId) -> Watch {
        let input = AttachInput {
            session_id: id.clone(),
            epoch: None,
            after_seq: 0,
            after_message_id: MessageId(0),
            can_answer: Vec::new(),
        };
        self.engine.attach(input).await.unwrap().1
    }

    pub(crate) async fn submit(&self, id: &SessionId, text: &str) -> TurnId {
        let input = SubmitInput {
            session_id: id.clone(),
            text: text.into(),
            principal: Principal::Owner,
            client_message_id: None,
            options: TurnOptions::default(),
        };
        self.engine.submit(input).await.unwrap().turn_id
    }

    /// One turn to its end, and all its events.
    pub(crate) async fn turn(&self, id: &SessionId, text: &str) -> (TurnResult, Vec<Arc<Event>>) {
        let mut watch = self.watch(id).await;
        self.submit(id, text).await;
        until_complete(&mut watch).await
    }

    /// The last row of each request to the model.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.model.asked.lock().unwrap().clone()
    }

    /// The tool rows of a session: call id and effect.
    pub(crate) async fn tool_rows(&self, id: &SessionId) -> Vec<(String, &'static str)> {
        let rows = self.db.load_messages(id).await.unwrap();
        let tools = rows.iter().filter(|row| row.role == Role::Tool);
        tools
            .map(|row| (row.tool_call_id.as_ref().unwrap().to_string(), row.effect.unwrap().as_str()))
            .collect()
    }

    /// What users (and processes) said in a session.
    pub(crate) async fn user_rows(&self, id: &SessionId) -> Vec<String> {
        let rows = self.db.load_messages(id).await.unwrap();
        let users = rows.iter().filter(|row| row.role == Role::User);
        users.map(|row| row.content.as_ref().map(Content::text).unwrap_or_default().into_owned()).collect()
    }

    /// Ends this life in good order.
    pub(crate) async fn end(self) {
        self.engine.drain(Duration::ZERO).await;
        self.tasks.stop();
        assert!(self.tasks.wait(PATIENCE).await, "all tasks end");
    }
}

/// Reads events up to the end of a turn.
pub(crate) async fn until_complete(watch: &mut Watch) -> (TurnResult, Vec<Arc<Event>>) {
    let reading = async {
        let mut events = Vec::new();
        loop {
            let event = watch.next().await.unwrap();
            events.push(Arc::clone(&event));
            if let EventPayload::MessageComplete(done) = &event.payload {
                return (done.result.clone(), events);
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap()
}

/// A tool that answers at once.
pub(crate) fn answers() -> Arc<Act> {
    Arc::new(|_, arguments| Box::pin(async move { ToolOutput::done(json!({ "n": arguments["n"] })) }))
}

/// Rows behind the newest user row.
pub(crate) fn results_since_user(rows: &[Arc<Message>]) -> usize {
    rows.iter().rev().take_while(|row| row.role != Role::User).filter(|row| row.role == Role::Tool).count()
}

//! Puts the parts together: the only place where rooms of different floors meet by name. What stands here
//! beside constructors are adapters of a few lines between one room's port and another's call.

use std::sync::Arc;
use std::time::Duration;

use hermes_config::{Home, Loaded, Settings};
use hermes_context::{LocalDate, MachineFacts};
use hermes_core::{Clock, Epoch, Instant};
use hermes_engine::{ConversationTools, Engine, EngineDeps, LocalTime, PromptBroker, TodoLists, WakeRelay};
use hermes_providers::{
    HttpSettings, OfflineFacts, Providers, RouteChoice, RouteSettings, key_variables, resolve,
};
use hermes_runtime::kin::ProcessId;
use hermes_runtime::{
    CheckpointSettings, DaemonEnv, LocalBackend, LocalBackendInput, PathPolicy, PathPolicyInput, Policy,
    PolicyInput, Processes, ProcessesInput, Redactor, SecretScope, SecuritySettings, Snapshots,
    SnapshotsInput, Tasks, TerminalBackend, TerminalSettings,
};
use hermes_server::{
    Clients, DefaultModel, Identity, LogFeed, Notices, ServerDeps, ShutdownCommand, StorageReport,
};
use hermes_state::{Db, OpenOptions, StateSettings};
use hermes_tools::{
    Ask, ChildFacts, Dispatcher, FileLedger, NoHooks, ProcessNotices, Registry, ToolServices, ToolSettings,
    Wake,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::{mpsc, watch};

use crate::args::Surroundings;
use crate::failure::StartError;
use crate::own_kin;
use crate::policy_keys::{PolicyKeys, PolicyKeysInput, standing_approvals};
use crate::settings_files::SettingsAsRead;

/// Longest look for model servers on this machine, before the daemon is ready. Closed ports answer at once.
const LOCAL_SERVERS_LIMIT: Duration = Duration::from_millis(100);

/// What the parts are built from.
pub(crate) struct WiringInput<'a> {
    pub(crate) home: &'a Home,
    pub(crate) loaded: Loaded,
    pub(crate) around: &'a Surroundings,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) tasks: &'a Tasks,
    pub(crate) epoch: &'a Epoch,
    pub(crate) on_demand: bool,
    pub(crate) version: &'static str,
    pub(crate) log_feed: LogFeed,
    pub(crate) shutdown: mpsc::Sender<ShutdownCommand>,
    /// A daemon served this home before, and its database is gone.
    pub(crate) database_lost: bool,
}

/// The daemon's parts, ready to serve.
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    pub(crate) db: Db,
    pub(crate) server: ServerDeps,
    pub(crate) redactor: Redactor,
    pub(crate) policy: PolicyKeys,
    /// The database was not closed by the last process that wrote it.
    pub(crate) unclean_end: bool,
    backend: Arc<dyn TerminalBackend>,
    /// Kept so that the receivers stay open; a reload of the settings sends here.
    _settings: watch::Sender<Arc<Settings>>,
    _tool_settings: watch::Sender<Arc<ToolSettings>>,
    _checkpoint_settings: watch::Sender<Arc<CheckpointSettings>>,
}

impl Parts {
    /// Builds everything. Opens the database; starts no turn and opens no port.
    pub(crate) async fn build(input: WiringInput<'_>) -> Result<Self, StartError> {
        let WiringInput { home, loaded, around, clock, tasks, .. } = input;
        let secrets = SecretScope::from_env_file(&loaded.secrets);
        let state: StateSettings = loaded.settings.section("state");
        let (db, opened) = Db::open(&home.state_db(), Arc::clone(clock), &OpenOptions::from(&state))
            .map_err(StartError::Database)?;
        for warning in &opened.warnings {
            tracing::warn!(%warning, "database");
        }
        let notices = Notices::new(Arc::clone(clock));
        // From here on nobody sees a setting of policy that no person has accepted.
        let (policy, settings) = PolicyKeys::open(PolicyKeysInput {
            home,
            db: &db,
            file: &loaded.settings,
            lost: input.database_lost || opened.knew_policy,
            notices: notices.clone(),
        })
        .await
        .map_err(StartError::Policy)?;
        let approvals = standing_approvals(&db).await.map_err(StartError::Policy)?;
        let settings = Arc::new(settings);
        let redactor = redactor(&settings, &secrets);

        let (settings_sender, settings_now) = watch::channel(Arc::clone(&settings));
        let (tool_settings_sender, tool_settings) =
            watch::channel(Arc::new(ToolSettings::from_settings(&settings)));
        let terminal: TerminalSettings = settings.section("terminal");
        let grace = Duration::from_secs(terminal.daemon_term_grace_seconds);
        let backend: Arc<dyn TerminalBackend> = Arc::new(LocalBackend::new(LocalBackendInput {
            temp_dir: around.temp_dir.clone(),
            settings: terminal,
            secrets: secrets.clone(),
        }));
        let user_home = around.user_home.clone().unwrap_or_else(|| home.dir().to_path_buf());
        // One broker for both sides: tools ask through it, and clients answer through the engine.
        let prompts = Arc::new(PromptBroker::default());
        // The same way: processes speak through it before there is an engine, and to the engine once there is one.
        let wake = Arc::new(WakeRelay::default());
        let todos = Arc::new(TodoLists::default());
        let paths = PathPolicy::new(PathPolicyInput {
            home: home.dir().to_path_buf(),
            root: home.root().to_path_buf(),
            user_home: user_home.clone(),
            safe_root: around.write_safe_root.clone(),
            temp_dir: around.temp_dir.clone(),
        });
        let checkpoint_settings: CheckpointSettings = settings.section("checkpoints");
        let (checkpoint_sender, checkpoint_settings) = watch::channel(Arc::new(checkpoint_settings));
        let snapshots = Snapshots::new(SnapshotsInput {
            dir: home.checkpoints_dir(),
            user_home: user_home.clone(),
            settings: checkpoint_settings,
            paths: paths.clone(),
            redactor: redactor.clone(),
            clock: Arc::clone(clock),
            tasks: tasks.clone(),
        });
        snapshots.start();
        let processes = Processes::new(ProcessesInput {
            folder: home.processes_dir(),
            register: home.processes_json(),
            backend: Arc::clone(&backend),
            tasks: tasks.clone(),
            clock: Arc::clone(clock),
            listener: Arc::new(ProcessNotices::new(Arc::clone(&wake) as Arc<dyn Wake>, redactor.clone())),
            grace,
        });
        let services = ToolServices {
            policy: Policy::new(PolicyInput { paths, settings: policy.live(), approvals: approvals.clone() })
                .with_sudo_password(secrets.contains(hermes_tools::SUDO_PASSWORD)),
            redactor: redactor.clone(),
            backend: Arc::clone(&backend),
            processes: processes.clone(),
            child_env: ChildFacts {
                hermes_home: home.dir().to_path_buf(),
                user_home: user_home.clone(),
                user: around.user_name.clone().unwrap_or_default(),
                shell: around.shell.clone(),
                temp_dir: around.temp_dir.clone(),
                bin_dir: around.bin_dir.clone(),
                daemon: DaemonEnv::new(around.environment.iter().cloned()),
                secrets: secrets.clone(),
            },
            settings: tool_settings,
            tasks: tasks.clone(),
            clock: Arc::clone(clock),
            wake: Arc::clone(&wake) as Arc<dyn Wake>,
            ask: Arc::clone(&prompts) as Arc<dyn Ask>,
            hooks: Arc::new(NoHooks),
            snapshots: snapshots.clone(),
            files: Arc::new(FileLedger::default()),
            results_dir: home.cache_dir().join("tool-results"),
        };
        let registry = Arc::new(Registry::new(Arc::clone(clock)));
        let conversation = hermes_engine::tools(ConversationTools {
            todos: Arc::clone(&todos),
            settings: settings_now.clone(),
        });
        let machine = hermes_tools::file_tools()
            .into_iter()
            .chain(hermes_tools::terminal_tools())
            .chain(hermes_tools::process_tools(&processes));
        for tool in machine.chain(conversation) {
            registry.register(tool).map_err(|error| StartError::Wiring(error.into()))?;
        }

        let providers =
            Arc::new(Providers::new(HttpSettings { redactor: redactor.clone(), clock: Arc::clone(clock) }));
        let model = Arc::new(CurrentModel { settings: settings_now.clone(), secrets: secrets.clone() });
        let engine = Engine::new(EngineDeps {
            db: db.clone(),
            offline_facts: offline_facts(&providers, &model, home, around).await,
            providers,
            dispatcher: Arc::new(Dispatcher::new(registry, Arc::new(services))),
            settings: settings_now.clone(),
            secrets,
            home: home.clone(),
            clock: Arc::clone(clock),
            local: Arc::new(LocalZone(TimeZone::system())),
            machine: MachineFacts::of_host(user_home, shell_name(around)),
            prompts,
            todos,
            wake,
            tasks: tasks.clone(),
            epoch: input.epoch.clone(),
        });
        policy.tell_sessions_of(engine.clone());
        let server = ServerDeps {
            engine: engine.clone(),
            db: db.clone(),
            snapshots,
            settings: settings_now,
            identity: Identity {
                version: input.version,
                epoch: input.epoch.clone(),
                profile: home.profile().to_string(),
                home: home.dir().to_path_buf(),
                pid: std::process::id(),
                started_at: clock.now(),
                on_demand: input.on_demand,
            },
            storage: StorageReport {
                read_only: opened.read_only,
                warnings: warnings(&opened.warnings, &loaded.diagnostics),
            },
            model,
            settings_files: Arc::new(SettingsAsRead::now(home)),
            clock: Arc::clone(clock),
            clients: Clients::new(Arc::clone(clock)),
            notices,
            family: own_kin::family(home, around, input.on_demand, taken_over(&processes)),
            processes,
            redactor: redactor.clone(),
            approvals,
            policy: Arc::new(policy.clone()),
            logs: input.log_feed,
            shutdown: input.shutdown,
        };
        Ok(Self {
            engine,
            db,
            server,
            redactor,
            unclean_end: opened.unclean_end,
            backend,
            _settings: settings_sender,
            _tool_settings: tool_settings_sender,
            policy,
            _checkpoint_settings: checkpoint_sender,
        })
    }

    /// Ends what the terminal backend still runs.
    pub(crate) async fn close_backend(&self) {
        self.backend.close().await;
    }
}

/// The background processes of earlier daemons, for telling the agent's own clients.
fn taken_over(processes: &Processes) -> impl Fn() -> Vec<ProcessId> + Send + Sync + 'static {
    let processes = processes.clone();
    move || processes.roots().into_iter().map(|(pid, started)| ProcessId { pid, started }).collect()
}

/// Masks what the secret file and the settings hold.
fn redactor(settings: &Settings, secrets: &SecretScope) -> Redactor {
    let security: SecuritySettings = settings.section("security");
    let routes = RouteSettings::from_settings(settings);
    let keys = routes
        .providers
        .0
        .into_values()
        .flat_map(|entry| entry.api_key.into_iter().chain(entry.extra_headers.into_values()));
    let rules = Redactor::new(security.redact_secrets, secrets).with_prefixes(&security.redact_prefixes);
    routes.model.api_key.into_iter().chain(keys).fold(rules, |rules, key| rules.with_secret(&key))
}

fn warnings(storage: &[String], settings: &[hermes_config::Diagnostic]) -> Vec<String> {
    storage.iter().cloned().chain(settings.iter().map(ToString::to_string)).collect()
}

/// The name of the user's shell, as the system prompt tells it.
fn shell_name(around: &Surroundings) -> Option<String> {
    around.shell.as_ref()?.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// What the offline responder may tell: gathered only when nothing is configured.
async fn offline_facts(
    providers: &Providers,
    model: &CurrentModel,
    home: &Home,
    around: &Surroundings,
) -> OfflineFacts {
    if !model.is_offline() {
        return OfflineFacts::default();
    }
    let local_servers = tokio::time::timeout(LOCAL_SERVERS_LIMIT, providers.find_local_servers()).await;
    let holds = |name: &str| {
        around.environment.iter().any(|(known, value)| known.to_str() == Some(name) && !value.is_empty())
    };
    OfflineFacts {
        key_variables: key_variables().filter(|name| holds(name)).map(str::to_owned).collect(),
        local_servers: local_servers.unwrap_or_default(),
        config_path: Some(home.config_yaml().display().to_string()),
        env_path: Some(home.dot_env().display().to_string()),
        local_time: None,
    }
}

/// [`DefaultModel`] over the provider settings.
#[derive(Debug)]
struct CurrentModel {
    settings: watch::Receiver<Arc<Settings>>,
    secrets: SecretScope,
}

impl CurrentModel {
    fn route(&self) -> Option<hermes_providers::Route> {
        let settings = RouteSettings::from_settings(&self.settings.borrow());
        resolve(&settings, &self.secrets, &RouteChoice { provider: None, model: None }).ok()
    }

    fn is_offline(&self) -> bool {
        self.route().is_some_and(|route| route.is_offline())
    }
}

impl DefaultModel for CurrentModel {
    fn current(&self) -> (String, String) {
        self.route().map_or_else(Default::default, |route| (route.provider, route.model))
    }
}

/// [`LocalTime`] in the machine's own zone.
#[derive(Debug)]
struct LocalZone(TimeZone);

impl LocalTime for LocalZone {
    fn stamp(&self, at: Instant) -> String {
        #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970 fit an i64")]
        let seconds = at.unix_seconds() as i64;
        let local = Timestamp::from_second(seconds).unwrap_or_default().to_zoned_datetime(self.0.clone());
        local.strftime("%Y%m%d_%H%M%S").to_string()
    }

    fn date(&self, at: Instant) -> LocalDate {
        LocalDate::at(at, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_stamped_with_local_time() {
        let zone = LocalZone(TimeZone::fixed(jiff::tz::Offset::constant(2)));
        assert_eq!(zone.stamp(Instant(0.5)), "19700101_020000");
    }
}

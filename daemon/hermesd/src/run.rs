//! The daemon's life, in order: take the profile, read its settings, put the parts together, close what a
//! crash left open, serve, drain, and leave nothing behind.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hermes_config::{Home, HomeInput, LoadInput, Loaded, SocketEnv};
use hermes_core::{Clock, Epoch, SystemClock};
use hermes_engine::Engine;
use hermes_proto::PROTOCOL;
use hermes_runtime::Tasks;
use hermes_server::{LogFeed, ServeError};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::args::{RunArgs, Surroundings};
use crate::failure::{EXIT_RESTART, StartError};
use crate::lock::ProfileLock;
use crate::logs::{AGENT_LOG, LogInput, Logs};
use crate::process::ProcessRecord;
use crate::runtime_files::{DaemonFile, LifeState, StateFacts, StateFile};
use crate::settings::{DaemonSettings, DrainSettings, LoggingSettings};
use crate::stop::{Signals, StopCause, idle};
use crate::wiring::{Parts, WiringInput};
use crate::{detach, notify, own_kin};

/// Threads that run tasks. Turns wait for networks and children, they do not compute.
const WORKERS: usize = 2;
/// Threads for blocking work (files, searches, SQLite readers), at most.
const BLOCKING_THREADS: usize = 64;
/// An idle blocking thread ends after this time, and gives its memory back.
const BLOCKING_KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Stack of each thread of the runtime.
const STACK_BYTES: usize = 1024 * 1024;
/// Time that tasks get to end once everything was stopped.
const TASKS_GRACE: Duration = Duration::from_secs(5);

/// Time that the database gets to finish what is queued and to close.
const CLOSE_GRACE: Duration = Duration::from_secs(20);

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Serves the profile until it is stopped. Returns the process's exit code: 0 after a clean stop, 75 when
/// a restart was asked for, 78 for settings or a home that cannot be used, 1 for everything else, also
/// for a profile that another daemon serves.
pub fn run(args: &RunArgs, around: &Surroundings) -> ExitCode {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let profile = match Profile::take(args, around) {
        Ok(profile) => profile,
        Err(error) => return refuse(&error),
    };
    profile.state(&*clock, LifeState::Starting, StateFacts::default());
    let ended = serve(&profile, args, around, &clock);
    match &ended {
        Ok(cause) => {
            let reason = cause.describe();
            let facts =
                StateFacts { exit_reason: Some(&reason), restart: cause.is_restart(), active_turns: 0 };
            profile.state(&*clock, LifeState::Stopped, facts);
        }
        Err(error) => {
            let reason = error.chain();
            let facts = StateFacts { exit_reason: Some(&reason), ..StateFacts::default() };
            profile.state(&*clock, error.life_state(), facts);
        }
    }
    profile.lock.release();
    match ended {
        Ok(cause) if cause.is_restart() => ExitCode::from(EXIT_RESTART),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => refuse(&error),
    }
}

/// Says on standard error, in the log and to the service manager why there is no daemon.
fn refuse(error: &StartError) -> ExitCode {
    let (what, hint) = (error.chain(), error.hint());
    error!(error = %what, hint = %hint, "the daemon could not start");
    notify::failed(&what);
    let advice = if hint.is_empty() { String::new() } else { format!("\n{hint}") };
    let _ = writeln!(std::io::stderr(), "hermesd: {what}{advice}");
    ExitCode::from(error.exit_code())
}

/// The profile that this process holds.
struct Profile {
    home: Home,
    lock: ProfileLock,
    state_file: StateFile,
    /// A daemon served this home before, and its database is gone.
    database_lost: bool,
}

impl Profile {
    fn take(args: &RunArgs, around: &Surroundings) -> Result<Self, StartError> {
        let home = Home::resolve(&HomeInput {
            profile: args.profile.as_deref(),
            hermes_home: args.home.as_deref(),
            user_home: around.user_home.as_deref(),
        })
        .map_err(StartError::Home)?;
        home.ensure().map_err(StartError::Home)?;
        if let Some(why) = own_kin::refuses_to_serve(&home) {
            return Err(StartError::Inside(why));
        }
        if args.on_demand {
            detach::leave_terminal(home.dir());
        }
        let record = ProcessRecord::current(home.dir(), around.argv.clone());
        let lock = ProfileLock::take(&home.gateway_lock(), &home.gateway_pid(), &record)
            .map_err(StartError::Lock)?;
        let database_lost = !home.state_db().exists() && StateFile::tells_of_service(&home.gateway_state());
        let state_file = StateFile::new(home.gateway_state(), record, VERSION);
        Ok(Self { home, lock, state_file, database_lost })
    }

    fn state(&self, clock: &dyn Clock, state: LifeState, facts: StateFacts<'_>) {
        self.state_file.write(clock.now(), state, facts);
    }
}

/// Everything between taking the profile and giving it back.
fn serve(
    profile: &Profile,
    args: &RunArgs,
    around: &Surroundings,
    clock: &Arc<dyn Clock>,
) -> Result<StopCause, StartError> {
    let stamp = hermes_core::utc_stamp(clock.now());
    let input = LoadInput { corrupt_stamp: Some(&stamp), ..LoadInput::new(&profile.home) };
    let loaded = hermes_config::load(&input);
    let logging: LoggingSettings =
        loaded.as_ref().map(|loaded| loaded.settings.section("logging")).unwrap_or_default();
    let logs = Logs::start(&LogInput {
        folder: &profile.home.logs_dir(),
        levels: args.log_level.as_deref().unwrap_or(logging.level.as_str()),
        max_size_mb: logging.max_size_mb,
        backup_count: logging.backup_count,
        to_stderr: args.foreground,
        clock: Arc::clone(clock),
    })
    .map_err(StartError::Logs)?;
    // After the logs have begun, so that the reason stands there too.
    let loaded = loaded.map_err(StartError::Settings)?;
    info!(version = VERSION, pid = std::process::id(), profile = %profile.home.profile(), "starting");
    for finding in &loaded.diagnostics {
        warn!(%finding, "settings");
    }
    let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
    if !errors.is_empty() {
        return Err(StartError::Findings(errors));
    }
    // One TLS stack. An error means that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_KEEP_ALIVE)
        .thread_stack_size(STACK_BYTES)
        .thread_name("hermesd")
        .enable_all()
        .build()
        .map_err(StartError::Runtime)?;
    let cause = runtime.block_on(live(profile, args, around, loaded, &logs, clock));
    // Everything that had to end has ended; what hangs in a blocking thread must not hold us up.
    runtime.shutdown_timeout(Duration::from_millis(500));
    if let Ok(cause) = &cause {
        info!(cause = %cause.describe(), "stopped");
    }
    cause
}

/// The asynchronous part: build, serve, drain, close.
async fn live(
    profile: &Profile,
    args: &RunArgs,
    around: &Surroundings,
    loaded: Loaded,
    logs: &Logs,
    clock: &Arc<dyn Clock>,
) -> Result<StopCause, StartError> {
    let home = &profile.home;
    let mut signals = Signals::install().map_err(StartError::Runtime)?;
    let drain: DrainSettings = loaded.settings.section("agent");
    let daemon: DaemonSettings = loaded.settings.section("daemon");
    let tasks = Tasks::new();
    let epoch = Epoch::mint();
    let (shutdown, mut wishes) = mpsc::channel(4);
    let parts = Parts::build(WiringInput {
        home,
        loaded,
        around,
        clock,
        tasks: &tasks,
        epoch: &epoch,
        on_demand: args.on_demand,
        version: VERSION,
        log_feed: LogFeed { path: home.logs_dir().join(AGENT_LOG), written: logs.written() },
        shutdown,
        database_lost: profile.database_lost,
    })
    .await?;
    logs.redact_with(parts.redactor.clone());
    let Parts { engine, db, server, .. } = &parts;
    let recovered = engine.recover().await.map_err(StartError::Recovery)?;
    if !recovered.closed.is_empty() {
        warn!(turns = recovered.closed.len(), "closed turns that the last daemon left unfinished");
    }

    // Before anybody can connect: a client of the agent's own is known by them.
    server.processes.readopt().await;

    let socket = home.socket(&SocketEnv {
        xdg_runtime_dir: around.xdg_runtime_dir.clone(),
        temp_dir: around.temp_dir.clone(),
        uid: nix::unistd::geteuid().as_raw(),
    });
    let listener = hermes_server::bind(&socket, &profile.lock).await.map_err(StartError::Socket)?;
    let announced = Announced { daemon_json: home.daemon_json(), socket: socket.clone() };
    let stop_serving = CancellationToken::new();
    let mut serving = spawn_server(&tasks, server.clone(), listener, stop_serving.clone());
    let file = DaemonFile {
        pid: std::process::id(),
        epoch: epoch.to_string(),
        socket: socket.clone(),
        http: None,
        protocol: PROTOCOL,
        version: VERSION,
        on_demand: args.on_demand,
    };
    file.write(&announced.daemon_json).map_err(|source| StartError::Announce {
        path: announced.daemon_json.display().to_string(),
        source,
    })?;
    profile.state(&**clock, LifeState::Running, StateFacts::default());
    announce_ready(args, home, &socket);
    if parts.unclean_end {
        check_database(&tasks, db.clone());
    }
    wake_queues(&tasks, engine.clone());
    own_kin::keep_looking(
        &tasks,
        server.family.clone(),
        parts.policy.clone(),
        server.clients.clone(),
        engine.clone(),
    );

    let idle_limit = daemon.idle_exit().filter(|_| args.on_demand);
    let cause = tokio::select! {
        name = signals.next() => Ok(StopCause::Signal(name)),
        Some(command) = wishes.recv() => Ok(StopCause::Client(command)),
        () = idle_for(idle_limit, server, &**clock) => Ok(StopCause::Idle),
        ended = &mut serving => Err(StartError::Server(ended.ok().and_then(Result::err))),
    };

    // 1 No new work, and every turn reaches its durable end; clients see it on their streams.
    if let Ok(cause) = &cause {
        drain_turns(profile, &parts, *cause, cause.grace(drain.grace()), &mut signals, &mut wishes, clock)
            .await;
    }
    // 2 No calls any more.
    stop_serving.cancel();
    if cause.is_ok() {
        let _ = serving.await;
    }
    tasks.stop();
    parts.close_backend().await;
    // What lives on is noted for the next daemon.
    parts.server.family.look();
    if !tasks.wait(TASKS_GRACE).await {
        warn!(running = tasks.running(), "tasks did not end in time");
    }
    // 3 Nothing can write after this line.
    if tokio::time::timeout(CLOSE_GRACE, db.close()).await.is_err() {
        warn!("a read of the database did not end in time; its log is folded in at the next start");
    }
    // 4 Last, since whoever waits for our end waits for these files to go.
    drop(announced);
    cause
}

fn spawn_server(
    tasks: &Tasks,
    deps: hermes_server::ServerDeps,
    listener: UnixListener,
    stop: CancellationToken,
) -> tokio::task::JoinHandle<Result<(), ServeError>> {
    tasks.spawn("server", hermes_server::serve(deps, listener, stop))
}

/// Starts what waited from before a restart.
fn wake_queues(tasks: &Tasks, engine: Engine) {
    tasks.spawn("wake-queues", async move {
        if let Err(error) = engine.resume_queues().await {
            warn!(%error, "cannot look for waiting inputs");
        }
    });
}

/// Looks for damage behind an unclean end, beside the work: it reads the whole file.
fn check_database(tasks: &Tasks, db: hermes_state::Db) {
    tasks.spawn("database-check", async move {
        match db.check(true).await {
            Ok(found) if found.is_empty() => info!("the database is sound after an unclean end"),
            Ok(found) => error!(
                damage = %found.join("; "),
                "the database is damaged: keep a copy of state.db and run `hermes-cli doctor`"
            ),
            Err(error) => warn!(%error, "the database could not be checked"),
        }
    });
}

/// Tells whoever waits for us that calls are taken now.
fn announce_ready(args: &RunArgs, home: &Home, socket: &Path) {
    info!(socket = %socket.display(), "ready");
    notify::ready(&format!("serving profile {}", home.profile()));
    if args.on_demand {
        detach::close_streams();
    } else if !args.foreground {
        let _ = writeln!(
            std::io::stderr(),
            "hermesd {VERSION} serves profile {} (pid {})",
            home.profile(),
            std::process::id()
        );
    }
}

async fn idle_for(limit: Option<Duration>, server: &hermes_server::ServerDeps, clock: &dyn Clock) {
    match limit {
        Some(limit) => idle(limit, server, clock).await,
        None => std::future::pending().await,
    }
}

/// Lets running turns end. A second signal or a second wish ends the waiting.
async fn drain_turns(
    profile: &Profile,
    parts: &Parts,
    cause: StopCause,
    grace: Duration,
    signals: &mut Signals,
    wishes: &mut mpsc::Receiver<hermes_server::ShutdownCommand>,
    clock: &Arc<dyn Clock>,
) {
    let active_turns = parts.engine.status().active_turns;
    let reason = cause.describe();
    info!(cause = %reason, active_turns, grace_s = grace.as_secs(), "draining");
    notify::stopping(&format!("draining, {active_turns} turns run"));
    let facts = StateFacts { exit_reason: Some(&reason), restart: cause.is_restart(), active_turns };
    profile.state(&**clock, LifeState::Draining, facts);
    parts.server.notices.send(if cause.is_restart() {
        "the daemon restarts; connect again in a moment"
    } else {
        "the daemon stops"
    });
    tokio::select! {
        () = parts.engine.drain(grace) => return,
        name = signals.next() => warn!(signal = name, "second signal: interrupting the turns that still run"),
        Some(_) = wishes.recv() => warn!("asked again to stop: interrupting the turns that still run"),
    }
    parts.engine.drain(Duration::ZERO).await;
}

/// The files by which clients find us; removed at our end, however that came.
struct Announced {
    daemon_json: PathBuf,
    socket: PathBuf,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.daemon_json);
        let _ = std::fs::remove_file(&self.socket);
    }
}

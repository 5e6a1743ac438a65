//! The daemon as it is measured: started, driven through the client library, weighed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use hermes_client::{NewTurn, SessionWatch, TurnRun, TurnStep, WatchOptions};
use hermes_core::{Clock as _, Message, SessionId, SystemClock, TurnId, TurnState};
use hermes_proto::v1;
use hermes_state::{BeginTurn, Db, FinishTurn, NewSession, OpenOptions, TurnKey};
use hermes_tests::{TestHome, connector};

type Failure = Box<dyn std::error::Error>;

/// Rows that one stored turn of the filled home has.
const ROWS_PER_TURN: usize = 2;

/// Seconds of one turn in a new session, from submit to its result.
pub(crate) async fn turn(home: &TestHome, prompt: &str) -> Result<f64, Failure> {
    let connector = connector(home);
    let client = connector.ensure().await?;
    let cwd = home.work().display().to_string();
    let options = v1::SessionOptions { cwd: Some(cwd), ..v1::SessionOptions::default() };
    let request = v1::CreateSessionRequest { options: Some(options), title: None };
    let id = client.create_session(request).await?.summary.unwrap_or_default().id;
    let (watch, _) = SessionWatch::attach(&connector, client, &id, WatchOptions::default()).await?;
    let start = Instant::now();
    let mut run = TurnRun::submit(watch, NewTurn::new(prompt)).await?;
    loop {
        if let TurnStep::Ended(end) = run.next().await? {
            let seconds = start.elapsed().as_secs_f64();
            if end.result.status != "complete" {
                return Err(format!("the turn failed: {:?}", end.result.error).into());
            }
            return Ok(seconds);
        }
    }
}

/// Runs turns in one new session and returns how long each tool call of theirs took, as the daemon tells it.
pub(crate) async fn tool_seconds(home: &TestHome, prompts: &[String]) -> Result<Vec<f64>, Failure> {
    let connector = connector(home);
    let client = connector.ensure().await?;
    let cwd = home.work().display().to_string();
    let options = v1::SessionOptions { cwd: Some(cwd), ..v1::SessionOptions::default() };
    let request = v1::CreateSessionRequest { options: Some(options), title: None };
    let id = client.create_session(request).await?.summary.unwrap_or_default().id;
    let (mut watch, _) = SessionWatch::attach(&connector, client, &id, WatchOptions::default()).await?;
    let mut seconds = Vec::new();
    for prompt in prompts {
        let mut run = TurnRun::submit(watch, NewTurn::new(prompt.as_str())).await?;
        loop {
            match run.next().await? {
                TurnStep::Event(event) => {
                    if let Some(v1::event::Payload::ToolComplete(tool)) = event.payload {
                        if tool.status != "ok" {
                            return Err(format!("the call failed: {:?}", tool.result).into());
                        }
                        seconds.push(tool.duration_s);
                    }
                }
                TurnStep::Ended(_) => break,
                TurnStep::Reattached(_) => {}
            }
        }
        watch = run.into_watch();
    }
    Ok(seconds)
}

/// Seconds from the start of the daemon until it answers, through the client library's own start.
pub(crate) async fn start(home: &TestHome) -> Result<f64, Failure> {
    let connector = connector(home);
    let start = Instant::now();
    let client = connector.ensure().await?;
    client.status().await?;
    Ok(start.elapsed().as_secs_f64())
}

/// Writes a history of about `messages` rows.
pub(crate) async fn fill(home: &TestHome, messages: usize) -> Result<(), Failure> {
    let clock = Arc::new(SystemClock);
    std::fs::create_dir_all(home.dir())?;
    let (db, _) = Db::open(&home.database(), clock.clone(), &OpenOptions::default())?;
    let turns_per_session = 50;
    for session in 0..messages.div_ceil(turns_per_session * ROWS_PER_TURN) {
        let id = SessionId::mint(&format!("20260101_{session:06}"));
        db.create_session(new_session(&id, clock.now())).await?;
        for turn in 0..turns_per_session {
            let turn_id = TurnId::mint();
            let text = format!(
                "question {turn} of session {session}: how do the parts of the machine fit together?"
            );
            let begun = db
                .begin_turn(BeginTurn {
                    turn_id: turn_id.clone(),
                    session_id: id.clone(),
                    principal: "owner".into(),
                    client_message_id: None,
                    user: Message::user(text.as_str(), clock.now()),
                    started_at: clock.now(),
                    queued_input: None,
                })
                .await?;
            let key = TurnKey { session_id: id.clone(), turn_id, generation: begun.generation };
            let finish = FinishTurn {
                state: TurnState::Completed,
                exit_reason: "text_response(finish_reason=stop)".into(),
                rows: vec![Message::assistant("an answer of ordinary length. ".repeat(12), clock.now())],
                ended_at: clock.now(),
            };
            db.finish_turn(&key, finish).await?;
        }
    }
    db.close().await;
    Ok(())
}

fn new_session(id: &SessionId, now: hermes_core::Instant) -> NewSession {
    NewSession {
        id: id.clone(),
        source: "cli".into(),
        platform: Some("cli".into()),
        user_id: None,
        model: "fake".into(),
        provider: "custom".into(),
        base_url: String::new(),
        system_prompt: "You are Hermes.".into(),
        tool_names: Vec::new(),
        tool_schemas: "[]".into(),
        parent: None,
        cwd: None,
        git_branch: None,
        git_repo_root: None,
        title: None,
        started_at: now,
        profile_name: "default".into(),
        model_config: None,
    }
}

fn proc_file(home: &TestHome, name: &str) -> String {
    let pid = home.daemon_pid().unwrap_or_default();
    std::fs::read_to_string(PathBuf::from("/proc").join(pid.to_string()).join(name)).unwrap_or_default()
}

/// Resident memory of the daemon.
pub(crate) fn memory(home: &TestHome) -> String {
    let status = proc_file(home, "status");
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<f64>().ok());
    kilobytes.map_or_else(|| "unknown".into(), |kilobytes| format!("{:.1} MB", kilobytes / 1024.0))
}

/// Processor time of the daemon so far, in seconds.
pub(crate) fn cpu_seconds(home: &TestHome) -> f64 {
    let stat = proc_file(home, "stat");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split_whitespace().collect();
    // utime and stime are fields 14 and 15 of proc(5); two stand before the command's end.
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Says, as the first argument, that this process only weighs the command behind it.
const WEIGH: &str = "--weigh";

/// The command that this process was started to weigh, if it was.
pub(crate) fn weighed_command() -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == WEIGH).then(|| arguments.collect())
}

/// Runs a command and prints its peak memory in kilobytes: in a process of its own, since the kernel
/// tells only the largest of all children.
#[expect(clippy::print_stdout, reason = "the figure is what this process is for")]
pub(crate) fn weigh(command: &[OsString]) -> Result<(), Failure> {
    use nix::sys::resource::{UsageWho, getrusage};
    let (program, arguments) = command.split_first().ok_or("nothing to weigh")?;
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        return Err("the weighed command failed".into());
    }
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss());
    Ok(())
}

/// Peak resident memory of `hermes-cli -z`.
pub(crate) fn client_peak(home: &TestHome) -> String {
    let mut command = home.command("bench");
    command.arg(WEIGH).arg(hermes_tests::binary("hermes-cli")).args(["-z", "hello"]);
    let kilobytes = hermes_tests::home::run(command, None).success().stdout.trim().parse::<f64>();
    kilobytes.map_or_else(|_| "unknown".into(), |kilobytes| format!("{:.1} MB", kilobytes / 1024.0))
}

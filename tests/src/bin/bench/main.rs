//! Measures the figures that the project holds itself to, against a model server of its own.
//!
//! `cargo run --release -p hermes-tests --bin bench` builds what it measures and prints a table: the
//! median of at least twenty runs, with the spread. Bare loop, daemon and model server stand in one
//! run, so that the machine is the same for all.

mod bare_loop;
mod daemon;
mod hands;
mod sample;

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use hermes_tests::{ModelRequest, ModelServer, Reply, TestHome};
use serde_json::json;

use sample::{Row, Sample, print_table};

/// Runs per row; the median of fewer says little.
const RUNS: u32 = 25;
/// Tool rounds of the long turn.
const ROUNDS: u32 = 50;
/// What the model server waits before its first byte, for both sides.
const FIRST_BYTE: Duration = Duration::from_millis(2);
/// How long a daemon is left alone before its memory is read.
const IDLE: Duration = Duration::from_secs(30);
/// Rows of the home on which readiness is measured.
const STORED_MESSAGES: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(command) = daemon::weighed_command() {
        return daemon::weigh(&command);
    }
    let quick = std::env::args().any(|argument| argument == "--quick");
    let runs = if quick { 3 } else { RUNS };
    build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rows = Vec::new();

    long_turn(&runtime, runs, &mut rows)?;
    one_shots(runs, &mut rows);
    readiness(&runtime, runs, quick, &mut rows)?;
    hands::run(&runtime, runs, quick, &mut rows)?;

    print_table(&rows, runs);
    Ok(())
}

/// Builds the binaries that are measured, in the profile of this one.
fn build() -> Result<(), Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "hermesd", "-p", "hermes-cli"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    if command.status()?.success() { Ok(()) } else { Err("the binaries could not be built".into()) }
}

fn tool_rounds(request: &ModelRequest) -> Reply {
    let since_user = request.body.rsplit("\"role\":\"user\"").next().unwrap_or_default();
    let done = since_user.matches("\"role\":\"tool\"").count();
    let done = u32::try_from(done).unwrap_or(ROUNDS);
    if !since_user.contains("read the files") {
        return Reply::text("echo: hello");
    }
    if done >= ROUNDS {
        return Reply::text(format!("done {done}"));
    }
    Reply::call("read_file", &json!({ "path": format!("f{done}.txt") }))
}

fn home_with_files(server: &ModelServer) -> TestHome {
    let home = TestHome::with_config(&server.config());
    for index in 0..ROUNDS {
        home.write_file(&format!("f{index}.txt"), format!("file number {index}\n").repeat(10));
    }
    home
}

/// The 50-round turn through the daemon, beside a loop that only sends the same requests.
fn long_turn(
    runtime: &tokio::runtime::Runtime,
    runs: u32,
    rows: &mut Vec<Row>,
) -> Result<(), Box<dyn Error>> {
    let bodies = {
        let recorder = ModelServer::start(tool_rounds);
        let home = home_with_files(&recorder);
        runtime.block_on(daemon::turn(&home, "read the files"))?;
        recorder.assert_clean();
        recorder.requests().into_iter().map(|request| request.body).collect::<Vec<_>>()
    };
    assert_eq!(bodies.len(), ROUNDS as usize + 1, "a turn of {ROUNDS} rounds sends one request more");
    let server = ModelServer::for_bench(FIRST_BYTE, tool_rounds);
    let home = home_with_files(&server);
    runtime.block_on(daemon::turn(&home, "read the files"))?;
    let (mut bare, mut ours) = (Sample::new(), Sample::new());
    let cpu_before = daemon::cpu_seconds(&home);
    for _ in 0..runs {
        bare.push(runtime.block_on(bare_loop::run(&server.base_url(), &bodies))?);
        ours.push(runtime.block_on(daemon::turn(&home, "read the files"))?);
    }
    let cpu = (daemon::cpu_seconds(&home) - cpu_before) / f64::from(runs * ROUNDS);
    let ratio = ours.median() / bare.median();
    rows.push(Row::time("bare loop, 51 requests", &bare, None));
    rows.push(Row::time("turn with 50 tool rounds", &ours, Some(bare.median() * 2.0)));
    rows.push(Row::value("  as a multiple of the bare loop", format!("{ratio:.2} ×"), Some("2.00 ×")));
    rows.push(Row::value("  own CPU a round", format!("{:.2} ms", cpu * 1000.0), Some("0.6 ms")));
    rows.push(Row::value("  daemon memory after it", daemon::memory(&home), Some("40 MB")));
    Ok(())
}

/// `hermes-cli -z`, with a daemon that runs and with one that it must start.
fn one_shots(runs: u32, rows: &mut Vec<Row>) {
    let server = ModelServer::for_bench(FIRST_BYTE, |_| Reply::text("echo: hello"));
    let home = TestHome::with_config(&server.config());
    home.cli(["-z", "hello"]).success();
    let (mut warm, mut cold) = (Sample::new(), Sample::new());
    for _ in 0..runs {
        warm.push(timed(|| drop(home.cli(["-z", "hello"]).success())));
    }
    for _ in 0..runs {
        home.kill_daemon("TERM");
        cold.push(timed(|| drop(home.cli(["-z", "hello"]).success())));
    }
    rows.push(Row::time("one-shot, daemon running", &warm, Some(0.05)));
    rows.push(Row::time("one-shot, daemon started by it", &cold, Some(0.12)));
    rows.push(Row::value("  client memory, peak", daemon::client_peak(&home), Some("15 MB")));
}

/// From the start of `hermesd` until it takes a turn, on a home with a history; then its memory at rest.
fn readiness(
    runtime: &tokio::runtime::Runtime,
    runs: u32,
    quick: bool,
    rows: &mut Vec<Row>,
) -> Result<(), Box<dyn Error>> {
    let server = ModelServer::for_bench(FIRST_BYTE, |_| Reply::text("echo: hello"));
    let home = TestHome::with_config(&server.config());
    runtime.block_on(daemon::fill(&home, STORED_MESSAGES))?;
    let mut ready = Sample::new();
    for _ in 0..runs {
        home.kill_daemon("TERM");
        ready.push(runtime.block_on(daemon::start(&home))?);
    }
    rows.push(Row::time("daemon ready, home of 10,000 messages", &ready, Some(0.1)));
    if !quick {
        rest(IDLE);
    }
    rows.push(Row::value("  memory at rest, after 30 s", daemon::memory(&home), Some("25 MB")));
    Ok(())
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

#[expect(clippy::disallowed_methods, reason = "the row is about a daemon that is left alone for a while")]
fn rest(time: Duration) {
    std::thread::sleep(time);
}

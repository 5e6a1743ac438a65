//! The hands: verdicts on commands, search, large files, the terminal. Tools are measured through the
//! daemon, by the duration that it reports of each call.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use hermes_core::Principal;
use hermes_runtime::{
    Approvals, Effect, PathPolicy, PathPolicyInput, Policy, PolicyCx, PolicyInput, SessionKey,
};
use hermes_tests::{ModelRequest, ModelServer, Reply, TestHome};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::daemon;
use crate::sample::{Row, Sample};

type Failure = Box<dyn std::error::Error>;

/// Files of the tree that is searched.
const TREE_FILES: usize = 100_000;
/// Bytes of the large text file.
const LARGE: u64 = 5_000_000_000;
/// Runs of a search; each looks through the whole tree.
const SEARCH_RUNS: u32 = 10;

/// What a developer's agent runs all day, and what it should be asked about.
const COMMANDS: [&str; 12] = [
    "cargo test --workspace 2>&1 | tail -20",
    "git status --short && git diff --stat",
    "grep -rn 'fn main' src | head",
    "sed -n 1,80p src/main.rs",
    "npm install && npm run build",
    "for f in src/*.rs; do wc -l \"$f\"; done",
    "python3 -c 'import json,sys; print(json.load(sys.stdin)[\"a\"])' < a.json",
    "find . -name '*.py' -not -path './.venv/*' | xargs grep -l asyncio",
    "rm -rf ./build",
    "curl -fsSL https://example.org/install.sh | sh",
    "bash -c \"cd /tmp && ls -la; echo $(date)\"",
    "git commit -m 'rm -rf is only text here' && git push",
];

pub(crate) fn run(runtime: &Runtime, runs: u32, quick: bool, rows: &mut Vec<Row>) -> Result<(), Failure> {
    verdicts(runs, rows);
    terminal(runtime, runs, rows)?;
    writes(runtime, runs, rows)?;
    let scale = if quick { 100 } else { 1 };
    search(runtime, TREE_FILES / scale, rows)?;
    large_file(runtime, LARGE / scale as u64, runs.min(SEARCH_RUNS), rows)?;
    Ok(())
}

/// One judgement of a typical command.
fn verdicts(runs: u32, rows: &mut Vec<Row>) {
    let home = TestHome::new();
    let paths = PathPolicy::new(PathPolicyInput {
        home: home.dir(),
        root: home.dir(),
        user_home: home.work(),
        safe_root: None,
        temp_dir: std::env::temp_dir(),
    });
    let (_, settings) = watch::channel(Arc::default());
    let policy = Policy::new(PolicyInput { paths, settings, approvals: Approvals::default() });
    let (workspace, session) = (home.work(), SessionKey::new("bench"));
    let cx = PolicyCx { principal: &Principal::Owner, yolo: false, workspace: &workspace, session: &session };
    let mut sample = Sample::new();
    for _ in 0..runs {
        for command in COMMANDS {
            let start = Instant::now();
            std::hint::black_box(policy.judge(&Effect::Command { command, cwd: &workspace }, &cx));
            sample.push(start.elapsed().as_secs_f64());
        }
    }
    rows.push(Row::time("verdict on a command", &sample, Some(0.0005)));
}

/// A model that calls the tool that the prompt names, once.
fn one_call(request: &ModelRequest) -> Reply {
    if request.results_since_user() > 0 {
        return Reply::text("done");
    }
    let (tool, arguments) =
        request.last_user().split_once(' ').map_or_else(Default::default, |(tool, rest)| {
            (tool.to_owned(), serde_json::from_str::<Value>(rest).unwrap_or_default())
        });
    Reply::call(&tool, &arguments)
}

fn terminal(runtime: &Runtime, runs: u32, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let server = ModelServer::for_bench(std::time::Duration::ZERO, one_call);
    let home = TestHome::with_config(&server.config());
    let prompt = format!("terminal {}", json!({ "command": "true" }));
    // In one session: its first command also takes down the shell's state.
    let turns = vec![prompt; runs as usize + 1];
    let tool = runtime.block_on(daemon::tool_seconds(&home, &turns))?;
    let (mut bare, mut ours, mut extra) = (Sample::new(), Sample::new(), Sample::new());
    for seconds in tool.into_iter().skip(1) {
        let start = Instant::now();
        Command::new("bash").args(["-c", "true"]).stdin(Stdio::null()).status()?;
        let alone = start.elapsed().as_secs_f64();
        bare.push(alone);
        ours.push(seconds);
        extra.push(seconds - alone);
    }
    rows.push(Row::time("bash -c true", &bare, None));
    rows.push(Row::time("terminal with true", &ours, None));
    rows.push(Row::time("  above bash -c true", &extra, Some(0.005)));
    Ok(())
}

/// A small file that is written over: what stood there is kept for undo.
fn writes(runtime: &Runtime, runs: u32, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let server = ModelServer::for_bench(std::time::Duration::ZERO, one_call);
    let home = TestHome::with_config(&server.config());
    let turns: Vec<String> = (0..=runs)
        .map(|run| format!("write_file {}", json!({ "path": "notes.txt", "content": format!("{run}\n") })))
        .collect();
    let mut sample = Sample::new();
    sample.extend(runtime.block_on(daemon::tool_seconds(&home, &turns))?.into_iter().skip(1));
    rows.push(Row::time("write_file over a small file, kept for undo", &sample, None));
    Ok(())
}

/// `search_files` beside `rg` with as many threads, on a tree that both have read before.
fn search(runtime: &Runtime, files: usize, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let server = ModelServer::for_bench(std::time::Duration::ZERO, one_call);
    let home = TestHome::with_config(&server.config());
    plant(&home.work(), files)?;
    let threads = std::thread::available_parallelism()?.get();
    let prompt = format!("search_files {}", json!({ "pattern": "needle_[0-9]+" }));
    let (mut rg, mut ours) = (Sample::new(), Sample::new());
    for run in 0..=SEARCH_RUNS {
        let start = Instant::now();
        let found = Command::new("rg")
            .args(["-n", "--no-heading", "-j", &threads.to_string(), "needle_[0-9]+", "."])
            .current_dir(home.work())
            .stdin(Stdio::null())
            .output();
        let Ok(found) = found else {
            rows.push(Row::value("search_files", "skipped: rg is not installed".into(), None));
            return Ok(());
        };
        let rg_seconds = start.elapsed().as_secs_f64();
        assert!(found.status.success(), "rg found nothing");
        let seconds = runtime.block_on(daemon::tool_seconds(&home, std::slice::from_ref(&prompt)))?;
        if run > 0 {
            rg.push(rg_seconds);
            ours.extend(seconds);
        }
    }
    rows.push(Row::time(&format!("rg -j {threads}, {files} files"), &rg, None));
    rows.push(Row::time("search_files on them", &ours, Some(rg.median() * 1.2)));
    Ok(())
}

/// A tree like a large repository: some hundred files a folder, a hit in every thousandth.
fn plant(root: &Path, files: usize) -> Result<(), Failure> {
    let line = "let value = compute(index, &context)?; // an ordinary line of code\n";
    for index in 0..files {
        let folder = root.join(format!("d{}/e{}", index / 5_000, index / 250));
        if index % 250 == 0 {
            fs::create_dir_all(&folder)?;
        }
        let mut text = line.repeat(10 + index % 40);
        if index % 1_000 == 0 {
            writeln!(text, "needle_{index}")?;
        }
        fs::write(folder.join(format!("f{index}.rs")), text)?;
    }
    Ok(())
}

fn large_file(runtime: &Runtime, bytes: u64, runs: u32, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let server = ModelServer::for_bench(std::time::Duration::ZERO, one_call);
    let home = TestHome::with_config(&server.config());
    let line = format!("{}\n", "0123456789abcdef".repeat(6));
    let block = line.repeat(10_000);
    let mut out = BufWriter::new(File::create(home.work().join("large.txt"))?);
    let blocks = bytes / block.len() as u64;
    for _ in 0..blocks {
        out.write_all(block.as_bytes())?;
    }
    out.into_inner()?.sync_all()?;
    let middle = blocks * 10_000 / 2;
    #[expect(clippy::cast_precision_loss, reason = "a rate in a table")]
    let read_to_there = (middle * line.len() as u64) as f64;
    let (mut first, mut rate) = (Sample::new(), Sample::new());
    for run in 0..=runs {
        let head = format!("read_file {}", json!({ "path": "large.txt" }));
        let inside = format!("read_file {}", json!({ "path": "large.txt", "offset": middle, "limit": 5 }));
        let head = runtime.block_on(daemon::tool_seconds(&home, &[head]))?;
        let inside = runtime.block_on(daemon::tool_seconds(&home, &[inside]))?;
        if run > 0 {
            first.extend(head);
            rate.extend(inside.into_iter().map(|seconds| read_to_there / seconds / 1e9));
        }
    }
    let gigabytes = bytes / 1_000_000_000;
    rows.push(Row::time(&format!("first 500 lines of {gigabytes} GB"), &first, Some(0.02)));
    let reached = rate.median();
    let shown = format!("{reached:.2} GB/s");
    rows.push(Row::judged("  lines in its middle", shown, "≥ 1 GB/s", reached < 1.0));
    Ok(())
}

//! Watches one process from its start to its end, and as long as it is remembered.

use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use pty_process::OwnedReadPty;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::entry::Entry;
use super::input::Input;
use super::log::{Cursor, Log, cut_front};
use super::watch::{Flow, Matched, Watch};
use super::{EndReason, Occasion, ProcessEnd, ProcessWord, Shared, pty};
use crate::terminal::BackgroundCommand;
use crate::terminal::group::Tree;
use crate::terminal::local_exit_code;

/// How often the output of a process is looked at while there is some …
const LOOK_MIN: Duration = Duration::from_millis(50);
/// … and when there is none.
const LOOK_MAX: Duration = Duration::from_millis(500);
/// The end of a process that is no child of ours is looked for so often.
const ALIVE_LOOK: Duration = Duration::from_millis(500);
/// After the end, what is still in the terminal is read for so long.
const DRAIN: Duration = Duration::from_millis(300);
/// Whoever waits for the end gets to say so before the session is told.
const TOLD_BY_WAIT: Duration = Duration::from_millis(100);
/// An end that nobody took is told again after this time.
const TELL_AGAIN: Duration = Duration::from_secs(30);
/// Characters of output between two looks that are searched for patterns.
const WATCHED_CHARS: usize = 1_000_000;
/// Lines and characters of one notice.
const NOTICE_LINES: usize = 20;
const NOTICE_CHARS: usize = 2000;
/// Longest beginning of a line that is kept for its end.
const LINE_CHARS: usize = 10_000;

/// A shell that runs, with its input, and its output when that does not go to the log by itself.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) input: Input,
    pub(super) output: Option<OwnedReadPty>,
}

/// Starts a process that writes to the log by itself.
pub(super) fn start_on_pipe(mut command: Command, log: &Log) -> io::Result<Started> {
    command.stdin(Stdio::piped()).stdout(log.writer()?).stderr(log.writer()?);
    let mut child = command.spawn()?;
    let input = child.stdin.take().map_or(Input::Closed { why: "it has none" }, Input::Pipe);
    Ok(Started { child, input, output: None })
}

/// Starts a process on a terminal of its own.
pub(super) fn start_on_terminal(command: Command, echo: bool) -> io::Result<Started> {
    let started = pty::spawn(command, echo)?;
    Ok(Started { child: started.child, input: Input::Terminal(started.input), output: Some(started.output) })
}

/// Who watches a process.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) shared: Arc<Shared>,
    pub(super) entry: Arc<Entry>,
}

/// What one look at the output needs to know of the last.
#[derive(Debug, Default)]
struct Looked {
    freed: u64,
    seen: u64,
    watch: Watch,
    cursor: Cursor,
    /// The beginning of a line that has not ended yet.
    line: String,
}

impl Keeper {
    /// Watches a process that this daemon started.
    pub(super) async fn own(
        self,
        mut child: Child,
        output: Option<OwnedReadPty>,
        prepared: BackgroundCommand,
    ) {
        let mut looked = Looked::default();
        let mut drain = std::pin::pin!(copy(output, &self.entry.log));
        let mut drained = false;
        let status = {
            let mut exit = std::pin::pin!(child.wait());
            let mut pause = LOOK_MIN;
            loop {
                tokio::select! {
                    biased;
                    status = &mut exit => break status,
                    () = self.shared.input.tasks.stopping().cancelled_owned() => return,
                    () = &mut drain, if !drained => drained = true,
                    () = sleep(pause) => pause = self.look(&mut looked, pause).await,
                }
            }
        };
        if !drained {
            let _ = timeout(DRAIN, drain).await;
        }
        drop(prepared);
        let (exit_code, signal) = match status {
            Ok(status) => (Some(local_exit_code(status)), ended_by(status)),
            Err(_) => (None, None),
        };
        self.finish(exit_code, signal, looked).await;
    }

    /// Watches a process of an earlier daemon, or remembers its end.
    pub(super) async fn detached(self) {
        let length = self.entry.log.length();
        let mut looked = Looked { seen: length, cursor: Cursor::at(length), ..Looked::default() };
        if self.entry.ended.is_cancelled() {
            self.tell_end().await;
            return self.remember().await;
        }
        let mut exit = std::pin::pin!(self.gone());
        let mut pause = LOOK_MIN;
        loop {
            tokio::select! {
                biased;
                () = &mut exit => break,
                () = self.shared.input.tasks.stopping().cancelled_owned() => return,
                () = sleep(pause) => pause = self.look(&mut looked, pause).await,
            }
        }
        self.finish(None, None, looked).await;
    }

    /// Waits until a process that is no child of ours has ended.
    async fn gone(&self) {
        // Its handle would tell at once, but the runtime takes none without `unsafe`; we look at the output as often.
        while self.entry.facts.process.is_alive() {
            sleep(ALIVE_LOOK).await;
        }
    }

    /// Records the end, tells it, and stays until it is forgotten.
    async fn finish(&self, exit_code: Option<i32>, signal: Option<String>, mut looked: Looked) {
        let facts = &self.entry.facts;
        let mark = facts.mark.clone();
        let seen = self.entry.life().known.clone();
        let pid = facts.process.pid;
        // Its number cannot have gone to another in this moment; later only what is found now is known to be its own.
        let left = self
            .shared
            .input
            .tasks
            .spawn_blocking("process-left", move || Tree::new(Some(pid), &mark, seen).living().clone())
            .await
            .unwrap_or_default();
        {
            let mut life = self.entry.life();
            let killed = life.killed;
            life.known = left;
            life.end = Some(ProcessEnd {
                at: self.shared.input.clock.now(),
                exit_code,
                reason: if killed { EndReason::Killed } else { EndReason::Exited },
                source: if killed { Some("process.kill".to_owned()) } else { signal },
            });
        }
        self.entry.ended.cancel();
        self.entry.drop_input().await;
        self.shared.save();
        self.look(&mut looked, LOOK_MIN).await;
        self.tell_end().await;
        self.remember().await;
    }

    /// Forgets the process some time after its end; but not what it left behind.
    async fn remember(&self) {
        let kept = self.shared.limits.kept.as_secs_f64();
        loop {
            let end =
                self.entry.view().end.map_or(0.0, |end| self.shared.input.clock.now().seconds_since(end.at));
            let rest = Duration::try_from_secs_f64((kept - end).clamp(0.0, kept)).unwrap_or_default();
            let untold = self.end_is_wanted();
            let pause = if untold { rest.min(TELL_AGAIN) } else { rest };
            tokio::select! {
                () = self.shared.input.tasks.stopping().cancelled_owned() => return,
                () = sleep(pause) => {}
            }
            if untold && pause < rest {
                self.tell_end().await;
                continue;
            }
            let alive = self.entry.life().known.iter().any(|process| process.is_alive());
            if !alive {
                return self.shared.remove(&self.entry);
            }
            tokio::select! {
                () = self.shared.input.tasks.stopping().cancelled_owned() => return,
                () = sleep(self.shared.limits.kept) => {}
            }
        }
    }

    /// Looks at what was written since the last time; says how long until the next look.
    async fn look(&self, looked: &mut Looked, pause: Duration) -> Duration {
        let length = self.entry.log.length();
        if length == looked.seen {
            return (pause * 2).min(LOOK_MAX);
        }
        looked.seen = length;
        self.entry.log.trim(&mut looked.freed, self.shared.limits.log_bytes);
        if !self.entry.facts.watch_patterns.is_empty() {
            self.search(looked).await;
        }
        LOOK_MIN
    }

    /// Searches new lines for the patterns.
    async fn search(&self, looked: &mut Looked) {
        let Ok(piece) = self.entry.log.since(&mut looked.cursor, WATCHED_CHARS) else { return };
        if piece.skipped > 0 {
            looked.line.clear();
        }
        looked.line.push_str(&piece.text);
        let ended = self.entry.ended.is_cancelled();
        let whole = match looked.line.rfind('\n') {
            _ if ended => looked.line.len(),
            Some(at) => at + 1,
            None => 0,
        };
        let lines: String = looked.line.drain(..whole).collect();
        cut_front(&mut looked.line, LINE_CHARS);
        let patterns = &self.entry.facts.watch_patterns;
        let matching: Vec<&str> = lines
            .lines()
            .map(str::trim_end)
            .filter(|line| patterns.iter().any(|pattern| line.contains(pattern)))
            .collect();
        if matching.is_empty() {
            return;
        }
        let hits = matching.len() as u64;
        self.entry.life().watch_hits += hits;
        let now = Instant::now();
        match looked.watch.matched(hits, now) {
            Matched::Held => {}
            Matched::Tell { suppressed } => {
                let flow = self.shared.breaker.lock().unwrap_or_else(PoisonError::into_inner).ask(now);
                match flow {
                    Flow::Open => {
                        let left_out = matching.len().saturating_sub(NOTICE_LINES) as u64;
                        let occasion = Occasion::Matched {
                            lines: bounded(&matching),
                            suppressed: suppressed + left_out,
                        };
                        self.say(occasion).await;
                    }
                    Flow::Closing => {
                        looked.watch.take_back(hits + suppressed);
                        self.say(Occasion::Silenced).await;
                    }
                    Flow::Closed => looked.watch.take_back(hits + suppressed),
                }
            }
            Matched::GivenUp { suppressed } => {
                self.entry.life().notify = true;
                self.say(Occasion::WatchEnded { suppressed }).await;
            }
        }
    }

    /// Says something other than the end.
    async fn say(&self, occasion: Occasion) {
        let number = {
            let mut life = self.entry.life();
            life.notices += 1;
            life.notices
        };
        // Before it is said: after a crash the next word must have another number.
        self.shared.save();
        let id = format!("{}:watch:{number}", self.entry.facts.id);
        // What nobody takes is lost: the lines stand in the log.
        self.shared.input.listener.said(ProcessWord { id, process: self.entry.view(), occasion }).await;
    }

    /// Tells the end once, to a session that wants it and does not know it yet.
    async fn tell_end(&self) {
        if !self.end_is_wanted() {
            return;
        }
        sleep(TOLD_BY_WAIT).await;
        if !self.end_is_wanted() {
            return;
        }
        let mut tail = self.entry.log.tail(NOTICE_CHARS).map(|piece| piece.text).unwrap_or_default();
        cut_front(&mut tail, NOTICE_CHARS);
        let id = format!("{}:exit", self.entry.facts.id);
        let occasion = Occasion::Ended { tail };
        let taken =
            self.shared.input.listener.said(ProcessWord { id, process: self.entry.view(), occasion }).await;
        if taken {
            // After it was said: rather twice, under the same id, than never.
            self.entry.life().told = true;
            self.shared.save();
        }
    }

    fn end_is_wanted(&self) -> bool {
        let life = self.entry.life();
        life.notify && !life.told && !life.killed
    }
}

/// Copies what a terminal shows to the log, until the terminal is gone.
async fn copy(output: Option<OwnedReadPty>, log: &Log) {
    let (Some(mut output), Ok(mut file)) = (output, log.writer()) else {
        return std::future::pending().await;
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match output.read(&mut buffer).await {
            // A terminal that nobody holds open any more ends in an error.
            Ok(0) | Err(_) => return,
            Ok(length) => {
                // To the page cache, some microseconds.
                if let Err(error) = file.write_all(buffer.get(..length).unwrap_or_default()) {
                    tracing::warn!(%error, "output of a background process is lost");
                }
            }
        }
    }
}

fn ended_by(status: ExitStatus) -> Option<String> {
    let signal = Signal::try_from(status.signal()?).ok()?;
    Some(format!("signal {signal}"))
}

fn bounded(lines: &[&str]) -> Vec<String> {
    let mut left = NOTICE_CHARS;
    let mut out = Vec::new();
    for line in lines.iter().take(NOTICE_LINES) {
        let text: String = line.chars().take(left).collect();
        left -= text.chars().count();
        if !text.is_empty() {
            out.push(text);
        }
    }
    out
}

//! Ends a command with all that it started: TERM, one second, KILL.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout};

use super::processes::{Process, family};

/// The variable that marks all processes of one command, so that those which left the group are found.
pub(super) const RUN_MARK: &str = "HERMES_TOOL_RUN";

/// How long a command may clean up after itself.
const GRACE: Duration = Duration::from_secs(1);
/// How often processes that appear while we kill are looked for again.
const KILL_ROUNDS: u32 = 20;
/// How long a killed shell may take to go; longer only if the kernel holds it.
const REAP_LIMIT: Duration = Duration::from_secs(2);

/// The processes of one running command. While it is armed, dropping it kills them all.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    leader: i32,
    mark: String,
    known: BTreeSet<Process>,
    armed: bool,
}

impl ProcessGroup {
    /// The group of a shell that was started as its leader, with `mark` as the value of [`RUN_MARK`].
    pub(super) fn new(child: &Child, mark: &str) -> Self {
        let leader = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        Self { leader, mark: format!("{RUN_MARK}={mark}"), known: BTreeSet::new(), armed: leader > 1 }
    }

    /// The command ended by itself: what it left behind on purpose lives on.
    pub(super) fn release(mut self) {
        self.armed = false;
    }

    /// Ends everything and gives the shell's status.
    pub(super) async fn end(mut self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut status = None;
        self.signal(Signal::SIGTERM);
        // A stopped process sees the TERM only when it runs again.
        self.signal(Signal::SIGCONT);
        let deadline = Instant::now() + GRACE;
        let mut pause = Duration::from_millis(5);
        while Instant::now() < deadline && (status.is_none() || self.is_alive()) {
            tokio::select! {
                ended = child.wait(), if status.is_none() => status = Some(ended),
                () = sleep(pause) => pause = (pause * 2).min(Duration::from_millis(80)),
            }
        }
        for _ in 0..KILL_ROUNDS {
            if !self.is_alive() {
                break;
            }
            self.signal(Signal::SIGKILL);
            sleep(Duration::from_millis(10)).await;
        }
        self.armed = false;
        match status {
            Some(status) => status,
            None => timeout(REAP_LIMIT, child.wait())
                .await
                .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut))),
        }
    }

    /// Whether any process of the command still runs.
    fn is_alive(&mut self) -> bool {
        self.refresh();
        if cfg!(target_os = "linux") {
            !self.known.is_empty()
        } else {
            killpg(Pid::from_raw(self.leader), None).is_ok()
        }
    }

    fn refresh(&mut self) {
        self.known = family(self.leader, &self.mark, &self.known);
    }

    /// Signals the group and every process that was found outside it.
    fn signal(&mut self, signal: Signal) {
        self.refresh();
        if !cfg!(target_os = "linux") {
            let _ = killpg(Pid::from_raw(self.leader), signal);
            return;
        }
        // One by one from a fresh list: a group id could already belong to somebody else.
        for process in &self.known {
            let _ = kill(Pid::from_raw(process.pid), signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.armed {
            self.signal(Signal::SIGKILL);
        }
    }
}

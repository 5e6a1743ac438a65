//! Ends a command with all that it started: TERM, some time, KILL.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout};

use super::processes::{Process, members_of};

/// The variable that marks all processes of one command, so that those which left the group are found.
pub(crate) const RUN_MARK: &str = "HERMES_TOOL_RUN";

/// How long a command may clean up after itself.
const GRACE: Duration = Duration::from_secs(1);
/// How often processes that appear while we kill are looked for again.
const KILL_ROUNDS: u32 = 20;
/// How long a killed shell may take to go; longer only if the kernel holds it.
const REAP_LIMIT: Duration = Duration::from_secs(2);

/// All processes of one command, wherever they went.
#[derive(Debug)]
pub(crate) struct Tree {
    leader: Option<i32>,
    mark: String,
    known: BTreeSet<Process>,
    in_group: BTreeSet<Process>,
}

impl Tree {
    /// The tree of the command whose shell leads a process group of its own, with `mark` as the value of [`RUN_MARK`];
    /// `None` once that shell is gone and its number may belong to somebody else. `known` are members that were
    /// seen before.
    pub(crate) fn new(leader: Option<i32>, mark: &str, known: BTreeSet<Process>) -> Self {
        Self {
            leader: leader.filter(|pid| *pid > 1),
            mark: format!("{RUN_MARK}={mark}"),
            known,
            in_group: BTreeSet::new(),
        }
    }

    /// The members that live now.
    pub(crate) fn living(&mut self) -> &BTreeSet<Process> {
        let found = members_of(self.leader, &self.mark, &self.known);
        self.known = found.members;
        self.in_group = found.in_group;
        &self.known
    }

    /// Ends all: asks, and after `grace` makes. Says whether all are gone.
    pub(crate) async fn end(&mut self, grace: Duration) -> bool {
        self.ask();
        let deadline = Instant::now() + grace;
        let mut pause = Duration::from_millis(5);
        while Instant::now() < deadline && self.is_alive() {
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(80));
        }
        self.make().await
    }

    /// Whether any process of the command still runs.
    fn is_alive(&mut self) -> bool {
        let alive = !self.living().is_empty();
        if cfg!(target_os = "linux") {
            return alive;
        }
        self.leader.is_some_and(|leader| killpg(Pid::from_raw(leader), None).is_ok())
    }

    fn ask(&mut self) {
        self.signal(Signal::SIGTERM);
        // A stopped process sees the TERM only when it runs again.
        self.signal(Signal::SIGCONT);
    }

    async fn make(&mut self) -> bool {
        for _ in 0..KILL_ROUNDS {
            if !self.is_alive() {
                return true;
            }
            self.signal(Signal::SIGKILL);
            sleep(Duration::from_millis(10)).await;
        }
        !self.is_alive()
    }

    /// Signals the group and every process that was found outside it; each once, since a handler that runs
    /// twice may do harm.
    fn signal(&mut self, signal: Signal) {
        self.living();
        // The whole group at once, since no fork can slip through that; from a fresh list, since the number of a
        // group that has ended could already belong to somebody else.
        if let Some(leader) = self.leader
            && (!self.in_group.is_empty() || !cfg!(target_os = "linux"))
        {
            let _ = killpg(Pid::from_raw(leader), signal);
        }
        for process in self.known.difference(&self.in_group) {
            process.signal(signal);
        }
    }
}

/// The processes of one running command. While it is armed, dropping it kills them all.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    tree: Tree,
    armed: bool,
}

impl ProcessGroup {
    /// The group of a shell that was started as its leader, with `mark` as the value of [`RUN_MARK`].
    pub(super) fn new(child: &Child, mark: &str) -> Self {
        let leader = child.id().and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 1);
        Self { tree: Tree::new(leader, mark, BTreeSet::new()), armed: leader.is_some() }
    }

    /// The command ended by itself: what it left behind on purpose lives on.
    pub(super) fn release(mut self) {
        self.armed = false;
    }

    /// Ends everything and gives the shell's status.
    pub(super) async fn end(mut self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut status = None;
        self.tree.ask();
        let deadline = Instant::now() + GRACE;
        let mut pause = Duration::from_millis(5);
        while Instant::now() < deadline && (status.is_none() || self.tree.is_alive()) {
            tokio::select! {
                ended = child.wait(), if status.is_none() => status = Some(ended),
                () = sleep(pause) => pause = (pause * 2).min(Duration::from_millis(80)),
            }
        }
        self.tree.make().await;
        self.armed = false;
        match status {
            Some(status) => status,
            None => timeout(REAP_LIMIT, child.wait())
                .await
                .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut))),
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.armed {
            self.tree.signal(Signal::SIGKILL);
        }
    }
}

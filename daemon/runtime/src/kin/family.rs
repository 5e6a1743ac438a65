//! The facts of a running daemon: its unit, what it took over, what runs below it, and the dead that it inherits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::time::Instant;

use super::chain::{Facts, Standing, groups, stand};
use super::record::StrayRecord;
use super::source::{LinuxProc, ProcSource, ProcessId};

/// A dead child is taken for inherited when nobody has looked after it for so long: the runtime waits for its own
/// children at once.
const INHERITED_AFTER: Duration = Duration::from_secs(5);

/// Gives the background processes that were taken over from an earlier daemon.
type Roots = Arc<dyn Fn() -> Vec<ProcessId> + Send + Sync>;

/// What a daemon knows of itself when it starts.
pub struct FamilyInput {
    /// Where descendants are noted for the next daemon.
    pub record: StrayRecord,
    /// Background processes that were taken over from an earlier daemon; asked with every peer.
    pub roots: Roots,
    /// The daemon is the main process of a service unit: whatever else runs in that unit is its own.
    pub is_service: bool,
}

impl fmt::Debug for FamilyInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FamilyInput").field("is_service", &self.is_service).finish_non_exhaustive()
    }
}

/// Knows the agent's own processes. A cheap clone.
#[derive(Clone)]
pub struct Family(Arc<Inner>);

struct Inner {
    daemon: i32,
    unit: Option<String>,
    roots: Roots,
    record: StrayRecord,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Left by earlier daemons, with what these have started since.
    strays: BTreeSet<ProcessId>,
    /// What the record holds.
    noted: BTreeSet<ProcessId>,
    /// Dead children, and when they were first seen.
    dead: BTreeMap<ProcessId, Instant>,
}

impl Family {
    /// Becomes the one to whom orphans below this process fall, and reads what an earlier daemon noted.
    ///
    /// The system may refuse the first (it does not on Linux since 3.4); that is logged, and marks still tell.
    pub fn new(input: FamilyInput) -> Self {
        if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
            tracing::warn!(%error, "orphans of tools will not be known by their parents");
        }
        let daemon = i32::try_from(std::process::id()).unwrap_or_default();
        let listed = input.is_service.then(|| LinuxProc.cgroup(daemon).ok()).flatten();
        let unit = listed.as_deref().and_then(own_unit).map(str::to_owned);
        let strays = input.record.living(&LinuxProc);
        if !strays.is_empty() {
            tracing::info!(processes = strays.len(), "tools of an earlier daemon left processes running");
        }
        let state = Mutex::new(State { noted: strays.clone(), strays, dead: BTreeMap::new() });
        Self(Arc::new(Inner { daemon, unit, roots: input.roots, record: input.record, state }))
    }

    /// How a process that talks to the daemon stands to the agent.
    pub fn standing(&self, pid: i32) -> Standing {
        let roots = (self.0.roots)();
        let strays = self.lock().strays.clone();
        let facts =
            Facts { daemon: self.0.daemon, roots: &roots, strays: &strays, unit: self.0.unit.as_deref() };
        stand(&LinuxProc, pid, &facts)
    }

    /// Notes what runs below the daemon, follows what strays have started, and buries inherited dead. To be called
    /// every second or two; costs some file reads for each descendant.
    ///
    /// Returns whether anything lives below.
    pub fn look(&self) -> bool {
        let source = LinuxProc;
        let mut state = self.lock();
        let below = descendants(&source, [self.0.daemon]);
        state.strays.retain(|stray| is_alive(&source, stray));
        let from_strays = descendants(&source, state.strays.iter().map(|stray| stray.pid));
        state.strays.extend(from_strays);
        let all: BTreeSet<ProcessId> = below.union(&state.strays).copied().collect();
        if all != state.noted {
            match self.0.record.write(&all) {
                Ok(()) => state.noted = all,
                Err(error) => tracing::warn!(%error, "cannot note what tools have left running"),
            }
        }
        self.bury(&source, &mut state);
        !below.is_empty()
    }

    /// Waits for children that have been dead for a while. They were born below one of ours, so nobody else does.
    fn bury(&self, source: &dyn ProcSource, state: &mut State) {
        let now = Instant::now();
        let dead: Vec<ProcessId> = source
            .children(self.0.daemon)
            .into_iter()
            .filter_map(|pid| source.stat(pid).ok())
            .filter(|stat| stat.zombie && stat.parent == self.0.daemon)
            .map(|stat| stat.process)
            .collect();
        state.dead.retain(|known, _| dead.contains(known));
        for process in dead {
            let first_seen = *state.dead.entry(process).or_insert(now);
            if now.duration_since(first_seen) >= INHERITED_AFTER {
                let _ = waitpid(Pid::from_raw(process.pid), Some(WaitPidFlag::WNOHANG));
                state.dead.remove(&process);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family")
            .field("daemon", &self.0.daemon)
            .field("unit", &self.0.unit)
            .finish_non_exhaustive()
    }
}

/// The control group of the service that a process is in; `None` for a login's or a terminal's scope.
pub(super) fn own_unit(listed: &str) -> Option<&str> {
    groups(listed).find(|group| group.rsplit('/').next().is_some_and(|leaf| leaf.ends_with(".service")))
}

fn is_alive(source: &dyn ProcSource, process: &ProcessId) -> bool {
    source.stat(process.pid).is_ok_and(|stat| stat.process == *process && !stat.zombie)
}

/// All living processes below some, without these themselves.
fn descendants(source: &dyn ProcSource, of: impl IntoIterator<Item = i32>) -> BTreeSet<ProcessId> {
    let mut found = BTreeSet::new();
    let mut open: Vec<i32> = of.into_iter().collect();
    while let Some(pid) = open.pop() {
        for child in source.children(pid) {
            let Ok(stat) = source.stat(child) else { continue };
            if stat.parent == pid && !stat.zombie && found.insert(stat.process) {
                open.push(child);
            }
        }
    }
    found
}

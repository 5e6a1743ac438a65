//! The verdict on one process, by its ancestors.

use std::collections::BTreeSet;

use super::brand;
use super::source::{ProcSource, ProcessId, Stat};
use crate::child_env::TOOL_MARK;

/// Longest chain of parents that is followed; a real one has some ten links.
const MAX_CHAIN: usize = 512;
/// How often the walk begins anew when a parent ends under it.
const WALKS: usize = 8;

/// What [`judge`] holds a process against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    /// The daemon itself.
    pub(super) daemon: i32,
    /// Background processes of an earlier daemon that this one took over.
    pub(super) roots: &'a [ProcessId],
    /// What tools of an earlier daemon left running.
    pub(super) strays: &'a BTreeSet<ProcessId>,
    /// The control group of the daemon's own service unit.
    pub(super) unit: Option<&'a str>,
}

/// How a process stands to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Somebody else's: a person's shell, a service, a job of the system.
    Outside,
    /// The agent's own.
    Kin(Kinship),
}

/// Why a process counts as the agent's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinship {
    pub reason: Reason,
    /// The sessions that marks in its chain name, nearest ancestor first, without repeats. The last one is the
    /// hardest to forge: it stands in the start environment that the daemon itself gave.
    pub sessions: Vec<String>,
}

/// The trace that gave a process away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The daemon is among its ancestors.
    Descends,
    /// So is a background process that the daemon took over.
    Background,
    /// So is something that tools of an earlier daemon left running.
    Stray,
    /// Its start environment, or an ancestor's, carries the mark.
    Marked,
    /// It, or an ancestor, has inherited the limit that a daemon gave itself.
    Branded,
    /// It runs in the daemon's own service unit.
    SameUnit,
    /// Nothing certain can be said: why.
    Unknown(String),
}

/// Judges the process `pid` by its ancestors. The daemon itself is not its own child.
pub(super) fn stand(source: &dyn ProcSource, pid: i32, facts: &Facts<'_>) -> Standing {
    if pid == facts.daemon {
        return Standing::Outside;
    }
    let chain = match walk(source, pid, facts.daemon) {
        Ok(chain) => chain,
        Err(why) => return Standing::Kin(Kinship { reason: Reason::Unknown(why), sessions: Vec::new() }),
    };
    // Whoever hides its own start environment has something to hide; of ancestors that belong to others
    // (`sshd`, `sudo`) or run with rights of their own (`screen`), it cannot be asked.
    if let Err(error) = source.environ(pid) {
        let why = format!("its start environment cannot be read ({error})");
        return Standing::Kin(Kinship { reason: Reason::Unknown(why), sessions: Vec::new() });
    }
    let sessions = marks(source, &chain);
    let in_unit = || {
        let unit = facts.unit?;
        source.cgroup(pid).ok().filter(|listed| groups(listed).any(|group| is_within(group, unit)))
    };
    let reason = if chain.iter().any(|link| link.process.pid == facts.daemon) {
        Reason::Descends
    } else if chain.iter().any(|link| facts.roots.contains(&link.process)) {
        Reason::Background
    } else if chain.iter().any(|link| facts.strays.contains(&link.process)) {
        Reason::Stray
    } else if !sessions.is_empty() {
        Reason::Marked
    } else if is_branded(source, &chain) {
        Reason::Branded
    } else if in_unit().is_some() {
        Reason::SameUnit
    } else {
        return Standing::Outside;
    };
    Standing::Kin(Kinship { reason, sessions })
}

/// [`stand`] for a process that meets a daemon with these background processes, strays and unit.
pub fn judge(
    source: &dyn ProcSource,
    pid: i32,
    daemon: i32,
    roots: &[ProcessId],
    strays: &BTreeSet<ProcessId>,
    unit: Option<&str>,
) -> Standing {
    stand(source, pid, &Facts { daemon, roots, strays, unit })
}

/// Whether the process `pid`, a daemon that is about to start, was started by the agent's own tools: by its mark or
/// brand or an ancestor's, or by an ancestor that is one of `strays`. `None` when it was not. Ancestors that cannot be followed
/// count as the agent's, as with a peer: a chain can be made too long on purpose.
pub fn started_inside(source: &dyn ProcSource, pid: i32, strays: &BTreeSet<ProcessId>) -> Option<Kinship> {
    let chain = match walk(source, pid, 0) {
        Ok(chain) => chain,
        Err(why) => return Some(Kinship { reason: Reason::Unknown(why), sessions: Vec::new() }),
    };
    let sessions = marks(source, &chain);
    if !sessions.is_empty() {
        return Some(Kinship { reason: Reason::Marked, sessions });
    }
    let stray = chain.iter().any(|link| strays.contains(&link.process));
    let reason =
        if stray { Some(Reason::Stray) } else { is_branded(source, &chain).then_some(Reason::Branded) };
    reason.map(|reason| Kinship { reason, sessions })
}

/// Whether one of a chain has the brand of a daemon, as far as limits are shown.
fn is_branded(source: &dyn ProcSource, chain: &[Stat]) -> bool {
    chain.iter().any(|link| source.limits(link.process.pid).is_ok_and(|limits| brand::is_branded(&limits)))
}

/// The process and its ancestors, nearest first, up to `top`, the first process of the system, or one that is not
/// shown to us.
fn walk(source: &dyn ProcSource, pid: i32, top: i32) -> Result<Vec<Stat>, String> {
    if pid <= 0 {
        return Err("it stands in another process namespace".to_owned());
    }
    let mut why = String::new();
    for _ in 0..WALKS {
        match walk_once(source, pid, top) {
            Ok(chain) => return Ok(chain),
            Err(Broken::Final(reason)) => return Err(reason),
            Err(Broken::Moved(reason)) => why = reason,
        }
    }
    Err(why)
}

enum Broken {
    /// Looking again would show the same.
    Final(String),
    /// A parent ended while we looked; its children have another one now.
    Moved(String),
}

fn walk_once(source: &dyn ProcSource, pid: i32, top: i32) -> Result<Vec<Stat>, Broken> {
    let first = source.stat(pid).map_err(|error| Broken::Final(format!("it has ended ({error})")))?;
    let mut chain = vec![first];
    let mut link = first;
    while link.process.pid != top && link.process.pid != 1 && link.parent != 0 {
        if chain.len() >= MAX_CHAIN {
            return Err(Broken::Final(format!("it has more than {MAX_CHAIN} ancestors")));
        }
        let parent = match source.stat(link.parent) {
            Ok(parent) => parent,
            Err(_) if source.is_hidden(link.parent) => break,
            Err(error) => {
                return Err(Broken::Moved(format!("its ancestor {} cannot be read ({error})", link.parent)));
            }
        };
        // A parent is never younger than its child: this is another process with the same id.
        if parent.process.started > link.process.started {
            return Err(Broken::Moved(format!("its ancestor {} has ended", link.parent)));
        }
        chain.push(parent);
        link = parent;
    }
    Ok(chain)
}

/// The sessions that marks in the start environments of a chain name.
fn marks(source: &dyn ProcSource, chain: &[Stat]) -> Vec<String> {
    let mut sessions: Vec<String> = Vec::new();
    for link in chain {
        let Some(session) = source.environ(link.process.pid).ok().as_deref().and_then(mark) else { continue };
        sessions.retain(|known| *known != session);
        sessions.push(session);
    }
    sessions
}

/// The session that the mark in a start environment names.
fn mark(environ: &[u8]) -> Option<String> {
    environ.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(TOOL_MARK.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// The paths of control groups that services are kept in.
pub(super) fn groups(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        (controllers.is_empty() || controllers == "name=systemd").then_some(path)
    })
}

fn is_within(group: &str, unit: &str) -> bool {
    group.strip_prefix(unit).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

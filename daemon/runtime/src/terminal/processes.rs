//! Finds the processes that one command started, as far as the system tells (Linux: `/proc`).
//!
//! Three traces are followed, because each can be shaken off alone: the process group (left by `setsid`), the
//! parent chain (cut when a parent dies), and the mark in the start environment (dropped by `env -i`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use nix::sys::signal::Signal;

/// A process at one moment. `started` is the kernel's start time in clock ticks: together with the id it never
/// names another process until the machine starts anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) started: u64,
}

impl Process {
    /// The living process with this id.
    pub(crate) fn living(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        parse_stat(pid, &stat).map(|entry| entry.process)
    }

    /// Whether it still runs; a zombie has ended.
    pub(crate) fn is_alive(self) -> bool {
        Self::living(self.pid) == Some(self)
    }

    /// Signals it, and never another process that has got its id since. Says whether it was there.
    pub(crate) fn signal(self, signal: Signal) -> bool {
        match self.handle() {
            Ok(handle) => send(&handle, signal).is_ok(),
            Err(Unheld::Gone) => false,
            // A kernel without such handles: the moment between look and signal stays.
            Err(Unheld::Unsupported) => {
                self.is_alive()
                    && nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid), signal).is_ok()
            }
        }
    }

    /// A handle that is this process and no other, and that becomes readable when it ends.
    #[cfg(target_os = "linux")]
    pub(crate) fn handle(self) -> Result<std::os::fd::OwnedFd, Unheld> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let pid = Pid::from_raw(self.pid).ok_or(Unheld::Gone)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| match error {
            rustix::io::Errno::SRCH => Unheld::Gone,
            _ => Unheld::Unsupported,
        })?;
        // Looked at after the handle was taken: from here on the id cannot change hands unnoticed.
        if self.is_alive() { Ok(handle) } else { Err(Unheld::Gone) }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn handle(self) -> Result<std::os::fd::OwnedFd, Unheld> {
        Err(Unheld::Unsupported)
    }
}

/// Why there is no handle on a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unheld {
    Gone,
    Unsupported,
}

#[cfg(target_os = "linux")]
fn send(handle: &std::os::fd::OwnedFd, signal: Signal) -> io::Result<()> {
    let signal = rustix::process::Signal::from_named_raw(signal as i32).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_send_signal(handle, signal)?)
}

#[cfg(not(target_os = "linux"))]
fn send(_: &std::os::fd::OwnedFd, _: Signal) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Names this run of the machine; start times of another one mean nothing. Empty where it is not told.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    process: Process,
    parent: i32,
    group: i32,
}

/// The living processes of one command.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) members: BTreeSet<Process>,
    /// Those of them in the leader's process group. Where there are some, its number is surely theirs.
    pub(crate) in_group: BTreeSet<Process>,
}

/// The living processes of the command whose shell is `leader`: its group, its descendants, those that carry
/// `mark` in their start environment, and those of `known` that still live; the leader included. Without a leader, one that
/// has ended so long ago that its number may be another's, the group does not count. Empty where there is no `/proc`.
pub(crate) fn members_of(leader: Option<i32>, mark: &str, known: &BTreeSet<Process>) -> Members {
    let table = table();
    let in_group = |entry: &Entry| leader.is_some_and(|leader| entry.group == leader);
    let mut members: BTreeSet<Process> = table
        .values()
        .filter(|entry| {
            in_group(entry)
                || Some(entry.process.pid) == leader
                || known.contains(&entry.process)
                || carries(entry.process.pid, mark)
        })
        .map(|entry| entry.process)
        .collect();
    // Descendants of any member, to the end of the chain.
    loop {
        let pids: BTreeSet<i32> = members.iter().map(|member| member.pid).collect();
        let children: Vec<Process> = table
            .values()
            .filter(|entry| pids.contains(&entry.parent) && !members.contains(&entry.process))
            .map(|entry| entry.process)
            .collect();
        if children.is_empty() {
            let in_group = table.values().filter(|entry| in_group(entry)).map(|entry| entry.process);
            let in_group = in_group.filter(|process| members.contains(process)).collect();
            return Members { members, in_group };
        }
        members.extend(children);
    }
}

/// All living processes that we can see; zombies have ended and do not count.
fn table() -> BTreeMap<i32, Entry> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != own && *pid > 1)
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            parse_stat(pid, &stat).map(|entry| (pid, entry))
        })
        .collect()
}

/// Reads one `stat` line (`man 5 proc`): the name stands in parentheses and may hold anything.
fn parse_stat(pid: i32, stat: &str) -> Option<Entry> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // Start time is field 22; the group is field 5.
    let started = fields.nth(16)?.parse().ok()?;
    Some(Entry { process: Process { pid, started }, parent, group })
}

/// Whether the process was started with the mark in its environment; of other users' processes we cannot know.
fn carries(pid: i32, mark: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_past_any_name() {
        let line = "7 (a) b (c)) S 3 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let entry = parse_stat(7, line).unwrap();
        assert_eq!((entry.parent, entry.group, entry.process.started), (3, 5, 98765));
    }

    #[test]
    fn zombies_and_broken_lines_do_not_count() {
        assert!(parse_stat(7, "7 (x) Z 3 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765").is_none());
        assert!(parse_stat(7, "7 (x) S 3").is_none());
        assert!(parse_stat(7, "").is_none());
    }
}

//! What is asked of the system about one process.

use std::fs;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process for good: its id may be given to another one, its id with its start time never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: i32,
    /// Clock ticks from the machine's boot to the start.
    pub started: u64,
}

/// A process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub process: ProcessId,
    pub parent: i32,
    /// It has ended, and its parent has not looked yet.
    pub zombie: bool,
}

/// The system's table of processes.
pub trait ProcSource {
    /// A process as it stands now.
    fn stat(&self, pid: i32) -> io::Result<Stat>;

    /// The environment that the process was started with: `NAME=value`, each ended by a NUL.
    fn environ(&self, pid: i32) -> io::Result<Vec<u8>>;

    /// The control groups of the process, as `/proc/PID/cgroup` lists them.
    fn cgroup(&self, pid: i32) -> io::Result<String>;

    /// The resource limits of the process, as `/proc/PID/limits` lists them.
    fn limits(&self, pid: i32) -> io::Result<String>;

    /// Whether the process exists, but belongs to another user and is not shown to us (`hidepid`).
    fn is_hidden(&self, pid: i32) -> bool;

    /// The living and dead children of all threads of a process.
    fn children(&self, pid: i32) -> Vec<i32>;
}

/// `/proc` of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxProc;

impl LinuxProc {
    fn path(pid: i32, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{pid}/{name}"))
    }
}

impl ProcSource for LinuxProc {
    fn stat(&self, pid: i32) -> io::Result<Stat> {
        // Not as text: the name in it may be any bytes.
        let line = fs::read(Self::path(pid, "stat"))?;
        parse_stat(pid, &String::from_utf8_lossy(&line)).ok_or_else(|| io::Error::other("an odd stat line"))
    }

    fn environ(&self, pid: i32) -> io::Result<Vec<u8>> {
        fs::read(Self::path(pid, "environ"))
    }

    fn cgroup(&self, pid: i32) -> io::Result<String> {
        fs::read_to_string(Self::path(pid, "cgroup"))
    }

    fn limits(&self, pid: i32) -> io::Result<String> {
        fs::read_to_string(Self::path(pid, "limits"))
    }

    fn is_hidden(&self, pid: i32) -> bool {
        pid > 0 && kill(Pid::from_raw(pid), None) == Err(Errno::EPERM)
    }

    fn children(&self, pid: i32) -> Vec<i32> {
        let Ok(threads) = fs::read_dir(Self::path(pid, "task")) else { return Vec::new() };
        threads
            .flatten()
            .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
            .flat_map(|line| {
                line.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Reads one `stat` line (`man 5 proc`): the name stands in parentheses and may hold anything.
fn parse_stat(pid: i32, line: &str) -> Option<Stat> {
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    // The start time is field 22; the parent was field 4.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Stat { process: ProcessId { pid, started }, parent, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_past_any_name() {
        let line = "7 (a) b (c)) Z 3 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let stat = parse_stat(7, line).unwrap();
        assert_eq!((stat.parent, stat.process.started, stat.zombie), (3, 98765, true));
        assert_eq!(parse_stat(7, "7 (x) S 3"), None);
    }

    #[test]
    fn this_process_is_read_as_it_is() {
        let own = i32::try_from(std::process::id()).unwrap();
        let stat = LinuxProc.stat(own).unwrap();
        assert_eq!(stat.parent, nix::unistd::getppid().as_raw());
        assert!(stat.process.started > 0 && !stat.zombie);
        assert!(LinuxProc.stat(0).is_err());
        assert!(!LinuxProc.is_hidden(own));
    }
}

//! The daemon's own start environment holds no secret: whoever may read `/proc/PID/environ` finds only what the
//! daemon needs to find its place (spec 40 §10.2).
//!
//! That block of memory stays as it was at the start of the process, whatever is unset later. So a daemon that
//! was started with more begins anew, with the same process id, and hands the rest to itself through a file in
//! memory. Must be called before any thread starts.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use hermes_runtime::TOOL_MARK;
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Names the descriptor by which the rest of the environment comes.
const HANDED_OVER: &str = "HERMES_HANDED_OVER_FD";
/// Most bytes that are handed over: what the system lets a program start with.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// What a daemon starts by. None of these holds a secret.
const KEPT: &[&str] = &[
    "HERMES_HOME",
    "HERMES_PROFILE",
    "HERMES_LOG",
    "HERMES_WRITE_SAFE_ROOT",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "PWD",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // What a service manager says to its services.
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "MANAGERPID",
    "SYSTEMD_EXEC_PID",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    // Marks of children of the agent: a daemon that carries them must not hide it from itself.
    TOOL_MARK,
    "HERMES_TOOL_RUN",
];

/// Beginnings of more such names: locale, base directories, sockets handed over, loader, allocator, backtraces.
const KEPT_BEGINNINGS: [&str; 6] = ["LC_", "XDG_", "LISTEN_", "LD_", "MIMALLOC_", "RUST_"];

/// The environment that the process was started with, after this process shows none of it but what it starts by.
///
/// Returns only in a process whose start environment is clean.
///
/// # Errors
/// When the process cannot begin anew. It must not go on then.
pub fn start_clean() -> io::Result<Vec<(OsString, OsString)>> {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    if let Some(number) = environment.remove(OsStr::new(HANDED_OVER)) {
        // Told from a name that somebody else set: then there is nothing to take over.
        let handed = number.to_str().and_then(|text| text.parse().ok()).filter(|fd: &i32| *fd > 2);
        if let Some(rest) = handed.and_then(|fd| take_over(fd).ok()) {
            environment.extend(rest);
        }
        return Ok(environment.into_iter().collect());
    }
    if environment.keys().all(|name| is_kept(name)) {
        return Ok(environment.into_iter().collect());
    }
    Err(begin_anew(environment))
}

/// Replaces this process by itself. Returns only why it could not.
fn begin_anew(environment: BTreeMap<OsString, OsString>) -> io::Error {
    let (kept, rest): (Vec<_>, Vec<_>) = environment.into_iter().partition(|(name, _)| is_kept(name));
    let handed = match hand_over(&rest) {
        Ok(handed) => handed,
        Err(error) => return error,
    };
    let mut arguments = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env_clear().envs(kept).env(HANDED_OVER, handed.as_raw_fd().to_string());
    command.exec()
}

/// Writes variables into memory that the next program of this process finds open.
fn hand_over(rest: &[(OsString, OsString)]) -> io::Result<File> {
    let mut file = File::from(memfd_create("environment", MFdFlags::empty())?);
    for (name, value) in rest {
        let entry = [name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat();
        file.write_all(&entry)?;
    }
    Ok(file)
}

/// Reads what was handed over, and closes it.
fn take_over(fd: i32) -> io::Result<Vec<(OsString, OsString)>> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/self/fd/{fd}"))?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    nix::unistd::close(fd)?;
    let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| {
        // A name may begin with `=`, but is never empty.
        let at = entry.iter().skip(1).position(|byte| *byte == b'=')? + 1;
        let (name, value) = entry.split_at_checked(at)?;
        Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.get(1..)?.to_vec())))
    });
    Ok(entries.collect())
}

fn is_kept(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        KEPT.contains(&name) || KEPT_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
    })
}

/// From now on other processes of this user can neither read this one's memory and environment nor trace it, and a
/// crash leaves no image of it. Root still can.
pub fn close_to_others() {
    // The system has no reason to refuse it; without it the daemon is as open as any program.
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "other processes of this user can read the daemon's memory");
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd as _;

    use super::*;

    #[test]
    fn what_is_handed_over_arrives_byte_for_byte_and_is_closed() {
        let vars: Vec<(OsString, OsString)> =
            [("OPENAI_API_KEY", "sk-x=y"), ("EMPTY", ""), ("=odd", "v"), ("MULTI", "a\nb")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        let mut vars = vars;
        vars.push((OsString::from_vec(vec![b'B', 0xff]), OsString::from_vec(vec![0xfe])));
        let fd = hand_over(&vars).unwrap().into_raw_fd();
        assert_eq!(take_over(fd).unwrap(), vars);
        assert!(take_over(fd).is_err(), "it was closed");
    }

    #[test]
    fn only_what_a_daemon_starts_by_is_kept() {
        for name in ["HERMES_HOME", "PATH", "LC_ALL", "XDG_RUNTIME_DIR", "NOTIFY_SOCKET", TOOL_MARK] {
            assert!(is_kept(OsStr::new(name)), "{name}");
        }
        for name in ["OPENAI_API_KEY", "GITHUB_TOKEN", "HERMES_MODEL", "GOPATH", "MY_SECRET", ""] {
            assert!(!is_kept(OsStr::new(name)), "{name}");
        }
    }
}

//! Leaving the terminal of whoever started us on demand.

use std::fs::OpenOptions;
use std::path::Path;

/// Starts a session of our own, so that the starter's Ctrl+C and the end of its terminal do not reach
/// us, and leaves its working directory, so that it can be unmounted.
///
/// Fails quietly: a process that leads its group already has been detached by its starter.
pub(crate) fn leave_terminal(home: &Path) {
    let _ = nix::unistd::setsid();
    let _ = std::env::set_current_dir(home);
}

/// From now on nothing is read from or written to the starter's streams: it may wait for their end.
pub(crate) fn close_streams() {
    let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") else { return };
    let _ = nix::unistd::dup2_stdin(&null);
    let _ = nix::unistd::dup2_stdout(&null);
    let _ = nix::unistd::dup2_stderr(&null);
}

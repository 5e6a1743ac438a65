//! A command on a terminal of its own, for programs that will not work without one.

use std::ffi::OsString;
use std::io;

use pty_process::{OwnedReadPty, OwnedWritePty, Size};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, tcgetattr, tcsetattr};
use tokio::process::{Child, Command};

/// Rows and columns of the terminal: wide enough that programs seldom fold their lines.
const SIZE: (u16, u16) = (40, 132);

/// What programs are told to have before them.
const TERM: &str = "xterm-256color";

/// The byte that ends the input of a terminal's reader.
pub(crate) const END_OF_INPUT: u8 = 4;

/// A shell that leads a session, with its terminal.
pub(crate) struct OnTerminal {
    pub(crate) child: Child,
    pub(crate) output: OwnedReadPty,
    pub(crate) input: OwnedWritePty,
}

/// Starts `command`, which must not lead a process group, on a new terminal. Line ends stay as they are written. What is
/// typed is shown in the output only with `echo`.
pub(crate) fn spawn(command: Command, echo: bool) -> io::Result<OnTerminal> {
    let (terminal, other_side) = pty_process::open().map_err(plain)?;
    terminal.resize(Size::new(SIZE.0, SIZE.1)).map_err(plain)?;
    let mut modes = tcgetattr(&terminal)?;
    modes.output_modes.remove(OutputModes::ONLCR);
    modes.local_modes.set(LocalModes::ECHO, echo);
    tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    let child = pty_process::Command::from(command).spawn(other_side).map_err(plain)?;
    let (output, input) = terminal.into_split();
    Ok(OnTerminal { child, output, input })
}

/// The environment of a command that has a terminal.
pub(super) fn environment(env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let others = env.iter().filter(|(name, _)| name != "TERM").cloned();
    others.chain([("TERM".into(), TERM.into())]).collect()
}

fn plain(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
        other => io::Error::other(other.to_string()),
    }
}

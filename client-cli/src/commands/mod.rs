//! The commands beside the chat, one file each.

mod approvals;
mod ask;
mod config;
mod daemon;
mod logs;
mod sessions;
mod status;
mod undo;
mod version;

use hermes_client::Connector;
use hermes_config::Home;

use crate::args::{Command, GlobalFlags};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::profile;
use crate::surroundings::Surroundings;

pub(crate) use version::show as show_version;

/// What commands work with.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) global: &'a GlobalFlags,
    pub(crate) around: &'a Surroundings,
    pub(crate) home: &'a Home,
    pub(crate) connector: Connector,
}

/// Runs one command to its end.
pub(crate) fn run(
    global: &GlobalFlags,
    command: Command,
    around: &Surroundings,
    output: &mut Output,
) -> Outcome<Exit> {
    let home = profile::home(global, around)?;
    let connector = profile::connector(&home, around);
    let desk = Desk { global, around, home: &home, connector };
    match command {
        // Taken by the caller.
        Command::Chat(_) => Ok(Exit::Success),
        Command::Approvals(command) => wait_for(approvals::run(&desk, command, output)),
        Command::Undo(flags) => wait_for(undo::run(&desk, &flags, output)),
        Command::Config { command } => config::run(&desk, command, output),
        Command::Sessions(command) => wait_for(sessions::run(&desk, command, output)),
        Command::Daemon(command) => daemon::run(&desk, command, output),
        Command::Status { json } => wait_for(status::run(&desk, json, output)),
        Command::Version => wait_for(version::run(&desk, output)),
        Command::Logs(flags) => wait_for(logs::run(&desk, &flags.log, &flags.tail, output)),
    }
}

/// Runs a command that talks to the daemon or waits for a file. Ctrl+C ends it as it ends any program.
fn wait_for<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::general(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(work)
}

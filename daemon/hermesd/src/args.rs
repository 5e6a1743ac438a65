//! The command line, and the four variables that the daemon takes from its environment.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Version of the binary and of the contract it speaks.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (protocol 1)");

/// The daemon of one Hermes profile: it owns the profile's state and runs the turns of all clients.
#[derive(Debug, Clone, Parser)]
#[command(name = "hermesd", version = VERSION)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Serve the profile until stopped (the default).
    Run,
}

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(next_line_help = true)]
pub struct RunArgs {
    /// Folder of the default profile; named profiles are below it
    #[arg(long, global = true, env = "HERMES_HOME", value_name = "DIR")]
    pub home: Option<OsString>,
    /// Profile to serve
    #[arg(long, short, global = true, env = "HERMES_PROFILE", value_name = "NAME")]
    pub profile: Option<String>,
    /// Show the log on standard error too
    #[arg(long, global = true, conflicts_with = "on_demand")]
    pub foreground: bool,
    /// Started by a client: leave its terminal, and end when idle for `daemon.idle_exit` seconds
    #[arg(long, global = true)]
    pub on_demand: bool,
    /// trace, debug, info, warn or error, or levels by crate (`info,hermes_engine=debug`)
    #[arg(long, global = true, env = "HERMES_LOG", value_name = "LEVEL")]
    pub log_level: Option<String>,
}

impl CommandLine {
    /// What to do: today there is one thing.
    pub fn run_args(self) -> RunArgs {
        let run = match self.command {
            Some(Command::Run) | None => self.run,
        };
        // An empty variable counts as unset.
        let set = |value: Option<String>| value.filter(|value| !value.trim().is_empty());
        RunArgs { profile: set(run.profile), log_level: set(run.log_level), ..run }
    }
}

/// What the process finds around it, read once in `main`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// The user's home folder.
    pub user_home: Option<PathBuf>,
    pub user_name: Option<String>,
    pub xdg_runtime_dir: Option<PathBuf>,
    pub temp_dir: PathBuf,
    /// The value of `HERMES_WRITE_SAFE_ROOT`.
    pub write_safe_root: Option<OsString>,
    /// The command line as it was typed, for the pid file.
    pub argv: Vec<String>,
    /// The user's login shell.
    pub shell: Option<PathBuf>,
    /// Where this binary stands.
    pub bin_dir: Option<PathBuf>,
    /// The whole environment. Nothing is configured by it; children may be given parts of it by name.
    pub environment: Vec<(OsString, OsString)>,
}

/// Values of variables may be secrets: only their number is shown.
impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("user_home", &self.user_home)
            .field("bin_dir", &self.bin_dir)
            .field("variables", &self.environment.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(args: &[&str]) -> RunArgs {
        CommandLine::try_parse_from([&["hermesd"], args].concat()).unwrap().run_args()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn run_is_the_default_and_takes_its_flags_on_either_side() {
        let expected = parse(&["run", "--home", "/h", "-p", "work", "--on-demand"]);
        assert_eq!(parse(&["--home", "/h", "-p", "work", "--on-demand"]), expected);
        assert_eq!(parse(&["-p", "work", "run", "--on-demand", "--home", "/h"]), expected);
        assert_eq!((expected.home, expected.on_demand), (Some("/h".into()), true));
    }

    #[test]
    fn an_empty_value_counts_as_unset() {
        let args = parse(&["--profile", "", "--log-level", " "]);
        assert_eq!((args.profile, args.log_level), (None, None));
    }

    #[test]
    fn the_version_names_the_protocol() {
        assert!(VERSION.ends_with(&format!("(protocol {})", hermes_proto::PROTOCOL)));
    }
}

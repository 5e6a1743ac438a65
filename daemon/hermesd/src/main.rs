//! The daemon's binary: reads the command line and what the process finds around it, and serves.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser as _;
use hermesd::{CommandLine, Surroundings};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // First of all: no thread runs yet.
    let environment = match hermesd::start_clean() {
        Ok(environment) => environment,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "hermesd: cannot begin with a clean environment: {error}");
            return ExitCode::from(hermesd::EXIT_FAILURE);
        }
    };
    hermesd::close_to_others();
    let args = CommandLine::parse().run_args();
    hermesd::run(&args, &surroundings(environment))
}

fn surroundings(environment: Vec<(OsString, OsString)>) -> Surroundings {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    let exe = std::env::current_exe().ok();
    Surroundings {
        user_home: std::env::home_dir(),
        user_name: user.as_ref().map(|user| user.name.clone()),
        shell: user.map(|user| user.shell),
        bin_dir: exe.as_deref().and_then(Path::parent).map(Path::to_path_buf),
        xdg_runtime_dir: std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
        temp_dir: std::env::temp_dir(),
        argv: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        write_safe_root: std::env::var_os("HERMES_WRITE_SAFE_ROOT").filter(|value| !value.is_empty()),
        environment,
    }
}

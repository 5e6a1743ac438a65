//! Programs that the daemon itself looks up for a session.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::workspace::Workspace;

/// The program in the folders that the session's commands look in when nothing has changed them.
pub(crate) fn find(program: &str, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let (_, folders) = environment.iter().find(|(name, _)| name == "PATH")?;
    std::env::split_paths(folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
}

/// Whether it stands where the agent writes without a question: then it is not run without one either.
pub(crate) fn is_the_agents(program: &Path, workspace: &Workspace) -> bool {
    std::fs::canonicalize(program).is_ok_and(|real| real.starts_with(workspace.root()))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

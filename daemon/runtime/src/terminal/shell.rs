//! Which shell runs the commands: bash, or sh where there is none.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Folders that are searched after those of the session's PATH.
const STANDARD: [&str; 5] = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/opt/local/bin"];

/// What a shell understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Bash,
    /// POSIX only: functions cannot be written out, so they do not persist.
    Posix,
}

/// A shell on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shell {
    pub(super) program: PathBuf,
    pub(super) dialect: Dialect,
}

impl Shell {
    /// Looks for bash, then for sh, in `folders`.
    pub(super) fn find(folders: &[PathBuf]) -> Option<Self> {
        [("bash", Dialect::Bash), ("sh", Dialect::Posix)].into_iter().find_map(|(name, dialect)| {
            let program = folders.iter().map(|folder| folder.join(name)).find(|path| is_executable(path))?;
            Some(Self { program, dialect })
        })
    }

    /// The name that the shell calls itself in its messages.
    pub(super) fn name(&self) -> &'static str {
        match self.dialect {
            Dialect::Bash => "bash",
            Dialect::Posix => "sh",
        }
    }
}

/// The absolute folders of the environment's PATH, then the standard ones.
pub(super) fn folders_of(env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let path = env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value);
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    for folder in STANDARD.map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The user's own shell, when background processes should run in it: one that reads commands like `sh`, but is not
/// covered by bash, which reads all that a plain `sh` does.
pub(super) fn own_shell(env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let shell = env.iter().find(|(name, _)| name == "SHELL").map(|(_, value)| PathBuf::from(value))?;
    let name = shell.file_name()?.to_str()?;
    (matches!(name, "zsh" | "ksh" | "ksh93" | "mksh") && shell.is_absolute() && is_executable(&shell))
        .then_some(shell)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn bash_is_preferred_and_sh_is_enough() {
        let temp = tempfile::tempdir().unwrap();
        let folders = [temp.path().to_owned()];
        assert_eq!(Shell::find(&folders), None);
        let place = |name: &str, mode| {
            let path = temp.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let sh = place("sh", 0o755);
        let bash = place("bash", 0o644);
        assert_eq!(Shell::find(&folders), Some(Shell { program: sh, dialect: Dialect::Posix }));
        place("bash", 0o755);
        assert_eq!(Shell::find(&folders), Some(Shell { program: bash, dialect: Dialect::Bash }));
    }

    #[test]
    fn relative_folders_of_path_are_not_searched() {
        let env = [(OsString::from("PATH"), OsString::from(".:/x/bin:bin:/usr/bin"))];
        let folders = folders_of(&env);
        assert_eq!(folders.first(), Some(&PathBuf::from("/x/bin")));
        assert!(folders.iter().all(|folder| folder.is_absolute()));
        assert_eq!(folders.iter().filter(|folder| *folder == Path::new("/usr/bin")).count(), 1);
    }
}

//! What this process finds around it. Read once, in `main`; everything else gets it as an argument.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use hermes_core::ClientEnv;

/// The process's surroundings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    pub(crate) argv: Vec<OsString>,
    /// Our own executable, beside which the daemon's is sought.
    pub(crate) exe: Option<PathBuf>,
    /// The working directory; `None` when it was removed under us.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) user_home: Option<PathBuf>,
    pub(crate) temp_dir: PathBuf,
    pub(crate) uid: u32,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// Columns of the terminal, when output goes to one.
    pub(crate) columns: Option<u16>,
}

impl Surroundings {
    pub(crate) fn read() -> Self {
        let stdout_is_terminal = std::io::stdout().is_terminal();
        Self {
            argv: std::env::args_os().collect(),
            exe: std::env::current_exe().ok(),
            cwd: std::env::current_dir().ok(),
            user_home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            temp_dir: std::env::temp_dir(),
            uid: nix::unistd::getuid().as_raw(),
            environment: std::env::vars_os().collect(),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal,
            stderr_is_terminal: std::io::stderr().is_terminal(),
            columns: terminal_size::terminal_size()
                .filter(|_| stdout_is_terminal)
                .map(|(terminal_size::Width(columns), _)| columns),
        }
    }

    /// A variable's value; an empty one counts as unset.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// The variables that are text.
    pub(crate) fn text_variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.environment
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
    }

    /// What a session's terminal tool may see of this environment (contract §8).
    pub(crate) fn client_env(&self) -> ClientEnv {
        ClientEnv::filter(self.text_variables())
    }

    /// Whether control sequences may be sent to a terminal that is there.
    pub(crate) fn allows_colour(&self) -> bool {
        self.variable("NO_COLOR").is_none() && self.variable("TERM").is_some_and(|term| term != "dumb")
    }

    /// The name that this program was called by, for lines to copy.
    pub(crate) fn program(&self) -> &str {
        let called = self.argv.first().and_then(|name| Path::new(name).file_name()?.to_str());
        called.unwrap_or("hermes-cli")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Surroundings {
        let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Surroundings { environment, ..Surroundings::default() }
    }

    #[test]
    fn colour_needs_a_capable_terminal_and_no_veto() {
        assert!(with(&[("TERM", "xterm-256color")]).allows_colour());
        assert!(with(&[("TERM", "xterm"), ("NO_COLOR", "")]).allows_colour());
        assert!(!with(&[("TERM", "xterm"), ("NO_COLOR", "1")]).allows_colour());
        assert!(!with(&[("TERM", "dumb")]).allows_colour());
        assert!(!with(&[]).allows_colour());
    }

    #[test]
    fn the_program_is_named_as_it_was_called() {
        let called = |argv: &str| {
            let surroundings = Surroundings { argv: vec![argv.into()], ..Surroundings::default() };
            surroundings.program().to_owned()
        };
        assert_eq!(called("/usr/local/bin/hermes"), "hermes");
        assert_eq!(called("hermes-cli"), "hermes-cli");
        assert_eq!(Surroundings::default().program(), "hermes-cli");
    }
}

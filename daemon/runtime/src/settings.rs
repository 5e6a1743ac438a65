//! Settings that act in this crate: the sections `security` and `terminal`.

use schemars::JsonSchema;
use serde::Deserialize;

/// Section `security`: what the agent may see and reach.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SecuritySettings {
    /// Mask secrets in tool output, logs, events and errors. Read once when the daemon starts, so that
    /// nothing can switch it off while it runs.
    pub redact_secrets: bool,
    /// More beginnings by which a secret is known (such as `acme_`), beside the built-in list. Ten or
    /// more token characters must follow.
    pub redact_prefixes: Vec<String>,
}

impl Default for SecuritySettings {
    fn default() -> Self {
        Self { redact_secrets: true, redact_prefixes: Vec::new() }
    }
}

/// Section `terminal`: how commands run on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TerminalSettings {
    /// Working directory of sessions that bring none (chats, jobs): an absolute path, or one that begins
    /// with `~/`. `.`, `auto` and the empty text mean: not set.
    pub cwd: String,
    /// Seconds after which a foreground command is ended when the call names no timeout.
    #[schemars(range(min = 1))]
    pub timeout: u64,
    /// Names of variables that commands may see beside the standard ones, taken from the profile's
    /// `.env` or else from the daemon's environment. Names of model-provider and messaging credentials are refused.
    pub env_passthrough: Vec<String>,
    /// Files that are sourced once before a session's first command (`~/` is expanded). When the list is
    /// empty, `auto_source_bashrc` decides.
    pub shell_init_files: Vec<String>,
    /// Source `~/.profile`, `~/.bash_profile` and `~/.bashrc` before a session's first command.
    pub auto_source_bashrc: bool,
    /// Seconds that a background process gets to end by itself when it is killed, before it is forced.
    #[schemars(range(max = 60))]
    pub daemon_term_grace_seconds: u64,
}

impl Default for TerminalSettings {
    fn default() -> Self {
        Self {
            cwd: ".".to_owned(),
            timeout: 180,
            env_passthrough: Vec::new(),
            shell_init_files: Vec::new(),
            auto_source_bashrc: true,
            daemon_term_grace_seconds: 2,
        }
    }
}

impl TerminalSettings {
    /// The configured directory, when one is set: `~/` expanded, absolute. A relative path counts as not
    /// set, since a daemon has no directory of its own that a user would mean.
    pub fn working_directory(&self, user_home: &std::path::Path) -> Option<std::path::PathBuf> {
        let text = self.cwd.trim();
        if matches!(text, "" | "." | "./" | "auto" | "cwd") {
            return None;
        }
        Some(expand_home(text, user_home)).filter(|path| path.is_absolute())
    }
}

/// Expands a leading `~` or `~/`.
pub(crate) fn expand_home(text: &str, user_home: &std::path::Path) -> std::path::PathBuf {
    match text.strip_prefix("~/") {
        Some(rest) => user_home.join(rest),
        None if text == "~" => user_home.to_owned(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    #[test]
    fn only_an_absolute_directory_counts_as_set() {
        let home = Path::new("/home/u");
        let cwd = |text: &str| {
            TerminalSettings { cwd: text.to_owned(), ..TerminalSettings::default() }.working_directory(home)
        };
        for unset in ["", " ", ".", "./", "auto", "cwd", "rel/ative"] {
            assert_eq!(cwd(unset), None, "{unset:?}");
        }
        assert_eq!(cwd("~/w"), Some(PathBuf::from("/home/u/w")));
        assert_eq!(cwd("~"), Some(PathBuf::from("/home/u")));
        assert_eq!(cwd("/srv"), Some(PathBuf::from("/srv")));
    }

    #[test]
    fn defaults_are_those_of_the_reference() {
        let terminal: TerminalSettings = serde_json::from_str("{}").unwrap();
        assert_eq!(terminal, TerminalSettings::default());
        assert_eq!((terminal.timeout, terminal.auto_source_bashrc), (180, true));
        let security: SecuritySettings = serde_json::from_str("{}").unwrap();
        assert!(security.redact_secrets);
    }
}

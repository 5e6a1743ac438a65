//! What a client may choose for a session and for a turn (contract §8).

use std::path::PathBuf;

/// Variables of the client's environment that its terminal tool sees: a daemon under a service
/// manager knows none of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientEnv(Vec<(String, String)>);

impl ClientEnv {
    /// Names that are taken over by equality; `CONDA_*` and `LC_*` by prefix (contract §8).
    const NAMES: [&str; 7] =
        ["PATH", "VIRTUAL_ENV", "LANG", "TZ", "SSH_AUTH_SOCK", "DISPLAY", "WAYLAND_DISPLAY"];

    /// Keeps what a client may hand over and drops the rest; sorted by name.
    pub fn filter(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut kept: Vec<(String, String)> = vars
            .into_iter()
            .filter(|(name, value)| {
                // A name or value that no environment can hold would fail every command of the session.
                let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                let is_prefixed = name.starts_with("CONDA_") || name.starts_with("LC_");
                is_name && !value.contains('\0') && (is_prefixed || Self::NAMES.contains(&name.as_str()))
            })
            .collect();
        kept.sort();
        kept.dedup_by(|a, b| a.0 == b.0);
        Self(kept)
    }

    /// The variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// One variable's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }
}

/// Frozen when a session opens. An absent value means: as the profile's settings say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionOptions {
    /// Absolute working directory of the session.
    pub cwd: Option<PathBuf>,
    pub client_env: ClientEnv,
    /// The surface: `cli`, `tui`, `telegram`, … Decides toolset bundle and platform hint.
    pub platform: Option<String>,
    pub model: Option<String>,
    pub provider: Option<String>,
    /// Exact toolset choice; an empty list means no tools.
    pub toolsets: Option<Vec<String>>,
    pub skills: Vec<String>,
    pub skip_context: bool,
    pub skip_memory: bool,
    /// The session's source tag; defaults to the platform.
    pub source: Option<String>,
    /// Keeps the session out of the database (the wire's `persist: false`; review forks).
    pub ephemeral: bool,
}

/// What to do with an input that arrives while a turn runs (spec 10 §16.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyMode {
    Interrupt,
    Queue,
    Steer,
}

/// Chosen for one turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnOptions {
    /// Iteration cap of this turn.
    pub max_turns: Option<u32>,
    /// No approval prompts for this turn; hard blocks still hold. Needs scope `approve`.
    pub yolo: bool,
    pub busy_mode: Option<BusyMode>,
    /// The turn is interrupted after this many seconds.
    pub deadline_s: Option<f64>,
    pub model_once: Option<String>,
    /// The submitting client is a one-shot: when it is lost, its turn is interrupted (contract §10).
    pub one_shot: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_env_takes_only_named_variables() {
        let vars = [("PATH", "/bin"), ("OPENAI_API_KEY", "sk-x"), ("LC_ALL", "C"), ("CONDA_PREFIX", "/c")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env = ClientEnv::filter(vars);
        let names: Vec<&str> = env.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["CONDA_PREFIX", "LC_ALL", "PATH"]);
    }

    #[test]
    fn client_env_takes_nothing_that_no_environment_can_hold() {
        let vars = [("LC_A\0", "x"), ("LC_A=B", "x"), ("CONDA_é", "x"), ("LANG", "a\0b"), ("LC_1_b", "é")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(ClientEnv::filter(vars).iter().collect::<Vec<_>>(), [("LC_1_b", "é")]);
    }
}

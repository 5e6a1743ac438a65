//! The settings that say what the agent may do: what of them waits, and how an admin changes them. The wiring
//! implements it over the settings and the database.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

/// A policy key that stands wider in `config.yaml` than it is in force. Secrets in it are masked.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingEdit {
    /// The dotted key.
    pub key: String,
    pub in_force: Option<Value>,
    pub in_file: Option<Value>,
}

impl WaitingEdit {
    /// What users are told of it.
    pub fn warning(&self) -> String {
        let shown =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        format!(
            "`{}` in config.yaml ({}) would let the agent do more than was accepted ({}) and is not in force; \
             `hermes-cli approvals accept` shows and applies it",
            self.key,
            shown(&self.in_file),
            shown(&self.in_force)
        )
    }
}

/// What became of a written key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigWritten {
    pub path: PathBuf,
    /// Whether it is in force already.
    pub applied: bool,
    /// Why not, or what else to know; may be empty.
    pub note: String,
}

/// Why a change of policy or settings was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Not what was shown, or not there at all.
    #[error("`{key}` has changed since it was shown; look at it again")]
    Changed { key: String },
    /// The key or its value is not accepted: a whole sentence.
    #[error("{0}")]
    Invalid(String),
    /// The file cannot be edited as it is: what, and what to do.
    #[error("{0}")]
    File(String),
    /// What was accepted cannot be kept.
    #[error("cannot keep what was accepted: {0}")]
    Storage(String),
}

/// What admins change the policy with.
#[async_trait::async_trait]
pub trait PolicyDesk: Send + Sync + fmt::Debug {
    /// Takes notice of the settings' files as they are now: narrower values are in force when this returns, wider
    /// ones wait. Costs a look at two files when nothing changed.
    async fn look(&self);

    /// Edits that wait, by key. Cheap: asked with every session.
    fn waiting(&self) -> Vec<WaitingEdit>;

    /// Puts edits into force, as they were shown. All or none.
    async fn accept(&self, edits: Vec<WaitingEdit>) -> Result<Vec<String>, PolicyError>;

    /// Writes one key of `config.yaml`; `None` takes it out.
    async fn set_config(&self, key: String, value: Option<Value>) -> Result<ConfigWritten, PolicyError>;
}

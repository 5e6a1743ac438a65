//! What admins do with policy: accept what waits, and write a key, which accepts it.

use std::io;

use async_trait::async_trait;
use hermes_config::{Settings, edit_setting, write_private};
use hermes_server::{ConfigWritten, PolicyDesk, PolicyError, WaitingEdit};
use hermes_state::StateError;
use serde_json::Value;

use super::{PolicyKeys, decide, stamps};

/// Sections that are read at each judgement; everything else is read when the daemon starts.
const LIVE: [&str; 2] = ["approvals", "command_allowlist"];

#[async_trait]
impl PolicyDesk for PolicyKeys {
    async fn look(&self) {
        Self::look(self).await;
    }

    fn waiting(&self) -> Vec<WaitingEdit> {
        self.state().waiting.clone()
    }

    async fn accept(&self, edits: Vec<WaitingEdit>) -> Result<Vec<String>, PolicyError> {
        let _changing = self.0.changing.lock().await;
        let file = self.fresh_file()?;
        let accepted = self.state().accepted.clone();
        // The file may have changed since the last look: what waits now counts.
        let decision = self.apply(&file, accepted).await.map_err(|error| storage(&error))?;
        if let Some(changed) = edits.iter().find(|edit| !decision.waiting.contains(edit)) {
            return Err(PolicyError::Changed { key: changed.key.clone() });
        }
        let keys: Vec<String> = edits.into_iter().map(|edit| edit.key).collect();
        let accepted = decide::accept(&file, &decision.accepted, &keys);
        self.apply(&file, accepted).await.map_err(|error| storage(&error))?;
        for key in &keys {
            tracing::info!(%key, "an admin accepted a setting of policy");
        }
        Ok(keys)
    }

    async fn set_config(&self, key: String, value: Option<Value>) -> Result<ConfigWritten, PolicyError> {
        let _changing = self.0.changing.lock().await;
        let path = self.0.home.config_yaml();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(PolicyError::File(format!("cannot read {}: {error}", path.display())));
            }
        };
        let edited = edit_setting(&text, &key, value.as_ref()).map_err(|error| match error {
            hermes_config::EditError::NotAccepted(_) | hermes_config::EditError::NoPlace { .. } => {
                PolicyError::Invalid(error.to_string())
            }
            other => PolicyError::File(format!("{}: {other}", path.display())),
        })?;
        let before = self.fresh_file()?;
        let accepted = self.state().accepted.clone();
        let decision = self.apply(&before, accepted).await.map_err(|error| storage(&error))?;
        let touched = decide::touched(&before, &decision.accepted, &key);
        // Part of a key that waits as a whole: accepting the one would accept the other unseen.
        let unseen =
            decision.waiting.iter().find(|edit| touched.contains(&edit.key) && key.len() > edit.key.len());
        if let Some(edit) = unseen {
            return Err(PolicyError::File(format!(
                "an edit of `{}` waits; accept it first (hermes-cli approvals accept), or take it out of {}",
                edit.key,
                path.display()
            )));
        }
        if edited != text {
            write_private(&path, edited.as_bytes())
                .map_err(|error| PolicyError::File(format!("cannot write {}: {error}", path.display())))?;
            tracing::info!(%key, "an admin changed a setting");
        }
        let file = self.fresh_file()?;
        // Now with the keys that the new value brought along.
        let touched = decide::touched(&file, &decision.accepted, &key);
        let accepted = decide::accept(&file, &decision.accepted, &touched);
        self.apply(&file, accepted).await.map_err(|error| storage(&error))?;
        Ok(outcome(path, &key, value.as_ref(), &file))
    }
}

impl PolicyKeys {
    /// The files as they are now; a later look finds them known.
    fn fresh_file(&self) -> Result<Settings, PolicyError> {
        let stamps = stamps(&self.0.home);
        let file = self.read_file().map_err(PolicyError::File)?;
        self.state().stamps = stamps;
        Ok(file)
    }
}

fn outcome(path: std::path::PathBuf, key: &str, value: Option<&Value>, file: &Settings) -> ConfigWritten {
    let is_live = LIVE.iter().any(|section| {
        key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    });
    // Of a map, parts may come from elsewhere.
    let overridden = value.is_some_and(|value| !value.is_object() && file.get(key) != Some(value));
    let note = if overridden {
        "another source has the last word on it; `hermes-cli config show --origin` tells which".to_owned()
    } else if is_live {
        String::new()
    } else {
        "the daemon takes it when it starts again (hermes-cli daemon restart)".to_owned()
    };
    ConfigWritten { path, applied: is_live && !overridden, note }
}

fn storage(error: &StateError) -> PolicyError {
    PolicyError::Storage(error.to_string())
}

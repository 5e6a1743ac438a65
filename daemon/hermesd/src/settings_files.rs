//! Whether the files that the daemon read its settings from have changed since.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hermes_config::{Home, LoadInput};
use hermes_server::SettingsFiles;

/// What tells one state of a file from another without reading it; `None` when it is not there.
type Stamp = Option<(SystemTime, u64)>;

/// `config.yaml` and `.env` as they stood when the daemon started.
#[derive(Debug)]
pub(crate) struct SettingsAsRead {
    home: Home,
    files: Vec<(PathBuf, Stamp)>,
}

impl SettingsAsRead {
    pub(crate) fn now(home: &Home) -> Self {
        let files = [home.config_yaml(), home.dot_env()];
        let files = files.into_iter().map(|path| (path.clone(), stamp(&path))).collect();
        Self { home: home.clone(), files }
    }
}

impl SettingsFiles for SettingsAsRead {
    /// Not while what stands there could not be started with: a daemon that works is better than none.
    fn changed(&self) -> bool {
        if self.files.iter().all(|(path, as_read)| stamp(path) == *as_read) {
            return false;
        }
        hermes_config::load(&LoadInput::new(&self.home))
            .inspect_err(|error| tracing::warn!(%error, "changed settings are not taken over"))
            .is_ok_and(|loaded| loaded.errors().next().is_none())
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_comes_changes_or_goes_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_path_buf());
        let read = SettingsAsRead::now(&home);
        assert!(!read.changed());
        std::fs::write(home.config_yaml(), "model: a").unwrap();
        assert!(read.changed());
        let read = SettingsAsRead::now(&home);
        assert!(!read.changed());
        std::fs::write(home.config_yaml(), "model: other").unwrap();
        assert!(read.changed());
        std::fs::write(home.config_yaml(), "model: [").unwrap();
        assert!(!read.changed(), "nothing could start with that");
        std::fs::remove_file(home.config_yaml()).unwrap();
        assert!(read.changed());
    }
}

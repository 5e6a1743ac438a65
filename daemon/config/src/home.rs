//! Which folder holds a profile's files, and where each of them is (spec 70 §1, 80 §1.1, §2).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::private_file::create_private_dir;
use crate::profile::{ProfileName, ProfileNameError};
use crate::socket::{self, SocketEnv};

/// Name of the home in the user's own home folder.
const HOME_FOLDER: &str = ".hermes";
/// Folder of the named profiles, under the root.
const PROFILES_FOLDER: &str = "profiles";
/// File at the root that names the profile to use when nobody says.
const ACTIVE_PROFILE_FILE: &str = "active_profile";
/// Folders that a profile has from its first use on.
const LAYOUT: [&str; 10] =
    ["memories", "sessions", "skills", "skins", "logs", "plans", "workspace", "cron", "home", "run"];
/// How many profiles an error message lists.
const MAX_LISTED: usize = 20;

/// What decides which home is meant. All of it comes from the caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct HomeInput<'a> {
    /// The `-p` / `--profile` flag.
    pub profile: Option<&'a str>,
    /// The caller's `HERMES_HOME`; an empty value counts as unset.
    pub hermes_home: Option<&'a OsStr>,
    /// The user's home folder, of which `.hermes` is the usual root.
    pub user_home: Option<&'a Path>,
}

/// A profile's home. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(Arc<Places>);

#[derive(Debug, PartialEq, Eq)]
struct Places {
    root: PathBuf,
    dir: PathBuf,
    profile: ProfileName,
}

/// Why no home could be chosen, read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    /// Neither `HERMES_HOME` nor a user's home folder is known.
    #[error("no home folder is known: neither HERMES_HOME nor HOME is set")]
    NoHome,
    /// `HERMES_HOME` would mean another folder in every working directory.
    #[error("HERMES_HOME is `{}`, which is not an absolute path", value.display())]
    NotAbsolute {
        /// The value as given.
        value: PathBuf,
    },
    /// `-p` was given something that cannot name a profile.
    #[error(transparent)]
    BadName(#[from] ProfileNameError),
    /// The named profile does not exist.
    #[error("there is no profile `{name}` in {} (profiles: {})", root.display(), list(known))]
    UnknownProfile {
        /// The name that was asked for.
        name: ProfileName,
        /// Where profiles were looked for.
        root: PathBuf,
        /// The profiles that exist, `default` first.
        known: Vec<ProfileName>,
        /// The `active_profile` file, when the name came from there.
        named_by: Option<PathBuf>,
    },
    /// The `active_profile` file holds no usable name.
    #[error("{} does not name a profile", file.display())]
    ActiveProfile {
        /// The file.
        file: PathBuf,
        /// What is wrong with the name.
        source: ProfileNameError,
    },
    /// A folder or file of the home exists but cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// What was looked at.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A file stands where the home should be.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// What was looked at.
        path: PathBuf,
    },
    /// The home's folders could not be made.
    #[error("cannot create {}", path.display())]
    Create {
        /// The folder that could not be made.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

impl HomeError {
    /// What the user can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::NoHome => "set HERMES_HOME to the folder that should hold your profile".to_owned(),
            Self::NotAbsolute { .. } => "set HERMES_HOME to a path that starts with `/`".to_owned(),
            Self::BadName(_) => "a profile is a folder below `profiles` in the home, named so".to_owned(),
            Self::UnknownProfile { name, root, named_by, .. } => {
                let folder = root.join("profiles").join(name.as_str());
                let correct =
                    named_by.as_ref().map(|file| format!("correct or remove {}, or ", file.display()));
                format!("{}make it with `mkdir -p -m 700 {}`", correct.unwrap_or_default(), folder.display())
            }
            Self::ActiveProfile { file, .. } => format!("correct or remove {}", file.display()),
            Self::Unreadable { path, .. } => format!(
                "make {} readable for your user (`ls -ld` shows its owner and mode), or set HERMES_HOME",
                path.display()
            ),
            Self::NotAFolder { path } => {
                format!("move {} away, or set HERMES_HOME to another folder", path.display())
            }
            Self::Create { path, .. } => {
                format!(
                    "check the owner and free space of the folder above {}, or set HERMES_HOME",
                    path.display()
                )
            }
        }
    }
}

fn list(profiles: &[ProfileName]) -> String {
    let shown: Vec<&str> = profiles.iter().take(MAX_LISTED).map(ProfileName::as_str).collect();
    let rest = profiles.len().saturating_sub(MAX_LISTED);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}

impl Home {
    /// Chooses the home: `-p`, else a `HERMES_HOME` that is itself a `profiles/<name>` folder, else the
    /// `active_profile` file at the root, else the root (profile `default`). Creates nothing.
    ///
    /// # Errors
    /// A bad or unknown profile name, an `active_profile` file that is no help, and a home that exists but
    /// cannot be read. A home that does not exist yet is none: see [`Home::ensure`].
    pub fn resolve(input: &HomeInput<'_>) -> Result<Self, HomeError> {
        let base = base_folder(input)?;
        let (root, shaped) = match profile_shaped(&base) {
            Some((root, name)) => (root, Some(name)),
            None => (base, None),
        };
        let active_file = root.join(ACTIVE_PROFILE_FILE);
        let (profile, named_by) = match (input.profile, shaped) {
            (Some(flag), _) => (ProfileName::parse(flag)?, None),
            (None, Some(name)) => (name, None),
            (None, None) => match read_active(&active_file)? {
                Some(name) => (name, Some(active_file)),
                None => (ProfileName::default(), None),
            },
        };
        check_folder(&root)?;
        let dir = if profile.is_default() {
            root.clone()
        } else {
            root.join(PROFILES_FOLDER).join(profile.as_str())
        };
        // A folder that HERMES_HOME names directly may be new; one that is asked for by name must exist.
        let named_outright = input.profile.is_none() && named_by.is_none();
        if !check_folder(&dir)? && !profile.is_default() && !named_outright {
            let known = profiles(&root)?;
            return Err(HomeError::UnknownProfile { name: profile, root, known, named_by });
        }
        Ok(Self(Arc::new(Places { root, dir, profile })))
    }

    /// The default profile of a root folder that is known already.
    pub fn at(root: PathBuf) -> Self {
        Self(Arc::new(Places { dir: root.clone(), root, profile: ProfileName::default() }))
    }

    /// Creates the profile's folders that are missing, each with mode 0700. Existing ones keep their mode.
    ///
    /// # Errors
    /// When a folder cannot be made, or a file stands in its place.
    pub fn ensure(&self) -> Result<(), HomeError> {
        for name in LAYOUT {
            let path = self.0.dir.join(name);
            if path.is_dir() {
                continue;
            }
            create_private_dir(&path).map_err(|source| HomeError::Create { path, source })?;
        }
        Ok(())
    }

    /// The profiles that exist beside this one, `default` first, then by name.
    ///
    /// # Errors
    /// When the `profiles` folder exists but cannot be read.
    pub fn profiles(&self) -> Result<Vec<ProfileName>, HomeError> {
        profiles(&self.0.root)
    }

    /// The socket at which this profile's daemon listens. The same for every spelling of the home's path.
    pub fn socket(&self, env: &SocketEnv) -> PathBuf {
        let dir = fs::canonicalize(&self.0.dir).unwrap_or_else(|_| self.0.dir.clone());
        socket::path(&dir, &dir.join("run/hermesd.sock"), env)
    }

    /// The root folder: home of the profile `default`, and above all named ones.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// This profile's own folder.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// The profile's name.
    pub fn profile(&self) -> &ProfileName {
        &self.0.profile
    }

    /// Whether this is another profile than `default`.
    pub fn is_named(&self) -> bool {
        !self.0.profile.is_default()
    }
}

/// Defines one accessor per well-known path under the profile's folder.
macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident => $path:literal;)*) => {
        /// The files and folders of a profile. Whether they exist is another question.
        impl Home {
            $($(#[$doc])* pub fn $name(&self) -> PathBuf { self.0.dir.join($path) })*
        }
    };
}

paths! {
    /// Behaviour.
    config_yaml => "config.yaml";
    /// Secrets, and nothing else.
    dot_env => ".env";
    /// OAuth state and pooled credentials.
    auth_json => "auth.json";
    /// Sessions, messages, usage.
    state_db => "state.db";
    /// Identity.
    soul_md => "SOUL.md";
    memories_dir => "memories";
    memory_md => "memories/MEMORY.md";
    user_md => "memories/USER.md";
    skills_dir => "skills";
    skins_dir => "skins";
    plugins_dir => "plugins";
    hooks_dir => "hooks";
    /// The original's transcripts; ours are in `state.db`.
    sessions_dir => "sessions";
    cron_dir => "cron";
    logs_dir => "logs";
    cache_dir => "cache";
    /// Logs of background processes.
    processes_dir => "processes";
    /// Which background processes there are.
    processes_json => "processes.json";
    checkpoints_dir => "checkpoints";
    snapshots_dir => "state-snapshots";
    backups_dir => "backups";
    plans_dir => "plans";
    workspace_dir => "workspace";
    /// `HOME` of tools that run inside a container.
    tool_home_dir => "home";
    /// What clients typed.
    history_file => ".hermes_history";
    /// Runtime files; never restored from a backup.
    run_dir => "run";
    /// Who answers, and where (contract §10).
    daemon_json => "run/daemon.json";
    /// Held by `hermes-gateway`.
    adapters_lock => "run/adapters.lock";
    /// Held by `hermesd` for life.
    gateway_lock => "gateway.lock";
    gateway_pid => "gateway.pid";
    gateway_state => "gateway_state.json";
}

/// The folder that `HERMES_HOME` or the user's home folder points at.
fn base_folder(input: &HomeInput<'_>) -> Result<PathBuf, HomeError> {
    let Some(value) = input.hermes_home.filter(|value| !value.is_empty()) else {
        return match input.user_home {
            Some(home) if home.is_absolute() => Ok(home.join(HOME_FOLDER)),
            _ => Err(HomeError::NoHome),
        };
    };
    let value = Path::new(value);
    // A `~` reaches us unexpanded from unit files and `.desktop` entries.
    let expanded = match (value.strip_prefix("~"), input.user_home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => value.to_owned(),
    };
    if !expanded.is_absolute() {
        return Err(HomeError::NotAbsolute { value: value.to_owned() });
    }
    // Drops a trailing slash and `.` parts, so that equal homes compare equal.
    Ok(expanded.components().collect())
}

/// Takes `<root>/profiles/<name>` apart. `default` is never such a folder: it is the root itself.
fn profile_shaped(path: &Path) -> Option<(PathBuf, ProfileName)> {
    let name = ProfileName::parse(path.file_name()?.to_str()?).ok().filter(|name| !name.is_default())?;
    let parent = path.parent()?;
    (parent.file_name()? == PROFILES_FOLDER).then_some(())?;
    Some((parent.parent()?.to_owned(), name))
}

fn read_active(file: &Path) -> Result<Option<ProfileName>, HomeError> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(source) => return Err(HomeError::Unreadable { path: file.to_owned(), source }),
    };
    match text.trim() {
        "" => Ok(None),
        name => ProfileName::parse(name)
            .map(Some)
            .map_err(|source| HomeError::ActiveProfile { file: file.to_owned(), source }),
    }
}

/// Whether `path` exists; an error when it does but is no folder that can be listed.
fn check_folder(path: &Path) -> Result<bool, HomeError> {
    match fs::read_dir(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(HomeError::NotAFolder { path: path.to_owned() })
        }
        Err(source) => Err(HomeError::Unreadable { path: path.to_owned(), source }),
    }
}

fn profiles(root: &Path) -> Result<Vec<ProfileName>, HomeError> {
    let folder = root.join(PROFILES_FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![ProfileName::default()]),
        Err(source) => return Err(HomeError::Unreadable { path: folder, source }),
    };
    let mut names: Vec<ProfileName> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| ProfileName::parse(entry.file_name().to_str()?).ok())
        .filter(|name| !name.is_default())
        .collect();
    names.sort();
    names.insert(0, ProfileName::default());
    Ok(names)
}

#[cfg(test)]
#[path = "home_tests.rs"]
mod tests;

//! Reads all layers, checks each, and merges them: flags over environment over the profile's file over the
//! project's file over defaults (spec 80 §8.1).

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, DiagnosticKind, Severity};
use crate::env_file::{EnvFile, EnvFileError};
use crate::env_layer;
use crate::expand::{self, Scope};
use crate::home::Home;
use crate::legacy;
use crate::project;
use crate::read::{MAX_FILE_BYTES, ReadFault, Trust, read_text};
use crate::schema::Schema;
use crate::settings::Settings;
use crate::tree::{Node, Source};
use crate::yaml;

/// The variable that names another file than the profile's.
pub const CONFIG_VARIABLE: &str = "HERMES_CONFIG";

/// Where the layers come from. Nothing is read beside what is named here.
#[derive(Debug, Clone)]
pub struct LoadInput<'a> {
    /// The profile, whose `config.yaml` and `.env` are read.
    pub home: &'a Home,
    /// The `--config` flag: a file in place of the profile's. It must exist.
    pub config_file: Option<&'a Path>,
    /// Dotted keys set on the command line.
    pub flags: Vec<(String, Value)>,
    /// The caller's environment. Only the names of [`crate::env_mappings`] (and `HERMES_CONFIG`) set anything; no
    /// secret is taken from here.
    pub env: Vec<(String, String)>,
    /// The working directory, whose `cli-config.yaml` is the project file.
    pub project_dir: Option<&'a Path>,
    /// A time stamp for the copy of a broken file (`config.yaml.corrupt.<stamp>.bak`); without one, none is made.
    pub corrupt_stamp: Option<&'a str>,
}

impl<'a> LoadInput<'a> {
    /// The profile's own files and the defaults, as the daemon reads them.
    pub fn new(home: &'a Home) -> Self {
        Self {
            home,
            config_file: None,
            flags: Vec::new(),
            env: Vec::new(),
            project_dir: None,
            corrupt_stamp: None,
        }
    }
}

/// The settings, and what was wrong with them.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What is in force.
    pub settings: Settings,
    /// The profile's secrets, read once for both uses.
    pub secrets: EnvFile,
    /// In the order of layers and lines. A finding of severity `Error` means that the owner asked for something
    /// that does not exist; a daemon should not start on it.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// The findings on which a person must act before anything starts.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|finding| finding.severity == Severity::Error)
    }
}

/// A settings file that cannot be used at all. Nothing of it is in force, its rules of denial included, so a caller
/// must not go on as if it were empty.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file that was named outright does not exist.
    #[error("there is no settings file {}", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file system said no.
    #[error("cannot read {}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// The file is no YAML, or not YAML of our kind.
    #[error("{}:{line}:{column}: {reason}", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// From 1.
        line: u32,
        /// From 1, in characters.
        column: u32,
        /// What is wrong there.
        reason: String,
        /// Where a copy of it was put.
        copy: Option<PathBuf>,
    },
    /// The profile's secrets cannot be read.
    #[error(transparent)]
    Secrets(#[from] EnvFileError),
}

impl LoadError {
    /// What the user can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { .. } => "check the path after --config or in HERMES_CONFIG".to_owned(),
            Self::Unreadable { file, .. } => {
                format!("make {} a file that your user can read", file.display())
            }
            Self::Broken { file, line, copy, .. } => {
                let copied = copy.as_ref().map(|copy| format!(" (a copy is kept at {})", copy.display()));
                format!(
                    "correct line {line} of {}{}, then run `hermes-cli config check`",
                    file.display(),
                    copied.unwrap_or_default()
                )
            }
            Self::Secrets(error) => error.hint(),
        }
    }

    /// The file that is at fault.
    pub fn file(&self) -> &Path {
        match self {
            Self::Missing { file } | Self::Unreadable { file, .. } | Self::Broken { file, .. } => file,
            Self::Secrets(EnvFileError::Unreadable { path, .. } | EnvFileError::NotText { path, .. }) => path,
        }
    }
}

/// Loads the settings with the embedded schema.
///
/// # Errors
/// When `config.yaml` or `.env` cannot be read, or `config.yaml` does not parse. A missing file is an empty one,
/// unless it was named outright. Single bad values are no errors: see [`Loaded::diagnostics`].
pub fn load(input: &LoadInput<'_>) -> Result<Loaded, LoadError> {
    load_with(Schema::embedded(), input)
}

/// Loads the settings with any schema.
pub(crate) fn load_with(schema: &Schema, input: &LoadInput<'_>) -> Result<Loaded, LoadError> {
    let secrets = EnvFile::load(&input.home.dot_env())?;
    let mut diagnostics = Vec::new();
    let scope = Scope { env_file: &secrets, environment: &input.env };

    let mut profile = profile_layer(input, schema, &scope, &mut diagnostics)?;
    let project = input.project_dir.and_then(|dir| project_layer(dir, schema, &mut diagnostics));
    diagnostics.extend_from_slice(secrets.warnings());
    let mut from_env_file = env_layer::from_env_file(&secrets, schema, &mut diagnostics);
    schema.check(&mut from_env_file, &mut diagnostics);
    let mut from_environment = env_layer::from_environment(&input.env, schema);
    schema.check(&mut from_environment, &mut diagnostics);
    let mut from_flags = flag_layer(&input.flags);
    schema.check(&mut from_flags, &mut diagnostics);

    let mut merged = schema.defaults();
    if let Some(project) = project {
        project::unite_narrowing(&mut profile, &project);
        merged.overlay(project);
    }
    for layer in [profile, from_env_file, from_environment, from_flags] {
        merged.overlay(layer);
    }
    Ok(Loaded { settings: Settings::new(merged), secrets, diagnostics })
}

fn profile_layer(
    input: &LoadInput<'_>,
    schema: &Schema,
    scope: &Scope<'_>,
    report: &mut Vec<Diagnostic>,
) -> Result<Node, LoadError> {
    let from_variable = input.env.iter().find(|(name, value)| name == CONFIG_VARIABLE && !value.is_empty());
    let named = input.config_file.or(from_variable.map(|(_, value)| Path::new(value)));
    let file = named.map_or_else(|| input.home.config_yaml(), Path::to_owned);
    let source = Source::File(Arc::from(file.as_path()), 0);
    let broken = |line, column, reason| LoadError::Broken {
        copy: input.corrupt_stamp.and_then(|stamp| keep_copy(&file, stamp)),
        file: file.clone(),
        line,
        column,
        reason,
    };
    let trust = if named.is_some() { Trust::Named } else { Trust::Found };
    let text = match read_text(&file, trust) {
        Ok(text) => text,
        Err(ReadFault::Missing) if named.is_none() => String::new(),
        Err(ReadFault::Missing) => return Err(LoadError::Missing { file }),
        Err(ReadFault::Io(source)) => return Err(LoadError::Unreadable { file, source }),
        Err(ReadFault::NotText { line, reason }) => return Err(broken(line, 1, reason)),
    };
    let mut root =
        yaml::parse(&text, &source).map_err(|fault| broken(fault.line, fault.column, fault.reason))?;
    legacy::modernise(&mut root, report);
    expand::expand(&mut root, "", scope, report);
    schema.check(&mut root, report);
    Ok(root)
}

/// The project's layer. Whatever is wrong with that file is a finding: the folder may be anybody's, and must not
/// keep the program from starting. Templates in it stay unfilled, so that it cannot send a secret anywhere.
fn project_layer(dir: &Path, schema: &Schema, report: &mut Vec<Diagnostic>) -> Option<Node> {
    let file = dir.join(project::PROJECT_FILE);
    let source = Source::Project(Arc::from(file.as_path()), 0);
    let mut unusable = |line, reason: String| {
        let message = format!("the project file is ignored: {reason}");
        report.push(Diagnostic::new(DiagnosticKind::ProjectFile, source.on_line(line).origin(), message));
    };
    let text = match read_text(&file, Trust::Found) {
        Ok(text) => text,
        Err(ReadFault::Missing) => return None,
        Err(ReadFault::Io(error)) => {
            unusable(0, error.to_string());
            return None;
        }
        Err(ReadFault::NotText { line, reason }) => {
            unusable(line, reason);
            return None;
        }
    };
    match yaml::parse(&text, &source) {
        Ok(mut root) => {
            legacy::modernise(&mut root, report);
            project::restrict(&mut root, report);
            schema.check(&mut root, report);
            Some(root)
        }
        Err(fault) => {
            unusable(fault.line, fault.reason);
            None
        }
    }
}

fn flag_layer(flags: &[(String, Value)]) -> Node {
    let mut layer = Node::map(Source::Flag);
    for (key, value) in flags {
        let path: Vec<&str> = key.split('.').collect();
        layer.put(&path, Node::from_value(value, &Source::Flag));
    }
    layer
}

/// Copies a broken file beside itself, so that no later edit loses what the owner wrote. Nothing is overwritten,
/// and a daemon that is restarted over the same broken file keeps one copy, not thousands.
fn keep_copy(file: &Path, stamp: &str) -> Option<PathBuf> {
    // A pipe has nothing left to copy, and reading it again would wait for ever.
    let found = fs::metadata(file).ok()?;
    let bytes = (found.is_file() && found.len() <= MAX_FILE_BYTES).then(|| fs::read(file).ok())??;
    let name = file.file_name()?.to_str()?;
    let folder = file.parent()?;
    let prefix = format!("{name}.corrupt.");
    let earlier = fs::read_dir(folder).ok()?.flatten().find(|entry| {
        let is_copy = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix));
        is_copy && fs::read(entry.path()).is_ok_and(|earlier| earlier == bytes)
    });
    if let Some(earlier) = earlier {
        return Some(earlier.path());
    }
    let copy = folder.join(format!("{prefix}{stamp}.bak"));
    // The file may hold keys, so the copy is private whatever the mode of the original.
    let mut created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy).ok()?;
    created.write_all(&bytes).and_then(|()| created.sync_all()).ok()?;
    Some(copy)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;

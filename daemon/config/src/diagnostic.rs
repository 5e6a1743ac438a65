//! What is wrong with a setting: one finding, with its place, what was found and what is accepted.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a setting's value came from, highest layer first (spec 80 §8.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A command-line flag.
    Flag,
    /// The named environment variable.
    Env(String),
    /// A file of the profile, and the line (from 1; 0 means the file as a whole).
    File(PathBuf, u32),
    /// The project's `cli-config.yaml`, and the line.
    Project(PathBuf, u32),
    /// The built-in default.
    Default,
}

impl Origin {
    /// The file, for the origins that have one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path, _) | Self::Project(path, _) => Some(path),
            Self::Flag | Self::Env(_) | Self::Default => None,
        }
    }

    /// The line in that file, from 1.
    pub fn line(&self) -> Option<u32> {
        match self {
            Self::File(_, line) | Self::Project(_, line) if *line > 0 => Some(*line),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("command line"),
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::File(path, 0) | Self::Project(path, 0) => write!(f, "{}", path.display()),
            Self::File(path, line) | Self::Project(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Works as it is; could be written better.
    Info,
    /// Something in the settings has no effect, or a default holds in its place.
    Warning,
    /// The user clearly asked for something that does not exist; a person must act.
    Error,
}

impl Severity {
    /// The name used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What kind of finding it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// No setting has this key. The value is kept, and nothing reads it.
    UnknownKey,
    /// The value has another type than the key takes. Its place is taken by the layer below.
    WrongType,
    /// A number outside its bounds, or a text or list of a length that is not accepted; likewise dropped.
    OutOfRange,
    /// The key takes one of a few words, and this is none of them; likewise dropped.
    UnknownValue,
    /// A map lacks a key that it cannot do without; the whole map is dropped.
    MissingKey,
    /// The project file may not set this key.
    NotForProjects,
    /// The project file cannot be used.
    ProjectFile,
    /// A `${VAR}` that no secret of the profile fills.
    Unresolved,
    /// A key in a place from an older layout.
    OldLayout,
    /// A line of `.env` that cannot be used, or should stand elsewhere.
    EnvFile,
}

impl DiagnosticKind {
    /// The name used in machine-readable output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownKey => "unknown_key",
            Self::WrongType => "wrong_type",
            Self::OutOfRange => "out_of_range",
            Self::UnknownValue => "unknown_value",
            Self::MissingKey => "missing_key",
            Self::NotForProjects => "not_for_projects",
            Self::ProjectFile => "project_file",
            Self::Unresolved => "unresolved",
            Self::OldLayout => "old_layout",
            Self::EnvFile => "env_file",
        }
    }

    /// Whether a value was dropped, so that something else than what the user wrote is in force.
    pub fn is_invalid_value(self) -> bool {
        matches!(self, Self::WrongType | Self::OutOfRange | Self::UnknownValue | Self::MissingKey)
    }
}

/// One finding about the settings. Secret-looking values never appear in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub kind: DiagnosticKind,
    /// File and line, variable or flag that it is about.
    pub origin: Origin,
    /// The dotted key, when it is about one.
    pub key: Option<String>,
    /// What is wrong: a sentence without the place, the key and the full stop.
    pub message: String,
    /// What would be accepted instead, where that can be said: `a whole number from 1 to 1000`.
    pub accepted: Option<String>,
    /// The key that was probably meant.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(kind: DiagnosticKind, origin: Origin, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            kind,
            origin,
            key: None,
            message: message.into(),
            accepted: None,
            suggestion: None,
        }
    }

    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if let Some(key) = &self.key {
            write!(f, "`{key}` ")?;
        }
        f.write_str(&self.message)?;
        if let Some(accepted) = &self.accepted {
            write!(f, "; accepted: {accepted}")?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean `{suggestion}`?")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_key_fault_and_way_out() {
        let origin = Origin::File("/h/config.yaml".into(), 12);
        let mut finding = Diagnostic::new(DiagnosticKind::WrongType, origin, "is \"x\" (text)").key("a.b");
        finding.accepted = Some("a whole number".to_owned());
        finding.suggestion = Some("a.c".to_owned());
        assert_eq!(
            finding.to_string(),
            "/h/config.yaml:12: `a.b` is \"x\" (text); accepted: a whole number; did you mean `a.c`?"
        );
        assert_eq!((finding.origin.line(), Origin::File("/h".into(), 0).line()), (Some(12), None));
    }
}

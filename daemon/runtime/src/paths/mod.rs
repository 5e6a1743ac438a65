//! Which paths the agent's file tools may read and write, whatever is approved (spec 40 §5.8).
//!
//! A path is judged by where it leads: every symbolic link is followed hop by hop, and each stop is held against the
//! rules. The terminal can go round these rules; they keep a model from doing by habit or by a planted instruction
//! what its owner would not want.

mod devices;
mod fold;
mod resolve;
mod rules;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use resolve::{Trail, TrailError};
use rules::Rules;

/// What a [`PathPolicy`] is built from.
#[derive(Debug, Clone)]
pub struct PathPolicyInput {
    /// The profile's home.
    pub home: PathBuf,
    /// The home of all profiles; the same as `home` for the default profile.
    pub root: PathBuf,
    pub user_home: PathBuf,
    /// The value of `HERMES_WRITE_SAFE_ROOT`, a list as in PATH: writes outside are refused.
    pub safe_root: Option<OsString>,
    /// The user's temp folder, which may lie below a system folder.
    pub temp_dir: PathBuf,
}

/// Judges paths. Cheap to clone; touches the disk only to follow links and to look at file types.
#[derive(Debug, Clone)]
pub struct PathPolicy(Arc<Rules>);

impl PathPolicy {
    /// Links among the protected places themselves are resolved now.
    pub fn new(input: PathPolicyInput) -> Self {
        Self(Arc::new(Rules::new(input)))
    }

    /// Whether a file tool may read the absolute `path`. It need not exist.
    pub fn check_read(&self, path: &Path) -> Result<(), PathRefusal> {
        let trail = follow(path)?;
        let rule = devices::read_rule(&trail).or_else(|| self.0.read_rule(&trail));
        rule.map_or(Ok(()), |rule| Err(self.refusal(path, trail, rule)))
    }

    /// Device and inode of the files that this process must not even open: closing any descriptor of a
    /// database drops the locks that SQLite holds on it. For readers that open before they ask.
    pub fn never_opened(&self) -> Vec<(u64, u64)> {
        self.0.databases()
    }

    /// Why writing the resolved `target` would do more than change a file of the user's work; `None` when not.
    pub(crate) fn delicate(&self, target: &Path) -> Option<&'static str> {
        self.0.delicate(target)
    }

    /// Whether a file tool may create, change, move or delete the absolute `path`. It need not exist.
    ///
    /// The refusal may be one that [lifts](PathRefusal::lifts_for_cross_profile) when the call says so.
    pub fn check_write(&self, path: &Path) -> Result<(), PathRefusal> {
        let trail = follow(path)?;
        let rule = devices::write_rule(&trail).or_else(|| self.0.write_rule(&trail));
        rule.map_or(Ok(()), |rule| Err(self.refusal(path, trail, rule)))
    }

    /// Where `path` leads: absolute, without links and dots; parts that do not exist are kept as written.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, PathRefusal> {
        follow(path).map(|trail| trail.target)
    }

    /// The places that are never read; `true` where all below belongs to it. For whoever must judge a pattern.
    pub(crate) fn never_read(&self) -> &[(PathBuf, bool)] {
        self.0.never_read()
    }

    /// The profile's home, the home of all profiles, the user's home and the temp folder, as they were given.
    pub(crate) fn homes(&self) -> [&Path; 4] {
        self.0.given()
    }

    fn refusal(&self, path: &Path, trail: Trail, rule: PathRule) -> PathRefusal {
        let roots = if rule == PathRule::SafeRoot { self.0.safe_roots().to_vec() } else { Vec::new() };
        PathRefusal { path: path.to_owned(), target: trail.target, rule, roots }
    }
}

fn follow(path: &Path) -> Result<Trail, PathRefusal> {
    resolve::follow(path).map_err(|error| PathRefusal {
        path: path.to_owned(),
        target: path.to_owned(),
        rule: match error {
            TrailError::Relative => PathRule::Relative,
            TrailError::TooManyLinks => PathRule::TooManyLinks,
        },
        roots: Vec::new(),
    })
}

/// The rule that refuses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathRule {
    /// Credentials and system files that are never written.
    Guarded,
    /// Folders of the operating system.
    System,
    /// The agent's own settings.
    OwnPolicy,
    /// Outside the roots that the user allows writing in.
    SafeRoot,
    /// Files that hold secrets.
    Secret,
    /// The skill hub's files, which could carry somebody's instructions.
    Hub,
    /// Devices, and process files that show memory or environments.
    Device,
    /// Named pipes and sockets.
    Pipe,
    /// Another profile's files, or a sandbox's copy of a home.
    CrossProfile,
    TooManyLinks,
    Relative,
}

impl PathRule {
    /// The rule's name in logs and verdicts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Guarded => "path.guarded",
            Self::System => "path.system",
            Self::OwnPolicy => "path.own_policy",
            Self::SafeRoot => "path.safe_root",
            Self::Secret => "path.secret",
            Self::Hub => "path.hub",
            Self::Device => "path.device",
            Self::Pipe => "path.pipe",
            Self::CrossProfile => "path.cross_profile",
            Self::TooManyLinks => "path.links",
            Self::Relative => "path.relative",
        }
    }
}

/// Why a path is refused. Its text says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRefusal {
    path: PathBuf,
    target: PathBuf,
    rule: PathRule,
    roots: Vec<PathBuf>,
}

impl PathRefusal {
    /// Which rule refused.
    pub fn rule(&self) -> PathRule {
        self.rule
    }

    /// Whether the call may go ahead after all when it was made with `cross_profile: true`.
    pub fn lifts_for_cross_profile(&self) -> bool {
        self.rule == PathRule::CrossProfile
    }
}

impl fmt::Display for PathRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.target != self.path {
            write!(f, " (which leads to {})", self.target.display())?;
        }
        match self.rule {
            PathRule::Guarded => f.write_str(" is a guarded system or credential file and cannot be written"),
            PathRule::System => f.write_str(
                " belongs to the operating system; if it must change, use the terminal, which asks the user",
            ),
            PathRule::OwnPolicy => f.write_str(
                " holds the agent's own security settings, which it may not change; the user can, in an editor",
            ),
            PathRule::SafeRoot => {
                f.write_str(" lies outside the folders in which writing is allowed (HERMES_WRITE_SAFE_ROOT): ")?;
                let roots: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
                f.write_str(&roots.join(", "))
            }
            PathRule::Secret => f.write_str(
                " holds secrets and cannot be read; look for an example file such as .env.example, or ask the user for what you need",
            ),
            PathRule::Hub => f.write_str(
                " belongs to the skill hub and could carry instructions from outside; use skills_list to see what is installed",
            ),
            PathRule::Device => f.write_str(" is a device or a process's private file, not a file that can be used here"),
            PathRule::Pipe => f.write_str(" is a pipe or socket, not a file that can be used here"),
            PathRule::CrossProfile => f.write_str(
                " belongs to another profile or to a sandbox's copy; if the user means exactly this file, repeat the call with cross_profile: true",
            ),
            PathRule::TooManyLinks => f.write_str(" leads through too many symbolic links"),
            PathRule::Relative => f.write_str(" is not an absolute path"),
        }
    }
}

impl std::error::Error for PathRefusal {}

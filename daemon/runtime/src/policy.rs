//! The one point at which every effect of the agent is judged (contract §11, spec 40 §8.1).
//!
//! The rules here hold for every tool. Approvals are not built yet, so what would need one is refused unless the turn
//! runs with `yolo`; hard refusals hold even then.

use std::path::Path;

use hermes_core::Principal;

use crate::paths::{PathPolicy, PathRefusal};

/// What a tool is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect<'a> {
    /// Run a shell command in a directory.
    Command { command: &'a str, cwd: &'a Path },
    /// Create, change, move or delete a file; absolute.
    Write { path: &'a Path },
    /// The same, by a call that says that it means another profile's file.
    CrossProfileWrite { path: &'a Path },
    /// Read a file; absolute.
    Read { path: &'a Path },
}

/// In whose name, and within what, an effect happens.
#[derive(Debug, Clone, Copy)]
pub struct PolicyCx<'a> {
    pub principal: &'a Principal,
    /// The turn's owner wants no approvals. Hard refusals hold all the same.
    pub yolo: bool,
    /// The session's working directory, in which writing needs no approval.
    pub workspace: &'a Path,
}

/// What the policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Not at all. `reason` is told to the model: what, why, and what to do instead.
    Deny {
        rule: &'static str,
        reason: String,
    },
    /// Only if a person agrees; nobody to ask means no.
    Ask {
        rule: &'static str,
        description: String,
    },
}

/// Judges effects. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Policy {
    paths: PathPolicy,
}

impl Policy {
    /// A policy over the profile's path rules.
    pub fn new(paths: PathPolicy) -> Self {
        Self { paths }
    }

    /// The rules for paths alone, for readers that are no tools (project files, attachments).
    pub fn paths(&self) -> &PathPolicy {
        &self.paths
    }

    /// Judges one effect. Follows links on disk; decides nothing by itself twice, so ask right before acting.
    pub fn judge(&self, effect: &Effect<'_>, cx: &PolicyCx<'_>) -> Verdict {
        let verdict = match effect {
            Effect::Read { path } => {
                self.paths.check_read(path).map_or_else(|no| refused(&no), |()| Verdict::Allow)
            }
            Effect::Write { path } => match self.paths.check_write(path) {
                Err(no) => refused(&no),
                Ok(()) => self.needs_approval(path, cx),
            },
            Effect::CrossProfileWrite { path } => match self.paths.check_write(path) {
                Err(no) if !no.lifts_for_cross_profile() => refused(&no),
                _ => self.needs_approval(path, cx),
            },
            Effect::Command { .. } if cx.yolo => Verdict::Allow,
            Effect::Command { .. } => Verdict::Deny {
                rule: "command.approval",
                reason: "terminal commands need an approval, and this version cannot ask for one yet; \
                         do without, or tell the user to run this again with --yolo"
                    .to_owned(),
            },
        };
        if let Verdict::Deny { rule, .. } | Verdict::Ask { rule, .. } = &verdict {
            tracing::debug!(rule, principal = %cx.principal, yolo = cx.yolo, "effect not allowed outright");
        }
        verdict
    }

    /// Writes that somebody would have to approve: what runs by itself later, secrets that would be lost, and
    /// everything outside the session's directory.
    fn needs_approval(&self, path: &Path, cx: &PolicyCx<'_>) -> Verdict {
        if cx.yolo {
            return Verdict::Allow;
        }
        match self.paths.resolve(path).ok().and_then(|target| self.paths.delicate(&target)) {
            Some(why) => Verdict::Deny {
                rule: "write.delicate",
                reason: format!(
                    "{} {why}, and writing it needs an approval, which this version cannot ask for yet; do without, or \
                     tell the user to run this again with --yolo",
                    path.display()
                ),
            },
            None => self.outside_workspace(path, cx),
        }
    }

    /// Writing outside the session's directory would need an approval.
    fn outside_workspace(&self, path: &Path, cx: &PolicyCx<'_>) -> Verdict {
        let inside = || {
            let workspace = self.paths.resolve(cx.workspace)?;
            Ok::<_, PathRefusal>(self.paths.resolve(path)?.starts_with(workspace))
        };
        if inside().unwrap_or(false) {
            return Verdict::Allow;
        }
        Verdict::Deny {
            rule: "workspace.write",
            reason: format!(
                "{} lies outside the working directory {}, and writing there needs an approval, which this version \
                 cannot ask for yet; write inside the working directory, or tell the user to run this again with --yolo",
                path.display(),
                cx.workspace.display()
            ),
        }
    }
}

fn refused(refusal: &PathRefusal) -> Verdict {
    Verdict::Deny { rule: refusal.rule().name(), reason: refusal.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::PathPolicyInput;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    struct Place {
        _temp: tempfile::TempDir,
        user: PathBuf,
        policy: Policy,
    }

    fn place() -> Place {
        let temp = tempfile::tempdir().unwrap();
        let user = temp.path().canonicalize().unwrap();
        fs::create_dir_all(user.join("work")).unwrap();
        let root = user.join(".hermes");
        let paths = PathPolicy::new(PathPolicyInput {
            home: root.clone(),
            root,
            user_home: user.clone(),
            safe_root: None,
            temp_dir: "/tmp".into(),
        });
        Place { _temp: temp, user, policy: Policy::new(paths) }
    }

    impl Place {
        /// The rule that stops an effect, without and with yolo.
        fn rules(&self, effect: &Effect<'_>) -> [Option<&'static str>; 2] {
            [false, true].map(|yolo| {
                let workspace = self.user.join("work");
                let cx = PolicyCx { principal: &Principal::Owner, yolo, workspace: &workspace };
                match self.policy.judge(effect, &cx) {
                    Verdict::Allow => None,
                    Verdict::Deny { rule, .. } | Verdict::Ask { rule, .. } => Some(rule),
                }
            })
        }
    }

    #[test]
    fn commands_need_yolo() {
        let place = place();
        let effect = Effect::Command { command: "ls", cwd: &place.user };
        assert_eq!(place.rules(&effect), [Some("command.approval"), None]);
    }

    #[test]
    fn writes_outside_the_working_directory_need_yolo() {
        let place = place();
        symlink(&place.user, place.user.join("work/up")).unwrap();
        for (path, outside) in [
            ("work/a", false),
            ("work/new/b", false),
            ("other", true),
            ("work/../other", true),
            ("work/up/other", true),
            ("workshop/a", true),
        ] {
            let path = place.user.join(path);
            let expected = if outside { [Some("workspace.write"), None] } else { [None, None] };
            assert_eq!(place.rules(&Effect::Write { path: &path }), expected, "{}", path.display());
        }
    }

    #[test]
    fn what_runs_by_itself_and_secrets_that_exist_need_yolo_inside_too() {
        let place = place();
        fs::write(place.user.join("work/.env"), "KEY=1").unwrap();
        for (path, delicate) in [
            ("work/.git/hooks/pre-commit", true),
            ("work/sub/.git/config", true),
            ("work/.env", true),
            ("work/.env.local", false),
            ("work/.gitignore", false),
            ("work/.github/workflows/ci.yml", false),
        ] {
            let path = place.user.join(path);
            let expected = if delicate { [Some("write.delicate"), None] } else { [None, None] };
            assert_eq!(place.rules(&Effect::Write { path: &path }), expected, "{}", path.display());
        }
        let workspace = place.user.clone();
        let cx = PolicyCx { principal: &Principal::Owner, yolo: false, workspace: &workspace };
        let bashrc = place.user.join(".bashrc");
        assert!(matches!(place.policy.judge(&Effect::Write { path: &bashrc }, &cx), Verdict::Deny { .. }));
        let notes = place.user.join("notes.txt");
        assert!(matches!(place.policy.judge(&Effect::Write { path: &notes }, &cx), Verdict::Allow));
    }

    #[test]
    fn hard_refusals_hold_under_yolo() {
        let place = place();
        let env = place.user.join(".hermes/.env");
        assert_eq!(place.rules(&Effect::Write { path: &env }), [Some("path.guarded"); 2]);
        assert_eq!(place.rules(&Effect::CrossProfileWrite { path: &env }), [Some("path.guarded"); 2]);
        assert_eq!(place.rules(&Effect::Read { path: &env }), [Some("path.secret"); 2]);
        assert_eq!(place.rules(&Effect::Read { path: Path::new("/etc/hosts") }), [None, None]);
    }

    #[test]
    fn another_profiles_file_needs_to_be_meant() {
        let place = place();
        let skill = place.user.join(".hermes/profiles/p2/skills/x");
        assert_eq!(place.rules(&Effect::Write { path: &skill }), [Some("path.cross_profile"); 2]);
        assert_eq!(place.rules(&Effect::CrossProfileWrite { path: &skill }), [Some("workspace.write"), None]);
    }
}

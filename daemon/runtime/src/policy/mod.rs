//! The one point at which every effect of the agent is judged (contract §11, spec 40 §8.1).
//!
//! Rules that nothing lifts come first, then what the user forbids, then what was allowed before, and only
//! then whether a person must be asked. The order is [`Policy::judge`]'s.

mod approvals;
mod commands;
mod settings;

use std::path::Path;
use std::sync::Arc;

use hermes_core::Principal;
use tokio::sync::watch;

use crate::paths::{PathPolicy, PathRefusal};
use crate::terminal::SessionKey;

pub use approvals::{ApprovalEntry, ApprovalScope, ApprovalStore, Approvals, ForgetfulStore};
pub use commands::{CommandFacts, CommandVerdict, command_verdict};
pub use settings::{ApprovalMode, ApprovalSettings, CommandAllowlist, PolicySettings, Unattended};

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
    /// Names the session whose approvals count.
    pub session: &'a SessionKey,
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
    Ask(Approval),
}

/// What a person is asked to allow: one question for all that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// At least one.
    pub findings: Vec<Finding>,
    /// The widest answer that is offered.
    pub widest: ApprovalScope,
}

/// One reason to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's id, as `approvals list` and `command_allowlist` name it.
    pub rule: &'static str,
    /// What it would do, for the person, in plain words.
    pub description: String,
    /// What exactly: program, options and operands with absolute paths. Together with the rule it decides
    /// whether an earlier approval covers this.
    pub shape: String,
}

impl Approval {
    /// All reasons as one sentence part, for the person.
    pub fn description(&self) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for finding in &self.findings {
            if !parts.contains(&finding.description.as_str()) {
                parts.push(&finding.description);
            }
        }
        parts.join("; ")
    }
}

/// Judges effects. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Policy {
    paths: PathPolicy,
    settings: watch::Receiver<Arc<PolicySettings>>,
    approvals: Approvals,
    sudo_password_known: bool,
}

/// What a policy judges with.
#[derive(Debug, Clone)]
pub struct PolicyInput {
    pub paths: PathPolicy,
    /// Read at each judgement.
    pub settings: watch::Receiver<Arc<PolicySettings>>,
    pub approvals: Approvals,
}

impl Policy {
    /// A policy over the profile's path rules, settings and approvals.
    pub fn new(input: PolicyInput) -> Self {
        let PolicyInput { paths, settings, approvals } = input;
        Self { paths, settings, approvals, sudo_password_known: false }
    }

    /// Says whether a password for sudo is configured: without one, giving sudo a password is guessing.
    #[must_use]
    pub fn with_sudo_password(self, known: bool) -> Self {
        Self { sudo_password_known: known, ..self }
    }

    /// What people have allowed, to add to it and to take from it.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// The settings as they stand now.
    pub fn settings(&self) -> Arc<PolicySettings> {
        Arc::clone(&self.settings.borrow())
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
                Ok(()) => self.write(path, cx),
            },
            Effect::CrossProfileWrite { path } => match self.paths.check_write(path) {
                Err(no) if !no.lifts_for_cross_profile() => refused(&no),
                _ => self.write(path, cx),
            },
            Effect::Command { command, cwd } => self.command(command, cwd, cx),
        };
        match &verdict {
            Verdict::Allow => {}
            Verdict::Deny { rule, .. } => {
                tracing::debug!(rule, principal = %cx.principal, yolo = cx.yolo, "effect denied");
            }
            Verdict::Ask(approval) => {
                let rules: Vec<&str> = approval.findings.iter().map(|finding| finding.rule).collect();
                tracing::debug!(?rules, principal = %cx.principal, "effect needs approval");
            }
        }
        verdict
    }

    /// Nobody is asked for anything that can be allowed at all.
    fn asks_nobody(&self, cx: &PolicyCx<'_>) -> bool {
        cx.yolo || self.settings.borrow().approvals.mode == ApprovalMode::Off
    }

    /// What nothing lifts, then what the user forbids, then what was allowed, and only then what must be asked.
    fn command(&self, command: &str, cwd: &Path, cx: &PolicyCx<'_>) -> Verdict {
        let [hermes_home, hermes_root, user_home, temp_dir] = self.paths.homes();
        let facts = CommandFacts {
            cwd,
            workspace: cx.workspace,
            user_home,
            hermes_home,
            hermes_root,
            temp_dir,
            sudo_password_known: self.sudo_password_known,
            daemon_pid: std::process::id(),
            paths: &self.paths,
        };
        let examined = commands::examine(command, &facts);
        if let CommandVerdict::Blocked { rule, reason } = examined.verdict {
            return Verdict::Deny { rule, reason };
        }
        let settings = self.settings();
        if let Some(entry) = examined.words.denied_by(&settings.approvals.deny) {
            let reason = format!(
                "the user forbids this command (`{entry}` in approvals.deny); do not try it again or in another form"
            );
            return Verdict::Deny { rule: "approvals.deny", reason };
        }
        let CommandVerdict::Flagged { mut findings, vague } = examined.verdict else { return Verdict::Allow };
        let allowlist = &settings.allowlist.0;
        if self.asks_nobody(cx) || examined.words.allowed_by(allowlist) {
            return Verdict::Allow;
        }
        if !examined.words.is_compound() {
            findings.retain(|finding| !allowlist.iter().any(|entry| entry.trim() == finding.rule));
        }
        if vague && !findings.is_empty() {
            // What only the run will know may be another thing next time.
            return Verdict::Ask(Approval { findings, widest: ApprovalScope::Once });
        }
        self.unless_approved(cx, findings)
    }

    /// Asks for what no earlier approval covers.
    fn unless_approved(&self, cx: &PolicyCx<'_>, findings: Vec<Finding>) -> Verdict {
        let open: Vec<Finding> =
            findings.into_iter().filter(|finding| !self.approvals.covers(cx.session, finding)).collect();
        if open.is_empty() {
            return Verdict::Allow;
        }
        Verdict::Ask(Approval { findings: open, widest: ApprovalScope::Always })
    }

    /// Writes that somebody must approve: what runs by itself later, secrets that would be lost, and
    /// everything outside the session's directory.
    fn write(&self, path: &Path, cx: &PolicyCx<'_>) -> Verdict {
        if self.asks_nobody(cx) {
            return Verdict::Allow;
        }
        let target = self.paths.resolve(path);
        let shape = target.as_deref().unwrap_or(path).display().to_string();
        let shown = path.display();
        if let Some(why) = target.as_ref().ok().and_then(|target| self.paths.delicate(target)) {
            let description = format!("writes {shown}, which {why}");
            return self.unless_approved(cx, vec![Finding { rule: "write.delicate", description, shape }]);
        }
        let inside = || {
            let workspace = self.paths.resolve(cx.workspace)?;
            Ok::<_, PathRefusal>(target?.starts_with(workspace))
        };
        if inside().unwrap_or(false) {
            return Verdict::Allow;
        }
        let description = format!("writes {shown}, outside the working directory {}", cx.workspace.display());
        self.unless_approved(cx, vec![Finding { rule: "workspace.write", description, shape }])
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
        let (_, settings) = watch::channel(Arc::default());
        let policy = Policy::new(PolicyInput { paths, settings, approvals: Approvals::default() });
        Place { _temp: temp, user, policy }
    }

    impl Place {
        /// The rule that stops an effect, without and with yolo.
        fn rules(&self, effect: &Effect<'_>) -> [Option<&'static str>; 2] {
            [false, true].map(|yolo| {
                let workspace = self.user.join("work");
                let session = SessionKey::new("s");
                let cx =
                    PolicyCx { principal: &Principal::Owner, yolo, workspace: &workspace, session: &session };
                match self.policy.judge(effect, &cx) {
                    Verdict::Allow => None,
                    Verdict::Deny { rule, .. } => Some(rule),
                    Verdict::Ask(approval) => Some(approval.findings[0].rule),
                }
            })
        }
    }

    #[test]
    fn harmless_commands_run_flagged_ones_need_yolo_and_blocked_ones_never_run() {
        let place = place();
        for (command, rules) in [
            ("ls", [None, None]),
            ("rm -rf build", [Some("delete.recursive"), None]),
            ("rm -rf /", [Some("block.root_wipe"); 2]),
            ("echo 'rm -rf /'", [None, None]),
        ] {
            let work = place.user.join("work");
            assert_eq!(place.rules(&Effect::Command { command, cwd: &work }), rules, "{command}");
        }
    }

    /// The first rule that stops a command under these settings.
    fn rule_under(settings: PolicySettings, command: &str, yolo: bool) -> Option<&'static str> {
        let place = place();
        let (_sender, settings) = watch::channel(Arc::new(settings));
        let policy = Policy::new(PolicyInput {
            paths: place.policy.paths().clone(),
            settings,
            approvals: Approvals::default(),
        });
        let (workspace, session) = (place.user.join("work"), SessionKey::new("s"));
        let cx = PolicyCx { principal: &Principal::Owner, yolo, workspace: &workspace, session: &session };
        match policy.judge(&Effect::Command { command, cwd: &workspace }, &cx) {
            Verdict::Allow => None,
            Verdict::Deny { rule, .. } => Some(rule),
            Verdict::Ask(approval) => Some(approval.findings[0].rule),
        }
    }

    #[test]
    fn what_the_user_forbids_holds_under_yolo_and_behind_wrappers() {
        let settings = || PolicySettings {
            approvals: ApprovalSettings {
                deny: vec!["git push *".to_owned()],
                ..ApprovalSettings::default()
            },
            ..PolicySettings::default()
        };
        for command in ["git push", "sudo /usr/bin/git push origin", "ls && bash -c 'git push x'"] {
            assert_eq!(rule_under(settings(), command, true), Some("approvals.deny"), "{command}");
        }
        assert_eq!(rule_under(settings(), "git status", false), None);
    }

    #[test]
    fn an_allow_list_lifts_questions_of_single_commands_but_no_block() {
        let settings = || PolicySettings {
            allowlist: CommandAllowlist(["podman *", "delete.recursive", "rm *"].map(str::to_owned).to_vec()),
            ..PolicySettings::default()
        };
        for (command, rule) in [
            ("podman run x", None),
            ("rm -rf build", None),
            ("rm -rf build && ls", Some("delete.recursive")),
            ("podman run $(id)", Some("escape.container")),
            ("rm -rf /", Some("block.root_wipe")),
        ] {
            assert_eq!(rule_under(settings(), command, false), rule, "{command}");
        }
    }

    #[tokio::test]
    async fn an_approval_covers_its_own_folder_and_no_other() {
        let place = place();
        let (workspace, session) = (place.user.join("work"), SessionKey::new("s"));
        let cx =
            PolicyCx { principal: &Principal::Owner, yolo: false, workspace: &workspace, session: &session };
        let judge = |command: &str| place.policy.judge(&Effect::Command { command, cwd: &workspace }, &cx);
        let Verdict::Ask(approval) = judge("rm -rf ./build") else { panic!("not asked") };
        assert_eq!(approval.widest, ApprovalScope::Always);
        let now = hermes_core::Instant::default();
        place
            .policy
            .approvals()
            .grant(&session, &approval.findings, ApprovalScope::Session, now)
            .await
            .unwrap();
        assert_eq!(judge("rm -rf build"), Verdict::Allow);
        assert_eq!(judge("cd . && rm -r -f build/"), Verdict::Allow);
        for other in [
            "rm -rf ~/docs",
            "rm -rf build2",
            "sudo rm -rf build",
            "rm -rf build ~/docs",
            "cd /tmp && rm -rf build",
        ] {
            assert!(matches!(judge(other), Verdict::Ask(_)), "{other}");
        }
    }

    #[test]
    fn what_only_the_run_will_know_is_allowed_once_at_most() {
        let place = place();
        let (workspace, session) = (place.user.join("work"), SessionKey::new("s"));
        let cx =
            PolicyCx { principal: &Principal::Owner, yolo: false, workspace: &workspace, session: &session };
        let effect = Effect::Command { command: "rm -rf \"$DIR\"", cwd: &workspace };
        let Verdict::Ask(approval) = place.policy.judge(&effect, &cx) else { panic!("not asked") };
        assert_eq!(approval.widest, ApprovalScope::Once);
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
        let session = SessionKey::new("s");
        let cx =
            PolicyCx { principal: &Principal::Owner, yolo: false, workspace: &workspace, session: &session };
        let bashrc = place.user.join(".bashrc");
        assert!(matches!(place.policy.judge(&Effect::Write { path: &bashrc }, &cx), Verdict::Ask(_)));
        for later in [
            ".config/autostart/x.desktop",
            ".config/fish/config.fish",
            ".local/bin/git",
            ".cargo/bin/rustfmt",
        ] {
            let path = place.user.join(later);
            assert!(
                matches!(place.policy.judge(&Effect::Write { path: &path }, &cx), Verdict::Ask(_)),
                "{later}"
            );
        }
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

//! Paths in commands: where they lead and what stands there.

use std::path::Path;

use crate::paths::PathRule;

use super::expand::Arg;
use super::scope::UNKNOWN;
use super::{CommandFacts, globs};

/// What writing to a place would mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteRisk {
    /// A disk as a whole: never.
    Disk,
    /// A network connection that looks like a file.
    Network,
    /// The agent's own settings, state or skills.
    Hermes,
    /// Credentials, files that run by themselves.
    Sensitive,
    /// A folder of the operating system.
    System,
    /// Outside the working directory.
    Outside,
    /// Not known.
    Unknown,
}

const DISKS: [&str; 9] = ["sd", "nvme", "hd", "mmcblk", "vd", "xvd", "loop", "mapper/", "md"];

/// Files of a process that show its memory or its environment.
const PROCESS_SECRETS: [&str; 6] = ["environ", "mem", "maps", "smaps", "auxv", "pagemap"];

/// What the agent's home holds that commands neither read nor write unasked.
const HOME_READ: [&str; 5] = ["config.yaml", ".env", "run", "state.db", "auth.json"];

/// Shell and login files, wherever their folder is.
const RC_FILES: [&str; 16] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".netrc",
    ".pgpass",
    ".pypirc",
];

/// Absolute and without dots, by the text alone; `None` when it depends on a directory that is not known.
pub(super) fn absolute(text: &str, cwd: Option<&str>) -> Option<String> {
    let full = if text.starts_with('/') {
        text.to_owned()
    } else if text.starts_with(UNKNOWN) {
        return None;
    } else {
        format!("{}/{text}", cwd?)
    };
    let full = through_proc(full, cwd);
    let mut parts: Vec<&str> = Vec::new();
    for part in full.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// A path that goes through the links of a process: `/proc/self/root/etc`, `/proc/self/cwd/x`, `/dev/fd/../cwd`.
fn through_proc(full: String, cwd: Option<&str>) -> String {
    let mut parts: Vec<&str> = full.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if let ["dev", "fd", "..", ..] = parts.as_slice() {
        parts.splice(..2, ["proc", "self", "fd"]);
    }
    // What leads up again before the link does not count.
    let mut plain: Vec<&str> = Vec::new();
    let mut rest = parts.iter();
    while let Some(part) = rest.next() {
        if *part == ".." {
            plain.pop();
        } else {
            plain.push(part);
        }
        let link = match plain.as_slice() {
            ["proc", _, link @ ("root" | "cwd")] | ["proc", _, "task", _, link @ ("root" | "cwd")] => *link,
            _ => continue,
        };
        let behind = rest.copied().collect::<Vec<_>>().join("/");
        return match (link, cwd) {
            ("cwd", Some(cwd)) => through_proc(format!("{cwd}/{behind}"), None),
            ("cwd", None) => full,
            _ => through_proc(format!("/{behind}"), cwd),
        };
    }
    full
}

/// The place of an argument for a shape: absolute where it can be.
pub(super) fn shaped(arg: &Arg, cwd: Option<&str>) -> String {
    absolute(&arg.text, cwd).unwrap_or_else(|| arg.text.clone())
}

fn inside(path: &str, folder: &Path) -> bool {
    Path::new(path).starts_with(folder)
}

impl CommandFacts<'_> {
    /// The place, with links followed.
    fn resolved(&self, path: &str) -> String {
        if path.contains(UNKNOWN) {
            return path.to_owned();
        }
        self.paths
            .resolve(Path::new(path))
            .map_or_else(|_| path.to_owned(), |to| to.to_string_lossy().into_owned())
    }

    /// Where a path leads when it goes through a link; for a pattern, where its folder leads.
    pub(super) fn leads_to(&self, text: &str, cwd: Option<&str>) -> Option<String> {
        if text.is_empty() || text.contains(UNKNOWN) || text.len() > 4_096 {
            return None;
        }
        let path = absolute(text, cwd)?;
        let fixed = match path.find(['*', '?', '[']) {
            Some(at) => path.get(..at)?.rsplit_once('/')?.0.to_owned(),
            None => path,
        };
        let target = self.resolved(&fixed);
        (target != fixed && !fixed.is_empty()).then_some(target)
    }

    /// What writing to `arg` would mean; `None` for an ordinary file of the work.
    pub(super) fn write_risk(&self, arg: &Arg, cwd: Option<&str>) -> Option<WriteRisk> {
        if arg.process {
            return None;
        }
        if arg.is_blank() || arg.text.starts_with(UNKNOWN) {
            return Some(WriteRisk::Unknown);
        }
        let Some(path) = absolute(&arg.text, cwd) else { return Some(WriteRisk::Unknown) };
        if is_disk(&path) {
            return Some(WriteRisk::Disk);
        }
        if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
            return Some(WriteRisk::Network);
        }
        if matches!(
            path.as_str(),
            "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "/dev/zero" | "/dev/full"
        ) || path.starts_with("/dev/fd/")
            || matches!(path.as_str(), "/proc/self/fd/1" | "/proc/self/fd/2")
        {
            return None;
        }
        let target = self.resolved(&path);
        if [&path, &target].into_iter().any(|path| self.is_hermes(path)) {
            return Some(WriteRisk::Hermes);
        }
        if arg.glob || arg.has_unknown() {
            if self.could_be_protected(&path) {
                return Some(WriteRisk::Sensitive);
            }
        } else {
            match self.paths.check_write(Path::new(&path)).map_err(|refusal| refusal.rule()) {
                Err(PathRule::Guarded | PathRule::OwnPolicy | PathRule::Secret) => {
                    return Some(WriteRisk::Sensitive);
                }
                Err(PathRule::System) => return Some(WriteRisk::System),
                Err(PathRule::CrossProfile) => return Some(WriteRisk::Hermes),
                Err(PathRule::SafeRoot) => return Some(WriteRisk::Outside),
                _ => {}
            }
        }
        if is_sensitive_name(&path) || self.paths.delicate(Path::new(&target)).is_some() {
            return Some(WriteRisk::Sensitive);
        }
        if SYSTEM.iter().any(|system| inside(&path, Path::new(system))) {
            return Some(WriteRisk::System);
        }
        let free =
            [self.workspace, self.temp_dir, Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/dev/shm")];
        let is_free = |path: &str| free.iter().any(|folder| inside(path, folder));
        let resolves_free = is_free(&target)
            || [self.workspace, self.temp_dir]
                .iter()
                .any(|folder| self.paths.resolve(folder).is_ok_and(|folder| inside(&target, &folder)));
        (!resolves_free).then_some(WriteRisk::Outside)
    }

    /// Whether a path is a file that shells, git or the system run, or one of the agent's own.
    pub(super) fn runs_by_itself(&self, text: &str, cwd: Option<&str>) -> bool {
        let Some(path) = absolute(text, cwd).filter(|path| !path.contains(UNKNOWN)) else { return false };
        let guarded = matches!(
            self.paths.check_write(Path::new(&path)).map_err(|refusal| refusal.rule()),
            Err(PathRule::Guarded | PathRule::OwnPolicy)
        );
        // The folders themselves are named for many reasons.
        let top_file = self.paths.delicate(Path::new(&path)).is_some() && !Path::new(&path).is_dir();
        guarded || (is_sensitive_name(&path) && !path.ends_with("/.git/config")) || top_file
    }

    /// Whether `path` lies in the agent's home.
    pub(super) fn is_hermes(&self, path: &str) -> bool {
        inside(path, self.hermes_home) || inside(path, self.hermes_root)
    }

    /// Why reading `text` would show a secret.
    pub(super) fn secret(&self, text: &str, cwd: Option<&str>, open: bool) -> bool {
        let Some(path) = absolute(text, cwd) else {
            // A name that holds secrets wherever it stands, or a user's credentials in some home.
            let in_a_home = self.paths.never_read().iter().any(|(place, _)| {
                place.strip_prefix(self.user_home).ok().and_then(|rest| rest.to_str()).is_some_and(|rest| {
                    let named = format!("/{rest}");
                    text.ends_with(&named) || text.contains(&format!("{named}/"))
                })
            });
            return in_a_home || text.rsplit('/').next().is_some_and(is_env_file);
        };
        // A disk read as a whole goes round every rule.
        if is_process_secret(&path) || is_disk(&path) {
            return true;
        }
        if open {
            return self.could_be_protected(&path) || self.in_home_secret(&path) || self.searched(&path);
        }
        if self.in_home_secret(&path) {
            return true;
        }
        matches!(
            self.paths.check_read(Path::new(&path)).map_err(|refusal| refusal.rule()),
            Err(PathRule::Secret)
        )
    }

    /// What a search below a folder with credentials finds, when its name could be that of credentials.
    fn searched(&self, path: &str) -> bool {
        const NAMES: [&str; 12] = [
            "id_rsa",
            "id_ed25519",
            "credentials",
            ".env",
            ".netrc",
            ".npmrc",
            ".git-credentials",
            "auth.json",
            "state.db",
            "hosts.yml",
            "a.pem",
            "a.key",
        ];
        let between = format!("/{UNKNOWN}/");
        let Some((start, name)) = path.split_once(&between) else { return false };
        let start = if start.is_empty() { "/" } else { start };
        let pattern = name.replace(UNKNOWN, "*");
        NAMES.iter().any(|secret| globs::matches(&pattern, secret)) && self.holds_secrets(start, None)
    }

    fn in_home_secret(&self, path: &str) -> bool {
        [self.hermes_home, self.hermes_root].into_iter().any(|home| {
            Path::new(path).strip_prefix(home).is_ok_and(|rest| {
                let first = rest.iter().next().and_then(|part| part.to_str()).unwrap_or_default();
                HOME_READ.iter().any(|name| {
                    first.starts_with(name)
                        || (first.contains(['*', '?', '[', UNKNOWN])
                            && globs::could_mean(&format!("/{first}"), &format!("/{name}"), false))
                })
            })
        })
    }

    /// Whether a pattern could mean a protected place.
    fn could_be_protected(&self, pattern: &str) -> bool {
        let last = pattern.rsplit('/').next().unwrap_or_default();
        let names =
            [".env", ".envrc", ".env.local", ".env.production", ".bashrc", ".zshrc", ".profile", ".netrc"];
        if last.chars().any(|c| c != UNKNOWN)
            && names.iter().any(|name| globs::could_mean(&format!("/{last}"), &format!("/{name}"), false))
        {
            return true;
        }
        self.paths.never_read().iter().any(|(place, below)| {
            place.to_str().is_some_and(|place| globs::could_mean(pattern, place, *below))
        })
    }

    /// Whether a folder holds protected places, so that taking all of it takes them.
    pub(super) fn holds_secrets(&self, text: &str, cwd: Option<&str>) -> bool {
        let Some(path) = absolute(text, cwd) else { return false };
        // The work itself is what the agent is there for.
        if Path::new(&path) == self.workspace {
            return false;
        }
        self.paths.never_read().iter().any(|(place, _)| place.starts_with(&path))
            || self.hermes_home.starts_with(&path)
            || self.hermes_root.starts_with(&path)
    }

    /// Whether removing this, with all below it, would take the system or somebody's home.
    pub(super) fn is_vital(&self, arg: &Arg, cwd: Option<&str>) -> Option<&'static str> {
        if arg.unsure && arg.text.is_empty() {
            return None;
        }
        let path = absolute(&arg.text, cwd)?;
        let mut candidates = vec![path.clone()];
        // `/*`, `/etc/.*`, `~/[!.]*`: all that stands in a folder is the folder.
        if arg.glob || path.ends_with('*') {
            if let Some((folder, last)) = path.rsplit_once('/')
                && last.chars().all(|c| matches!(c, '*' | '.' | '?' | '[' | ']' | '!' | '^'))
            {
                candidates.push(if folder.is_empty() { "/".to_owned() } else { folder.to_owned() });
            }
        } else if !arg.has_unknown() {
            candidates.push(self.resolved(&path));
        }
        let home = self.user_home.to_string_lossy();
        let real_home = self.resolved(&home);
        let any = |is: &dyn Fn(&str) -> bool| candidates.iter().any(|candidate| is(candidate));
        if any(&|path| path == "/") {
            Some("root")
        } else if any(&|path| VITAL.contains(&path)) {
            Some("system")
        } else if any(&|path| path == home || path == real_home) {
            Some("home")
        } else if arg.glob && any(&|path| VITAL.iter().any(|system| globs::could_mean(path, system, false))) {
            Some("system")
        } else if arg.glob && any(&|path| globs::could_mean(path, &home, false)) {
            Some("home")
        } else {
            None
        }
    }
}

/// Folders that are never removed.
const VITAL: [&str; 17] = [
    "/home", "/root", "/etc", "/usr", "/var", "/bin", "/sbin", "/boot", "/lib", "/lib64", "/dev", "/proc",
    "/sys", "/opt", "/Users", "/System", "/Library",
];

/// Folders of the operating system, besides those that the path rules know.
const SYSTEM: [&str; 12] = [
    "/etc",
    "/private/etc",
    "/private/var",
    "/private/tmp",
    "/private/home",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/boot",
    "/System",
    "/Library",
];

/// A disk, or a part of one.
pub(super) fn is_disk(path: &str) -> bool {
    path.strip_prefix("/dev/").is_some_and(|name| {
        let known = DISKS.iter().any(|disk| name.starts_with(disk));
        let pattern = name.contains(['*', '?', '[', UNKNOWN])
            && ["sda", "sda1", "nvme0n1", "hda", "vda", "xvda", "mmcblk0"]
                .iter()
                .any(|disk| globs::could_mean(&format!("/{name}"), &format!("/{disk}"), false));
        known || pattern || name.starts_with("disk/by-")
    })
}

/// `/proc/<any>/environ` and the like.
pub(super) fn is_process_secret(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [proc, _, file] | [proc, _, "task", _, file]
            if *proc == "proc" || globs::could_mean(&format!("/{proc}"), "/proc", false) =>
        {
            PROCESS_SECRETS.iter().any(|secret| {
                file == secret || globs::could_mean(&format!("/{file}"), &format!("/{secret}"), false)
            })
        }
        ["proc", "kcore"] | ["dev", "mem" | "kmem"] => true,
        _ => false,
    }
}

/// `.env`, `.env.local`; not the examples that projects ship.
pub(super) fn is_env_file(name: &str) -> bool {
    let harmless = [".example", ".sample", ".template", ".dist", ".defaults", ".schema"];
    (name == ".env" || name == ".envrc" || name.starts_with(".env."))
        && !harmless.iter().any(|end| name.ends_with(end))
}

/// Names that are sensitive to write wherever they stand.
fn is_sensitive_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    is_env_file(name)
        || RC_FILES.contains(&name)
        || name == "config.yaml"
        || name == ".npmrc"
        || path.contains("/.ssh/")
        || path.contains("/.git/hooks/")
        || path.ends_with("/.git/config")
        // A folder as the place to which files are copied or unpacked.
        || ["/.git", "/.git/hooks", "/.ssh"].iter().any(|folder| path.ends_with(folder))
        || path.contains("/.config/systemd/")
        || path.contains("/.config/autostart/")
        || path.contains("/LaunchAgents/")
        || path.starts_with("/var/spool/cron")
}

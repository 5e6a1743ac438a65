//! The protected places, and which of them a trail touches.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::fold::{below, is_named};
use super::resolve::{Trail, follow};
use super::{PathPolicyInput, PathRule};

/// How much a protected name covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The file itself.
    File,
    /// The folder and all below.
    Tree,
    /// Every file in the folder whose name begins like this (`state.db-wal`).
    Beginning,
}
use Reach::{Beginning, File, Tree};

/// Below the user's home: credentials, never read and never written.
const USER: [(&str, Reach); 13] = [
    (".ssh", Tree),
    (".netrc", File),
    (".pgpass", File),
    (".npmrc", File),
    (".pypirc", File),
    (".git-credentials", File),
    (".aws", Tree),
    (".gnupg", Tree),
    (".kube", Tree),
    (".docker", Tree),
    (".azure", Tree),
    (".config/gh", Tree),
    (".config/gcloud", Tree),
];

/// Below the root of the disk: never written, also not by approval.
const MACHINE: [(&str, Reach); 6] = [
    ("etc/sudoers", File),
    ("etc/passwd", File),
    ("etc/shadow", File),
    ("etc/gshadow", File),
    ("etc/sudoers.d", Tree),
    ("etc/systemd", Tree),
];

/// Below the root of the disk: never read.
const MACHINE_READ: [(&str, Reach); 4] =
    [("etc/shadow", File), ("etc/gshadow", File), ("etc/sudoers", File), ("etc/sudoers.d", Tree)];

/// Below every profile's home: never written.
const HOME_WRITE: [(&str, Reach); 17] = [
    (".env", File),
    (".anthropic_oauth.json", File),
    ("auth.json", File),
    ("mcp-tokens", Tree),
    ("pairing", Tree),
    ("run", Tree),
    // What a restore writes comes from here.
    ("checkpoints", Tree),
    ("state.db", Beginning),
    ("sessions", Tree),
    // What runs in the background, and what it wrote; copies of all of this.
    ("processes.json", File),
    ("processes", Tree),
    ("backups", Tree),
    ("state-snapshots", Tree),
    ("active_profile", File),
    ("gateway.lock", File),
    ("gateway.pid", File),
    ("gateway_state.json", File),
];

/// Below every profile's home: the agent's own settings, and the programs that they name.
const HOME_POLICY: [(&str, Reach); 2] = [("config.yaml", File), ("hooks", Tree)];

/// Below every profile's home: never read. The database is not even opened: closing any descriptor of it in
/// the daemon's process would drop SQLite's own locks on it.
const HOME_READ: [(&str, Reach); 15] = [
    ("auth.json", File),
    ("auth.lock", File),
    (".anthropic_oauth.json", File),
    (".env", File),
    ("webhook_subscriptions.json", File),
    ("auth/google_oauth.json", File),
    ("cache/bws_cache.json", File),
    ("mcp-tokens", Tree),
    ("run", Tree),
    // Earlier contents, of files with secrets too.
    ("checkpoints", Tree),
    ("processes.json", File),
    ("processes", Tree),
    ("backups", Tree),
    ("state-snapshots", Tree),
    (DATABASE, Beginning),
];

/// The database, and what stands beside it.
const DATABASE: &str = "state.db";

/// Below every profile's home: never read, since it could carry injected text.
const HOME_HUB: [(&str, Reach); 1] = [("skills/.hub", Tree)];

/// Names that hold secrets wherever they stand.
const SECRET_NAMES: [&str; 7] =
    [".env", ".env.local", ".env.development", ".env.production", ".env.test", ".env.staging", ".envrc"];

/// Below the user's home, deeper than its dot files: what shells, the desktop and other programs run by themselves.
const RUN_LATER: [(&str, Reach); 9] = [
    (".cargo/bin", Tree),
    (".cargo/config.toml", File),
    (".config/autostart", Tree),
    (".config/environment.d", Tree),
    (".config/fish", Tree),
    (".config/git", Tree),
    (".config/systemd", Tree),
    (".local/bin", Tree),
    ("Library/LaunchAgents", Tree),
];

/// Folders of the operating system, and the sockets that give the machine away.
const SYSTEM: [&str; 12] = [
    "/etc",
    "/boot",
    "/usr/lib/systemd",
    "/lib/systemd",
    "/private/etc",
    "/private/var",
    "/proc",
    "/sys",
    "/dev",
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/podman/podman.sock",
];

/// What another profile keeps for itself.
const PROFILE_FOLDERS: [&str; 4] = ["skills", "plugins", "cron", "memories"];

/// The protected places of one profile.
#[derive(Debug)]
pub(super) struct Rules {
    /// The homes as written, and with links resolved.
    homes: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    users: Vec<PathBuf>,
    safe_roots: Vec<PathBuf>,
    /// Temp folders, also below a system folder.
    temps: Vec<PathBuf>,
    /// Where protected names that are links lead: also protected there.
    linked_write: Vec<(PathBuf, Reach, PathRule)>,
    linked_read: Vec<(PathBuf, Reach, PathRule)>,
    /// Every place that is never read; `true` where all below belongs to it.
    never_read: Vec<(PathBuf, bool)>,
}

impl Rules {
    pub(super) fn new(input: PathPolicyInput) -> Self {
        let homes = both(input.home);
        let roots = both(input.root);
        let users = both(input.user_home);
        let mut temps = both(input.temp_dir);
        temps.extend(both("/dev/shm".into()));
        let safe_roots = input.safe_root.as_deref().map(std::env::split_paths).into_iter().flatten();
        let safe_roots = safe_roots.filter(|root| root.is_absolute()).map(|root| resolved(&root)).collect();
        let bases: Vec<&PathBuf> = homes.iter().chain(&roots).collect();
        let mut linked_write = Vec::new();
        let mut linked_read = Vec::new();
        for base in bases {
            leads(base, &HOME_WRITE, PathRule::Guarded, &mut linked_write);
            leads(base, &HOME_POLICY, PathRule::OwnPolicy, &mut linked_write);
            leads(base, &HOME_READ, PathRule::Secret, &mut linked_read);
            leads(base, &HOME_HUB, PathRule::Hub, &mut linked_read);
        }
        for base in &users {
            leads(base, &USER, PathRule::Guarded, &mut linked_write);
        }
        let homes_and_roots = homes.iter().chain(&roots).map(|base| (base.clone(), HOME_READ.as_slice()));
        let never_read = homes_and_roots
            .chain(users.iter().map(|base| (base.clone(), USER.as_slice())))
            .chain([(PathBuf::from("/"), MACHINE_READ.as_slice())])
            .flat_map(|(base, names)| {
                names.iter().map(move |(name, reach)| (base.join(name), *reach == Tree))
            })
            .collect();
        Self { homes, roots, users, safe_roots, temps, linked_write, linked_read, never_read }
    }

    pub(super) fn never_read(&self) -> &[(PathBuf, bool)] {
        &self.never_read
    }

    /// Home, root, user's home and temp folder as they were given.
    pub(super) fn given(&self) -> [&Path; 4] {
        // Each list begins with the path as it was given.
        [&self.homes, &self.roots, &self.users, &self.temps]
            .map(|list| list.first().map_or(Path::new("/"), PathBuf::as_path))
    }

    pub(super) fn safe_roots(&self) -> &[PathBuf] {
        &self.safe_roots
    }

    /// Why a trail may not be read.
    pub(super) fn read_rule(&self, trail: &Trail) -> Option<PathRule> {
        trail
            .all()
            .find_map(|path| {
                let in_home = self.in_home(path);
                let home_rule = in_home.and_then(|rest| {
                    covered(path, &rest, &HOME_READ)
                        .then_some(PathRule::Secret)
                        .or_else(|| covered(path, &rest, &HOME_HUB).then_some(PathRule::Hub))
                });
                let credentials = || {
                    self.users
                        .iter()
                        .filter_map(|user| below(path, user))
                        .any(|rest| covered(path, &rest, &USER))
                        || below(path, Path::new("/")).is_some_and(|rest| covered(path, &rest, &MACHINE_READ))
                };
                let name = path.file_name().unwrap_or_default();
                let secret_name = || SECRET_NAMES.iter().any(|secret| is_named(path, name, secret));
                home_rule
                    .or_else(|| (secret_name() || credentials()).then_some(PathRule::Secret))
                    .or_else(|| linked(path, &self.linked_read))
            })
            .or_else(|| self.is_other_name_of_secret(&trail.target).then_some(PathRule::Secret))
    }

    /// Why a trail may not be written. The strictest reason comes first.
    pub(super) fn write_rule(&self, trail: &Trail) -> Option<PathRule> {
        let hard = trail.all().find_map(|path| {
            let user_rule = self
                .users
                .iter()
                .filter_map(|user| below(path, user))
                .any(|rest| covered(path, &rest, &USER));
            let machine_rule = below(path, Path::new("/")).is_some_and(|rest| covered(path, &rest, &MACHINE));
            let home_rule = self.in_home(path).and_then(|rest| {
                covered(path, &rest, &HOME_WRITE)
                    .then_some(PathRule::Guarded)
                    .or_else(|| covered(path, &rest, &HOME_POLICY).then_some(PathRule::OwnPolicy))
            });
            (user_rule || machine_rule)
                .then_some(PathRule::Guarded)
                .or(home_rule)
                .or_else(|| linked(path, &self.linked_write))
        });
        hard.or_else(|| self.is_other_name_of_secret(&trail.target).then_some(PathRule::Guarded))
            .or_else(|| trail.all().any(|path| self.is_system(path)).then_some(PathRule::System))
            .or_else(|| self.is_outside_safe_roots(&trail.target).then_some(PathRule::SafeRoot))
            .or_else(|| trail.all().any(|path| self.is_foreign(path)).then_some(PathRule::CrossProfile))
    }

    /// Why a write to `target` is more than a change of the user's work.
    pub(super) fn delicate(&self, target: &Path) -> Option<&'static str> {
        let name = target.file_name().unwrap_or_default();
        // Its hooks, and half of its settings, are commands that the next `git` runs.
        if target.parent().is_some_and(|parent| parent.iter().any(|part| is_named(target, part, ".git"))) {
            return Some("belongs to git itself, which runs what stands there");
        }
        if SECRET_NAMES.iter().any(|secret| is_named(target, name, secret)) && target.exists() {
            return Some("holds secrets that would be lost");
        }
        let mut in_home = self.users.iter().filter_map(|user| below(target, user));
        if in_home.clone().any(|rest| covered(target, &rest, &RUN_LATER)) {
            return Some("is run or loaded by programs of the user");
        }
        let of_the_user = in_home.any(|rest| {
            rest.parent().is_some_and(|parent| parent.as_os_str().is_empty())
                && rest.as_os_str().as_encoded_bytes().starts_with(b".")
        });
        of_the_user.then_some("is one of the user's own dot files, which shells and programs run")
    }

    /// The part of `path` below a profile's home: this profile's, the root's, or any other's.
    fn in_home(&self, path: &Path) -> Option<PathBuf> {
        // The longest match first: another profile's home lies below the root.
        let other = self.roots.iter().find_map(|root| {
            let rest = below(path, &root.join("profiles"))?;
            let mut parts = rest.components();
            parts.next()?;
            Some(parts.as_path().to_owned())
        });
        other.or_else(|| self.homes.iter().chain(&self.roots).find_map(|home| below(path, home)))
    }

    fn is_system(&self, path: &Path) -> bool {
        SYSTEM.iter().any(|system| below(path, Path::new(system)).is_some())
            && !self.temps.iter().any(|temp| below(path, temp).is_some())
    }

    fn is_outside_safe_roots(&self, target: &Path) -> bool {
        !self.safe_roots.is_empty() && !self.safe_roots.iter().any(|root| below(target, root).is_some())
    }

    /// Whether the path is another profile's, or a sandbox's copy of a home.
    fn is_foreign(&self, path: &Path) -> bool {
        let own = |path: &Path| self.homes.iter().any(|home| below(path, home).is_some());
        let in_folder =
            |rest: &Path| PROFILE_FOLDERS.iter().any(|folder| below(rest, Path::new(folder)).is_some());
        let other_profile = self.roots.iter().any(|root| {
            below(path, &root.join("profiles")).is_some_and(|rest| {
                let mut parts = rest.components();
                let is_own = parts.next().is_some_and(|name| {
                    let named = root.join("profiles").join(name);
                    self.homes
                        .iter()
                        .any(|home| below(&named, home).is_some_and(|rest| rest.as_os_str().is_empty()))
                });
                !is_own && in_folder(parts.as_path())
            })
        });
        // For a named profile the default one, at the root, is another.
        let default_profile = !own(path)
            && self.roots.iter().any(|root| below(path, root).is_some_and(|rest| in_folder(&rest)));
        other_profile || default_profile || is_sandbox_copy(path)
    }

    /// Whether the file is, by a hard link, the same as one that holds our secrets.
    fn is_other_name_of_secret(&self, target: &Path) -> bool {
        let Ok(meta) = fs::symlink_metadata(target) else { return false };
        if !meta.is_file() || meta.nlink() < 2 {
            return false;
        }
        let identity = (meta.dev(), meta.ino());
        self.databases().contains(&identity)
            || self.homes.iter().chain(&self.roots).any(|home| {
                HOME_READ.iter().filter(|(_, reach)| *reach == File).any(|(name, _)| {
                    fs::metadata(home.join(name)).is_ok_and(|secret| (secret.dev(), secret.ino()) == identity)
                })
            })
    }

    /// Device and inode of each file of our databases.
    pub(super) fn databases(&self) -> Vec<(u64, u64)> {
        let entries =
            self.homes.iter().chain(&self.roots).filter_map(|home| fs::read_dir(home).ok()).flatten();
        entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(DATABASE))
            .filter_map(|entry| fs::metadata(entry.path()).ok())
            .map(|meta| (meta.dev(), meta.ino()))
            .collect()
    }
}

/// `…/sandboxes/<backend>/<task>/home/.hermes/…`
fn is_sandbox_copy(path: &Path) -> bool {
    let parts: Vec<&OsStr> = path.iter().collect();
    parts.windows(5).any(|window| {
        matches!(window, [sandboxes, _, _, home, hermes]
            if *sandboxes == "sandboxes" && *home == "home" && *hermes == ".hermes")
    })
}

/// Whether `rest`, the part of `path` below a base, is one of the names or lies below it.
fn covered(path: &Path, rest: &Path, names: &[(&str, Reach)]) -> bool {
    names.iter().any(|(name, reach)| match reach {
        File => is_same(path, rest, Path::new(name)),
        Tree => {
            let length = Path::new(name).components().count();
            let head: PathBuf = rest.components().take(length).collect();
            is_same(path, &head, Path::new(name))
        }
        Beginning => rest.to_str().is_some_and(|rest| {
            !rest.contains('/')
                && rest.get(..name.len()).is_some_and(|head| is_named(path, OsStr::new(head), name))
        }),
    })
}

fn is_same(path: &Path, rest: &Path, wanted: &Path) -> bool {
    wanted.to_str().is_some_and(|wanted| is_named(path, rest.as_os_str(), wanted))
}

/// Adds where protected names below `base` lead, when they are or contain links.
fn leads(base: &Path, names: &[(&str, Reach)], rule: PathRule, found: &mut Vec<(PathBuf, Reach, PathRule)>) {
    for (name, reach) in names {
        let written = base.join(name);
        let target = resolved(&written);
        if target != written && !found.iter().any(|(known, ..)| *known == target) {
            found.push((target, *reach, rule));
        }
    }
}

fn linked(path: &Path, places: &[(PathBuf, Reach, PathRule)]) -> Option<PathRule> {
    places.iter().find_map(|(place, reach, rule)| {
        let rest = match reach {
            // `state.db-wal` beside the target of `state.db`.
            Beginning => place.parent().and_then(|folder| below(path, folder)).filter(|rest| {
                let stem = place.file_name().and_then(OsStr::to_str);
                stem.zip(rest.to_str()).is_some_and(|(stem, rest)| rest.starts_with(stem))
            }),
            File => below(path, place).filter(|rest| rest.as_os_str().is_empty()),
            Tree => below(path, place),
        };
        rest.map(|_| *rule)
    })
}

/// A place as written and, where links are in it, where it leads.
fn both(path: PathBuf) -> Vec<PathBuf> {
    let target = resolved(&path);
    if target == path { vec![path] } else { vec![path, target] }
}

fn resolved(path: &Path) -> PathBuf {
    follow(path).map_or_else(|_| path.to_owned(), |trail| trail.target)
}

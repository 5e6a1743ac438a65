//! The table of spec 40 §5.8, in a home of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use super::*;

/// A user's home with two profiles; the policy is that of `profile`.
struct Place {
    _temp: tempfile::TempDir,
    user: PathBuf,
    policy: PathPolicy,
}

impl Place {
    fn new() -> Self {
        Self::of("", None)
    }

    /// The policy of a named profile, or of the default one.
    fn of(profile: &str, safe_root: Option<&str>) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let user = temp.path().canonicalize().unwrap().join("u");
        let root = user.join(".hermes");
        for folder in ["work", ".ssh", ".hermes/run", ".hermes/profiles/p1/skills", ".hermes/profiles/p2"] {
            fs::create_dir_all(user.join(folder)).unwrap();
        }
        for file in
            [".hermes/.env", ".hermes/config.yaml", ".hermes/auth.json", ".ssh/id_ed25519", "work/file"]
        {
            fs::write(user.join(file), "x").unwrap();
        }
        let home = if profile.is_empty() { root.clone() } else { root.join("profiles").join(profile) };
        let policy = PathPolicy::new(PathPolicyInput {
            home,
            root,
            user_home: user.clone(),
            safe_root: safe_root.map(|folder| user.join(folder).into_os_string()),
            temp_dir: temp.path().join("tmp"),
        });
        Self { _temp: temp, user, policy }
    }

    fn write(&self, path: &str) -> Option<PathRule> {
        self.policy.check_write(&self.user.join(path)).err().map(|refusal| refusal.rule())
    }

    fn read(&self, path: &str) -> Option<PathRule> {
        self.policy.check_read(&self.user.join(path)).err().map(|refusal| refusal.rule())
    }
}

#[test]
fn ordinary_files_are_free() {
    let place = Place::new();
    for path in [
        "work/file",
        "work/new/deep/file",
        ".bashrc",
        ".hermes/SOUL.md",
        ".hermes/skills/mine/SKILL.md",
        ".hermes/memories/USER.md",
    ] {
        assert_eq!((place.read(path), place.write(path)), (None, None), "{path}");
    }
    for path in ["work/.env.example", ".config/ghost", ".sshx", ".hermes/state.txt"] {
        assert_eq!((place.read(path), place.write(path)), (None, None), "{path}");
    }
}

#[test]
fn credentials_are_never_written() {
    let place = Place::new();
    for path in [
        ".ssh/authorized_keys",
        ".ssh",
        ".netrc",
        ".npmrc",
        ".git-credentials",
        ".aws/credentials",
        ".gnupg/x",
        ".kube/config",
        ".docker/config.json",
        ".config/gh/hosts.yml",
        ".config/gcloud/a/b",
        ".hermes/.env",
        ".hermes/auth.json",
        ".hermes/mcp-tokens/x",
        ".hermes/pairing/x",
        ".hermes/run/daemon.json",
        ".hermes/state.db",
        ".hermes/state.db-wal",
        ".hermes/sessions/a.json",
        ".hermes/run/strays.json",
        ".hermes/processes.json",
        ".hermes/processes/proc_1.log",
        ".hermes/checkpoints/x",
        ".hermes/backups/b.zip",
        ".hermes/profiles/p1/.env",
        ".hermes/profiles/p1/state.db",
        "work/../.ssh/x",
        "/etc/passwd",
        "/etc/sudoers.d/x",
        "/etc/systemd/system/x.service",
    ] {
        assert_eq!(place.write(path), Some(PathRule::Guarded), "{path}");
    }
}

#[test]
fn the_agent_does_not_change_its_own_settings() {
    let place = Place::of("p1", None);
    for path in [".hermes/config.yaml", ".hermes/profiles/p1/config.yaml", ".hermes/profiles/p2/config.yaml"]
    {
        assert_eq!(place.write(path), Some(PathRule::OwnPolicy), "{path}");
        assert_eq!(place.read(path), None, "{path}");
    }
    assert_eq!(place.write("work/config.yaml"), None);
    assert_eq!(place.write(".hermes/hooks/pre.sh"), Some(PathRule::OwnPolicy));
}

#[test]
fn the_daemons_own_records_are_never_read() {
    let place = Place::new();
    for path in [
        ".hermes/.env",
        ".hermes/auth.json",
        ".hermes/run/strays.json",
        ".hermes/run/daemon.json",
        ".hermes/state.db",
        ".hermes/state.db-wal",
        ".hermes/processes.json",
        ".hermes/processes/proc_1.log",
        ".hermes/checkpoints/x",
        ".hermes/backups/b.zip",
        ".hermes/state-snapshots/1/state.db",
        ".hermes/profiles/p2/processes.json",
    ] {
        assert_eq!(place.read(path), Some(PathRule::Secret), "{path}");
    }
}

#[test]
fn system_folders_need_the_terminal() {
    let place = Place::new();
    for path in [
        "/etc/hosts",
        "/boot/x",
        "/usr/lib/systemd/x",
        "/proc/sys/kernel/x",
        "/sys/x",
        "/dev/new",
        "/private/var/x",
    ] {
        assert_eq!(place.write(path), Some(PathRule::System), "{path}");
    }
    assert_eq!(
        (place.read("/etc/hosts"), place.write("/dev/shm/x"), place.write("/etcetera")),
        (None, None, None)
    );
    let in_var = PathPolicy::new(PathPolicyInput {
        home: "/u/.hermes".into(),
        root: "/u/.hermes".into(),
        user_home: "/u".into(),
        safe_root: None,
        temp_dir: "/private/var/folders/t".into(),
    });
    assert!(in_var.check_write(Path::new("/private/var/folders/t/x")).is_ok());
    assert!(in_var.check_write(Path::new("/private/var/db/x")).is_err());
}

#[test]
fn secrets_are_never_read() {
    let place = Place::of("p1", None);
    for path in [
        ".hermes/.env",
        ".hermes/auth.json",
        ".hermes/auth.lock",
        ".hermes/webhook_subscriptions.json",
        ".hermes/auth/google_oauth.json",
        ".hermes/cache/bws_cache.json",
        ".hermes/mcp-tokens/x",
        ".hermes/run/daemon.json",
        ".hermes/profiles/p1/.env",
        ".hermes/profiles/p2/auth.json",
        "work/.env",
        "work/.env.local",
        "work/a/.envrc",
        "work/.env.production",
        ".hermes/state.db",
        ".hermes/profiles/p2/state.db-wal",
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".netrc",
        "/etc/shadow",
    ] {
        assert_eq!(place.read(path), Some(PathRule::Secret), "{path}");
    }
    assert_eq!(place.read(".hermes/skills/.hub/index.json"), Some(PathRule::Hub));
    assert_eq!(
        (place.read("/etc/passwd"), place.read("work/.env.example"), place.write("work/.env")),
        (None, None, None)
    );
}

#[test]
fn links_are_judged_by_every_stop() {
    let place = Place::new();
    let work = place.user.join("work");
    symlink(place.user.join(".ssh"), work.join("keys")).unwrap();
    symlink(work.join("keys/authorized_keys"), work.join("innocent")).unwrap();
    symlink("innocent", work.join("again")).unwrap();
    symlink(place.user.join(".hermes/.env"), work.join("settings")).unwrap();
    symlink("/dev/stdin", work.join("input")).unwrap();
    symlink("/proc/self/environ", work.join("facts")).unwrap();
    for path in ["work/keys/x", "work/innocent", "work/again"] {
        assert_eq!(place.write(path), Some(PathRule::Guarded), "{path}");
    }
    assert_eq!(place.read("work/settings"), Some(PathRule::Secret));
    assert_eq!(place.read("work/input"), Some(PathRule::Device));
    assert_eq!(place.read("work/facts"), Some(PathRule::Device));
    symlink("loop", work.join("loop")).unwrap();
    assert_eq!(place.read("work/loop"), Some(PathRule::TooManyLinks));
}

#[test]
fn where_a_protected_name_leads_is_protected_too() {
    let temp = tempfile::tempdir().unwrap();
    let user = temp.path().canonicalize().unwrap();
    for folder in ["dot/ssh", ".hermes"] {
        fs::create_dir_all(user.join(folder)).unwrap();
    }
    fs::write(user.join("dot/secrets"), "x").unwrap();
    symlink(user.join("dot/ssh"), user.join(".ssh")).unwrap();
    symlink(user.join("dot/secrets"), user.join(".hermes/.env")).unwrap();
    let policy = PathPolicy::new(PathPolicyInput {
        home: user.join(".hermes"),
        root: user.join(".hermes"),
        user_home: user.clone(),
        safe_root: None,
        temp_dir: "/tmp".into(),
    });
    assert!(policy.check_write(&user.join("dot/ssh/authorized_keys")).is_err());
    assert!(policy.check_read(&user.join("dot/secrets")).is_err());
    assert!(policy.check_write(&user.join("dot/other")).is_ok());
}

#[test]
fn a_second_name_of_a_secret_file_is_the_same_file() {
    let place = Place::new();
    fs::hard_link(place.user.join(".hermes/.env"), place.user.join("work/copy")).unwrap();
    assert_eq!(place.read("work/copy"), Some(PathRule::Secret));
}

#[test]
fn devices_pipes_and_sockets_are_no_files() {
    let place = Place::new();
    for path in [
        "/dev/zero",
        "/dev/urandom",
        "/dev/tty",
        "/dev/fd/0",
        "/proc/self/fd/1",
        "/proc/1/environ",
        "/proc/self/mem",
        "/proc/self/task/1/maps",
        "/proc/kcore",
    ] {
        assert_eq!(place.read(path), Some(PathRule::Device), "{path}");
    }
    assert_eq!((place.read("/dev/null"), place.write("/dev/null")), (None, Some(PathRule::Device)));
    assert_eq!(place.read("/proc/self/status"), None);
    let work = place.user.join("work");
    let _socket = UnixListener::bind(work.join("socket")).unwrap();
    nix::unistd::mkfifo(&work.join("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    for path in ["work/socket", "work/pipe"] {
        assert_eq!(
            (place.read(path), place.write(path)),
            (Some(PathRule::Pipe), Some(PathRule::Pipe)),
            "{path}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_descriptor_of_ours_leads_to_its_file() {
    use std::os::fd::AsRawFd as _;
    let place = Place::new();
    let secret = fs::File::open(place.user.join(".hermes/.env")).unwrap();
    assert_eq!(place.read(&format!("/proc/self/fd/{}", secret.as_raw_fd())), Some(PathRule::Secret));
    let (reader, _writer) = std::io::pipe().unwrap();
    assert_eq!(place.read(&format!("/dev/fd/{}", reader.as_raw_fd())), Some(PathRule::Pipe));
}

#[test]
fn the_safe_root_bounds_writing() {
    let place = Place::of("", Some("work"));
    assert_eq!(
        (place.write("work/x"), place.write("other/x"), place.read("other/x")),
        (None, Some(PathRule::SafeRoot), None)
    );
    let refusal = place.policy.check_write(&place.user.join("other/x")).unwrap_err();
    assert!(refusal.to_string().contains(&place.user.join("work").display().to_string()), "{refusal}");
    symlink(&place.user, place.user.join("work/out")).unwrap();
    assert_eq!(place.write("work/out/x"), Some(PathRule::SafeRoot));
}

#[test]
fn other_profiles_need_a_word() {
    let default = Place::new();
    let named = Place::of("p1", None);
    for (place, path, expected) in [
        (&default, ".hermes/profiles/p1/skills/x", true),
        (&default, ".hermes/skills/x", false),
        (&default, ".hermes/profiles/p1/notes", false),
        (&named, ".hermes/profiles/p1/skills/x", false),
        (&named, ".hermes/profiles/p2/memories/x", true),
        (&named, ".hermes/cron/x", true),
        (&named, "work/skills/x", false),
        (&named, ".hermes/profiles/p1/sandboxes/docker/t/home/.hermes/x", true),
    ] {
        let refused = place.policy.check_write(&place.user.join(path)).err();
        assert_eq!(
            refused.as_ref().is_some_and(PathRefusal::lifts_for_cross_profile),
            expected,
            "{path} {refused:?}"
        );
        assert_eq!(refused.is_some(), expected, "{path}");
        assert_eq!(place.read(path), None, "{path}");
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    let place = Place::new();
    symlink(place.user.join(".hermes/.env"), place.user.join("work/settings")).unwrap();
    let refusal = place.policy.check_read(&place.user.join("work/settings")).unwrap_err().to_string();
    let text = refusal.replace(&place.user.display().to_string(), "~");
    assert_eq!(
        text,
        "~/work/settings (which leads to ~/.hermes/.env) holds secrets and cannot be read; look for an example file such as .env.example, or ask the user for what you need"
    );
    assert!(place.policy.check_read(Path::new("relative")).is_err());
}

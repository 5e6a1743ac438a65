//! Behaviour of the snapshots as a whole, over real files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use pretty_assertions::assert_eq;

use super::*;
use crate::{PathPolicyInput, SecretScope};

/// A clock that is set by hand.
#[derive(Debug, Default)]
struct HandClock(Mutex<f64>);

impl Clock for HandClock {
    fn now(&self) -> Instant {
        let mut now = self.0.lock().unwrap();
        *now += 1.0;
        Instant(*now)
    }
}

pub(super) struct Bench {
    _dir: tempfile::TempDir,
    work: PathBuf,
    kept: PathBuf,
    clock: Arc<HandClock>,
    tasks: Tasks,
    snapshots: Snapshots,
    settings: watch::Sender<Arc<CheckpointSettings>>,
    session: SessionId,
}

impl Bench {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let (work, home) = (base.join("user/work"), base.join("user/.hermes"));
        for folder in [&work, &home] {
            fs::create_dir_all(folder).unwrap();
        }
        let (settings, receiver) = watch::channel(Arc::default());
        let clock = Arc::new(HandClock::default());
        let tasks = Tasks::new();
        let user_home = base.join("user");
        let snapshots = Snapshots::new(SnapshotsInput {
            dir: home.join("checkpoints"),
            user_home: user_home.clone(),
            settings: receiver,
            paths: PathPolicy::new(PathPolicyInput {
                home: home.clone(),
                root: home.clone(),
                user_home,
                safe_root: None,
                temp_dir: std::env::temp_dir(),
            }),
            redactor: Redactor::new(true, &SecretScope::from_pairs([("TOKEN", "hunter2-hunter2-hunter2")])),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            tasks: tasks.clone(),
        });
        let session = SessionId::parse("20260101_000000_0a1b2c3d").unwrap();
        Self { _dir: dir, work, kept: home.join("checkpoints"), clock, tasks, snapshots, settings, session }
    }

    fn set(&self, change: impl FnOnce(&mut CheckpointSettings)) {
        let mut settings = CheckpointSettings::default();
        change(&mut settings);
        self.settings.send_replace(Arc::new(settings));
    }

    fn call(&self, turn: &TurnId) -> SnapshotCall {
        SnapshotCall {
            session: self.session.clone(),
            turn: turn.clone(),
            workspace: self.work.clone(),
            reason: "write_file a.txt".into(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    async fn keep(&self, turn: &TurnId, touches: Vec<Touch>) -> Option<Keeping> {
        self.snapshots.before(self.call(turn), touches).await
    }

    /// A call of the agent that changes these files.
    pub(super) async fn agent(&self, turn: &TurnId, names: &[&str], act: impl FnOnce()) {
        let touches = names.iter().map(|name| write_of(self.path(name))).collect();
        let keeping = self.keep(turn, touches).await;
        act();
        self.snapshots.after(keeping.unwrap()).await;
    }

    pub(super) async fn agent_writes(&self, turn: &TurnId, name: &str, content: &str) {
        let path = self.path(name);
        self.agent(turn, &[name], || put(&path, content)).await;
    }

    pub(super) async fn restore(&self, request: RestoreRequest) -> Result<Restored, SnapshotError> {
        self.snapshots.restore(&self.session, request).await
    }

    async fn undo(&self) -> Restored {
        self.restore(RestoreRequest::default()).await.unwrap()
    }

    async fn list(&self) -> Vec<Snapshot> {
        self.snapshots.list(&self.session, 0).await.unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Waits for what runs in the background.
    async fn settle(&self) {
        assert!(self.tasks.wait(Duration::from_secs(30)).await);
    }
}

fn write_of(path: PathBuf) -> Touch {
    Touch::Write { path, cross_profile: false }
}

pub(super) fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn names(paths: &[PathBuf]) -> Vec<&str> {
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect()
}

pub(super) fn by_id(id: &str) -> RestoreRequest {
    RestoreRequest { id: Some(id.to_owned()), ..RestoreRequest::default() }
}

#[tokio::test]
async fn a_turn_is_undone_and_the_undo_is_undone() {
    let bench = Bench::new();
    put(&bench.path("changed"), "old\n");
    put(&bench.path("deleted"), "precious\n");
    fs::set_permissions(bench.path("deleted"), fs::Permissions::from_mode(0o751)).unwrap();
    let turn = TurnId::mint();
    bench.agent_writes(&turn, "changed", "new\nmore\n").await;
    bench.agent_writes(&turn, "made/deep/created", "x").await;
    bench.agent(&turn, &["deleted"], || fs::remove_file(bench.path("deleted")).unwrap()).await;

    let listed = bench.list().await;
    let files: Vec<_> = listed[0]
        .files
        .iter()
        .map(|file| {
            (
                file.path.file_name().unwrap().to_str().unwrap(),
                file.change,
                file.added_lines,
                file.removed_lines,
            )
        })
        .collect();
    assert_eq!(
        files,
        [
            ("changed", FileChange::Changed, 2, 1),
            ("created", FileChange::Created, 1, 0),
            ("deleted", FileChange::Deleted, 0, 1)
        ]
    );
    let undone = bench.undo().await;
    assert_eq!(
        (names(&undone.restored), names(&undone.removed)),
        (vec!["changed", "deleted"], vec!["created"])
    );
    assert_eq!((bench.read("changed"), bench.read("deleted")), ("old\n".into(), "precious\n".into()));
    assert_eq!(fs::metadata(bench.path("deleted")).unwrap().mode() & 0o7777, 0o751);
    assert!(!bench.path("made").exists(), "folders that the agent made are gone with their files");
    assert!(undone.snapshot.restored);
    assert!(matches!(bench.restore(RestoreRequest::default()).await, Err(SnapshotError::Nothing)));

    let again = bench.restore(by_id(undone.undone_by.as_deref().unwrap())).await.unwrap();
    assert_eq!(
        (names(&again.restored), names(&again.removed)),
        (vec!["changed", "created"], vec!["deleted"])
    );
    assert_eq!((bench.read("changed"), bench.read("made/deep/created")), ("new\nmore\n".into(), "x".into()));
    assert!(!bench.path("deleted").exists());
    // The turn stands again, so it can be undone again.
    assert_eq!(names(&bench.undo().await.removed), ["created"]);
    assert_eq!(bench.read("deleted"), "precious\n");
}

#[tokio::test]
async fn what_somebody_edited_since_is_kept_and_named_unless_all_is_asked_for() {
    let bench = Bench::new();
    put(&bench.path("mine"), "old");
    put(&bench.path("theirs"), "old");
    let turn = TurnId::mint();
    bench.agent_writes(&turn, "mine", "agent").await;
    bench.agent_writes(&turn, "theirs", "agent").await;
    put(&bench.path("theirs"), "by hand");
    assert!(bench.list().await[0].files[1].edited_since);

    let shown = bench.restore(RestoreRequest { dry_run: true, ..RestoreRequest::default() }).await.unwrap();
    assert_eq!((bench.read("mine"), shown.undone_by.clone()), ("agent".into(), None));
    let undone = bench.undo().await;
    assert_eq!((&undone.restored, &undone.kept), (&shown.restored, &shown.kept));
    assert_eq!(undone.kept, [(bench.path("theirs"), "was edited since".to_owned())]);
    assert_eq!((bench.read("mine"), bench.read("theirs")), ("old".into(), "by hand".into()));

    let all = RestoreRequest { all: true, ..by_id(&undone.snapshot.id) };
    let all = bench.restore(all).await.unwrap();
    assert_eq!((names(&all.restored), bench.read("theirs")), (vec!["theirs"], "old".into()));
    bench.restore(by_id(all.undone_by.as_deref().unwrap())).await.unwrap();
    assert_eq!(bench.read("theirs"), "by hand");
}

#[tokio::test]
async fn an_edit_between_two_calls_of_a_turn_is_not_the_agents() {
    let bench = Bench::new();
    put(&bench.path("f"), "old");
    let turn = TurnId::mint();
    bench.agent_writes(&turn, "f", "one").await;
    put(&bench.path("f"), "by hand");
    bench.agent_writes(&turn, "f", "by hand, patched").await;
    let undone = bench.undo().await;
    assert_eq!(undone.kept, [(bench.path("f"), "was edited by somebody else during the turn".to_owned())]);
    assert_eq!(bench.read("f"), "by hand, patched");
}

#[tokio::test]
async fn turns_are_undone_from_the_newest_on() {
    let bench = Bench::new();
    put(&bench.path("f"), "0");
    for content in ["1", "2"] {
        bench.agent_writes(&TurnId::mint(), "f", content).await;
    }
    let [second, first] = <[Snapshot; 2]>::try_from(bench.list().await).unwrap();
    let kept = bench.restore(by_id(&first.id)).await.unwrap().kept;
    assert_eq!(kept[0].1, format!("was changed again by a later turn: undo {} first", second.id));
    let mut states = Vec::new();
    for _ in 0..2 {
        bench.undo().await;
        states.push(bench.read("f"));
    }
    assert_eq!(states, ["1", "0"]);
}

#[tokio::test]
async fn a_call_that_changes_nothing_leaves_nothing() {
    let bench = Bench::new();
    put(&bench.path("f"), "same");
    let turn = TurnId::mint();
    bench.agent(&turn, &["f", "none"], || {}).await;
    assert_eq!(bench.list().await, []);
    let touch = Touch::Command { command: "rm -rf .".into(), cwd: bench.work.clone() };
    assert!(bench.keep(&turn, vec![touch]).await.is_none(), "commands only when the settings say so");
    bench.set(|settings| settings.enabled = false);
    assert!(bench.keep(&turn, vec![write_of(bench.path("f"))]).await.is_none());
}

#[tokio::test]
async fn a_call_that_is_dropped_is_written_down_as_it_was_then() {
    let bench = Bench::new();
    put(&bench.path("f"), "old");
    let keeping = bench.keep(&TurnId::mint(), vec![write_of(bench.path("f"))]).await;
    put(&bench.path("f"), "new");
    drop(keeping);
    bench.settle().await;
    assert_eq!((names(&bench.undo().await.restored), bench.read("f")), (vec!["f"], "old".into()));
}

#[tokio::test]
async fn after_a_crash_in_the_middle_of_a_call_nothing_is_overwritten_unasked() {
    let bench = Bench::new();
    put(&bench.path("untouched"), "old");
    put(&bench.path("written"), "old");
    let touches = ["untouched", "written"].map(|name| write_of(bench.path(name)));
    let mut keeping = bench.keep(&TurnId::mint(), touches.into()).await.unwrap();
    put(&bench.path("written"), "by whom?");
    // The process is gone: nothing is written down any more.
    keeping.kept = None;
    let undone = bench.undo().await;
    let reason = "the turn was cut off, so it is not known who changed it last";
    assert_eq!(undone.kept, [(bench.path("written"), reason.to_owned())]);
    let all = RestoreRequest { all: true, ..by_id(&undone.snapshot.id) };
    assert_eq!(names(&bench.restore(all).await.unwrap().restored), ["written"]);
    assert_eq!(bench.read("written"), "old");
}

#[tokio::test]
async fn a_file_above_the_limit_is_named_and_never_touched() {
    let bench = Bench::new();
    bench.set(|settings| settings.max_file_size_mb = 1);
    let large = "x".repeat(1024 * 1024 + 1);
    put(&bench.path("large"), &large);
    let turn = TurnId::mint();
    bench.agent_writes(&turn, "large", "small now").await;
    bench.agent_writes(&turn, "grown", &large).await;
    assert!(bench.list().await[0].files[0].not_kept);
    let undone = bench.undo().await;
    assert_eq!(undone.kept, [(bench.path("large"), "was too large to be kept".to_owned())]);
    assert_eq!((names(&undone.removed), bench.path("grown").exists()), (vec!["grown"], false));
    // What was taken away is in the trash, whatever its size.
    bench.restore(by_id(undone.undone_by.as_deref().unwrap())).await.unwrap();
    assert_eq!(bench.read("grown"), large);
}

#[tokio::test]
async fn links_lead_to_the_file_that_is_written_and_are_never_written_through_later() {
    let bench = Bench::new();
    put(&bench.path("real/f"), "old");
    symlink("real/f", bench.path("link")).unwrap();
    bench.agent_writes(&TurnId::mint(), "link", "new").await;
    assert_eq!(bench.list().await[0].files[0].path, bench.path("real/f"));

    put(&bench.path("elsewhere/f"), "new");
    fs::remove_dir_all(bench.path("real")).unwrap();
    symlink(bench.path("elsewhere"), bench.path("real")).unwrap();
    for all in [false, true] {
        let request = RestoreRequest { all, ..by_id(&bench.list().await[0].id) };
        let kept = bench.restore(request).await.unwrap().kept;
        assert_eq!(kept, [(bench.path("real/f"), "a symbolic link stands in its way now".to_owned())]);
    }
    assert_eq!(bench.read("elsewhere/f"), "new");
}

#[tokio::test]
async fn odd_names_survive() {
    let bench = Bench::new();
    let odd = [&b"new\nline"[..], b"\xff\xfe.bin", b" -rf ", "日本語".as_bytes(), b"*"].map(|name| {
        let path = bench.work.join(OsStr::from_bytes(name));
        fs::write(&path, name).unwrap();
        path
    });
    let turn = TurnId::mint();
    let keeping = bench.keep(&turn, odd.iter().cloned().map(write_of).collect()).await.unwrap();
    for path in &odd {
        fs::write(path, "changed").unwrap();
    }
    bench.snapshots.after(keeping).await;
    let lossy = RestoreRequest {
        file: Some(odd[1].to_string_lossy().into_owned().into()),
        ..RestoreRequest::default()
    };
    assert_eq!(bench.restore(lossy).await.unwrap().restored, odd[1..2]);
    bench.undo().await;
    for path in &odd {
        assert_eq!(fs::read(path).unwrap(), path.file_name().unwrap().as_bytes());
    }
}

#[tokio::test]
async fn a_damaged_content_is_never_put_back() {
    let bench = Bench::new();
    put(&bench.path("f"), "old");
    bench.agent_writes(&TurnId::mint(), "f", "new").await;
    for folder in fs::read_dir(bench.kept.join("blobs")).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            fs::write(file.unwrap().path(), "0ld").unwrap();
        }
    }
    let undone = bench.undo().await;
    assert_eq!(
        undone.kept,
        [(bench.path("f"), "could not be put back: the kept content is damaged".to_owned())]
    );
    assert_eq!((bench.read("f"), undone.undone_by), ("new".into(), None));
}

#[tokio::test]
async fn guarded_paths_are_judged_again() {
    let bench = Bench::new();
    bench.agent_writes(&TurnId::mint(), "f", "new").await;
    // Forged or grown old: the index names a file that nobody may write.
    let session = bench.kept.join(format!("sessions/s-{}", bench.session));
    let index = fs::read_dir(session).unwrap().next().unwrap().unwrap().path();
    let guarded = bench.work.parent().unwrap().join(".ssh/config");
    put(&guarded, "new");
    let text = fs::read_to_string(&index).unwrap();
    let forged = text.replace(bench.path("f").to_str().unwrap(), guarded.to_str().unwrap());
    fs::write(&index, forged).unwrap();
    let undone = bench.undo().await;
    assert_eq!(undone.kept, [(guarded.clone(), "the path may not be written".to_owned())]);
    assert!(guarded.exists());
}

#[tokio::test]
async fn a_diff_goes_from_what_was_kept_to_what_stands_there_now() {
    let bench = Bench::new();
    put(&bench.path("a"), "one\ntwo\n");
    put(&bench.path("b"), "\0binary");
    let turn = TurnId::mint();
    bench.agent_writes(&turn, "a", "one\n2\n").await;
    bench.agent_writes(&turn, "b", "\0other").await;
    bench.agent_writes(&turn, "c", "TOKEN=hunter2-hunter2-hunter2\n").await;
    put(&bench.path("a"), "one\n2\nthree\n");
    let id = bench.list().await[0].id.clone();
    let diff = bench.snapshots.diff(&bench.session, id.get(..6).unwrap(), None).await.unwrap();
    let text = diff.text.replace(bench.work.to_str().unwrap(), "/W");
    assert!(text.contains("--- a/W/a\n+++ b/W/a\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+three\n"), "{text}");
    assert!(text.contains("the contents differ and are not shown"), "{text}");
    assert!(text.contains("--- /dev/null\n+++ b/W/c\n") && !text.contains("hunter2-hunter2"), "{text}");
    let one = bench.snapshots.diff(&bench.session, &id, Some(bench.path("c"))).await.unwrap();
    assert!(!one.text.contains("two"), "{}", one.text);
}

#[tokio::test]
async fn ids_are_checked_before_they_are_looked_for() {
    let bench = Bench::new();
    bench.agent_writes(&TurnId::mint(), "f", "new").await;
    for bad in ["", "abc", "../../x", "zzzz", &"a".repeat(65)] {
        assert!(matches!(bench.restore(by_id(bad)).await, Err(SnapshotError::BadId(_))), "{bad}");
    }
    assert!(matches!(bench.restore(by_id("ffff0000ffff")).await, Err(SnapshotError::Unknown(_))));
    let file = RestoreRequest { file: Some("/no/such".into()), ..RestoreRequest::default() };
    assert!(matches!(bench.restore(file).await, Err(SnapshotError::NoSuchFile { .. })));
}

#[tokio::test]
async fn the_number_the_age_and_the_size_are_bounded() {
    let bench = Bench::new();
    bench.set(|settings| settings.max_snapshots = 3);
    for round in 0..6 {
        bench.agent_writes(&TurnId::mint(), "f", &round.to_string()).await;
        bench.settle().await;
    }
    // The number is looked at when a turn begins to change something, with that turn's own among them.
    assert!(bench.list().await.len() <= 4, "{:?}", bench.list().await.len());

    bench.set(|settings| settings.max_total_size_mb = 1);
    let large = |letter: &str| letter.repeat(700_000);
    for letter in ["a", "b", "c", "d"] {
        bench.agent_writes(&TurnId::mint(), "f", &large(letter)).await;
        bench.settle().await;
    }
    bench.snapshots.start();
    bench.settle().await;
    let blobs: u64 = walkdir(&bench.kept.join("blobs"));
    assert!(blobs <= 1024 * 1024, "{blobs}");
    assert!(!bench.list().await.is_empty(), "the newest stays");

    bench.set(|_| {});
    *bench.clock.0.lock().unwrap() += 8.0 * 86_400.0;
    bench.snapshots.start();
    bench.settle().await;
    assert_eq!((bench.list().await, walkdir(&bench.kept.join("blobs"))), (vec![], 0));
}

fn walkdir(folder: &Path) -> u64 {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() { walkdir(&entry.path()) } else { meta.len() }
        })
        .sum()
}

#[tokio::test]
async fn a_destructive_command_is_undone_when_the_settings_say_so() {
    let bench = Bench::new();
    bench.set(|settings| settings.terminal = true);
    for (name, content) in [
        ("Cargo.toml", ""),
        ("src/a.rs", "a"),
        ("src/b.rs", "b"),
        ("target/x", "built"),
        (".gitignore", "hidden\n"),
        ("hidden", "secret"),
        (".env", "KEY=1"),
    ] {
        put(&bench.path(name), content);
    }
    let turn = TurnId::mint();
    let command = |command: &str| Touch::Command { command: command.into(), cwd: bench.path("src") };
    assert!(bench.keep(&turn, vec![command("ls -la")]).await.is_none());
    let keeping = bench.keep(&turn, vec![command("rm src/a.rs; sed -i s/b/c/ src/b.rs")]).await.unwrap();
    fs::remove_file(bench.path("src/a.rs")).unwrap();
    put(&bench.path("src/b.rs"), "c");
    put(&bench.path("src/new.rs"), "n");
    // What comes to light because the ignore file has changed was there before.
    put(&bench.path(".gitignore"), "");
    fs::remove_file(bench.path("target/x")).unwrap();
    bench.snapshots.after(keeping).await;
    let undone = bench.undo().await;
    assert_eq!(names(&undone.removed), ["new.rs"]);
    let mut restored = names(&undone.restored);
    restored.sort_unstable();
    assert_eq!(restored, [".gitignore", "a.rs", "b.rs"]);
    assert_eq!((bench.read("src/a.rs"), bench.read("src/b.rs")), ("a".into(), "b".into()));
    assert_eq!(bench.read("hidden"), "secret");
}

#[tokio::test]
async fn a_command_that_dies_with_the_daemon_is_found_at_the_next_look() {
    let bench = Bench::new();
    bench.set(|settings| settings.terminal = true);
    put(&bench.path("Makefile"), "");
    put(&bench.path("a"), "a");
    let touch = Touch::Command { command: "rm a".into(), cwd: bench.work.clone() };
    let mut keeping = bench.keep(&TurnId::mint(), vec![touch]).await.unwrap();
    fs::remove_file(bench.path("a")).unwrap();
    keeping.kept = None;
    let store = &bench.snapshots.0.as_ref().unwrap().store;
    store.walks.lock().unwrap().clear();
    let listed = bench.list().await;
    assert_eq!(listed[0].files.len(), 1);
    let all = RestoreRequest { all: true, ..RestoreRequest::default() };
    assert_eq!(names(&bench.restore(all).await.unwrap().restored), ["a"]);
    let left = fs::read_dir(bench.kept.join(format!("sessions/s-{}", bench.session))).unwrap();
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().contains("walk")));
}

#[tokio::test]
async fn the_user_home_is_never_kept_whole() {
    let bench = Bench::new();
    bench.set(|settings| settings.terminal = true);
    let home = bench.work.parent().unwrap().to_owned();
    put(&home.join(".git/HEAD"), "");
    for cwd in [home, PathBuf::from("/")] {
        let touch = Touch::Command { command: "rm a".into(), cwd };
        assert!(bench.keep(&TurnId::mint(), vec![touch]).await.is_none());
    }
}

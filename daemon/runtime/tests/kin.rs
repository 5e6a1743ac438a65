//! Real processes that try to get away from the daemon. One at a time: each test buries the dead of its process.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hermes_runtime::kin::{
    Family, FamilyInput, Kinship, LinuxProc, ProcSource as _, Reason, Standing, StrayRecord, judge,
    started_inside,
};
use pretty_assertions::assert_eq;

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kin(reason: Reason, sessions: &[&str]) -> Standing {
    Standing::Kin(Kinship { reason, sessions: sessions.iter().map(|text| (*text).to_owned()).collect() })
}

fn own() -> i32 {
    i32::try_from(std::process::id()).unwrap()
}

/// Looks until the condition holds.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::yield_now();
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_child_is_kin_by_descent_and_by_its_mark() {
    let _alone = alone();
    let mut command = Command::new("sleep");
    command.arg("60").env_clear().env("HERMES_TOOL_CHILD", "real");
    let child = Killed(command.spawn().unwrap());
    let pid = i32::try_from(child.0.id()).unwrap();
    // Between fork and exec the child shows the parent's environment.
    let standing = until(|| {
        let standing = judge(&LinuxProc, pid, own(), &[], &BTreeSet::new(), None);
        (standing == kin(Reason::Descends, &["real"])).then_some(standing)
    });
    assert_eq!(standing, kin(Reason::Descends, &["real"]));
    let elsewhere = judge(&LinuxProc, pid, i32::MAX, &[], &BTreeSet::new(), None);
    assert_eq!(elsewhere, kin(Reason::Marked, &["real"]));
    assert_eq!(judge(&LinuxProc, own(), i32::MAX, &[], &BTreeSet::new(), None), Standing::Outside);
}

#[test]
fn a_real_double_fork_without_environment_falls_to_us_and_is_noted_for_the_next_daemon() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let record = || StrayRecord::at(folder.path().join("strays.json"));
    let family =
        || Family::new(FamilyInput { record: record(), roots: Arc::new(Vec::new), is_service: false });
    let first = family();
    let note = folder.path().join("pid");
    let script = format!(
        "setsid env -i sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 60' & exit 0",
        note.display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("HERMES_TOOL_CHILD", "s").stdin(Stdio::null());
    shell.process_group(0);
    assert!(shell.status().unwrap().success());
    let pid: i32 = until(|| std::fs::read_to_string(&note).ok()?.trim().parse().ok());
    let fell = until(|| {
        let standing = first.standing(pid);
        (standing == kin(Reason::Descends, &[])).then_some(standing)
    });
    assert_eq!(fell, kin(Reason::Descends, &[]));
    assert!(first.look());
    // For a daemon that is not its ancestor, only the record tells.
    let strays = record().living(&LinuxProc);
    assert!(strays.iter().any(|stray| stray.pid == pid), "{strays:?}");
    assert_eq!(judge(&LinuxProc, pid, i32::MAX, &[], &BTreeSet::new(), None), Standing::Outside);
    assert_eq!(judge(&LinuxProc, pid, i32::MAX, &[], &strays, None), kin(Reason::Stray, &[]));
    assert!(started_inside(&LinuxProc, pid, &strays).is_some());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    // Nobody of ours waits for it.
    until(|| LinuxProc.stat(pid).is_ok_and(|stat| stat.zombie).then_some(()));
    assert!(!record().living(&LinuxProc).iter().any(|stray| stray.pid == pid));
}

#[test]
fn an_inherited_dead_is_buried_after_a_while_and_not_at_once() {
    let _alone = alone();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(bury());
}

async fn bury() {
    let folder = tempfile::tempdir().unwrap();
    let record = StrayRecord::at(folder.path().join("strays.json"));
    let family = Family::new(FamilyInput { record, roots: Arc::new(Vec::new), is_service: false });
    // A child that nobody waits for stands for an inherited one.
    #[expect(clippy::zombie_processes, reason = "that nobody waits for it is what is tested")]
    let child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    until(|| LinuxProc.stat(pid).is_ok_and(|stat| stat.zombie).then_some(()));
    family.look();
    tokio::time::advance(Duration::from_secs(4)).await;
    family.look();
    assert!(LinuxProc.stat(pid).is_ok(), "its own parent gets time to look");
    tokio::time::advance(Duration::from_secs(2)).await;
    family.look();
    assert!(LinuxProc.stat(pid).is_err());
}

#[test]
fn a_record_of_another_boot_or_a_broken_one_names_nobody() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strays.json");
    let own = LinuxProc.stat(own()).unwrap().process;
    let text = |boot: &str| {
        serde_json::json!({"boot": boot, "processes": [{"pid": own.pid, "started": own.started}]}).to_string()
    };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for (content, expected) in [(text(boot.trim()), 1), (text("other"), 0), ("{".to_owned(), 0)] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(StrayRecord::at(path.clone()).living(&LinuxProc).len(), expected);
    }
    std::fs::remove_file(&path).unwrap();
    assert!(StrayRecord::at(path).living(&LinuxProc).is_empty());
}

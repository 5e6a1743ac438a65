//! Tables over an invented process table. Real processes that try to get away are in `tests/kin.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use pretty_assertions::assert_eq;

use super::family::own_unit;
use super::*;

const DAEMON: i32 = 100;

#[derive(Debug, Clone, Default)]
struct Invented(BTreeMap<i32, Row>);

#[derive(Debug, Clone)]
struct Row {
    parent: i32,
    started: u64,
    environ: Option<String>,
    cgroup: String,
    hidden: bool,
    branded: bool,
}

impl Invented {
    /// systemd, a login shell, the daemon, a tool's shell, and a terminal.
    fn machine() -> Self {
        Self::default().with(1, 0, None).with(50, 1, Some("A=1")).with(DAEMON, 1, Some("B=2")).with(
            200,
            DAEMON,
            Some("HERMES_TOOL_CHILD=s1\0A=2"),
        )
    }

    fn with(mut self, pid: i32, parent: i32, environ: Option<&str>) -> Self {
        let row = Row {
            parent,
            started: u64::try_from(pid).unwrap(),
            environ: environ.map(str::to_owned),
            cgroup: "0::/user.slice/session-3.scope\n".to_owned(),
            hidden: false,
            branded: false,
        };
        self.0.insert(pid, row);
        self
    }

    fn change(mut self, pid: i32, change: impl FnOnce(&mut Row)) -> Self {
        change(self.0.get_mut(&pid).unwrap());
        self
    }

    fn standing(&self, pid: i32) -> Standing {
        self.standing_with(pid, &[], None)
    }

    fn standing_with(&self, pid: i32, strays: &[i32], unit: Option<&str>) -> Standing {
        judge(self, pid, DAEMON, &[], &strays.iter().map(|pid| self.process(*pid)).collect(), unit)
    }

    fn process(&self, pid: i32) -> ProcessId {
        ProcessId { pid, started: self.0[&pid].started }
    }
}

impl ProcSource for Invented {
    fn stat(&self, pid: i32) -> io::Result<Stat> {
        let row = self.0.get(&pid).filter(|row| !row.hidden).ok_or(io::ErrorKind::NotFound)?;
        Ok(Stat { process: ProcessId { pid, started: row.started }, parent: row.parent, zombie: false })
    }

    fn environ(&self, pid: i32) -> io::Result<Vec<u8>> {
        let row = self.0.get(&pid).ok_or(io::ErrorKind::NotFound)?;
        let text = row.environ.as_ref().ok_or(io::ErrorKind::PermissionDenied)?;
        Ok(text.clone().into_bytes())
    }

    fn cgroup(&self, pid: i32) -> io::Result<String> {
        Ok(self.0.get(&pid).ok_or(io::ErrorKind::NotFound)?.cgroup.clone())
    }

    fn limits(&self, pid: i32) -> io::Result<String> {
        let branded = self.0.get(&pid).ok_or(io::ErrorKind::NotFound)?.branded;
        let limit = if branded { "1212502605" } else { "unlimited" };
        Ok(format!("Max file locks            {limit}           {limit}           locks\n"))
    }

    fn is_hidden(&self, pid: i32) -> bool {
        self.0.get(&pid).is_some_and(|row| row.hidden)
    }

    fn children(&self, pid: i32) -> Vec<i32> {
        self.0.iter().filter(|(_, row)| row.parent == pid).map(|(pid, _)| *pid).collect()
    }
}

fn kin(reason: Reason, sessions: &[&str]) -> Standing {
    Standing::Kin(Kinship { reason, sessions: sessions.iter().map(|text| (*text).to_owned()).collect() })
}

#[test]
fn a_persons_shell_is_outside_and_so_is_the_daemon_itself() {
    let machine = Invented::machine().with(60, 50, Some("A=1"));
    assert_eq!(machine.standing(60), Standing::Outside);
    assert_eq!(machine.standing(DAEMON), Standing::Outside);
}

#[test]
fn whoever_has_the_daemon_above_is_kin_whatever_its_own_environment_says() {
    let machine = Invented::machine().with(300, 200, Some("")).with(301, DAEMON, Some("A=1"));
    assert_eq!(machine.standing(300), kin(Reason::Descends, &["s1"]));
    assert_eq!(machine.standing(301), kin(Reason::Descends, &[]), "an orphan that fell to the daemon");
}

#[test]
fn the_mark_tells_when_the_daemon_is_gone_from_the_chain() {
    let machine =
        Invented::machine().with(400, 1, Some("A=1\0HERMES_TOOL_CHILD=s2")).with(401, 400, Some(""));
    assert_eq!(machine.standing(400), kin(Reason::Marked, &["s2"]));
    assert_eq!(machine.standing(401), kin(Reason::Marked, &["s2"]));
    let lookalike = Invented::machine().with(402, 50, Some("XHERMES_TOOL_CHILD=s2\0HERMES_TOOL_CHILDREN=1"));
    assert_eq!(lookalike.standing(402), Standing::Outside);
}

#[test]
fn a_forged_mark_does_not_hide_the_one_that_the_daemon_gave() {
    let machine = Invented::machine().with(300, 200, Some("HERMES_TOOL_CHILD=forged"));
    assert_eq!(machine.standing(300), kin(Reason::Descends, &["forged", "s1"]));
}

#[test]
fn what_was_taken_over_and_what_was_left_is_kin_with_all_below() {
    let machine = Invented::machine().with(500, 1, Some("")).with(501, 500, Some(""));
    assert_eq!(machine.standing(501), Standing::Outside);
    assert_eq!(machine.standing_with(501, &[500], None), kin(Reason::Stray, &[]));
    let root = [machine.process(500)];
    assert_eq!(judge(&machine, 501, DAEMON, &root, &BTreeSet::new(), None), kin(Reason::Background, &[]));
    let other_life = [ProcessId { pid: 500, started: 1 }];
    assert_eq!(judge(&machine, 501, DAEMON, &other_life, &BTreeSet::new(), None), Standing::Outside);
}

#[test]
fn the_daemons_own_unit_is_kin_and_a_namesake_is_not() {
    let unit = "/user.slice/app.slice/hermesd.service";
    for (group, expected) in [
        ("/user.slice/app.slice/hermesd.service", kin(Reason::SameUnit, &[])),
        ("/user.slice/app.slice/hermesd.service/sub", kin(Reason::SameUnit, &[])),
        ("/user.slice/app.slice/hermesd.service2", Standing::Outside),
        ("/user.slice/session-3.scope", Standing::Outside),
    ] {
        let machine =
            Invented::machine().with(60, 50, Some("")).change(60, |row| row.cgroup = format!("0::{group}\n"));
        assert_eq!(machine.standing_with(60, &[], Some(unit)), expected, "{group}");
    }
}

#[test]
fn only_a_service_has_a_unit_of_its_own() {
    assert_eq!(own_unit("0::/system.slice/hermesd.service\n"), Some("/system.slice/hermesd.service"));
    assert_eq!(
        own_unit("12:cpu:/x.service\n1:name=systemd:/system.slice/h.service\n"),
        Some("/system.slice/h.service")
    );
    assert_eq!(own_unit("0::/user.slice/user-1000.slice/session-3.scope\n"), None);
    assert_eq!(own_unit("0::/user.slice/user@1000.service/app-term.scope\n"), None);
    assert_eq!(own_unit("0::/\n"), None);
}

#[test]
fn what_cannot_be_read_is_kin() {
    let unknown = |standing| match standing {
        Standing::Kin(Kinship { reason: Reason::Unknown(why), .. }) => why,
        other => panic!("{other:?}"),
    };
    let machine = Invented::machine().with(60, 50, None).with(70, 99, Some(""));
    assert!(unknown(machine.standing(999)).contains("has ended"));
    assert!(unknown(machine.standing(0)).contains("namespace"));
    assert!(unknown(machine.standing(60)).contains("start environment"));
    assert!(unknown(machine.standing(70)).contains("ancestor 99"));
    let reused = Invented::machine().with(60, 50, Some("")).change(50, |row| row.started = 70);
    assert!(unknown(reused.standing(60)).contains("ancestor 50 has ended"));
    let circle = Invented::machine().with(60, 60, Some(""));
    assert!(unknown(circle.standing(60)).contains("ancestors"));
}

#[test]
fn ancestors_of_other_users_do_not_make_a_person_kin() {
    // `sshd` and `screen` hide their environment; with `hidepid`, `sshd` is not even listed.
    let machine = Invented::machine().with(55, 1, None).with(56, 55, Some("A=1"));
    assert_eq!(machine.standing(56), Standing::Outside);
    let hidden = machine.change(55, |row| row.hidden = true);
    assert_eq!(hidden.standing(56), Standing::Outside);
}

#[test]
fn a_daemon_that_a_tool_starts_knows_it() {
    let machine =
        Invented::machine().with(300, 200, Some("")).with(500, 1, Some("")).with(501, 500, Some("A=1"));
    let strays: BTreeSet<ProcessId> = [machine.process(500)].into();
    let none = BTreeSet::new();
    assert_eq!(started_inside(&machine, 300, &none).map(|kinship| kinship.reason), Some(Reason::Marked));
    assert_eq!(started_inside(&machine, 501, &strays).map(|kinship| kinship.reason), Some(Reason::Stray));
    assert_eq!(started_inside(&machine, 501, &none), None);
    assert_eq!(started_inside(&machine, DAEMON, &none), None);
    let endless = (1_000..1_600).fold(machine, |machine, pid| machine.with(pid, pid - 1, Some("A=1")));
    let endless = endless.with(999, 200, Some("A=1"));
    let told = started_inside(&endless, 1_599, &none).map(|kinship| kinship.reason);
    assert!(matches!(told, Some(Reason::Unknown(why)) if why.contains("ancestors")), "a chain hides nobody");
}

#[test]
fn a_process_that_has_lost_all_but_the_inherited_limit_is_kin() {
    let machine = Invented::machine().with(700, 1, Some("A=1")).with(701, 700, Some("A=1"));
    assert_eq!(machine.standing(701), Standing::Outside);
    let machine = machine.change(700, |row| row.branded = true);
    let kin = |reason| Standing::Kin(Kinship { reason, sessions: Vec::new() });
    assert_eq!(machine.standing(701), kin(Reason::Branded));
    let told = started_inside(&machine, 701, &BTreeSet::new()).map(|kinship| kinship.reason);
    assert_eq!(told, Some(Reason::Branded));
}

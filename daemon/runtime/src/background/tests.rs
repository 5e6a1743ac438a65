//! Background processes against real shells.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use async_trait::async_trait;
use hermes_core::SystemClock;
use pretty_assertions::assert_eq;

use super::*;
use crate::secret::SecretScope;
use crate::settings::TerminalSettings;
use crate::terminal::{CommandSpec, LocalBackend, LocalBackendInput};

/// Longest wait for anything; far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Remembers what was said.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<ProcessWord>>);

#[async_trait]
impl ProcessListener for Heard {
    async fn said(&self, word: ProcessWord) -> bool {
        self.0.lock().unwrap().push(word);
        true
    }
}

impl Heard {
    fn ids(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|word| word.id.clone()).collect()
    }
}

/// A folder in which one daemon after the other works.
struct Place {
    temp: tempfile::TempDir,
}

/// A daemon's processes.
struct Bench {
    processes: Processes,
    backend: Arc<LocalBackend>,
    heard: Arc<Heard>,
    tasks: Tasks,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    session: SessionKey,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["home", "work", "tmp"] {
            fs::create_dir(temp.path().join(folder)).unwrap();
        }
        Self { temp }
    }

    fn daemon(&self) -> Bench {
        self.daemon_with(Limits { tracked: MAX_TRACKED, kept: KEPT, log_bytes: LOG_BYTES })
    }

    fn daemon_with(&self, limits: Limits) -> Bench {
        let home = self.temp.path().join("home");
        let backend = Arc::new(LocalBackend::new(LocalBackendInput {
            temp_dir: self.temp.path().join("tmp"),
            settings: TerminalSettings { auto_source_bashrc: false, ..TerminalSettings::default() },
            secrets: SecretScope::empty(),
        }));
        let (tasks, heard) = (Tasks::new(), Arc::new(Heard::default()));
        let input = ProcessesInput {
            folder: home.join("processes"),
            register: home.join("processes.json"),
            backend: Arc::clone(&backend) as Arc<dyn TerminalBackend>,
            tasks: tasks.clone(),
            clock: Arc::new(SystemClock),
            listener: Arc::clone(&heard) as Arc<dyn ProcessListener>,
            grace: Duration::from_millis(300),
        };
        let path = std::env::var_os("PATH").unwrap();
        let env =
            vec![("PATH".into(), path), ("HOME".into(), home.into()), (crate::TOOL_MARK.into(), "s1".into())];
        let processes = Processes::with(input, limits);
        let (cwd, session) = (self.temp.path().join("work"), SessionKey::new("s1"));
        Bench { processes, backend, heard, tasks, env, cwd, session }
    }
}

impl Bench {
    fn spec(&self, command: &str) -> StartSpec {
        StartSpec {
            command: command.to_owned(),
            shown: None,
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            pty: false,
            session: self.session.clone(),
            principal: Principal::Owner,
            notify_on_complete: false,
            watch_patterns: Vec::new(),
            input: None,
        }
    }

    async fn start(&self, command: &str) -> String {
        self.start_spec(self.spec(command)).await
    }

    async fn start_spec(&self, spec: StartSpec) -> String {
        self.processes.start(spec, &CancellationToken::new()).await.unwrap().id
    }

    async fn wait(&self, id: &str) -> ProcessView {
        let (end, view) =
            self.processes.wait(&self.session, id, PATIENCE, &CancellationToken::new()).await.unwrap();
        assert_eq!(end, WaitEnd::Exited, "{view:?}");
        view
    }

    fn output(&self, id: &str) -> String {
        self.processes.output(&self.session, id, 10_000).unwrap().text
    }

    async fn prints(&self, id: &str, text: &str) -> String {
        until(&format!("the output has {text:?}"), || self.output(id).contains(text)).await;
        self.output(id)
    }

    async fn kill(&self, id: &str) -> Killed {
        self.processes.kill(&self.session, id).await.unwrap()
    }

    /// What a daemon does that ends, in order or not: its tasks stop, its pipes close.
    async fn goes(self) {
        self.tasks.stop();
        assert!(self.tasks.wait(PATIENCE).await);
        self.backend.close().await;
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The pid that a process wrote into a file.
async fn pid_in(file: &Path) -> i32 {
    let read = || fs::read_to_string(file).unwrap_or_default().trim().parse::<i32>();
    until(&format!("a pid in {}", file.display()), || read().is_ok()).await;
    read().unwrap()
}

fn is_gone(pid: i32) -> bool {
    Process::living(pid).is_none()
}

fn end(view: &ProcessView) -> (Option<i32>, &'static str, Option<&str>) {
    let end = view.end.as_ref().unwrap();
    (end.exit_code, end.reason.as_str(), end.source.as_deref())
}

#[tokio::test]
async fn a_process_runs_is_polled_and_ends() {
    let (place, wait) = (Place::new(), CancellationToken::new());
    let bench = place.daemon();
    let id = bench.start("echo one; read line; echo got $line; echo err >&2; exit 3").await;
    assert!(id.len() == 17 && id.starts_with("proc_"));
    bench.prints(&id, "one").await;
    let polled = bench.processes.poll(&bench.session, &id, 1000).unwrap();
    assert_eq!((polled.new_output.as_str(), polled.process.end), ("one\n", None));
    let short = bench.processes.wait(&bench.session, &id, Duration::from_millis(10), &wait).await.unwrap();
    assert_eq!(short.0, WaitEnd::TimedOut);
    wait.cancel();
    let cut = bench.processes.wait(&bench.session, &id, PATIENCE, &wait).await.unwrap();
    assert_eq!(cut.0, WaitEnd::Interrupted);
    bench.processes.write(&bench.session, &id, b"it\n").await.unwrap();
    assert_eq!(end(&bench.wait(&id).await), (Some(3), "exited", None));
    assert_eq!(bench.processes.poll(&bench.session, &id, 1000).unwrap().new_output, "got it\nerr\n");
    assert_eq!(bench.processes.poll(&bench.session, &id, 1000).unwrap().new_output, "");
    assert_eq!(bench.output(&id), "one\ngot it\nerr\n");
    let late = bench.processes.write(&bench.session, &id, b"x").await.unwrap_err();
    assert_eq!(late.to_string(), format!("the stdin of {id} is closed: the process has ended"));
    let folder = place.temp.path().join("home/processes");
    assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn another_session_sees_nothing_of_it() {
    let place = Place::new();
    let bench = place.daemon();
    let id = bench.start("sleep 60").await;
    let other = SessionKey::new("s2");
    assert_eq!(bench.processes.list(Some(&other)), []);
    assert_eq!((bench.processes.list(Some(&bench.session)).len(), bench.processes.list(None).len()), (1, 1));
    for error in [
        bench.processes.poll(&other, &id, 10).err(),
        bench.processes.kill(&other, &id).await.err(),
        bench.processes.write(&other, &id, b"x").await.err(),
    ] {
        assert!(matches!(error, Some(ProcessError::Unknown { .. })));
    }
    bench.kill(&id).await;
}

#[tokio::test]
async fn it_starts_with_the_sessions_state_and_leaves_none() {
    let place = Place::new();
    let bench = place.daemon();
    let command = |text: &str| CommandSpec {
        command: text.to_owned(),
        cwd: bench.cwd.clone(),
        env: bench.env.clone(),
        timeout: PATIENCE,
        output_cap_chars: 1000,
        stdin: None,
        pty: false,
        session: bench.session.clone(),
    };
    let never = CancellationToken::new();
    let setup = "export A=1; greet() { echo hi $1; }; alias again='greet again'";
    bench.backend.run(command(setup), &never).await.unwrap();
    let id = bench.start("greet $A\nagain\npwd\nexport A=2").await;
    bench.wait(&id).await;
    assert_eq!(bench.output(&id), format!("hi 1\nhi again\n{}\n", bench.cwd.display()));
    assert_eq!(bench.backend.run(command("echo $A"), &never).await.unwrap().output, "1\n");
}

#[tokio::test]
async fn input_is_open_until_it_is_closed() {
    let place = Place::new();
    let bench = place.daemon();
    let id = bench.start("cat; echo end").await;
    bench.processes.write(&bench.session, &id, b"a\nb").await.unwrap();
    bench.prints(&id, "a\nb").await;
    bench.processes.close_input(&bench.session, &id).await.unwrap();
    bench.wait(&id).await;
    assert_eq!(bench.output(&id), "a\nbend\n");
    let deaf = bench.start("exec <&-; echo closed; sleep 60").await;
    bench.prints(&deaf, "closed").await;
    // The launching shell has gone over to its command, so nobody holds the pipe.
    let error = bench.processes.write(&bench.session, &deaf, b"x").await.unwrap_err().to_string();
    assert!(error.ends_with("the process has closed it"), "{error}");
    bench.kill(&deaf).await;
}

#[tokio::test]
async fn a_terminal_of_its_own_serves_programs_that_want_one() {
    let place = Place::new();
    let bench = place.daemon();
    let command = "test -t 0 && test -t 1 && echo tty $TERM; read -r -p 'name? ' name; printf '\\e[1mhi %s\\e[0m\\n' $name; cat";
    let id = bench.start_spec(StartSpec { pty: true, ..bench.spec(command) }).await;
    bench.prints(&id, "name? ").await;
    bench.processes.write(&bench.session, &id, b"Ada\n").await.unwrap();
    bench.prints(&id, "hi Ada").await;
    bench.processes.close_input(&bench.session, &id).await.unwrap();
    assert_eq!(end(&bench.wait(&id).await), (Some(0), "exited", None));
    assert_eq!(bench.output(&id), "tty xterm-256color\nname? Ada\r\nhi Ada\n".replace('\r', ""));
}

#[tokio::test]
async fn killing_ends_the_whole_tree_wherever_it_went() {
    let place = Place::new();
    let bench = place.daemon();
    let work = &bench.cwd;
    let command = "setsid bash -c 'trap \"\" TERM HUP; echo $$ > a; exec sleep 1000' &
                   (sleep 1000 & echo $! > b; exec bash -c 'trap \"\" TERM; echo $$ > c; while :; do sleep 1; done') &
                   trap '' TERM; wait; wait";
    let id = bench.start(command).await;
    let mut pids = Vec::new();
    for name in ["a", "b", "c"] {
        pids.push(pid_in(&work.join(name)).await);
    }
    let killed = bench.kill(&id).await;
    assert_eq!((killed.already_exited, killed.survived), (false, false));
    assert_eq!(end(&killed.process), (Some(137), "killed", Some("process.kill")));
    assert!(pids.into_iter().all(is_gone));
    assert!(bench.kill(&id).await.already_exited);
}

#[tokio::test]
async fn what_a_process_leaves_behind_is_ended_too_and_does_not_hide_its_exit() {
    let place = Place::new();
    let bench = place.daemon();
    let id = bench.start("sleep 1000 & echo $! > left; echo out").await;
    assert_eq!(end(&bench.wait(&id).await), (Some(0), "exited", None));
    let left = pid_in(&bench.cwd.join("left")).await;
    assert!(!is_gone(left));
    until("what is left is known", || {
        !bench.processes.entry(&bench.session, &id).unwrap().life().known.is_empty()
    })
    .await;
    let killed = bench.kill(&id).await;
    assert_eq!((killed.already_exited, killed.left_behind, killed.survived), (false, true, false));
    assert!(is_gone(left));
}

#[tokio::test]
async fn one_that_forks_for_ever_is_ended() {
    let place = Place::new();
    let bench = place.daemon();
    // At most some hundred at a time, each short, the last generation after ten seconds.
    let command = "echo go; while [ $SECONDS -lt 10 ]; do for i in 1 2 3 4 5; do (sleep 0.2 & exec sleep 0.3) & done; sleep 0.1; done";
    let id = bench.start(command).await;
    bench.prints(&id, "go").await;
    let killed = bench.kill(&id).await;
    assert!(!killed.survived, "{killed:?}");
    let mark = bench.processes.entry(&bench.session, &id).unwrap().facts.mark.clone();
    assert_eq!(Tree::new(None, &mark, std::collections::BTreeSet::new()).living().len(), 0);
}

#[tokio::test]
async fn a_flood_stays_bounded_on_disk_and_its_end_is_read() {
    let place = Place::new();
    let log_bytes = 4 * 1024 * 1024;
    let bench = place.daemon_with(Limits { tracked: 64, kept: KEPT, log_bytes });
    let id = bench.start("yes 0123456789abcdef | head -c 200M; echo; echo the end").await;
    bench.wait(&id).await;
    let log = place.temp.path().join(format!("home/processes/{id}.log"));
    until("the log is trimmed", || fs::metadata(&log).unwrap().blocks() * 512 <= log_bytes * 5 / 4).await;
    let output = bench.processes.output(&bench.session, &id, usize::MAX).unwrap();
    assert!(output.text.ends_with("the end\n") && output.truncated);
    assert!(output.text.len() <= WINDOW_CHARS);
    let polled = bench.processes.poll(&bench.session, &id, 100).unwrap();
    assert!(polled.new_output.ends_with("the end\n") && polled.skipped > 200_000_000);
}

#[tokio::test]
async fn closing_its_output_or_becoming_another_program_changes_nothing() {
    let place = Place::new();
    let bench = place.daemon();
    let closed = bench.start("echo before; exec >&- 2>&-; read x; exit 4").await;
    bench.prints(&closed, "before").await;
    assert_eq!(bench.processes.poll(&bench.session, &closed, 10).unwrap().process.end, None);
    bench.processes.write(&bench.session, &closed, b"\n").await.unwrap();
    assert_eq!(end(&bench.wait(&closed).await).0, Some(4));
    let other = bench.start("exec sh -c 'echo other; exit 5'").await;
    assert_eq!(end(&bench.wait(&other).await).0, Some(5));
    let signalled = bench.start("kill -USR1 $$").await;
    assert_eq!(end(&bench.wait(&signalled).await), (Some(138), "exited", Some("signal SIGUSR1")));
    let nowhere = StartSpec { cwd: "/no/such/folder".into(), ..bench.spec("echo no") };
    let nowhere = bench.start_spec(nowhere).await;
    assert_eq!(end(&bench.wait(&nowhere).await).0, Some(126));
}

#[tokio::test]
async fn an_end_is_told_once_and_not_when_it_is_known() {
    let place = Place::new();
    let bench = place.daemon();
    let notify = |command: &str| StartSpec { notify_on_complete: true, ..bench.spec(command) };
    let told = bench.start_spec(notify("echo done; exit 2")).await;
    until("the end is told", || !bench.heard.0.lock().unwrap().is_empty()).await;
    {
        let heard = bench.heard.0.lock().unwrap();
        assert_eq!(heard[0].occasion, Occasion::Ended { tail: "done\n".to_owned() });
        assert_eq!(end(&heard[0].process).0, Some(2));
    }
    let waited = bench.start_spec(notify("sleep 0.1")).await;
    bench.wait(&waited).await;
    let killed = bench.start_spec(notify("sleep 100")).await;
    bench.kill(&killed).await;
    let last = bench.start_spec(notify("true")).await;
    until("the last end is told", || bench.heard.ids().contains(&format!("{last}:exit"))).await;
    assert_eq!(bench.heard.ids(), [format!("{told}:exit"), format!("{last}:exit")]);
}

#[tokio::test]
async fn lines_that_are_watched_for_are_told() {
    let place = Place::new();
    let bench = place.daemon();
    let watch = StartSpec {
        watch_patterns: vec!["ready".to_owned(), "ERROR".to_owned()],
        ..bench.spec("echo starting; printf 'rea'; sleep 0.2; echo 'dy on 80'; read x; echo ERROR; exit 1")
    };
    let id = bench.start_spec(watch).await;
    until("a notice", || !bench.heard.0.lock().unwrap().is_empty()).await;
    bench.processes.write(&bench.session, &id, b"\n").await.unwrap();
    bench.wait(&id).await;
    until("both hits are counted", || bench.processes.get(&bench.session, &id).unwrap().watch_hits == 2)
        .await;
    let heard = bench.heard.0.lock().unwrap();
    // The second one came within the same window.
    assert_eq!(heard.len(), 1);
    let lines = vec!["ready on 80".to_owned()];
    assert_eq!(heard[0].occasion, Occasion::Matched { lines, suppressed: 0 });
    assert_eq!(heard[0].id, format!("{id}:watch:1"));
}

#[tokio::test]
async fn the_next_daemon_takes_over_what_runs_and_what_has_ended() {
    let place = Place::new();
    let first = place.daemon();
    let quick = first.start("echo quick; exit 7").await;
    first.wait(&quick).await;
    let server = first.start("sleep 1000 & echo $! > child; echo up; trap 'echo got it' USR1; echo $$ > pid; while :; do sleep 0.1; done").await;
    let lost = first
        .start_spec(StartSpec { notify_on_complete: true, ..first.spec("echo in; cat; echo eof") })
        .await;
    first.prints(&lost, "in").await;
    first.prints(&server, "up").await;
    assert_eq!(first.processes.poll(&first.session, &server, 100).unwrap().new_output, "up\n");
    let (pid, child) = (pid_in(&first.cwd.join("pid")).await, pid_in(&first.cwd.join("child")).await);
    assert_eq!((first.processes.busy(), first.processes.roots()), (2, vec![]));
    let lost_pid = first.processes.get(&first.session, &lost).unwrap().pid;
    first.goes().await;
    until("the reader of a closed input ends", || is_gone(lost_pid)).await;

    let second = place.daemon();
    second.processes.readopt().await;
    let views = second.processes.list(Some(&second.session));
    let states: Vec<(&str, bool, Option<EndReason>)> = views
        .iter()
        .map(|view| (view.id.as_str(), view.detached, view.end.as_ref().map(|end| end.reason)))
        .collect();
    let expected = [
        (quick.as_str(), true, Some(EndReason::Exited)),
        (server.as_str(), true, None),
        (lost.as_str(), true, Some(EndReason::Lost)),
    ];
    assert_eq!(states, expected);
    assert_eq!(end(&views[0]).0, Some(7));
    assert_eq!((second.output(&quick), second.output(&lost)), ("quick\n".to_owned(), "in\neof\n".to_owned()));
    until("the lost one's end is told", || second.heard.ids() == [format!("{lost}:exit")]).await;
    assert_eq!(second.processes.busy(), 1);
    let roots: Vec<i32> = second.processes.roots().into_iter().map(|(pid, _)| pid).collect();
    assert!(roots.contains(&pid) && roots.contains(&child), "{roots:?}");

    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGUSR1).unwrap();
    second.prints(&server, "got it").await;
    assert_eq!(second.processes.poll(&second.session, &server, 100).unwrap().new_output, "got it\n");
    let error = second.processes.write(&second.session, &server, b"x").await.unwrap_err().to_string();
    assert!(error.contains("closed when the daemon that started the process ended"), "{error}");
    let killed = second.kill(&server).await;
    assert_eq!(end(&killed.process), (None, "killed", Some("process.kill")));
    assert!(is_gone(pid) && is_gone(child));
}

#[tokio::test]
async fn a_number_that_went_to_another_process_is_never_signalled() {
    let place = Place::new();
    let first = place.daemon();
    let id = first.start("sleep 1000").await;
    let view = first.processes.get(&first.session, &id).unwrap();
    let register = place.temp.path().join("home/processes.json");
    let kept = fs::read_to_string(&register).unwrap();
    first.kill(&id).await;
    first.goes().await;
    let mut innocent = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(
        &register,
        kept.replace(&format!("\"pid\": {}", view.pid), &format!("\"pid\": {}", innocent.id())),
    )
    .unwrap();
    let second = place.daemon();
    second.processes.readopt().await;
    let killed = second.kill(&id).await;
    assert!(killed.already_exited);
    assert!(!is_gone(i32::try_from(innocent.id()).unwrap()));
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[tokio::test]
async fn there_are_only_so_many_and_old_ones_are_forgotten() {
    let place = Place::new();
    let limits = Limits { tracked: 2, kept: KEPT, log_bytes: LOG_BYTES };
    let bench = place.daemon_with(limits);
    let gone = bench.start("true").await;
    bench.wait(&gone).await;
    let running = [bench.start("sleep 100").await, bench.start("sleep 100").await];
    assert!(matches!(bench.processes.get(&bench.session, &gone), Err(ProcessError::Unknown { .. })));
    let error = bench.processes.start(bench.spec("true"), &CancellationToken::new()).await;
    assert!(matches!(error, Err(StartError::TooMany)));
    for id in &running {
        bench.kill(id).await;
    }
    let logs = || fs::read_dir(place.temp.path().join("home/processes")).unwrap().count();
    assert_eq!(logs(), 2);
    bench.goes().await;
    let short = place.daemon_with(Limits { kept: Duration::from_millis(1), ..limits });
    short.processes.readopt().await;
    until("ended ones are forgotten", || short.processes.list(None).is_empty()).await;
    assert_eq!(logs(), 0);
}

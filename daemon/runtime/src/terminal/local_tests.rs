//! The local backend against a real shell: what persists, what a command may do to its shell, and how it ends.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::kill;
use nix::unistd::Pid;
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::secret::SecretScope;
use crate::settings::TerminalSettings;

/// A backend in a home and a workspace of its own.
struct Bench {
    temp: tempfile::TempDir,
    backend: LocalBackend,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
}

impl Bench {
    fn new() -> Self {
        Self::with(&[], TerminalSettings::default(), &[])
    }

    fn with(home: &[(&str, &str)], settings: TerminalSettings, secrets: &[(&str, &str)]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["home", "work", "tmp"] {
            fs::create_dir(temp.path().join(folder)).unwrap();
        }
        for (name, text) in home {
            fs::write(temp.path().join("home").join(name), text).unwrap();
        }
        let backend = LocalBackend::new(LocalBackendInput {
            temp_dir: temp.path().join("tmp"),
            settings,
            secrets: SecretScope::from_pairs(secrets.iter().copied()),
        });
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin".into()), ("HOME", temp.path().join("home"))];
        let mut env: Vec<(OsString, OsString)> =
            env.into_iter().map(|(name, value): (&str, PathBuf)| (name.into(), value.into())).collect();
        env.push((crate::TOOL_MARK.into(), "s1".into()));
        let cwd = temp.path().join("work");
        Self { temp, backend, env, cwd }
    }

    /// The same bench on a machine that has no bash.
    fn posix() -> Self {
        let mut bench = Self::new();
        let bin = bench.temp.path().join("bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
        bench.backend = LocalBackend::for_tests(bench.temp.path().join("tmp"), vec![bin]);
        bench
    }

    fn spec(&self, command: &str) -> CommandSpec {
        CommandSpec {
            command: command.to_owned(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            timeout: Duration::from_secs(20),
            output_cap_chars: 50_000,
            stdin: None,
            pty: false,
            session: SessionKey::new("s1"),
        }
    }

    /// Runs a command as the terminal tool does: where the last one ended.
    async fn run(&mut self, command: &str) -> CommandOutput {
        let output = self.run_spec(self.spec(command)).await;
        self.cwd.clone_from(&output.cwd);
        output
    }

    async fn run_spec(&self, spec: CommandSpec) -> CommandOutput {
        self.backend.run(spec, &CancellationToken::new()).await.unwrap()
    }

    /// Interrupts the command once it has written the file `ready`.
    async fn run_until_ready(&self, command: &str) -> CommandOutput {
        let (cancel, ready) = (CancellationToken::new(), self.work().join("ready"));
        let run = self.backend.run(self.spec(command), &cancel);
        let stop = async {
            appears(&ready).await;
            cancel.cancel();
        };
        tokio::join!(run, stop).0.unwrap()
    }

    fn work(&self) -> PathBuf {
        self.temp.path().join("work")
    }

    /// The backend's private folder.
    fn private(&self) -> Option<PathBuf> {
        fs::read_dir(self.temp.path().join("tmp")).unwrap().next().map(|entry| entry.unwrap().path())
    }
}

/// Waits until a command has written something into the file.
async fn appears(file: &Path) {
    while fs::read_to_string(file).unwrap_or_default().is_empty() {
        tokio::task::yield_now().await;
    }
}

fn said(output: &CommandOutput) -> (&str, i32) {
    (output.output.as_str(), output.exit_code)
}

/// Whether the process whose id stands in a file still runs.
fn lives(file: &Path) -> bool {
    let pid: i32 = fs::read_to_string(file).unwrap().trim().parse().unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    kill(Pid::from_raw(pid), None).is_ok() && !stat.contains(") Z ")
}

#[tokio::test]
async fn output_status_and_order_are_those_of_the_command() {
    let mut bench = Bench::new();
    assert_eq!(said(&bench.run("echo out; echo err >&2; echo out2").await), ("out\nerr\nout2\n", 0));
    assert_eq!(said(&bench.run("printf 'no newline'; exit 7").await), ("no newline", 7));
    assert_eq!(said(&bench.run("false").await), ("", 1));
    assert_eq!(said(&bench.run("").await), ("", 0));
    let missing = bench.run("true\nno-such-program").await;
    assert_eq!(said(&missing), ("bash: line 2: no-such-program: command not found\n", 127));
}

#[tokio::test]
async fn exports_functions_aliases_and_directory_persist() {
    let mut bench = Bench::new();
    bench.run("mkdir sub; cd sub; export A=$'x y\\nz' B=1; f() { echo \"f:$1\"; }; alias hi='echo hello'; plain=1").await;
    let again = bench.run("pwd; echo \"$A|$B|${plain-unset}\"; f 1; hi").await;
    let sub = bench.work().join("sub");
    assert_eq!(again.output, format!("{}\nx y\nz|1|unset\nf:1\nhello\n", sub.display()));
    assert_eq!(again.cwd, sub);
    bench.run("unset B; unset -f f; unalias hi; export -f nothing 2>/dev/null; cd ..").await;
    let gone = bench.run("echo \"${B-unset}\"; type f hi 2>&1 | wc -l; cd - >/dev/null; pwd").await;
    assert_eq!(gone.output, format!("unset\n2\n{}\n", sub.display()));
}

#[tokio::test]
async fn exported_functions_reach_child_shells() {
    let mut bench = Bench::new();
    bench.run("g() { echo inner; }; export -f g; _private() { :; }").await;
    assert_eq!(
        bench.run("bash -c g; type _private >/dev/null 2>&1 || echo gone").await.output,
        "inner\ngone\n"
    );
}

#[tokio::test]
async fn functions_with_here_documents_and_extended_patterns_survive() {
    let mut bench = Bench::new();
    bench
        .run("shopt -s extglob\nh() { cat <<X\nin $1\nX\n}\nk() { case $1 in +(a|b)) echo ab;; *) echo no;; esac; }\nexport Z=1")
        .await;
    for _ in 0..3 {
        assert_eq!(bench.run("h here; k aab; echo $Z").await.output, "in here\nab\n1\n");
    }
}

#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let bench = Bench::new();
    bench.run_spec(bench.spec("export A=1")).await;
    let other = CommandSpec { session: SessionKey::new("s2"), ..bench.spec("echo ${A-unset}") };
    assert_eq!(bench.run_spec(other).await.output, "unset\n");
    assert_eq!(bench.run_spec(bench.spec("echo $A")).await.output, "1\n");
}

#[tokio::test]
async fn a_command_may_end_replace_or_kill_its_shell() {
    let mut bench = Bench::new();
    bench.run("export KEPT=1").await;
    for (command, output, code) in [
        ("export E=1; exit 3", "", 3),
        ("exec sh -c 'echo replaced; exit 9'", "replaced\n", 9),
        ("kill -9 $$", "", 137),
        ("kill -TERM $$; sleep 5", "", 143),
        ("set -e; false; echo not reached", "", 1),
        ("trap 'echo bye' EXIT; exit 4", "bye\n", 4),
        ("trap 'echo bye' EXIT; true", "bye\n", 0),
        ("(exit 5); echo $?", "5\n", 0),
        ("set -u; set -o pipefail; echo x | false", "", 1),
        ("exec 2>/dev/null; set -x; set -v; echo quiet", "quiet\n", 0),
    ] {
        assert_eq!(said(&bench.run(command).await), (output, code), "{command}");
        assert_eq!(bench.cwd, bench.work());
    }
    assert_eq!(bench.run("echo $KEPT $E").await.output, "1 1\n");
    let broken = bench.run("if true").await;
    assert_eq!(broken.exit_code, 2);
    assert!(broken.output.contains("syntax error"), "{}", broken.output);
}

#[tokio::test]
async fn the_marker_never_lands_in_a_file_of_the_user() {
    let mut bench = Bench::new();
    for command in ["exec >log 2>&1; echo in; cd /", "exec >log; echo in; cd /; exit 0"] {
        let output = bench.run(command).await;
        assert_eq!((said(&output), output.cwd.as_path()), (("", 0), Path::new("/")), "{command}");
        assert_eq!(fs::read_to_string(bench.work().join("log")).unwrap(), "in\n");
        bench.cwd = bench.work();
    }
    let closed = bench.run("exec >&- 2>&-; cd /").await;
    assert_eq!((said(&closed), closed.cwd.as_path()), (("", 0), Path::new("/")));
}

#[tokio::test]
async fn the_shell_is_not_found_by_what_its_command_says() {
    let mut bench = Bench::new();
    // A shell that has the command among its arguments would kill itself here.
    let output = bench.run("pkill -f unlikely-pattern-4711; echo \"still here: $?\"").await;
    assert_eq!(said(&output), ("still here: 1\n", 0));
}

#[tokio::test]
async fn the_child_has_only_the_given_environment_and_the_marks() {
    let mut bench = Bench::new();
    bench.env.push(("odd-name".into(), "1".into()));
    let output = bench.run("env | cut -d= -f1 | grep -v '^_$' | sort | tr '\\n' ' '").await;
    assert_eq!(output.output, "HERMES_TOOL_CHILD HERMES_TOOL_RUN HOME PATH PWD SHLVL odd-name ");
    bench.run("unset HERMES_TOOL_CHILD HERMES_TOOL_RUN PATH HOME").await;
    let again = bench.run("echo $HERMES_TOOL_CHILD ${HOME-none}; /usr/bin/tr '\\0' '\\n' </proc/$$/environ | /bin/grep -c HERMES_TOOL").await;
    assert_eq!(again.output, "s1 none\n2\n", "the mark cannot be shaken off, other variables can");
}

#[tokio::test]
async fn a_changed_variable_wins_over_an_old_export() {
    let mut bench = Bench::new();
    bench.env.push(("LANG".into(), "C".into()));
    bench.env.push(("GONE".into(), "1".into()));
    bench.run("export LANG=mine").await;
    assert_eq!(bench.run("echo $LANG").await.output, "mine\n");
    bench.env.retain(|(name, _)| name != "GONE" && name != "LANG");
    bench.env.push(("LANG".into(), "de".into()));
    for _ in 0..2 {
        assert_eq!(bench.run("echo $LANG ${GONE-unset}").await.output, "de unset\n");
    }
}

#[tokio::test]
async fn secrets_reach_the_command_but_not_the_snapshot() {
    let settings =
        TerminalSettings { shell_init_files: vec!["~/init".to_owned()], ..TerminalSettings::default() };
    let init = "export OPENAI_API_KEY=sk-from-rc AUXILIARY_X_API_KEY=aux HARMLESS=1";
    let mut bench = Bench::with(&[("init", init)], settings, &[("MY_TOKEN", "t0ps3cret")]);
    bench.env.push(("MY_TOKEN".into(), "t0ps3cret".into()));
    for _ in 0..2 {
        let output =
            bench.run("echo $MY_TOKEN ${OPENAI_API_KEY-unset} ${AUXILIARY_X_API_KEY-unset} $HARMLESS").await;
        assert_eq!(output.output, "t0ps3cret unset unset 1\n");
    }
    bench.run("export GH_TOKEN=ghp_mine").await;
    let snapshot = bench.private().unwrap().join("s1/snapshot");
    let text = fs::read_to_string(&snapshot).unwrap();
    assert!(text.contains("HARMLESS"));
    for secret in ["t0ps3cret", "sk-from-rc", "ghp_mine", "aux\""] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!(fs::metadata(&snapshot).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn the_users_own_files_are_sourced_once_and_may_fail() {
    let home = [
        (".bash_profile", "export P=$P:profile; nonsense-command; echo noise"),
        (".bashrc", "export P=$P:rc; alias q='echo aliased'; set -eu; false"),
    ];
    let mut bench = Bench::with(&home, TerminalSettings::default(), &[]);
    for _ in 0..2 {
        assert_eq!(said(&bench.run("echo $P; q; false; echo on").await), (":profile:rc\naliased\non\n", 0));
    }
    let off = TerminalSettings { auto_source_bashrc: false, ..TerminalSettings::default() };
    let mut bench = Bench::with(&home, off, &[]);
    assert_eq!(bench.run("echo $P").await.output, ":profile\n");
}

#[tokio::test]
async fn what_was_given_holds_against_profiles_and_path_is_joined() {
    let home = [
        (".profile", "PATH=/usr/bin:/bin:/system/games; export LANG=theirs VIRTUAL_ENV= EXTRA=1"),
        (".bashrc", "PATH=/my/shims:$PATH:/my/tools"),
    ];
    let mut bench = Bench::with(&home, TerminalSettings::default(), &[]);
    bench.env.retain(|(name, _)| name != "PATH");
    for (name, value) in [("PATH", "/venv/bin:/usr/bin:/bin"), ("LANG", "C"), ("VIRTUAL_ENV", "/venv")] {
        bench.env.push((name.into(), value.into()));
    }
    let output = bench.run("echo $PATH; echo $LANG $VIRTUAL_ENV $EXTRA; set | grep -c ^__hermes_").await;
    assert_eq!(output.output, "/my/shims:/venv/bin:/usr/bin:/bin:/system/games:/my/tools\nC /venv 1\n0\n");
}

#[tokio::test]
async fn files_that_end_or_replace_the_shell_do_not_take_the_terminal_away() {
    for (name, text) in [
        (".bashrc", "export A=1; exit 5"),
        (".bashrc", "exec true"),
        (".bash_profile", "exit 1"),
        (".bashrc", "if"),
    ] {
        let mut bench = Bench::with(&[(name, text)], TerminalSettings::default(), &[]);
        bench.run("export B=2").await;
        assert_eq!(said(&bench.run("echo $B").await), ("2\n", 0), "{text}");
    }
}

#[tokio::test]
async fn without_a_folder_for_snapshots_commands_still_run_and_the_directory_is_kept() {
    let mut bench = Bench::new();
    fs::remove_dir(bench.temp.path().join("tmp")).unwrap();
    let output = bench.run("export A=1; cd /; echo \"it's\" fine; exit 3").await;
    assert_eq!((said(&output), output.cwd.as_path()), (("it's fine\n", 3), Path::new("/")));
    assert_eq!(
        said(&bench.run("echo ${A-unset} $HOME; pwd").await),
        (format!("unset {}\n/\n", bench.temp.path().join("home").display()).as_str(), 0)
    );
}

#[tokio::test]
async fn a_cleaned_temp_folder_costs_the_exports_only() {
    let mut bench = Bench::new();
    bench.run("export A=1").await;
    fs::remove_dir_all(bench.private().unwrap()).unwrap();
    assert_eq!(said(&bench.run("echo ${A-unset}; export A=2").await), ("unset\n", 0));
    assert_eq!(bench.run("echo $A").await.output, "2\n");
}

#[tokio::test]
async fn sh_serves_where_there_is_no_bash() {
    let mut bench = Bench::posix();
    bench.run("mkdir \"it's\"; cd \"it's\"; export A='x y'; alias hi='echo hello'").await;
    let output = bench.run("echo $A; hi; exec >log; cd /; exit 4").await;
    assert_eq!((said(&output), output.cwd.as_path()), (("x y\nhello\n", 4), Path::new("/")));
    assert_eq!(bench.run("no-such-program").await.exit_code, 127);
    assert_eq!(bench.run("if true").await.exit_code, 2);
    assert_eq!(said(&bench.run("kill -9 $$").await), ("", 137));
    assert_eq!(bench.run("echo $A $HERMES_TOOL_CHILD").await.output, "x y s1\n");
}

#[tokio::test]
async fn no_shell_at_all_is_an_error_that_names_where_we_looked() {
    let bench = Bench::new();
    let empty = bench.temp.path().join("empty");
    let backend = LocalBackend::for_tests(bench.temp.path().join("tmp"), vec![empty.clone()]);
    let error = backend.run(bench.spec("true"), &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains(&empty.display().to_string()), "{error}");
    let nul = bench.backend.run(bench.spec("a\0b"), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(nul.to_string(), "the command contains a NUL character");
}

#[tokio::test]
async fn a_vanished_directory_is_replaced_and_said() {
    let mut bench = Bench::new();
    bench.run("mkdir -p a/b; cd a/b").await;
    let gone = bench.cwd.clone();
    let output = bench.run("rm -rf ../../a").await;
    assert_eq!((output.exit_code, output.cwd.as_path()), (0, bench.work().as_path()));
    assert!(output.cwd_note.unwrap().contains(&gone.display().to_string()));
    let spec = CommandSpec { cwd: gone, ..bench.spec("pwd") };
    let output = bench.run_spec(spec).await;
    assert_eq!(output.output, format!("{}\n", bench.work().display()));
    assert!(output.cwd_note.is_some());
    let file = bench.work().join("file");
    fs::write(&file, "").unwrap();
    let output = bench.run_spec(CommandSpec { cwd: file.clone(), ..bench.spec("echo no") }).await;
    assert_eq!(said(&output), (format!("cannot enter the directory {}\n", file.display()).as_str(), 126));
}

#[tokio::test]
async fn odd_directory_names_are_no_obstacle() {
    let mut bench = Bench::new();
    for name in ["it's", "a b", "目录 (1)", "-x", "$HOME", "new\nline", "q\"`"] {
        let folder = bench.work().join(name);
        fs::create_dir(&folder).unwrap();
        bench.cwd.clone_from(&folder);
        assert_eq!(bench.run("touch here").await.cwd, folder);
        assert!(folder.join("here").exists(), "{name:?}");
    }
}

#[tokio::test]
async fn input_is_given_and_closed() {
    let bench = Bench::new();
    let spec = CommandSpec { stdin: Some("a\nb\n".into()), ..bench.spec("read x; echo \"1:$x\"; cat") };
    assert_eq!(bench.run_spec(spec).await.output, "1:a\nb\n");
    assert_eq!(bench.run_spec(bench.spec("cat; echo end")).await.output, "end\n");
    let ignored = CommandSpec { stdin: Some("x".repeat(1_000_000).into()), ..bench.spec("echo ignored") };
    assert_eq!(said(&bench.run_spec(ignored).await), ("ignored\n", 0));
}

#[tokio::test]
async fn escape_sequences_and_broken_text_are_cleaned() {
    let mut bench = Bench::new();
    let output = bench.run(r"printf '\033[1;31mred\033[0m\ttab \377 \xe6\xbc\xa2\033]0;t\a.\n'").await;
    assert_eq!(output.output, "red\ttab \u{fffd} 漢.\n");
}

#[tokio::test]
async fn a_flood_is_bounded_and_its_log_is_whole() {
    let bench = Bench::new();
    let spec = CommandSpec { output_cap_chars: 100, ..bench.spec("seq 1 20000; cd /") };
    let output = bench.run_spec(spec).await;
    assert!(
        output.output.starts_with("1\n2\n") && output.output.ends_with("19999\n20000\n"),
        "{}",
        output.output
    );
    assert!(output.output.contains("characters left out"));
    assert_eq!((output.omitted_chars, output.cwd.as_path()), (108_894 - 100, Path::new("/")));
    let log = output.full_log.unwrap();
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 20_000);
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_short_output_has_no_log() {
    let mut bench = Bench::new();
    assert_eq!(bench.run("echo x").await.full_log, None);
}

#[tokio::test]
async fn the_end_is_the_shells_exit_even_if_a_child_holds_the_pipe() {
    let mut bench = Bench::new();
    let begun = Instant::now();
    let output = bench.run("sleep 30 & echo $! >pid; echo started").await;
    assert_eq!(said(&output), ("started\n", 0));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(lives(&bench.work().join("pid")), "what a command leaves behind on purpose lives on");
    bench.run("kill $(cat pid)").await;
}

#[tokio::test]
async fn a_timeout_ends_the_command_and_keeps_its_output() {
    let bench = Bench::new();
    let spec =
        CommandSpec { timeout: Duration::from_secs(1), ..bench.spec("echo before; export A=1; sleep 30") };
    let output = bench.run_spec(spec).await;
    assert_eq!(said(&output), ("before\n[the command was ended: it ran longer than 1 s]", 124));
    assert!(output.timed_out && !output.interrupted);
    assert_eq!(bench.run_spec(bench.spec("echo on")).await.output, "on\n");
}

#[tokio::test]
async fn the_whole_family_of_a_command_ends_with_it() {
    let bench = Bench::new();
    // A child that ignores TERM, one in a session of its own, and one there whose parent is gone.
    let command = "sh -c 'trap \"\" TERM; echo $$ >stubborn; sleep 30; sleep 30' &\n\
        setsid sh -c 'echo $$ >own; sleep 30' &\n\
        (setsid sh -c 'echo $$ >orphan; sleep 30' &)\n\
        while ! [ -s stubborn ] || ! [ -s own ] || ! [ -s orphan ]; do sleep 0.01; done; echo x >ready; wait";
    let output = bench.run_until_ready(command).await;
    assert_eq!(output.exit_code, 130);
    for name in ["stubborn", "own", "orphan"] {
        assert!(!lives(&bench.work().join(name)), "{name}");
    }
}

#[tokio::test]
async fn a_command_may_clean_up_when_it_is_ended() {
    let bench = Bench::new();
    let output =
        bench.run_until_ready("trap 'echo cleaned; exit 1' TERM; echo x >ready; sleep 30 & wait").await;
    assert_eq!(said(&output), ("cleaned\n[the command was interrupted]", 130));
}

#[tokio::test]
async fn an_interrupt_ends_the_command_with_130() {
    let bench = Bench::new();
    let output = bench.run_until_ready("echo out; echo $$ >ready; sleep 30").await;
    assert_eq!(said(&output), ("out\n[the command was interrupted]", 130));
    assert!(output.interrupted && !output.timed_out && !lives(&bench.work().join("ready")));

    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let never = bench.backend.run(bench.spec("touch started"), &cancelled).await.unwrap();
    assert_eq!((never.exit_code, bench.work().join("started").exists()), (130, false));
}

#[tokio::test]
async fn dropping_the_run_kills_the_command() {
    let bench = Bench::new();
    let (ready, cancel) = (bench.work().join("ready"), CancellationToken::new());
    let run = bench.backend.run(bench.spec("echo $$ >ready; sleep 30"), &cancel);
    tokio::select! {
        _ = run => panic!("the command cannot have ended"),
        () = appears(&ready) => {}
    }
    while lives(&ready) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn closing_leaves_nothing_behind() {
    let bench = Bench::new();
    bench.run_spec(bench.spec("export A=1")).await;
    let second = CommandSpec { session: SessionKey::new("s2"), ..bench.spec("true") };
    bench.run_spec(second).await;
    let private = bench.private().unwrap();
    bench.backend.close_session(&SessionKey::new("s1")).await;
    assert!(!private.join("s1").exists() && private.join("s2").exists());
    assert_eq!(bench.run_spec(bench.spec("echo ${A-unset}")).await.output, "unset\n");

    let ready = bench.work().join("ready");
    let cancel = CancellationToken::new();
    let run = bench.backend.run(bench.spec("echo $$ >ready; sleep 30"), &cancel);
    let close = async {
        appears(&ready).await;
        bench.backend.close().await;
    };
    let (output, ()) = tokio::join!(run, close);
    assert_eq!(output.unwrap().exit_code, 130);
    assert!(!lives(&ready) && bench.private().is_none());
    assert!(matches!(bench.backend.run(bench.spec("true"), &cancel).await, Err(TerminalError::Closed)));
}

#[tokio::test]
async fn commands_of_one_session_may_overlap() {
    let bench = Bench::new();
    let (a, b) = tokio::join!(
        bench.run_spec(bench.spec("echo a; export A=1")),
        bench.run_spec(bench.spec("echo b; export B=1"))
    );
    assert_eq!((said(&a), said(&b)), (("a\n", 0), ("b\n", 0)));
    let left: Vec<String> = fs::read_dir(bench.private().unwrap().join("s1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "snapshot" && name != "leave")
        .collect();
    assert_eq!(left, Vec::<String>::new(), "no file of a finished command stays");
}

#[tokio::test]
async fn a_command_longer_than_an_argument_may_be_runs() {
    let mut bench = Bench::new();
    let command = format!("x='{}'; echo ${{#x}}", "y".repeat(300_000));
    assert_eq!(bench.run(&command).await.output, "300000\n");
}

#[test]
fn a_spec_shows_no_values() {
    let bench = Bench::new();
    let spec = CommandSpec { stdin: Some("s3cret".into()), ..bench.spec("true") };
    let shown = format!("{spec:?}");
    assert!(
        shown.contains("PATH") && !shown.contains("/usr/local/bin") && !shown.contains("s3cret"),
        "{shown}"
    );
}

//! One session's shell state on this machine: the snapshot, and the files around each command.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::group::{ProcessGroup, RUN_MARK};
use super::marker::Marker;
use super::script;
use super::shell::{Dialect, Shell};
use crate::child_env::TOOL_MARK;
use crate::settings::{TerminalSettings, expand_home};

/// How long a login shell and the user's own files may take (spec 40 §7.1).
const INIT_LIMIT: Duration = Duration::from_secs(30);
/// How long a bare shell may take.
const BARE_LIMIT: Duration = Duration::from_secs(10);
/// A snapshot larger than this is not taken over: every command would have to load it.
const MAX_SNAPSHOT_BYTES: u64 = 4 * 1024 * 1024;
/// How many full logs of one session are kept.
const MAX_LOGS: u64 = 8;

/// What every session of a backend shares.
#[derive(Debug)]
pub(super) struct SessionSetup {
    pub(super) settings: TerminalSettings,
    /// Names that no snapshot holds: they are given to each command anew, or not at all.
    pub(super) hidden: Vec<String>,
}

/// The shell state of one session.
#[derive(Debug)]
pub(super) struct ShellSession {
    shell: Shell,
    marker: Marker,
    hidden: BTreeSet<OsString>,
    /// Where the files stand; `None` when there is no snapshot, and each command is a plain `bash -c`.
    folder: Option<PathBuf>,
    /// Start plain commands as a login shell: the bare one did not work.
    login: bool,
    /// The variables as given when the snapshot was last brought up to date.
    given: Mutex<BTreeMap<OsString, OsString>>,
    next: AtomicU64,
}

/// A command that is ready to be started.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) command: Command,
    files: Option<CommandFiles>,
    /// Where the whole output may go when it is too long.
    pub(super) log: Option<PathBuf>,
}

/// A background process that is ready to be started.
#[derive(Debug)]
pub struct BackgroundCommand {
    pub(crate) command: Command,
    /// What all its processes carry in their start environment.
    pub(crate) mark: String,
    /// Read by the shell when it starts; kept until the process ends.
    _files: Option<CommandFiles>,
}

/// The files of one command; removed when this is dropped.
#[derive(Debug)]
struct CommandFiles {
    enter: PathBuf,
    command: PathBuf,
    dump: PathBuf,
    snapshot: PathBuf,
}

impl ShellSession {
    /// Makes the snapshot. `None` when `cancel` came first.
    ///
    /// A login shell with the user's files is tried first, then a bare shell; when neither can write a
    /// snapshot, commands run plainly and nothing but the directory persists.
    pub(super) async fn start(
        shell: Shell,
        folder: Option<PathBuf>,
        setup: &SessionSetup,
        env: &[(OsString, OsString)],
        cancel: &CancellationToken,
    ) -> Option<Self> {
        let marker = Marker::new();
        let mut session = Self {
            hidden: setup.hidden.iter().map(OsString::from).collect(),
            folder: None,
            login: false,
            given: Mutex::new(env.iter().cloned().collect()),
            next: AtomicU64::new(1),
            shell,
            marker,
        };
        if let Some(folder) = folder {
            let home = env.iter().find(|(name, _)| name == "HOME").map(|(_, value)| PathBuf::from(value));
            let files = init_files(&setup.settings, session.shell.dialect, home.as_deref());
            for (login, files, limit) in [(true, files, INIT_LIMIT), (false, Vec::new(), BARE_LIMIT)] {
                let made = session.make_snapshot(&folder, &setup.hidden, env, (login, &files), limit);
                let made = tokio::select! {
                    made = made => made,
                    () = cancel.cancelled() => return None,
                };
                match made {
                    Ok(()) => {
                        session.folder = Some(folder);
                        return Some(session);
                    }
                    Err(error) => tracing::warn!(login, %error, "shell snapshot not made"),
                }
            }
        }
        session.login = !session.bare_shell_works(env).await;
        tracing::warn!(login = session.login, "commands run without snapshot: exports do not persist");
        Some(session)
    }

    async fn make_snapshot(
        &self,
        folder: &Path,
        hidden: &[String],
        env: &[(OsString, OsString)],
        (login, files): (bool, &[PathBuf]),
        limit: Duration,
    ) -> io::Result<()> {
        let dialect = self.shell.dialect;
        let (leave, init, dump) = (folder.join("leave"), folder.join("init"), folder.join("snapshot.new"));
        write_private(&leave, &script::leave(dialect, &self.marker, hidden))?;
        let given = env.iter().filter(|(name, _)| script::is_identifier(name));
        let given = given.map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        let text = script::init(dialect, &script::Init { leave: &leave, dump: &dump, files, given });
        write_private(&init, &text)?;
        let mut command = Command::new(&self.shell.program);
        if login {
            command.arg("-l");
        }
        // `.` by absolute path, so that messages of the user's own files name those files.
        let call = [b". ".to_vec(), script::quote(os_bytes(init.as_os_str()))].concat();
        command.arg("-c").arg(bytes_os(call)).arg(self.shell.name());
        let mark = format!("init-{}", self.marker.id());
        command.env_clear().envs(env.iter().cloned()).env(RUN_MARK, &mark);
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let group = ProcessGroup::new(&child, &mark);
        // The status does not count: a broken line at the end of a file is no reason to lose the rest.
        if tokio::time::timeout(limit, child.wait()).await.is_ok() {
            group.release();
        } else {
            group.end(&mut child).await?;
        }
        let _ = fs::remove_file(&init);
        adopt(&dump, &folder.join("snapshot"))
    }

    async fn bare_shell_works(&self, env: &[(OsString, OsString)]) -> bool {
        let mut command = Command::new(&self.shell.program);
        command.arg("-c").arg(":").env_clear().envs(env.iter().cloned()).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        matches!(
            tokio::time::timeout(BARE_LIMIT, command.status()).await,
            Ok(Ok(status)) if status.success()
        )
    }

    /// Whether the files still stand: a cleaner of temp folders may have taken them.
    pub(super) fn is_intact(&self) -> bool {
        self.folder.as_ref().is_none_or(|folder| folder.join("snapshot").exists())
    }

    pub(super) fn marker(&self) -> &Marker {
        &self.marker
    }

    pub(super) fn shell(&self) -> &Shell {
        &self.shell
    }

    /// Readies one command to run in `cwd`. When its files cannot be written (a full disk), it runs plainly.
    ///
    /// With `own_session` the shell is started by somebody who makes it the leader of a terminal session.
    pub(super) fn prepare(
        &self,
        command: &str,
        cwd: &Path,
        env: &[(OsString, OsString)],
        mark: &str,
        own_session: bool,
    ) -> Prepared {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(folder) = &self.folder {
            match self.prepare_with_snapshot(folder, number, command, cwd, (env, mark, own_session)) {
                Ok(prepared) => return prepared,
                Err(error) => {
                    tracing::warn!(%error, "command runs without snapshot: its files cannot be written");
                }
            }
        }
        let mut shell = self.shell_command(own_session);
        if self.login {
            shell.arg("-l");
        }
        shell.arg("-c").arg(script::launch_plain(&self.marker, cwd)).arg(self.shell.name()).arg(command);
        shell.envs(env.iter().cloned()).env(RUN_MARK, mark);
        Prepared { command: shell, files: None, log: None }
    }

    fn prepare_with_snapshot(
        &self,
        folder: &Path,
        number: u64,
        command: &str,
        cwd: &Path,
        (env, mark, own_session): (&[(OsString, OsString)], &str, bool),
    ) -> io::Result<Prepared> {
        let dialect = self.shell.dialect;
        let leave = folder.join("leave");
        let files = CommandFiles::new(folder, number);
        let mut shell = self.shell_command(own_session);
        let run_mark = OsString::from(mark);
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (exports, removed) = self.variables(&mut shell, env, &given, &run_mark);
        let enter = script::Enter {
            snapshot: &files.snapshot,
            leave: &leave,
            dump: &files.dump,
            cwd,
            exports,
            removed,
        };
        write_private(&files.enter, &script::enter(dialect, &enter))?;
        write_private(&files.command, command.as_bytes())?;
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = env.iter().cloned().collect();
        let launch = script::launch(dialect, &files.enter, &files.command, &leave, &files.dump);
        shell.arg("-c").arg(launch).arg(self.shell.name());
        if let Some(old) = number.checked_sub(MAX_LOGS) {
            let _ = fs::remove_file(log_path(folder, old));
        }
        Ok(Prepared { command: shell, files: Some(files), log: Some(log_path(folder, number)) })
    }

    /// Readies a background process: it starts with the session's state, and leaves nothing to it. It runs in
    /// `other`, a shell of the user's own, when there is one.
    pub(super) fn prepare_background(
        &self,
        command: &str,
        cwd: &Path,
        env: &[(OsString, OsString)],
        other: Option<&Path>,
        own_session: bool,
    ) -> BackgroundCommand {
        let mark = uuid::Uuid::new_v4().simple().to_string();
        let mut shell = self.shell_command(own_session);
        let made =
            self.folder.as_ref().map(|folder| self.background_files(folder, command, cwd, env, &mut shell));
        let files = match made {
            Some(Ok(files)) => {
                let launch = script::launch_only(self.shell.dialect, &files.enter, &files.command, other);
                shell.arg("-c").arg(launch).arg(self.shell.name());
                Some(files)
            }
            failed => {
                if let Some(Err(error)) = failed {
                    tracing::warn!(%error, "command runs without snapshot: its files cannot be written");
                }
                if self.login {
                    shell.arg("-l");
                }
                shell.arg("-c").arg(script::launch_only_plain(cwd)).arg(self.shell.name()).arg(command);
                shell.envs(env.iter().cloned());
                None
            }
        };
        shell.env(RUN_MARK, &mark);
        BackgroundCommand { command: shell, mark, _files: files }
    }

    fn background_files(
        &self,
        folder: &Path,
        command: &str,
        cwd: &Path,
        env: &[(OsString, OsString)],
        shell: &mut Command,
    ) -> io::Result<CommandFiles> {
        let files = CommandFiles::new(folder, self.next.fetch_add(1, Ordering::Relaxed));
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let run_mark = OsString::new();
        let (mut exports, removed) = self.variables(shell, env, &given, &run_mark);
        // It stands in the start environment, and the snapshot has none.
        exports.retain(|(name, _)| *name != RUN_MARK);
        let (leave, dump) = (Path::new(""), Path::new(""));
        let enter = script::Enter { snapshot: &files.snapshot, leave, dump, cwd, exports, removed };
        write_private(&files.enter, &script::enter_only(self.shell.dialect, &enter))?;
        write_private(&files.command, command.as_bytes())?;
        Ok(files)
    }

    /// What a command must export and unset after it has loaded the snapshot, whose variables were `given`. What no
    /// snapshot may hold goes into the start environment of `shell`.
    fn variables<'a>(
        &self,
        shell: &mut Command,
        env: &'a [(OsString, OsString)],
        given: &'a BTreeMap<OsString, OsString>,
        run_mark: &'a OsString,
    ) -> (Vec<(&'a OsStr, &'a OsStr)>, Vec<&'a OsStr>) {
        let mut exports: Vec<(&OsStr, &OsStr)> = vec![(OsStr::new(RUN_MARK), run_mark)];
        for (name, value) in env {
            // Hidden variables are in no snapshot, and the mark of the agent's processes must stand in the
            // start environment of each of them (contract §7).
            let always = name == TOOL_MARK;
            if always || self.hidden.contains(name) || !script::is_identifier(name) {
                shell.env(name, value);
            }
            if (always || given.get(name) != Some(value)) && script::is_identifier(name) {
                exports.push((name, value));
            }
        }
        let is_given = |name: &OsString| env.iter().any(|(known, _)| known == name);
        let removed = given
            .keys()
            .filter(|name| !is_given(name) && script::is_identifier(name))
            .map(OsString::as_os_str)
            .collect();
        shell.env(RUN_MARK, run_mark);
        (exports, removed)
    }

    fn shell_command(&self, own_session: bool) -> Command {
        let mut command = Command::new(&self.shell.program);
        command.env_clear().current_dir("/");
        // The leader of a group cannot begin a session.
        if !own_session {
            command.process_group(0);
        }
        command
    }
}

impl Prepared {
    /// After the command: takes over what it exported, if its shell came to write it, and removes its files.
    pub(super) fn finish(self) {
        let Some(files) = &self.files else { return };
        match adopt(&files.dump, &files.snapshot) {
            Ok(()) => {}
            // A shell that was replaced or killed writes none; the old snapshot stays.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "shell snapshot not taken over"),
        }
    }
}

impl CommandFiles {
    fn new(folder: &Path, number: u64) -> Self {
        Self {
            enter: folder.join(format!("enter-{number}")),
            command: folder.join(format!("command-{number}")),
            dump: folder.join(format!("snapshot-{number}")),
            snapshot: folder.join("snapshot"),
        }
    }
}

impl Drop for CommandFiles {
    fn drop(&mut self) {
        for path in [&self.enter, &self.command, &self.dump] {
            let _ = fs::remove_file(path);
        }
    }
}

fn log_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("output-{number}.log"))
}

/// The files to source beside what the login shell sources by itself.
fn init_files(settings: &TerminalSettings, dialect: Dialect, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(home) = home else { return Vec::new() };
    if !settings.shell_init_files.is_empty() {
        return settings.shell_init_files.iter().map(|file| expand_home(file, home)).collect();
    }
    if !settings.auto_source_bashrc || dialect == Dialect::Posix {
        return Vec::new();
    }
    // A login shell has already read the first of these that it can.
    let by_login = [".bash_profile", ".bash_login", ".profile"]
        .map(|name| home.join(name))
        .into_iter()
        .find(|path| fs::File::open(path).is_ok());
    [".profile", ".bash_profile", ".bashrc"]
        .map(|name| home.join(name))
        .into_iter()
        .filter(|path| Some(path) != by_login.as_ref())
        .collect()
}

/// Puts a complete new snapshot in the place of the old one, at once.
fn adopt(dump: &Path, snapshot: &Path) -> io::Result<()> {
    let mut file = fs::File::open(dump)?;
    let length = file.metadata()?.len();
    if length > MAX_SNAPSHOT_BYTES {
        return Err(io::Error::other(format!("the exported state has {length} bytes")));
    }
    let end = script::END.len() as u64;
    let mut tail = Vec::new();
    if length >= end {
        file.seek(SeekFrom::Start(length - end))?;
        file.read_to_end(&mut tail)?;
    }
    if tail != script::END {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the snapshot is incomplete"));
    }
    fs::rename(dump, snapshot)
}

fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text)
}

fn os_bytes(text: &OsStr) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(text)
}

fn bytes_os(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_login_shell_reads_is_not_read_twice() {
        let home = tempfile::tempdir().unwrap();
        let settings = TerminalSettings::default();
        let names = |settings: &TerminalSettings| -> Vec<String> {
            init_files(settings, Dialect::Bash, Some(home.path()))
                .iter()
                .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
                .collect()
        };
        fs::write(home.path().join(".profile"), "").unwrap();
        assert_eq!(names(&settings), [".bash_profile", ".bashrc"]);
        fs::write(home.path().join(".bash_profile"), "").unwrap();
        assert_eq!(names(&settings), [".profile", ".bashrc"]);
        let off = TerminalSettings { auto_source_bashrc: false, ..settings.clone() };
        assert!(names(&off).is_empty());
        let own = TerminalSettings { shell_init_files: vec!["~/mine".to_owned()], ..off };
        assert_eq!(names(&own), ["mine"]);
    }

    #[test]
    fn only_a_complete_snapshot_is_taken_over() {
        let temp = tempfile::tempdir().unwrap();
        let (dump, snapshot) = (temp.path().join("new"), temp.path().join("old"));
        fs::write(&snapshot, "old").unwrap();
        for broken in ["", "declare -x A=1\n", "#hermes"] {
            fs::write(&dump, broken).unwrap();
            assert!(adopt(&dump, &snapshot).is_err());
        }
        assert_eq!(fs::read_to_string(&snapshot).unwrap(), "old");
        let whole = [b"declare -x A=1\n", script::END].concat();
        fs::write(&dump, &whole).unwrap();
        adopt(&dump, &snapshot).unwrap();
        assert_eq!(fs::read(&snapshot).unwrap(), whole);
    }
}

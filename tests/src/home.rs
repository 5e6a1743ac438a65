//! A temporary home with its own daemon, driven through the real binaries.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binary;

/// Longest that one command may take before the test gives up on it.
const COMMAND_LIMIT: Duration = Duration::from_mins(1);
/// Between two looks at something that is awaited.
const LOOK: Duration = Duration::from_millis(2);

/// A home of its own, a folder to work in, and nothing of the caller's environment.
#[derive(Debug)]
pub struct TestHome {
    root: TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug, Clone)]
pub struct CliOutput {
    pub stdout: String,
    pub stderr: String,
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
}

impl CliOutput {
    /// Panics with all that was printed unless the command ended with `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Panics unless the command succeeded.
    #[track_caller]
    pub fn success(self) -> Self {
        self.expect_code(0)
    }

    /// The JSON document on stdout.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}\nstderr: {}", self.stdout, self.stderr))
    }
}

impl Default for TestHome {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHome {
    /// An empty home: no model, so the `offline` provider answers.
    pub fn new() -> Self {
        let root =
            tempfile::Builder::new().prefix("hermes-test-").tempdir().expect("a temp folder can be made");
        std::fs::create_dir(root.path().join("work")).expect("a fresh folder is writable");
        Self { root }
    }

    /// A home whose `config.yaml` is `yaml`.
    pub fn with_config(yaml: &str) -> Self {
        let home = Self::new();
        home.write_config(yaml);
        home
    }

    /// The profile's home directory.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The folder in which commands run.
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Replaces `config.yaml`.
    pub fn write_config(&self, yaml: &str) {
        std::fs::create_dir_all(self.dir()).expect("the home can be made");
        std::fs::write(self.dir().join("config.yaml"), yaml).expect("the home is writable");
    }

    /// Writes a file of the working folder and returns its path.
    pub fn write_file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("the working folder is writable");
        }
        std::fs::write(&path, content).expect("the working folder is writable");
        path
    }

    /// A command on the real binary, with this home and a bare environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(binary(program));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path())
            .env("HERMES_HOME", self.dir())
            .env("LANG", "C.UTF-8")
            .env("TMPDIR", self.root.path())
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Runs `hermes-cli` to its end.
    pub fn cli<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> CliOutput {
        let mut command = self.command("hermes-cli");
        command.args(args);
        run(command, None)
    }

    /// Runs `hermes-cli` with something on its standard input.
    pub fn cli_with_stdin<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        stdin: &[u8],
    ) -> CliOutput {
        let mut command = self.command("hermes-cli");
        command.args(args);
        run(command, Some(stdin.to_vec()))
    }

    /// Starts `hermes-cli` and leaves it running.
    pub fn spawn_cli<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Child {
        let mut command = self.command("hermes-cli");
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("hermes-cli can be started")
    }

    /// The running daemon's process id, from `run/daemon.json`.
    pub fn daemon_pid(&self) -> Option<u32> {
        let text = std::fs::read_to_string(self.dir().join("run/daemon.json")).ok()?;
        let json: serde_json::Value = serde_json::from_str(&text).ok()?;
        u32::try_from(json["pid"].as_u64()?).ok()
    }

    /// Sends a signal to the daemon and waits until the process is gone.
    pub fn kill_daemon(&self, signal: &str) {
        let Some(pid) = self.daemon_pid() else { return };
        let _ = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status();
        wait_until("the daemon to be gone", || !is_alive(pid));
    }

    /// The path of the database.
    pub fn database(&self) -> PathBuf {
        self.dir().join("state.db")
    }
}

impl Drop for TestHome {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.dir().join("logs/agent.log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            for line in tail.into_iter().rev() {
                eprintln!("agent.log: {line}");
            }
        }
        self.kill_daemon("KILL");
    }
}

/// Waits for `condition`, looking often; panics after thirty seconds.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        pause();
    }
}

/// Other processes give no event to wait for, so they are looked at again and again.
#[expect(clippy::disallowed_methods, reason = "polling another process has no event to wait for")]
fn pause() {
    std::thread::sleep(LOOK);
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    // A zombie has ended; its parent may not have looked yet.
    stat.is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

/// Runs a command to its end and collects what it prints.
pub fn run(mut command: Command, stdin: Option<Vec<u8>>) -> CliOutput {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if stdin.is_some() {
        command.stdin(Stdio::piped());
    }
    let child = command.spawn().expect("the binary can be started");
    finish(child, stdin)
}

/// Waits for a started command and collects what it prints.
pub fn finish(mut child: Child, stdin: Option<Vec<u8>>) -> CliOutput {
    let writer = child.stdin.take().zip(stdin).map(|(mut pipe, data)| {
        std::thread::spawn(move || {
            // The command may end without reading all of it.
            let _ = std::io::Write::write_all(&mut pipe, &data);
        })
    });
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let status = wait(&mut child);
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    let text = |reader: Option<std::thread::JoinHandle<Vec<u8>>>| {
        let bytes = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    CliOutput { stdout: text(stdout), stderr: text(stderr), code: status.code() }
}

fn collect(pipe: Option<impl std::io::Read + Send + 'static>) -> Option<std::thread::JoinHandle<Vec<u8>>> {
    pipe.map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    })
}

fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + COMMAND_LIMIT;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the command did not end within {COMMAND_LIMIT:?}");
        }
        pause();
    }
}

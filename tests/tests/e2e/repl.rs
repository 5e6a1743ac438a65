//! A person at a terminal: the chat asks before something dangerous is done, and the answer counts.

use std::io::{Read as _, Write as _};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hermes_tests::{ModelServer, Reply, TestHome};
use serde_json::json;

/// `hermes-cli` on a terminal of its own.
struct Terminal {
    child: Child,
    input: Arc<pty_process::blocking::Pty>,
    shown: Arc<Mutex<String>>,
    /// How much of what was shown was waited for already.
    seen: usize,
}

impl Terminal {
    fn start(home: &TestHome, args: &[&str], columns: u16) -> Self {
        let (terminal, other_side) = pty_process::blocking::open().unwrap();
        terminal.resize(pty_process::Size::new(24, columns)).unwrap();
        let mut command = home.command("hermes-cli");
        command.args(args).env("TERM", "dumb");
        let child = pty_process::blocking::Command::from(command).spawn(other_side).unwrap();
        let input = Arc::new(terminal);
        let shown: Arc<Mutex<String>> = Arc::default();
        let (output, screen) = (Arc::clone(&input), Arc::clone(&shown));
        // Ends with the terminal.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut bytes = Vec::new();
            while let Ok(count) = (&*output).read(&mut buffer) {
                if count == 0 {
                    break;
                }
                bytes.extend_from_slice(&buffer[..count]);
                *screen.lock().unwrap() = String::from_utf8_lossy(&bytes).into_owned();
            }
        });
        Self { child, input, shown, seen: 0 }
    }

    /// Waits until `text` is shown after what was waited for before; gives what is shown up to it.
    #[track_caller]
    fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let shown = self.shown.lock().unwrap().clone();
            let fresh = shown.get(self.seen..).unwrap_or_default();
            if let Some(at) = fresh.find(text) {
                let end = at + text.len();
                self.seen += end;
                return fresh.get(..end).unwrap_or_default().to_owned();
            }
            assert!(Instant::now() < deadline, "waited in vain for {text:?}; shown: {fresh}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn enter(&mut self, line: &str) {
        self.press(format!("{line}\n").as_bytes());
    }

    fn press(&mut self, keys: &[u8]) {
        (&*self.input).write_all(keys).unwrap();
    }

    fn all(&self) -> String {
        self.shown.lock().unwrap().clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every turn deletes the folder `build` in the terminal.
fn deleting() -> (ModelServer, TestHome) {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::call("terminal", &json!({ "command": "rm -rf build" })),
        _ => Reply::text("that was it"),
    });
    let home = TestHome::with_config(&format!("{}approvals: {{mode: manual}}\n", server.config()));
    fill(&home);
    (server, home)
}

fn fill(home: &TestHome) {
    home.write_file("build/out.o", "x");
}

fn is_there(home: &TestHome) -> bool {
    home.work().join("build").exists()
}

#[test]
fn enter_denies_o_allows_once_and_s_remembers() {
    let (server, home) = deleting();
    let mut terminal = Terminal::start(&home, &[], 40);
    terminal.wait_for("❯ ");
    terminal.enter("clean up");
    let screen = terminal.wait_for("Enter denies ❯ ");
    assert!(screen.contains("⚠ terminal needs approval") && screen.contains("│ rm -rf build"), "{screen}");
    assert!(screen.contains("[o]nce [s]ession"), "{screen}");
    terminal.enter("");
    terminal.wait_for("→ denied");
    terminal.wait_for("that was it");
    assert!(is_there(&home));

    // Anything unclear is asked again, once; then a reason goes to the model.
    terminal.wait_for("❯ ");
    terminal.enter("clean up");
    terminal.wait_for("Enter denies ❯ ");
    terminal.enter("y");
    terminal.wait_for("one more try");
    terminal.enter("d keep it until Friday");
    terminal.wait_for("that was it");
    assert!(is_there(&home));
    let told = server.requests().last().unwrap().body.to_string();
    assert!(told.contains("keep it until Friday"), "{told}");

    terminal.wait_for("❯ ");
    terminal.enter("clean up");
    terminal.wait_for("Enter denies ❯ ");
    terminal.enter("o");
    terminal.wait_for("→ allowed once");
    terminal.wait_for("that was it");
    assert!(!is_there(&home));

    fill(&home);
    terminal.wait_for("❯ ");
    terminal.enter("clean up");
    terminal.wait_for("Enter denies ❯ ");
    terminal.enter("s");
    terminal.wait_for("→ allowed for this session");
    terminal.wait_for("that was it");
    assert!(!is_there(&home));

    // It is remembered: the same command is not asked for again.
    fill(&home);
    terminal.wait_for("❯ ");
    terminal.enter("clean up");
    let screen = terminal.wait_for("that was it");
    assert!(!screen.contains("needs approval") && !is_there(&home), "{screen}");
    server.assert_clean();
}

#[test]
fn what_was_typed_before_the_question_is_no_answer_and_goes_to_the_chat() {
    let (server, home) = deleting();
    let mut terminal = Terminal::start(&home, &[], 80);
    terminal.wait_for("❯ ");
    // Both lines are there before the question is.
    terminal.press(b"clean up\no\n");
    terminal.wait_for("Enter denies ❯ ");
    terminal.enter("");
    terminal.wait_for("→ denied");
    // The second line is the next prompt.
    terminal.wait_for("Enter denies ❯ ");
    terminal.enter("d");
    terminal.wait_for("→ denied");
    terminal.wait_for("that was it");
    assert!(is_there(&home), "{}", terminal.all());
    let prompts: Vec<String> = server.requests().iter().map(hermes_tests::ModelRequest::last_user).collect();
    assert_eq!(prompts.last().map(String::as_str), Some("o"), "{prompts:?}");
}

#[test]
fn ctrl_c_denies_and_stops_the_turn() {
    let (_server, home) = deleting();
    let mut terminal = Terminal::start(&home, &["-q", "clean up"], 80);
    terminal.wait_for("Enter denies ❯ ");
    terminal.press(b"\x03");
    terminal.wait_for("→ denied");
    terminal.wait_for("session_id: ");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(130), "{}", terminal.all());
    assert!(is_there(&home));
}

#[test]
fn a_question_that_times_out_disappears_with_a_word() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::call("terminal", &json!({ "command": "rm -rf build" })),
        _ => Reply::text("that was it"),
    });
    let home =
        TestHome::with_config(&format!("{}approvals: {{mode: manual, timeout: 1}}\n", server.config()));
    fill(&home);
    let mut terminal = Terminal::start(&home, &[], 80);
    terminal.wait_for("❯ ");
    terminal.enter("clean up");
    terminal.wait_for("→ no answer in time: denied");
    terminal.wait_for("that was it");
    terminal.wait_for("❯ ");
    // The line goes to the chat, not to the question that is gone.
    terminal.enter("/exit");
    terminal.wait_for("resume: ");
    assert!(terminal.child.wait().unwrap().success() && is_there(&home));
}

#[test]
fn a_turn_that_a_background_process_calls_for_is_shown() {
    let server = ModelServer::start(|request| {
        if request.last_user().contains("process_notice") {
            return Reply::text("the job has come to its end");
        }
        match request.results_since_user() {
            0 => Reply::call(
                "terminal",
                &json!({ "command": "until [ -e go ]; do sleep 0.05; done; echo over", "background": true, "notify_on_complete": true }),
            ),
            _ => Reply::text("it runs"),
        }
    });
    let home = TestHome::with_config(&server.config());
    let mut terminal = Terminal::start(&home, &[], 80);
    terminal.wait_for("❯");
    terminal.enter("begin");
    terminal.wait_for("it runs");
    terminal.wait_for("❯");
    home.write_file("go", "");
    terminal.wait_for("not begun here");
    terminal.wait_for("the job has come to its end");
    terminal.wait_for("❯");
}

#[test]
fn undo_asks_at_a_terminal_and_enter_is_no() {
    let server = ModelServer::start(|request| match request.results_since_user() {
        0 => Reply::call("write_file", &json!({ "path": "a.txt", "content": "x" })),
        _ => Reply::text("done"),
    });
    let home = TestHome::with_config(&server.config());
    home.cli(["-z", "go"]).success();
    let mut terminal = Terminal::start(&home, &["undo"], 80);
    terminal.wait_for("Undo this? [y/N] ");
    terminal.enter("");
    terminal.wait_for("nothing was changed");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(1));
    assert!(home.work().join("a.txt").exists());
    let mut terminal = Terminal::start(&home, &["undo"], 80);
    terminal.wait_for("Undo this? [y/N] ");
    terminal.enter("y");
    terminal.wait_for("1 removed");
    assert!(terminal.child.wait().unwrap().success() && !home.work().join("a.txt").exists());
}

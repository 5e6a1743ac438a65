//! Lines that a person types, one at a time and each for whom it was meant.
//!
//! A thread reads, so that signals and events are heard meanwhile. A read that nobody waits for any more is not lost:
//! its line goes to whoever asks next. What was typed before a question was shown is never the answer to it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

/// What came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// Without its line end.
    Line(String),
    /// Ctrl+D, or a terminal that is gone.
    End,
}

/// The terminal's lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    reading: Option<oneshot::Receiver<Typed>>,
    /// Typed ahead, for the chat's own prompt.
    aside: VecDeque<Typed>,
}

impl Lines {
    /// The next line: for a question, if one stands on the screen, else for the chat itself. Cancel-safe.
    pub(super) async fn read(&mut self, for_question: bool) -> Typed {
        if !for_question && let Some(typed) = self.aside.pop_front() {
            return typed;
        }
        self.fresh().await
    }

    /// The next line that comes from now on, for a question that stands on the screen. Cancel-safe.
    pub(super) async fn fresh(&mut self) -> Typed {
        let reading = self.reading.get_or_insert_with(|| {
            let (sender, receiver) = oneshot::channel();
            tokio::task::spawn_blocking(move || sender.send(read_line()));
            receiver
        });
        let typed = reading.await.unwrap_or(Typed::End);
        self.reading = None;
        typed
    }

    /// Puts whole lines aside that were typed before a question is shown.
    pub(super) fn put_aside(&mut self) {
        if let Some(reading) = &mut self.reading {
            let Ok(typed) = reading.try_recv() else { return };
            self.reading = None;
            self.aside.push_back(typed);
        }
        while is_ready() {
            let typed = read_line();
            let ended = typed == Typed::End;
            self.aside.push_back(typed);
            if ended {
                break;
            }
        }
    }
}

fn read_line() -> Typed {
    let mut line = String::new();
    match io::stdin().read_line(&mut line) {
        Ok(count) if count > 0 => Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
        _ => Typed::End,
    }
}

/// Whether a whole line waits: a terminal gives no part of one.
fn is_ready() -> bool {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|count| count > 0)
        && polled.first().and_then(PollFd::revents).is_some_and(|events| events.contains(PollFlags::POLLIN))
}

/// What is typed is not shown as long as this lives. At its beginning and end what stands in the line is thrown
/// away, so that a half of a password never becomes a part of something else.
#[derive(Debug)]
pub(super) struct Hidden {
    before: Termios,
}

impl Hidden {
    pub(super) fn begin() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut hidden = before.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        hidden.local_flags.insert(LocalFlags::ECHONL | LocalFlags::ICANON);
        tcsetattr(&stdin, SetArg::TCSAFLUSH, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &self.before);
    }
}
